"""A bounded look at a text: lines of its head, its middle and its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["LONGEST", "Sample", "sample_of"]

_HEAD, _WINDOW = 24_000, 12_000
_HEAD_LINES, _WINDOW_LINES = 120, 60
LONGEST = 2_000
"""To how many characters a line of a sample is cut."""


@dataclass(frozen=True)
class Sample:
    """How a text starts, and some lines of it without the blank ones, each cut to `LONGEST` characters."""

    start: str
    lines: tuple[str, ...]

    def share(self, pattern: re.Pattern[str]) -> float:
        """Return the share of the lines that *pattern* matches at their beginning."""
        return self.share_of(lambda line: pattern.match(line) is not None)

    def share_of(self, holds: Callable[[str], bool]) -> float:
        """Return the share of the lines for which something holds."""
        return sum(map(holds, self.lines)) / len(self.lines) if self.lines else 0.0

    def count(self, pattern: re.Pattern[str]) -> int:
        """Return how many lines *pattern* matches at their beginning."""
        return sum(pattern.match(line) is not None for line in self.lines)


def sample_of(text: str) -> Sample:
    """Return a sample of *text*. Of a middle part, the first and the last line may be pieces, and are left out."""
    if len(text) <= _HEAD:
        return Sample(text.lstrip()[:LONGEST], tuple(_ends_and_middle(_lines(text, whole=True))))
    head = _lines(text[:_HEAD])[:_HEAD_LINES]
    middle = max(_HEAD, len(text) // 2)
    between = _lines(text[middle : middle + _WINDOW])[1 : _WINDOW_LINES + 1]
    tail = _lines(text[max(_HEAD, len(text) - _WINDOW) :], whole=True)[1:][-_WINDOW_LINES:]
    return Sample(text[:_HEAD].lstrip()[:LONGEST], (*head, *between, *tail))


def _ends_and_middle(lines: list[str]) -> list[str]:
    if len(lines) <= _HEAD_LINES + 2 * _WINDOW_LINES:
        return lines
    middle = max(_HEAD_LINES, (len(lines) - _WINDOW_LINES) // 2)
    return [*lines[:_HEAD_LINES], *lines[middle : middle + _WINDOW_LINES], *lines[-_WINDOW_LINES:]]


def _lines(part: str, *, whole: bool = False) -> list[str]:
    lines = part.split("\n")
    if not whole and len(lines) > 1 and len(lines[-1]) < LONGEST:
        lines.pop()
    return [line.rstrip()[:LONGEST] for line in lines if line[:LONGEST].strip()]
