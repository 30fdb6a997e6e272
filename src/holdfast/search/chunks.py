"""Texts cut into chunks: a few whole lines each, or a window of a line that is too long for one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Chunk", "chunks_of"]

_SHORTEST = 600
_LONGEST = 1_200
_OVERLAP = 200
_LINE_START = re.compile(r"\n+([ \t]*)")
_GAP = re.compile(r"[\W_]")


class Chunk(NamedTuple):
    """A piece of a text. Its lines count from 1 and end with a line feed; *goes_on* says that the last one is cut."""

    start: int
    line: int
    column: int
    text: str
    goes_on: bool

    @property
    def end(self) -> int:
        """The offset behind its last character."""
        return self.start + len(self.text)

    @property
    def last_line(self) -> int:
        """The number of the line that holds its last character."""
        return self.line + self.text.count("\n", 0, -1)

    def joined_with(self, following: Chunk) -> Chunk:
        """Return this chunk and the one that follows as one."""
        return self._replace(text=self.text + following.text[self.end - following.start :], goes_on=following.goes_on)


def chunks_of(text: str) -> Iterator[Chunk]:
    """Cut *text* where records, paragraphs or lines end. Windows of a giant line overlap; nothing is left out."""
    start, line, column = 0, 1, 0
    while start < len(text):
        end = _end_of_chunk(text, start)
        chunk = Chunk(start, line, column, text[start:end], end < len(text) and text[end - 1] != "\n")
        yield chunk
        start = _start_of_next_window(text, start, end) if chunk.goes_on else end
        line = chunk.line + chunk.text.count("\n", 0, start - chunk.start)
        column = start - (text.rfind("\n", chunk.start, start) + 1 or chunk.start - chunk.column)


def _end_of_chunk(text: str, start: int) -> int:
    if len(text) - start <= _LONGEST:
        return len(text)
    lines = _LINE_START.finditer(text, start + _SHORTEST, start + _LONGEST)
    # Where the indent is least, a record, a member or a function begins; after a blank line, a paragraph does.
    best = min(lines, key=_depth, default=None)
    if best is not None:
        return best.start(1)
    return text.rfind("\n", start, start + _SHORTEST) + 1 or _gap_before(text, start + _SHORTEST, start + _LONGEST)


def _depth(line: re.Match[str]) -> tuple[int, int]:
    blank_before = line.start(1) - line.start() > 1
    return (-1 if blank_before else len(line[1]), -line.start())


def _gap_before(text: str, earliest: int, latest: int) -> int:
    """Return the last place up to *latest* where no word is cut, or *latest* if there is none."""
    window = text[earliest:latest][::-1]
    blank = window.find(" ")
    if blank >= 0:
        return latest - blank
    gap = _GAP.search(window)
    return latest - gap.start() if gap else latest


def _start_of_next_window(text: str, start: int, end: int) -> int:
    earliest = max(end - _OVERLAP, start + 1)
    gap = _GAP.search(text, earliest, end)
    return gap.end() if gap else earliest
