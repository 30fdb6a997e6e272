"""Lines that match a pattern, with the lines around them, as many as fit into an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from holdfast.patterns import LineMatch, Matches, Pattern, compile_pattern
from holdfast.patterns.lines import LineIndex
from holdfast.previews.room import Room
from holdfast.retrieval.contents import WORKERS, StoredContent, StoredContents, decoded
from holdfast.retrieval.pages import Window, fitting, go_on_with, selected, text_window
from holdfast.retrieval.requests import Request, Span

__all__ = ["matches_page"]

_CONTEXT = 2
_SECONDS = 10.0
_MOST_KEPT = 500
# How many bytes of a long line are shown: the first of these with which all matches fit, else the last.
_WIDTHS = (8_000, 2_400, 600)
_LONGEST_CONTEXT = 240
_MOST_IN_ONE_LINE = 50


async def matches_page(contents: StoredContents, opened: StoredContent, request: Request, room: Room) -> str:
    """Return the lines that match the request's pattern; within its characters, each match."""
    pattern = await WORKERS.run(_compiled, request, request.ignore_case)
    deadline = time.monotonic() + _SECONDS
    if request.characters is not None:
        content, where, again = await selected(contents, opened, request.line_range)
        window = await WORKERS.run(text_window, content, request.characters)
        return await WORKERS.run(_matches_in_window, pattern, window, where, again, room, deadline)
    content = await contents.whole(opened)
    return await WORKERS.run(_LineMatches(request, content, opened.index, deadline).page, pattern, room)


def _compiled(request: Request, ignore_case: bool) -> Pattern:
    assert request.pattern is not None
    return compile_pattern(request.pattern, plain_text=request.plain_text, ignore_case=ignore_case)


@dataclass(frozen=True)
class _LineMatches:
    """Searches one content for one request."""

    request: Request
    content: bytes
    index: LineIndex
    deadline: float

    def page(self, pattern: Pattern, room: Room) -> str:
        if not self.index.lines:
            return "[The content is empty.]"
        first, last = (self.request.line_range or Span()).within(self.index.lines, "line")
        matches = self._search(pattern, first, last, _MOST_KEPT)
        if not matches.lines:
            return self._nothing(matches, first, last)
        shown, count, context = self._shown(matches.lines, first, last, room)
        return "\n".join([*shown, self._told(matches, count, last, context)])

    def _search(self, pattern: Pattern, first: int, last: int, limit: int) -> Matches:
        return pattern.matching_lines(
            self.content, self.index, first_line=first, last_line=last, limit=limit, deadline=self.deadline
        )

    def _nothing(self, matches: Matches, first: int, last: int) -> str:
        looked_at = last if matches.counted_to is None else matches.counted_to
        said = f"No line matches among lines {first:,}–{looked_at:,} of {self.index.lines:,}"
        if matches.counted_to is not None:
            return f"[{said}, where the time was up; {go_on_with(line_range={'start': looked_at + 1, 'end': last})}]"
        if not self.request.ignore_case:
            others = self._search(_compiled(self.request, True), first, last, 0).total
            said += f"; with ignore_case=true, {others:,} do" if others else ""
        return f"[{said}.]"

    def _shown(self, matches: Sequence[LineMatch], first: int, last: int, room: Room) -> tuple[list[str], int, int]:
        """Return quotes of as many matches as fit, at least one, how many those are, and with how much around them.

        They are as generous as leaves room for all of them.
        """
        for width, context in self._layouts():
            quotes = _Quotes(self.content, self.index, first, last, width, context)
            shown, count = quotes.of(matches, room.part(1.0))
            if count == len(matches):
                break
        return (shown, count, context) if count else ([replace(quotes, width=room.left).line(matches[0])], 1, 0)

    def _layouts(self) -> Iterator[tuple[int, int]]:
        context = self._context
        yield from ((width, context) for width in _WIDTHS)
        # What the model asked for is only given up where not even one match would fit with it.
        while context and self.request.context_lines is None:
            context //= 2
            yield _WIDTHS[-1], context

    @property
    def _context(self) -> int:
        return _CONTEXT if self.request.context_lines is None else self.request.context_lines

    def _told(self, matches: Matches, count: int, last: int, context: int) -> str:
        """Return what part this is, and how to go on."""
        until = matches.lines[count - 1].line
        more = matches.total > count or matches.counted_to is not None
        counted = f"{count:,} of {matches.total:,} matching lines"
        if matches.counted_to is not None:
            counted += f" up to line {matches.counted_to:,}, where the time was up"
        around = f", with {context} lines around each, as more do not fit" if context < self._context else ""
        part = f"{counted}, of {self.index.lines:,} lines{around}"
        return f"[{part}; {go_on_with(line_range={'start': until + 1, 'end': last})}]" if more else f"[{part}]"


@dataclass(frozen=True)
class _Quotes:
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
        excerpt = _excerpt(self.content, start, end, match_start, match_end, self.width)
        if not excerpt.is_cut:
            return f"{number}> {excerpt.text}"
        length = len(_text(self.content, start, end))
        after = len(decoded(self.content[start:match_end])) + 1
        more = go_on_with(line_range={"start": number, "end": number}, characters={"start": after, "end": length})
        return f"{number}> {excerpt.text} [of {length:,} characters; for further matches in this line, {more}]"


def _matches_in_window(
    pattern: Pattern, window: Window, where: str, again: dict[str, Any], room: Room, deadline: float
) -> str:
    """Return each match inside a window of characters, with what stands around it."""
    # With the character before it, the window's start is taken for that of a line only if it is one.
    before = _encoded(window.before)
    content = before + _encoded(window.text)
    found = pattern.matches_in(content, start=len(before), limit=_MOST_IN_ONE_LINE, deadline=deadline)
    starts = _characters_at(content, [*(start for start, _ in found.spans), found.go_on_at or len(content)])
    offset = window.first - len(window.before)
    quotes = [
        f"character {offset + at:,}> {_excerpt(content, 0, len(content), start, end, _WIDTHS[-1]).text}"
        for (start, end), at in zip(found.spans, starts, strict=False)
    ]
    shown = room.take_all(quotes) or [fitting(quote, room) for quote in quotes[:1]]
    part = f"{len(shown):,} matches in characters {window.first:,}–{window.last:,} of {window.total:,} in {where}"
    if len(shown) == len(found.spans) and found.go_on_at is None:
        return "\n".join([*shown, f"[{part}]"])
    following = {"start": offset + starts[len(shown)], "end": window.last}
    return "\n".join([*shown, f"[{part}; {go_on_with(**again, characters=following)}]"])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _characters_at(content: bytes, offsets: Sequence[int]) -> list[int]:
    """Return how many characters stand before each of some rising offsets."""
    sizes = (len(decoded(content[start:end])) for start, end in zip([0, *offsets], offsets, strict=False))
    return list(accumulate(sizes))


@dataclass(frozen=True)
class _Excerpt:
    text: str
    is_cut: bool


def _excerpt(content: bytes, start: int, end: int, match_start: int, match_end: int, width: int) -> _Excerpt:
    """Return a line, or about *width* bytes around its match if it is longer."""
    if end - start <= width:
        return _Excerpt(_text(content, start, end), False)
    around = max(width - (match_end - match_start), 0) // 2
    left, right = max(start, match_start - around), min(end, min(match_end, match_start + width) + around)
    left, right = _at_character(content, left, start), _at_character(content, right, start)
    before, after = "…" if left > start else "", "…" if right < end else ""
    return _Excerpt(f"{before}{_text(content, left, right)}{after}", True)


def _at_character(content: bytes, offset: int, earliest: int) -> int:
    """Return where the character begins in whose midst *offset* may be."""
    start = offset
    while earliest < start < len(content) and start > offset - 4 and content[start] & 0xC0 == 0x80:
        start -= 1
    return start


def _text(content: bytes, start: int, end: int) -> str:
    return decoded(content[start:end]).rstrip("\r\n")
