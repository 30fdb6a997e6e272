"""Lines that match a pattern, with the lines around them, as many as fit into an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from holdfast.errors import InvalidValueError
from holdfast.patterns import LineIndex, LineMatch, Matches, Pattern, compile_pattern
from holdfast.retrieval.contents import WORKERS, StoredContent, StoredContents
from holdfast.retrieval.pages import go_on_with, selected, text_window
from holdfast.retrieval.quotes import Quotes
from holdfast.retrieval.requests import Request, Span
from holdfast.retrieval.room import Room
from holdfast.retrieval.window_matches import matches_in_window

__all__ = ["matches_writer"]

_CONTEXT = 1
_SECONDS = 10.0
_MOST_KEPT = 500
# How many bytes of a long line are shown: the first of these with which all matches fit, else the last.
_WIDTHS = (1_200, 600)


async def matches_writer(
    contents: StoredContents, opened: StoredContent, request: Request
) -> Callable[[Room], Awaitable[str]]:
    """Search for the request's pattern, once, and return what writes the matches into any room.

    These are lines, or within the request's characters each match.
    """
    pattern = await WORKERS.run(_compiled, request, request.ignore_case)
    deadline = time.monotonic() + _SECONDS
    if request.characters is not None:
        content, where, again = await selected(contents, opened, request.line_range)
        window = await WORKERS.run(text_window, content, request.characters)
        return lambda room: WORKERS.run(matches_in_window, pattern, window, where, again, room, deadline)
    matches = _LineMatches(request, await contents.whole(opened), opened.index, pattern, deadline)
    return lambda room: WORKERS.run(matches.page, room)


def _compiled(request: Request, ignore_case: bool) -> Pattern:
    assert request.pattern is not None
    return compile_pattern(request.pattern, plain_text=request.plain_text, ignore_case=ignore_case)


@dataclass(frozen=True)
class _LineMatches:
    """Searches one content for one request."""

    request: Request
    content: bytes
    index: LineIndex
    pattern: Pattern
    deadline: float

    def page(self, room: Room) -> str:
        """Return as many of the matches as fit."""
        if not self.index.lines:
            return "[The content is empty.]"
        first, last = self._span
        if not self._found.lines:
            return self._nothing(self._found, first, last)
        shown, count, context = self._shown(self._found.lines, first, last, room)
        return "\n".join([*shown, self._told(self._found, count, last, context)])

    @cached_property
    def _span(self) -> tuple[int, int]:
        return (self.request.line_range or Span()).within(self.index.lines, "line")

    @cached_property
    def _found(self) -> Matches:
        return self._search(self.pattern, *self._span, _MOST_KEPT)

    def _search(self, pattern: Pattern, first: int, last: int, limit: int) -> Matches:
        return pattern.matching_lines(
            self.content, self.index, first_line=first, last_line=last, limit=limit, deadline=self.deadline
        )

    def _nothing(self, matches: Matches, first: int, last: int) -> str:
        looked_at = last if matches.counted_to is None else matches.counted_to
        said = f"No line matches among lines {first:,}–{looked_at:,} of {self.index.lines:,}"
        if matches.stuck_at is not None:
            return f"[{self._stuck(matches)}]"
        if matches.counted_to is not None:
            return f"[{said}, where the time was up; {go_on_with(line_range={'start': looked_at + 1, 'end': last})}]"
        if not self.request.ignore_case:
            said += self._in_other_letters(first, last)
        return f"[{said}.]"

    def _in_other_letters(self, first: int, last: int) -> str:
        try:
            others = self._search(_compiled(self.request, True), first, last, 0)
        except InvalidValueError:
            # Without RE2, not every pattern can be had like that.
            return ""
        return f"; with ignore_case=true, {others.total:,} do" if others.total and others.counted_to is None else ""

    def _stuck(self, matches: Matches) -> str:
        window = {"start": 1, "end": matches.bytes_at_once}
        line = {"start": matches.stuck_at, "end": matches.stuck_at}
        return (
            f"line {matches.stuck_at:,} is too long to be searched for this pattern at once; search in parts of it "
            f"with line_range={json.dumps(line)}, characters={json.dumps(window)} and so on"
        )

    def _shown(self, matches: Sequence[LineMatch], first: int, last: int, room: Room) -> tuple[list[str], int, int]:
        """Return quotes of as many matches as fit, at least one, how many those are, and with how much around them.

        They are as generous as leaves room for all of them.
        """
        for width, context in self._layouts():
            quotes = Quotes(self.content, self.index, first, last, width, context)
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
        if matches.counted_to is not None and matches.total == count:
            until = matches.counted_to
        more = matches.total > count or matches.counted_to is not None
        counted = f"{count:,} of {matches.total:,} matching lines"
        if matches.counted_to is not None:
            counted += f" up to line {matches.counted_to:,}, where the time was up"
        around = f", with {context} lines around each, as more do not fit" if context < self._context else ""
        part = f"{counted}, of {self.index.lines:,} lines{around}"
        if matches.stuck_at is not None and matches.total == count:
            return f"[{part}; {self._stuck(matches)}]"
        return f"[{part}; {go_on_with(line_range={'start': until + 1, 'end': last})}]" if more else f"[{part}]"
