"""How long a storage that does not answer is left alone."""

from __future__ import annotations

import asyncio

__all__ = ["Patience", "is_hanging"]

_FIRST_SHARE, _MOST_DOUBLINGS = 0.05, 8


class Patience:
    """Until the history has grown by 5 % of the window after the first time, and each time by twice as much."""

    def __init__(self) -> None:
        self._times = self._until = 0

    @property
    def is_tried(self) -> bool:
        """Whether the storage did not answer when it was asked last."""
        return self._times > 0

    @property
    def is_worn(self) -> bool:
        """Whether it did not answer twice in a row."""
        return self._times > 1

    def begin(self, tokens: int, window: int) -> None:
        """Leave the storage alone from now on, where the history has so many tokens."""
        self._until = tokens + int(window * _FIRST_SHARE * 2 ** min(self._times, _MOST_DOUBLINGS))
        self._times += 1

    def end(self) -> None:
        """Say that the storage answered."""
        self._times = self._until = 0

    def lasts(self, tokens: int) -> bool:
        """Say whether the history, with so many tokens by now, is not worth another try."""
        return tokens < self._until


def is_hanging(error: BaseException) -> bool:
    """Say whether a storage did not answer in time, and so would not answer soon either."""
    # They are two until Python 3.11.
    return isinstance(error, (TimeoutError, asyncio.TimeoutError))
