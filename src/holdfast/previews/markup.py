"""Markup read for its text. Malformed markup is read too, and all of it in linear time.

`html.parser` needs quadratic time for some malformed texts in the Python versions supported here. So tags are found by
plain search, each position once, and only character references are left to the standard library.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html import unescape

__all__ = ["Page", "read_markup"]

_MARKUP = re.compile(r"<(?=[A-Za-z!?/])")
_NAME = re.compile(r"/?[A-Za-z][\w:.-]{0,60}")
_INLINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "math", "mfrac", "mi", "mn", "mo", "mrow", "mstyle", "msub", "msup", "mtext", "q", "rp",
    "rt", "ruby", "s", "samp", "semantics", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var",
    "wbr",
})  # fmt: skip
_UNSEEN = frozenset(["script", "style", "noscript", "template", "svg", "annotation"])
_CELLS = frozenset(["td", "th"])
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


@dataclass
class Page:
    """What was found: lines of text with the line on which each begins, headings, the title, how many tags.

    Of a very large page the lines are from the part that was *looked_at*, and headings may be from all over it.
    """

    title: str = ""
    lines: list[tuple[int, str]] = field(default_factory=list)
    headings: list[tuple[int, int, str]] = field(default_factory=list)
    tags: Counter[str] = field(default_factory=Counter)
    comments: int = 0
    looked_at: float = 1.0

    @property
    def heading_count(self) -> int:
        """How many headings there are: those that were read, or if that was only some of them, the tags of all."""
        return max(len(self.headings), 0 if self.looked_at >= 1 else sum(self.tags[name] for name in _HEADINGS))


def read_markup(text: str, number: int = 1) -> Page:
    """Return what a reader would see of HTML or XML: not scripts, styles, comments and pictures.

    *number* is the line of the content on which the text begins.
    """
    reader = _Reader(text, number)
    reader.read()
    return reader.page


class _Reader:
    """Walks from tag to tag, and gathers what stands between them into lines."""

    def __init__(self, text: str, number: int) -> None:
        self.page = Page()
        self._text = text
        self._number = number
        self._begins = number
        self._parts: list[str] = []
        self._heading = 0
        self._found: dict[str, int] = {}

    def read(self) -> None:
        position = 0
        while position < len(self._text):
            markup = _MARKUP.search(self._text, position)
            start = markup.start() if markup else len(self._text)
            self._gather(position, start)
            position = self._after_markup(start) if markup else start
        self._end_line()

    def _next(self, sign: str, position: int) -> int:
        """Return where *sign* stands next, or the end of the text. Each part of the text is searched once."""
        if self._found.get(sign, -1) < position:
            found = self._text.find(sign, position)
            self._found[sign] = len(self._text) if found < 0 else found
        return self._found[sign]

    def _after_markup(self, start: int) -> int:
        text = self._text
        if text.startswith("<!--", start):
            return self._after_comment(start)
        if text.startswith("<![CDATA[", start):
            self._count_lines(start, start + 9)
            end = self._next("]]>", start)
            self._gather(start + 9, end)
            return min(end + 3, len(text))
        name = _NAME.match(text, start + 1)
        if name is None and text[start + 1 : start + 2] not in ("!", "?"):
            self._gather(start, start + 1)
            return start + 1
        end = self._end_of_tag(start)
        self._count_lines(start, end)
        return self._after_tag(name[0].lower(), start, end) if name else end

    def _after_comment(self, start: int) -> int:
        end = min(self._next("-->", start + 4) + 3, len(self._text))
        self.page.comments += max(end - start - 7, 0)
        self._count_lines(start, end)
        return end

    def _end_of_tag(self, start: int) -> int:
        end = self._next(">", start)
        if self._text.count('"', start, end) % 2:
            # The sign stands in a quoted value, if the quote is closed at all.
            closed = self._text.find('"', end, end + 2000)
            end = self._text.find(">", closed, closed + 2000) if closed > 0 else end
            end = self._next(">", start) if end < 0 else end
        return min(end + 1, len(self._text))

    def _after_tag(self, name: str, start: int, end: int) -> int:
        """Note a tag, and return where to go on: behind what is not seen."""
        if name.startswith("/"):
            self._close(name[1:])
            return end
        self.page.tags[name] += 1
        self._open(name)
        if name in _UNSEEN and not self._text.endswith("/>", start, end):
            closing = min(self._next(f"</{name}", end), self._next(f"</{name.upper()}", end))
            if closing < len(self._text):
                self._count_lines(end, closing)
                return closing
        if name == "title" and not self.page.title:
            closing = self._next("<", end)
            self.page.title = _one_line(self._text[end : min(closing, end + 1000)])
            self._count_lines(end, closing)
            return closing
        return end

    def _open(self, name: str) -> None:
        if name in _CELLS:
            self._parts.append(" | " if self._parts else "")
        elif name not in _INLINE:
            self._end_line()
            self._heading = _HEADINGS.get(name, self._heading)

    def _close(self, name: str) -> None:
        if name not in _INLINE and name not in _CELLS:
            self._end_line()
        if name in _HEADINGS:
            self._heading = 0

    def _gather(self, start: int, end: int) -> None:
        part = self._text[start:end]
        if part.strip():
            if not any(self._parts):
                self._begins = self._number + part.count("\n", 0, len(part) - len(part.lstrip()))
            self._parts.append(part)
        elif self._parts and part:
            self._parts.append(" ")
        self._number += part.count("\n")

    def _count_lines(self, start: int, end: int) -> None:
        self._number += self._text.count("\n", start, end)

    def _end_line(self) -> None:
        line = _one_line("".join(self._parts))
        self._parts = []
        if not line:
            return
        if self._heading:
            self.page.headings.append((self._begins, self._heading, line))
        else:
            self.page.lines.append((self._begins, line))


def _one_line(markup: str) -> str:
    return " ".join(unescape(markup).split())
