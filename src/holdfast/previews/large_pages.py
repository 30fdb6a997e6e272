"""Markup that is too large to be read as a whole: pieces from all over it, its headings, and its tags counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

from holdfast.previews.markup import Page, read_markup

__all__ = ["read_page"]

_TAG = re.compile(r"<([A-Za-z][\w:.-]{0,60})")
_ANY_TAG = re.compile(r"<[^<>]{0,1000}>?")
_HEADING = re.compile(r"<h([1-6])(?:\s[^<>]{0,500})?>", re.IGNORECASE)
_MOST_TAGS, _PIECES, _MOST_HEADINGS = 8_000, 40, 500
_LONGEST_HEADING, _LOOK_BACK = 600, 100_000
_UNSEEN = (("<script", "</script"), ("<style", "</style"), ("<!--", "-->"))


def read_page(text: str) -> Page:
    """Return what a reader would see of HTML or XML, or of a very large page what some of it shows."""
    tags = text.count("<")
    if tags <= _MOST_TAGS:
        return read_markup(text)
    return _pieced(text, len(text) * _MOST_TAGS // (tags * _PIECES))


def _pieced(text: str, size: int) -> Page:
    page = read_markup(text[:size])
    page.tags = Counter(map(str.lower, _TAG.findall(text)))
    page.looked_at = 0.0
    page.headings = list(_headings(text, page.heading_count))
    number, before, read = 1 + text.count("\n", 0, size), size, size
    for start in _starts(text, size):
        number += text.count("\n", before, start)
        page.lines += read_markup(text[start : start + size], number).lines
        before, read = start, read + len(text[start : start + size])
    page.looked_at = read / len(text)
    return page


def _starts(text: str, size: int) -> Iterator[int]:
    """Yield where pieces begin that do not overlap, each at a tag and not in what is not seen."""
    free = size
    for piece in range(1, _PIECES):
        start = text.find("<", max(free, _behind_unseen(text, piece * len(text) // _PIECES)))
        if start < 0:
            return
        yield start
        free = start + size


def _behind_unseen(text: str, position: int) -> int:
    """Return this position, or if it is in a script or the like, where that ends."""
    for opening, closing in _UNSEEN:
        opened = text.rfind(opening, max(0, position - _LOOK_BACK), position)
        if opened >= 0 and text.find(closing, opened, position) < 0:
            end = text.find(closing, position, position + _LOOK_BACK)
            position = end if end > 0 else position
    return position


def _headings(text: str, count: int) -> Iterator[tuple[int, int, str]]:
    """Yield the headings, or of very many the first of each stretch of the text, with line and level."""
    stretch = len(text) // _MOST_HEADINGS if count > _MOST_HEADINGS else 1
    number, before = 1, 0
    found = _HEADING.search(text)
    while found:
        start = found.start()
        number += text.count("\n", before, start)
        before = start
        title = text[found.end() : found.end() + _LONGEST_HEADING].split("</h", 1)[0]
        if bare := " ".join(unescape(_ANY_TAG.sub("", title)).split()):
            yield number, int(found[1]), bare
        found = _HEADING.search(text, max(found.end(), (start // stretch + 1) * stretch))
