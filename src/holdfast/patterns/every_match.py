"""Every match in a text, one behind the other: for what stands in one huge line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.patterns.line_search import Finder, in_time, is_huge, readable, region_size

__all__ = ["Spans", "every_match"]

_LINE_END = re.compile(rb"\r(?=\n)")


@dataclass(frozen=True)
class Spans:
    """Matches, as offsets into the text. *go_on_at* is None, or where to go on: there may be more from there.

    If *bytes_at_once* is not 0, the text is too long for the pattern, and so much of it would not be.
    """

    spans: tuple[tuple[int, int], ...]
    go_on_at: int | None = None
    bytes_at_once: int = 0


def every_match(
    finder: Finder, text: bytes, start: int, limit: int, deadline: float | None, clock: Callable[[], float]
) -> Spans:
    """Return the first *limit* matches from *start* on, until *deadline* on *clock*."""
    left_out = [found.start() - number for number, found in enumerate(_LINE_END.finditer(text))]
    read = readable(text)
    if not in_time(finder, read, deadline, clock):
        return Spans((), start, region_size(finder) if is_huge(finder, read) else 0)
    spans: list[tuple[int, int]] = []
    for found in finder.matches_in(read, len(text[:start].replace(b"\r\n", b"\n"))):
        if len(spans) == limit or (deadline is not None and clock() >= deadline):
            return Spans(tuple(spans), max(spans[-1][1], spans[-1][0] + 1) if spans else start)
        spans.append((found[0] + bisect_left(left_out, found[0]), found[1] + bisect_left(left_out, found[1])))
    return Spans(tuple(spans))
