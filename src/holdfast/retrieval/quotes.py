"""Quotes of lines that match, each with its number, long ones cut around the match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.patterns import LineIndex, LineMatch
from holdfast.retrieval.contents import decoded
from holdfast.retrieval.pages import go_on_with
from holdfast.retrieval.room import Room

__all__ = ["Excerpt", "Quotes", "excerpt_of"]

_LONGEST_CONTEXT = 240


@dataclass(frozen=True)
class Quotes:
    """Quotes matching lines, about *width* bytes of each, with *context* lines around them, from *first* to *last*."""

    content: bytes
    index: LineIndex
    first: int
    last: int
    width: int
    context: int

    def of(self, matches: Sequence[LineMatch], room: Room) -> tuple[list[str], int]:
        """Return quotes of as many matches as fit, and how many those are."""
        shown: list[str] = []
        told = 0
        for count, match in enumerate(matches):
            until = matches[count + 1].line - 1 if count + 1 < len(matches) else self.last
            group = self._group(match, told, until)
            if sum(map(room.cost, group)) > room.left:
                return shown, count
            shown += room.take_all(group)
            told = min(match.line + self.context, until)
        return shown, len(matches)

    def _group(self, match: LineMatch, told: int, until: int) -> list[str]:
        """Return a match with the lines around it: those after *told*, and no further than *until*."""
        start = max(self.first, told + 1, match.line - self.context)
        before = [self._other(number) for number in range(start, match.line)]
        after = [self._other(number) for number in range(match.line + 1, min(until, match.line + self.context) + 1)]
        gap = ["--"] if self.context and told and start > told + 1 else []
        return [*gap, *before, self.line(match), *after]

    def _other(self, number: int) -> str:
        start, end = self.index.bounds(number, number, self.content)
        if end - start <= _LONGEST_CONTEXT:
            return f"{number}: {_text(self.content, start, end)}"
        cut = _at_character(self.content, start + _LONGEST_CONTEXT, start)
        return f"{number}: {_text(self.content, start, cut)}… [{end - start:,} bytes]"

    def line(self, match: LineMatch) -> str:
        """Return the quote of a matching line, or of a part of it and how to see more."""
        number, start, end, match_start, match_end = match
        excerpt = excerpt_of(self.content, start, end, match_start, match_end, self.width)
        if not excerpt.is_cut:
            return f"{number}> {excerpt.text}"
        length = len(_text(self.content, start, end))
        after = len(decoded(self.content[start:match_end])) + 1
        if after > length:
            return f"{number}> {excerpt.text} [of {length:,} characters]"
        more = go_on_with(line_range={"start": number, "end": number}, characters={"start": after, "end": length})
        return f"{number}> {excerpt.text} [of {length:,} characters; for further matches in this line, {more}]"


@dataclass(frozen=True)
class Excerpt:
    """A line, or a part of it."""

    text: str
    is_cut: bool


def excerpt_of(content: bytes, start: int, end: int, match_start: int, match_end: int, width: int) -> Excerpt:
    """Return a line, or about *width* bytes around its match if it is longer."""
    if end - start <= width:
        return Excerpt(_text(content, start, end), False)
    around = max(width - (match_end - match_start), 0) // 2
    left, right = max(start, match_start - around), min(end, min(match_end, match_start + width) + around)
    left, right = _at_character(content, left, start), _at_character(content, right, start)
    before, after = "…" if left > start else "", "…" if right < end else ""
    return Excerpt(f"{before}{_text(content, left, right)}{after}", True)


def _at_character(content: bytes, offset: int, earliest: int) -> int:
    """Return where the character begins in whose midst *offset* may be."""
    start = offset
    while earliest < start < len(content) and start > offset - 4 and content[start] & 0xC0 == 0x80:
        start -= 1
    return start


def _text(content: bytes, start: int, end: int) -> str:
    return decoded(content[start:end]).rstrip("\r\n")
