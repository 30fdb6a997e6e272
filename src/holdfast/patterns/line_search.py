"""The search through a content, in regions of whole lines, so that the deadline is seen between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from holdfast.patterns.lines import LineIndex

__all__ = ["Finder", "LineMatch", "LineSearch", "Matches", "in_time", "is_huge", "readable", "region_size"]

_LARGEST_REGION = 1024 * 1024
_SMALLEST_REGION = 4 * 1024
# An engine takes about a hundred million steps in a second, so that a region takes some tenths of one at worst.
_STEPS_PER_REGION = 40_000_000
_STEPS_PER_SECOND = 100_000_000
_HUGE_REGIONS = 4
# A huge line is begun if it takes at worst so many times the time that is left.
_MOST_TIMES_TOO_LATE = 2
_SAMPLES = 16
_SAMPLED_PART = 64

_NO_CHARACTER = re.compile("[\udc80-\udcff]")
_SUBSTITUTE = "\x1a"


class LineMatch(NamedTuple):
    """A line that matches, and its first match: offsets into the content, the line without its end."""

    line: int
    line_start: int
    line_end: int
    match_start: int
    match_end: int


@dataclass(frozen=True)
class Matches:
    """The first matching lines, and how many there are in all.

    *counted_to* is None, or the last line that was looked at before the time was up: then *total* counts up to it. If
    *stuck_at* is a line, that one alone would take too long, and *bytes_at_once* is as much of it as would not.
    """

    lines: tuple[LineMatch, ...]
    total: int
    counted_to: int | None = None
    stuck_at: int | None = None
    bytes_at_once: int = 0


class Finder(Protocol):
    """An engine with its pattern. It is given whole lines, with no line feed after the last."""

    @property
    def needs_readable_text(self) -> bool:
        """Whether it cares for more than a few bytes inside the line: then `readable` comes first."""

    @property
    def steps_per_byte(self) -> int:
        """What a byte may cost at worst."""

    def lines_in(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the first match of each matching line."""

    def count_from(self, text: bytes, start: int) -> int:
        """Count the matching lines from *start*, which is the start of a line."""

    def matches_in(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield every match from *start* on, one behind the other."""


@dataclass
class LineSearch:
    """One search. It keeps the first *limit* matching lines and counts the others, until *deadline* on *clock*."""

    finder: Finder
    content: bytes
    index: LineIndex
    limit: int
    deadline: float | None
    clock: Callable[[], float]
    kept: list[LineMatch] = field(default_factory=list)
    total: int = 0

    def between(self, first_line: int, last_line: int) -> Matches:
        """Look at the lines from *first_line* to *last_line*."""
        if first_line > last_line:
            return Matches((), 0)
        for start, end in self._regions(*self.index.bounds(first_line, last_line, self.content)):
            text = self.content[start:end]
            if self.finder.needs_readable_text:
                text = readable(text)
            if not in_time(self.finder, text, self.deadline, self.clock):
                return self._given_up_at(self.index.line_of(start, self.content), is_huge(self.finder, text))
            self._look_at(text, start, end)
        return Matches(tuple(self.kept), self.total)

    def _given_up_at(self, line: int, is_stuck: bool) -> Matches:
        found = Matches(tuple(self.kept), self.total, line - 1)
        if not is_stuck or self.deadline is None or self.clock() >= self.deadline:
            return found
        return replace(found, stuck_at=line, bytes_at_once=region_size(self.finder))

    def _regions(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of whole lines, without the line feed of the last. A line that is too long is one by itself."""
        size = region_size(self.finder)
        while start < end:
            line_feed = self.content.rfind(b"\n", start, min(start + size, end))
            if line_feed < 0:
                line_feed = self.content.find(b"\n", start, end)
            region_end = end if line_feed < 0 else line_feed
            yield start, region_end
            start = region_end + 1

    def _look_at(self, text: bytes, start: int, end: int) -> None:
        line, at = 0, 0
        for match_start, match_end in self.finder.lines_in(text):
            line_start = text.rfind(b"\n", 0, match_start) + 1
            if len(self.kept) >= self.limit:
                self.total += self.finder.count_from(text, line_start)
                return
            line = (line or self.index.line_of(start, self.content)) + text.count(b"\n", at, line_start)
            at = line_start
            # Where carriage returns were left out, only the index knows the place.
            known = start + line_start if len(text) == end - start else self.index.start_of(line, self.content)
            self._keep(line, known, match_start - line_start, match_end - line_start)

    def _keep(self, line: int, start: int, match_start: int, match_end: int) -> None:
        line_feed = self.content.find(b"\n", start)
        end = len(self.content) if line_feed < 0 else line_feed
        end -= self.content.endswith(b"\r", start, end)
        self.kept.append(LineMatch(line, start, end, start + match_start, start + match_end))
        self.total += 1


def region_size(finder: Finder) -> int:
    """Return how many bytes *finder* may be given at once, so that its time is bearable for every pattern."""
    return min(max(_STEPS_PER_REGION // finder.steps_per_byte, _SMALLEST_REGION), _LARGEST_REGION)


def is_huge(finder: Finder, text: bytes) -> bool:
    """Say whether *text* is a line so long that its search, which cannot stop, may take long."""
    return len(text) >= region_size(finder) * _HUGE_REGIONS


def in_time(finder: Finder, text: bytes, deadline: float | None, clock: Callable[[], float]) -> bool:
    """Say whether there is time for *text*. For a huge line samples tell: once begun, its search cannot stop.

    Where samples are harmless and the rest is not, what it takes at worst is bounded too.
    """
    if deadline is None:
        return True
    if not is_huge(finder, text) or clock() >= deadline:
        return clock() < deadline
    if len(text) * finder.steps_per_byte > (deadline - clock()) * _MOST_TIMES_TOO_LATE * _STEPS_PER_SECOND:
        return False
    size = min(region_size(finder), len(text) // _SAMPLED_PART)
    # The engine warms up first.
    finder.count_from(text[:size], 0)
    began = clock()
    for number in range(1, _SAMPLES):
        offset = number * len(text) // _SAMPLES
        finder.count_from(text[offset : offset + size], 0)
        spent = (now := clock()) - began
        if now + spent / (number * size) * len(text) > deadline:
            return False
    return True


def readable(text: bytes) -> bytes:
    """Return lines with bare line feeds between them. Each byte that is part of no character becomes U+001A."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if text.isascii() or _is_utf8(text):
        return text
    return _NO_CHARACTER.sub(_SUBSTITUTE, text.decode(errors="surrogateescape")).encode()


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
