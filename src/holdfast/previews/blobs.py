"""Encoded data and lines too long to read: what they are, how large, and a glance into them."""

from __future__ import annotations

import base64
import binascii
import re

from holdfast.previews.quoting import at_most, counted, lines_of
from holdfast.previews.room import Room

__all__ = ["encodes_text", "preview_blob", "preview_long_lines"]

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
_SHOWN = 120
_LONG_LINE, _LONG_SHARE = 2_000, 0.5
_WINDOW = 240


def preview_blob(text: str, room: Room) -> str | None:
    """Return what encoded data is and how large; None if the text is no such data."""
    encoded = _encoded(text)
    if encoded is None:
        return None
    said = f"{encoded}\nbegins: {text.strip()[:_SHOWN]}…\nNothing in it can be read as text."
    return "\n".join(room.take_all(said.split("\n"))) or None


def _encoded(text: str) -> str | None:
    """Return a description of data in base64 or hexadecimal digits, or None if the text is no such data."""
    lines = f"{counted(text.count(chr(10)) + 1, 'line')}, {counted(len(text), 'character')}"
    if named := _DATA_URL.match(text):
        way = "base64" if "base64" in named[2] else "plain"
        data = _decoded(text[named.end() : named.end() + 400]) if way == "base64" else b""
        size = (len(text) - named.end()) * 3 // 4 if way == "base64" else len(text) - named.end()
        return f"data URL of {named[1] or 'text/plain'}, {way}, {_described(data, size)}, {lines}"
    armour = _ARMOUR.match(text)
    body = text[armour.end() :] if armour else text.lstrip()
    if _HEX_START.match(body):
        digits = len(body) - sum(map(body.count, " \n\r\t:"))
        return f"hexadecimal digits, {_described(_unhexed(body[:1000]), digits // 2)}, {lines}"
    if not _is_base64(body):
        return None
    size = (len(body) - body.count("\n") - body.count("\r")) * 3 // 4
    return f"base64{f' ({armour[1]})' if armour else ''}, {_described(_decoded(body[:400]), size)}, {lines}"


def _is_base64(body: str) -> bool:
    middle = body[len(body) // 2 :][:100]
    return all(map(_BASE64_START.fullmatch, (body[:100], middle.ljust(100, "=")))) and (
        _MIXED.search(middle) is not None or encodes_text(body[:400])
    )


def encodes_text(start: str) -> bool:
    """Say whether what begins like this is text in base64. Few other texts without blanks decode to ASCII."""
    return _is_ascii_text(_decoded(start))


def _is_ascii_text(data: bytes) -> bool:
    return bool(data) and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data[:100])


def _described(data: bytes, size: int) -> str:
    about = f"about {counted(size, 'byte')} decoded"
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


def preview_long_lines(text: str, room: Room) -> str | None:
    """Return windows spread over the text; None if most of it is lines of usual length."""
    lines = lines_of(text)
    if max(map(len, lines), default=0) < _LONG_LINE:
        return None
    long = sorted(
        (number for number, line in enumerate(lines, 1) if len(line) >= _LONG_LINE), key=lambda n: -len(lines[n - 1])
    )
    inside = sum(len(lines[number - 1]) for number in long)
    if not long or inside < _LONG_SHARE * len(text):
        return None
    named = at_most([f"{number} ({len(lines[number - 1]):,})" for number in long], 5)
    title = (
        f"{counted(len(lines), 'line')}, {counted(len(text), 'character')}; long lines (their characters): {named}. "
        "Read a long line by windows of characters."
    )
    room.take(title)
    return "\n".join([title, *_windows(text, room)])


def _windows(text: str, room: Room) -> list[str]:
    """Return pieces of the text, spread evenly from its first character to its last."""
    cost = max(1, room.cost(f"1234567: {text[len(text) // 2 :][:_WINDOW]}"), room.cost(f"1: {text[:_WINDOW]}"))
    count = room.left // cost
    if count < 2:
        return room.take_all([_window(text, 0)])
    starts = [at * (len(text) - _WINDOW) // (count - 1) for at in range(count)]
    return room.take_all(_window(text, max(0, start)) for start in starts)


def _window(text: str, start: int) -> str:
    piece = " ".join(text[start : start + _WINDOW].split())
    return f"characters {start:,}–{min(len(text), start + _WINDOW):,}: {piece}"
