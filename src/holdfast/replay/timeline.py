"""The requests of one run, one after the other: what each is made of, and what of it the provider has seen before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add
from typing import NamedTuple

from holdfast.replay.parts import Part, Split

__all__ = ["Request", "Timeline"]


class Request(NamedTuple):
    """One model call: its tokens by part, how many of them the call before began with, whether sent history changed."""

    split: Split
    cached: int = 0
    rewritten: bool = False

    @property
    def tokens(self) -> int:
        """All of it."""
        return sum(self.split)


class Timeline:
    """Measures requests. *fixed* comes before all messages."""

    def __init__(self, fixed: Split) -> None:
        self._requests: list[Request] = []
        self._last: list[Part] = []
        self._sums = [fixed]

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests)

    def measure(self, parts: Sequence[Part]) -> Request:
        """Return the request that *parts* would be after the last one that was added."""
        return self._next(parts)[0]

    def add(self, parts: Sequence[Part]) -> Request:
        """Add a request. What it begins with as the last one did comes from the provider's cache."""
        request, common, sums = self._next(parts)
        self._sums[common + 1 :] = sums
        self._last[common:] = parts[common:]
        self._requests.append(request)
        return request

    def go_on(self, new: Sequence[Part]) -> Request:
        """Add the last request with *new* behind it. It costs what is new, however long the request is."""
        cached, reached = sum(self._sums[-1]) if self._requests else 0, self._sums[-1]
        for part in new:
            reached = tuple(map(add, reached, part.tokens))
            self._sums.append(reached)
        self._last += new
        self._requests.append(request := Request(reached, cached))
        return request

    def _next(self, parts: Sequence[Part]) -> tuple[Request, int, list[Split]]:
        common = _alike(self._last, parts)
        sums, reached = [], self._sums[common]
        for part in parts[common:]:
            reached = tuple(map(add, reached, part.tokens))
            sums.append(reached)
        cached = sum(self._sums[common]) if self._requests else 0
        return Request(reached, cached, rewritten=common < len(self._last)), common, sums


def _alike(before: Sequence[Part], now: Sequence[Part]) -> int:
    """Return with how many parts both begin. Most are the very same objects."""
    pairs = enumerate(zip(before, now, strict=False))
    return next(
        (number for number, (one, other) in pairs if one is not other and one != other), min(len(before), len(now))
    )
