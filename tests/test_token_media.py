"""Tokens of images and documents: as providers count, and sane for whatever bytes are given."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tokens.media import decoded_base64, document_tokens, image_size, image_tokens
from holdfast.tokens.text import estimate_text


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"\0" * (width + 1) * height) if width * height < 10_000 else b""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, *, before: bytes = b"", frame: int = 0xC0) -> bytes:
    start = struct.pack(">BBHBHHB", 0xFF, frame, 11, 8, height, width, 1) + b"\x01\x11\0"
    return b"\xff\xd8" + before + start + b"\xff\xd9"


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b";"


def bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + struct.pack("<IiiHH", 40, width, height, 1, 24) + b"\0" * 24


def old_bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack("<IHHI", 26, 0, 0, 26) + struct.pack("<IHHHH", 12, width, height, 1, 24)


def webp(kind: bytes, data: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def lossy_webp(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 1 << 14, height))


def lossless_webp(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def extended_webp(width: int, height: int) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", b"\0\0\0\0" + sizes)


MAKERS = [png, jpeg, gif, bmp, old_bmp, lossy_webp, lossless_webp, extended_webp]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("size", [(1, 1), (640, 480), (1_200, 9_000)])
def test_the_size_is_read_from_the_header(make, size: tuple[int, int]) -> None:
    assert image_size(make(*size)) == size


def test_a_jpeg_with_a_thumbnail_and_much_before_its_frame_is_read() -> None:
    thumbnail = segment(0xE1, b"Exif\0\0" + jpeg(160, 120))
    before = thumbnail + segment(0xE2, b"\xff" * 60_000) * 9 + segment(0xC4, b"\0" * 30) + b"\xff\xff"
    assert image_size(jpeg(4_000, 3_000, before=before, frame=0xC2)) == (4_000, 3_000)


def test_a_bitmap_may_have_its_rows_from_top_to_bottom() -> None:
    assert image_size(bmp(30, -20)) == (30, 20)


@pytest.mark.parametrize("make", MAKERS)
def test_a_truncated_image_counts_as_a_large_one(make) -> None:
    whole = make(300, 200)
    counts = {image_tokens(whole[:length]) for length in range(len(whole) + 1)}
    assert counts == {1_600, image_tokens(whole)}


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((200, 200), 85 + 170),
        ((768, 2_048), 85 + 170 * 8),
        ((1_000, 1_000), 1_334),
        ((1_092, 1_092), 1_534),
        ((8_000, 8_000), 1_534),
        ((4_294_967_295, 4_294_967_295), 1_534),
    ],
)
def test_an_image_counts_as_the_provider_does_that_counts_more(size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(png(*size)) == tokens


@given(
    st.sampled_from([b"", *(make(9, 9)[:n] for make in MAKERS for n in (2, 8, 12, 16, 40))]), st.binary(max_size=400)
)
def test_no_bytes_are_too_odd(head: bytes, rest: bytes) -> None:
    data = head + rest
    assert 85 <= image_tokens(data) <= 2_000
    assert document_tokens(data, "application/pdf") >= 1_000
    assert document_tokens(data, "text/plain") >= (1 if data else 0)
    assert document_tokens(data, "docx") >= (1 if data else 0)


@given(st.text(max_size=300))
def test_no_text_is_too_odd_for_base64(text: str) -> None:
    assert decoded_base64(text) is None or isinstance(decoded_base64(text), bytes)


# Documents


def pdf(pages: int, *, tree: bytes = b"/Type /Pages /Count %d") -> bytes:
    leaves = b"".join(b"%d 0 obj << /Type /Page /Parent 1 0 R >> endobj\n" % (n + 3) for n in range(pages))
    return b"%PDF-1.4\n1 0 obj << " + tree.replace(b"%d", str(pages).encode()) + b" >> endobj\n" + leaves


def test_a_pdf_counts_by_its_pages() -> None:
    one = document_tokens(pdf(1), "pdf")
    assert 1_500 <= one <= 3_000
    assert [document_tokens(pdf(pages), "application/pdf") for pages in (2, 10, 300)] == [2 * one, 10 * one, 300 * one]


@pytest.mark.parametrize("tree", [b"/Count 12 /Kids [3 0 R] /Type/Pages", b"/Type /Pages\n/Kids [3 0 R]\n/Count 12"])
def test_pages_that_are_compressed_are_told_by_their_tree(tree: bytes) -> None:
    assert document_tokens(pdf(0, tree=tree), "pdf") == 12 * document_tokens(pdf(1), "pdf")


def test_the_count_of_an_outline_is_not_taken_for_pages() -> None:
    outline = b"2 0 obj << /Type /Outlines /Count 500 >> endobj\n"
    assert document_tokens(pdf(3) + outline, "pdf") == document_tokens(pdf(3), "pdf")


def test_a_pdf_that_tells_nothing_counts_by_its_size() -> None:
    small, large = (document_tokens(b"%PDF-1.7\n" + b"\0" * size, "pdf") for size in (100, 3_000_000))
    assert small == document_tokens(pdf(1), "pdf")
    assert large == 30 * small


def test_a_pdf_cannot_claim_pages_without_end() -> None:
    assert document_tokens(pdf(0, tree=b"/Type /Pages /Count 999999"), "pdf") <= 20_000_000
    assert document_tokens(b"/Type /Pages" * 100_000, "pdf") >= 1_000


@pytest.mark.parametrize("kind", ["txt", "md", "csv", "html", "json", "xml", "text/plain", "application/json", "TXT"])
def test_text_in_a_document_counts_as_text(kind: str) -> None:
    text = "id,name\n1,Zoë\n" * 50
    assert document_tokens(text.encode(), kind) == estimate_text(text)


@pytest.mark.parametrize(
    "kind", ["docx", "xlsx", "application/vnd.oasis.opendocument.text", "application/octet-stream", ""]
)
def test_other_documents_count_by_their_size(kind: str) -> None:
    assert document_tokens(b"PK\x03\x04" * 1_000, kind) == 1_000


# Base64


@given(st.binary(max_size=200))
def test_base64_is_decoded_in_each_of_its_forms(data: bytes) -> None:
    encoded = base64.b64encode(data).decode()
    for form in (encoded, encoded.rstrip("="), base64.encodebytes(data).decode(), f"data:image/png;base64,{encoded}"):
        assert decoded_base64(form) == data
    assert decoded_base64(base64.urlsafe_b64encode(data).decode()) == data


def test_no_more_is_decoded_than_asked_for() -> None:
    encoded = base64.b64encode(png(40, 30) + b"\0" * 10_000).decode()
    for most in (101, 102, 103, 104):
        head = decoded_base64(encoded, most)
        assert head is not None
        assert len(head) <= 78
        assert image_size(head) == (40, 30)


@pytest.mark.parametrize("text", ["https://example.com/a.png", "s3://bucket/key", "not base64!", "é", "data:,%20"])
def test_what_is_no_base64_is_not_decoded(text: str) -> None:
    assert decoded_base64(text) is None
