"""Text that encodes bytes: what it is and how large, as nothing in it can be read."""

from __future__ import annotations

import base64
import binascii
import re

__all__ = ["described_bytes"]

_DATA_URL = re.compile(r"\s*data:([\w/+.-]{0,100})((?:;[\w=-]{1,60}){0,4}),")
_BASE64_START = re.compile(r"[A-Za-z0-9+/_=\s-]{100}")
_HEX_START = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]*){50}")
_ARMOUR = re.compile(r"\s*-----BEGIN ([^-\n]{1,80})-----\s*")
_MIXED = re.compile(r"[a-z].*[A-Z]|[A-Z].*[a-z]", re.DOTALL)
_BLANKS = re.compile(r"[\s:]+")
_MAGIC = (
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive or Office document"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
    (b"7z\xbc\xaf", "7-Zip archive"),
    (b"\x7fELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\0asm", "WebAssembly"),
    (b"SQLite format 3", "SQLite database"),
    (b"OggS", "Ogg sound"),
    (b"ID3", "MP3 sound"),
    (b"RIFF", "RIFF (WebP, WAV or AVI)"),
    (b"wOF", "web font"),
    (b"PAR1", "Parquet table"),
    (b"\x30\x82", "DER certificate or key"),
    (b"\xca\xfe\xba\xbe", "Java class"),
    (b"<?xml", "XML"),
    (b"<svg", "SVG image"),
)


def described_bytes(text: str) -> str | None:
    """Describe the bytes that a text encodes as a data URL, base64 or hexadecimal digits; None if it encodes none."""
    if named := _DATA_URL.match(text):
        is_base64, rest = "base64" in named[2], len(text) - named.end()
        data = _decoded(text[named.end() : named.end() + 400]) if is_base64 else b""
        size = rest * 3 // 4 if is_base64 else rest
        return f"data URL of {named[1] or 'text/plain'}, {_described(data, size)}"
    armour = _ARMOUR.match(text)
    body = text[armour.end() :] if armour else text.lstrip()
    if _HEX_START.match(body):
        digits = len(body) - sum(map(body.count, " \n\r\t:"))
        return f"hexadecimal digits, {_described(_unhexed(body[:1000]), digits // 2)}"
    if not _is_base64(body):
        return None
    size = (len(body) - body.count("\n") - body.count("\r")) * 3 // 4
    return f"base64{f' ({armour[1]})' if armour else ''}, {_described(_decoded(body[:400]), size)}"


def _is_base64(body: str) -> bool:
    middle = body[len(body) // 2 :][:100]
    if max(len(body[:100].split()), len(middle.split())) > 3:
        # Words without any mark between them.
        return False
    return all(map(_BASE64_START.fullmatch, (body[:100], middle.ljust(100, "=")))) and (
        _MIXED.search(middle) is not None or _is_ascii_text(_decoded(body[:400]))
    )


def _is_ascii_text(data: bytes) -> bool:
    return bool(data) and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data[:100])


def _described(data: bytes, size: int) -> str:
    about = f"about {size:,} bytes"
    kind = next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)
    if kind is None and data[4:8] == b"ftyp":
        kind = "MP4 or HEIF"
    if kind is None and _is_ascii_text(data):
        kind = f"text that begins {data[:60].decode('ascii')!r}"
    return f"{about}, {kind or 'of unknown kind'}"


def _decoded(start: str) -> bytes:
    letters = re.sub(r"\s+", "", start).replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(letters[: len(letters) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _unhexed(start: str) -> bytes:
    digits = _BLANKS.sub("", start)
    try:
        return bytes.fromhex(digits[: len(digits) // 2 * 2])
    except ValueError:
        return b""
