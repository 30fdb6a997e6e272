"""Which of many things to try next, so that all of them are stored that a storage takes, in few tries."""

from __future__ import annotations

__all__ = ["Rationing"]

_MOST_IN_VAIN = 3


class Rationing:
    """Deals out the numbers below *count* in portions, after all of them together were refused.

    A refused portion is halved until the one to blame is found, which is set aside; what gains nothing by itself waits
    for the others. As long as nobody knows whether the storage works, portions are small and from several places: if
    three in a row are refused, it is down.
    """

    def __init__(self, count: int) -> None:
        self._pending = list(range(count)) if count > 1 else []
        self._waiting: list[int] = []
        self._began_with = count
        # How many are tried next, and how many of the next are known to be too many, or to hold one to blame.
        self._size, self._suspects = count // 2, count
        self._works, self._small, self._in_vain = False, 1, 0

    @property
    def portion(self) -> list[int]:
        """What to try next; nothing once it is over."""
        if self._in_vain == _MOST_IN_VAIN:
            return []
        return self._pending[: self._size if self._works else min(self._size, self._small)]

    @property
    def is_last(self) -> bool:
        """Whether nothing is to be tried after the portion but what waits."""
        return len(self.portion) == len(self._pending)

    def store(self) -> None:
        """Go on after the portion was stored."""
        self._take()
        self._works, self._small, self._in_vain = True, 1, 0
        self._begin_again_if_done()

    def wait(self) -> None:
        """Go on after the portion turned out to gain nothing by itself."""
        self._waiting += self._take()
        self._small *= 2
        self._begin_again_if_done()

    def refuse(self, *, is_to_blame: bool) -> None:
        """Go on after the portion was refused: for what it is if that *is_to_blame*, or because the storage is down."""
        count = len(self.portion)
        self._works = self._works or is_to_blame
        if count == 1:
            del self._pending[0]
            self._size, self._suspects = len(self._pending), 0
        elif self._works:
            self._size, self._suspects = count // 2, count
        if not is_to_blame and (count == 1 or not self._works):
            self._try_elsewhere()
        self._begin_again_if_done()

    def _take(self) -> list[int]:
        taken = self.portion
        del self._pending[: len(taken)]
        self._suspects -= len(taken)
        if self._suspects <= 0:
            self._size *= 2
        return taken

    def _try_elsewhere(self) -> None:
        """Let a small portion from the end be the next, or from the middle if that was in vain too."""
        self._works, self._in_vain = False, self._in_vain + 1
        end = len(self._pending) // self._in_vain
        start = max(end - self._small, 0)
        self._pending[:end] = self._pending[start:end] + self._pending[:start]

    def _begin_again_if_done(self) -> None:
        """Try what gained nothing by itself together, if that is fewer than were tried so before."""
        if self._pending or len(self._waiting) >= self._began_with:
            return
        self._pending, self._waiting = sorted(self._waiting), []
        self._began_with = self._size = self._small = len(self._pending)
        self._suspects = 0
