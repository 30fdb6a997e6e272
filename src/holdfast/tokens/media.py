"""How many tokens an image or a document is, as providers count them.

Anthropic shrinks an image to 1,568 pixels on the long edge and to about 1.15 megapixels, then counts width × height /
750, which is about 1,600 at most. OpenAI fits it into 2,048 × 2,048, then shrinks its short side to 768, and counts 85
and 170 for each tile of 512 × 512. Here the larger of the two counts, so that the estimate is safe with either.

A page of a PDF is sent as its text and as an image: 2,000 tokens, in the middle of the 1,500 to 3,000 that Anthropic
names. Text-like documents are estimated as text. Others are zipped or unknown, and counted by size. So are sound and
film.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from holdfast.tokens.text import estimate_text

__all__ = [
    "decoded_base64",
    "document_tokens",
    "image_size",
    "image_tokens",
    "media_tokens",
    "sound_tokens",
    "without_media",
]

Size = tuple[int, int]

_TOKENS_OF_UNKNOWN_IMAGE = 1_600
_MOST_TOKENS_BY_ANTHROPIC = 1_600
_TOKENS_OF_A_PAGE = 2_000
# Of a PDF whose pages hide in compressed streams. A scanned page takes this much, a page of text less.
_BYTES_OF_A_HIDDEN_PAGE = 100_000
_MOST_PAGES = 10_000
_MOST_TREES, _LONGEST_TREE = 1_000, 20_000
_PAGE = re.compile(rb"/Type\s{0,9}/Page(?![a-zA-Z])")
_PAGES = re.compile(rb"/Type\s{0,9}/Pages(?![a-zA-Z])")
_COUNT = re.compile(rb"/Count\s{1,9}(\d{1,6})(?!\d)")
# A token of zipped text takes about 2 bytes; styles and pictures in office files take as much again.
_BYTES_PER_TOKEN = 4
_TEXT_LIKE = re.compile(r"\b(text|txt|md|markdown|csv|tsv|x?html?|jsonl?|xml|ya?ml|toml|javascript)\b")
_OFFICE = re.compile("officedocument|opendocument|msword|ms-excel|zip")
_LONGEST_HEAD_OF_URL = 1_000
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]*=*\s*")
_MOST_SEGMENTS = 10_000
_BYTES_PER_TOKEN_OF_SOUND = 500
_DOCUMENTS = (b"%PDF-", b"PK\x03\x04")
_NAMES_OF_MEDIA = frozenset({"data", "bytes"})
_SECRETS = ("encrypted", "redacted")


def image_tokens(data: bytes) -> int:
    """Return the tokens of an image, of a large one if its size cannot be read."""
    size = image_size(data)
    return _TOKENS_OF_UNKNOWN_IMAGE if size is None else max(_by_anthropic(*size), _by_openai(*size))


def _by_anthropic(width: int, height: int) -> int:
    shrink = min(1.0, 1_568 / max(width, height), math.sqrt(1_150_000 / (width * height)))
    return min(math.ceil(width * height * shrink**2 / 750), _MOST_TOKENS_BY_ANTHROPIC)


def _by_openai(width: int, height: int) -> int:
    fit = min(1.0, 2_048 / max(width, height))
    fit = min(fit, 768 / min(width, height))
    return 85 + 170 * math.ceil(width * fit / 512) * math.ceil(height * fit / 512)


# Images


def image_size(data: bytes) -> Size | None:
    """Return width and height from the header of a PNG, JPEG, GIF, WebP or BMP; None if it has none to read."""
    for magic, read in _READERS:
        if data.startswith(magic):
            return _checked(read, data)
    return None


def _checked(read: Callable[[bytes], Size | None], data: bytes) -> Size | None:
    try:
        size = read(data)
    except struct.error:
        return None
    return size if size and min(size) > 0 else None


def _png_size(data: bytes) -> Size:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif_size(data: bytes) -> Size:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _bmp_size(data: bytes) -> Size:
    (header,) = struct.unpack_from("<I", data, 14)
    # Rows from top to bottom are said by a negative height.
    width, height = struct.unpack_from("<HH" if header == 12 else "<ii", data, 18)
    return width, abs(height)


def _webp_size(data: bytes) -> Size | None:
    read = _WEBP_READERS.get(data[12:16])
    return read(data) if data[8:12] == b"WEBP" and read else None


def _vp8_size(data: bytes) -> Size:
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _vp8l_size(data: bytes) -> Size:
    (bits,) = struct.unpack_from("<I", data, 21)
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)


def _vp8x_size(data: bytes) -> Size:
    low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
    return 1 + (low_width | high_width << 16), 1 + (low_height | high_height << 16)


def _jpeg_size(data: bytes) -> Size | None:
    """Go from segment to segment until one begins a frame; thumbnails are inside of segments, and so skipped."""
    position = 2
    for _ in range(_MOST_SEGMENTS):
        fill, marker, length = struct.unpack_from(">BBH", data, position)
        if fill != 0xFF or (length < 2 and marker != 0xFF):
            return None
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        position += 1 if marker == 0xFF else 2 + length
    return None


# From C0 to CF, but for the tables of Huffman codes and of arithmetic coding, and the reserved one.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WEBP_READERS: dict[bytes, Callable[[bytes], Size]] = {b"VP8 ": _vp8_size, b"VP8L": _vp8l_size, b"VP8X": _vp8x_size}
_READERS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png_size),
    (b"\xff\xd8", _jpeg_size),
    (b"GIF8", _gif_size),
    (b"RIFF", _webp_size),
    (b"BM", _bmp_size),
)


# Documents


def document_tokens(data: bytes, media_type_or_format: str) -> int:
    """Return the tokens of a document, whose type is written like ``application/pdf`` or like ``pdf``."""
    kind = media_type_or_format.lower()
    if "pdf" in kind or data.startswith(b"%PDF-"):
        return _TOKENS_OF_A_PAGE * _pages(data)
    if not _OFFICE.search(kind) and _TEXT_LIKE.search(kind):
        return estimate_text(data.decode("utf-8", "replace"))
    return math.ceil(len(data) / _BYTES_PER_TOKEN)


def _pages(data: bytes) -> int:
    """Return how many pages a PDF has: as it says, or else as many as its size makes likely, at least one."""
    told = max(sum(1 for _ in _PAGE.finditer(data)), _largest_page_tree(data))
    return min(told, _MOST_PAGES) or max(1, len(data) // _BYTES_OF_A_HIDDEN_PAGE)


def _largest_page_tree(data: bytes) -> int:
    """Return the largest count of pages that a tree of them claims; 0 if none can be read."""
    trees = islice(_PAGES.finditer(data), _MOST_TREES)
    counts = (_COUNT.search(data, *_dictionary_around(data, tree.start())) for tree in trees)
    return max((int(count[1]) for count in counts if count), default=0)


def _dictionary_around(data: bytes, position: int) -> tuple[int, int]:
    start = data.rfind(b"<<", max(0, position - _LONGEST_TREE), position)
    end = data.find(b">>", position, position + _LONGEST_TREE)
    return (start if start >= 0 else position), (end if end >= 0 else position)


def decoded_base64(text: str, most: int = 48 << 20) -> bytes | None:
    """Return what the first *most* characters encode, with or without the head of a data URL; None if no base64.

    As it stands, *most* covers all that providers take; the header of an image is nearly always in the first megabyte.
    """
    if text.startswith("data:"):
        text = text[text.find(",", 0, _LONGEST_HEAD_OF_URL) + 1 :]
    if not _BASE64.fullmatch(text[:_LONGEST_HEAD_OF_URL]):
        return None
    encoded = "".join(text[:most].replace("-", "+").replace("_", "/").split())
    try:
        return binascii.a2b_base64(encoded[: len(encoded) - (len(encoded) % 4 == 1)] + "==")
    except ValueError:
        return None


# Media of any kind


def sound_tokens(size: int) -> int:
    """Return the tokens of so many bytes of sound or film."""
    return math.ceil(size / _BYTES_PER_TOKEN_OF_SOUND)


def media_tokens(data: bytes) -> int:
    """Return the tokens of an image or a document, if it begins like one, else of sound."""
    if image_size(data) is not None:
        return image_tokens(data)
    return document_tokens(data, "") if data.startswith(_DOCUMENTS) else sound_tokens(len(data))


def without_media(value: Any, shortest: int, found: list[int], *, named: bool = False) -> Any:
    """Return a JSON value without the media that hide in it, and put the tokens of each into *found*.

    They are strings of at least *shortest* characters: data URLs, or base64 under a name for such. What a provider
    encrypted looks the same, but is said to be so, and stays.
    """
    if isinstance(value, str):
        data = _hidden(value) if len(value) >= shortest and (named or value.startswith("data:")) else None
        found += [] if data is None else [media_tokens(data)]
        return value if data is None else ""
    if isinstance(value, (dict, Mapping)):
        names = frozenset() if _is_secret(value) else _NAMES_OF_MEDIA
        return {name: without_media(item, shortest, found, named=name in names) for name, item in value.items()}
    return [without_media(item, shortest, found) for item in value] if isinstance(value, (list, tuple)) else value


def _hidden(text: str) -> bytes | None:
    return None if " " in text[:_LONGEST_HEAD_OF_URL] else decoded_base64(text)


def _is_secret(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and any(word in kind for word in _SECRETS)
