"""Examples of many values on one line: from the whole range, as many as there is room for."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from holdfast.previews.quoting import evenly

__all__ = ["Examples", "one_line", "short"]

_LONGEST = 60
_LONGEST_START = 80
_LONG_START = 24
_LOOKED_AT = 16


class Examples:
    """Distinct values with how often each occurs. What is known about all of them is found out once."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    @cached_property
    def values(self) -> list[str]:
        """The distinct values, in the order of their first occurrence."""
        return list(self.counts)

    @cached_property
    def weight(self) -> float:
        """How much more, or less, room these values deserve than others."""
        some = self._some
        size = sum(map(len, some)) / max(len(some), 1)
        digits = sum(sum(map(str.isdigit, value)) for value in some)
        # What occurs again and again is what rows are told apart by: states, types, languages.
        if len(self.values) <= 24 and 3 * len(self.values) <= self.counts.total():
            return 3.0
        if any(" " in value for value in some) or digits < 0.2 * size * len(some):
            return 2.0 if size < 40 else 1.0
        return 1.0 if size < 24 else 0.4

    def text(self, characters: float) -> str:
        """Return about so many characters of examples, each on one line and cut where it is long."""
        wanted = int(characters / self._size) if self.values else 0
        chosen = [self.values[index] for index in evenly(len(self.values), wanted)]
        if chosen and len(self._start) >= _LONG_START:
            return f"{one_line(self._start)}… + " + " | ".join(short(value[len(self._start) :]) for value in chosen)
        return " | ".join(map(short, chosen))

    def counted(self, characters: int) -> str:
        """Return the values there are, the most frequent first, with how often they occur, as far as it goes."""
        if len(self.values) == 1:
            return f"always {short(self.values[0])}" if self.counts.total() > 1 else short(self.values[0])
        shown: list[str] = []
        for value, count in self.counts.most_common():
            if shown and sum(map(len, shown)) > characters:
                return " | ".join([*shown, f"{len(self.values) - len(shown)} more"])
            shown.append(f"{short(value)} ×{count}" if count > 1 else short(value))
        return " | ".join(shown)

    @cached_property
    def _some(self) -> list[str]:
        return [self.values[index] for index in evenly(len(self.values), _LOOKED_AT)]

    @cached_property
    def _size(self) -> float:
        return sum(len(short(value)) for value in self._some) / max(len(self._some), 1) + 3

    @cached_property
    def _start(self) -> str:
        """What all values begin with."""
        first, last = min(self.values)[:_LONGEST_START], max(self.values)[:_LONGEST_START]
        differs = (at for at, signs in enumerate(zip(first, last, strict=False)) if signs[0] != signs[1])
        return first[: next(differs, min(len(first), len(last)))]


def short(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line, cut where it is long."""
    line = one_line(text[: 4 * longest])
    return line if len(line) <= longest and len(text) <= 4 * longest else f"{line[:longest]}…"


def one_line(text: str) -> str:
    """Return a text with single spaces for all its room."""
    return " ".join(text.split())
