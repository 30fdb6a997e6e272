"""When each message of a conversation came: in which turn, and at what time."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from holdfast.checks import is_count
from holdfast.errors import InvalidValueError
from holdfast.hold.packing import packed, unpacked

__all__ = ["Chronicle"]

_MOST = 2_000
_MOST_IN_STATE = 100


class Chronicle:
    """Turns, and the number of the first message that came with each. The latest 2,000 are remembered."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._turns: list[tuple[int, float]] = []
        self._seen = 0

    def note(self, count: int, turn: int, at: float) -> None:
        """Note that the conversation has *count* messages by now."""
        if count <= self._seen:
            return
        self._firsts.append(self._seen + 1)
        self._turns.append((turn, at))
        self._seen = count
        if len(self._firsts) > _MOST:
            del self._firsts[0], self._turns[0]

    def when(self, number: int) -> tuple[int, float | None]:
        """Return the turn and the time at which a message came; turn 0 and no time if nobody remembers."""
        at = bisect_right(self._firsts, number) - 1
        return self._turns[at] if at >= 0 else (0, None)

    def get_state(self) -> str:
        """Return the latest turns, packed."""
        latest = list(zip(self._firsts, self._turns, strict=True))[-_MOST_IN_STATE:]
        return packed([[first, turn, round(at)] for first, (turn, at) in latest] + [[self._seen + 1, 0, 0]])

    def restore(self, state: Any) -> None:
        """Go on from what `get_state` returned; of anything else, from nothing."""
        try:
            rows = unpacked(state)
        except InvalidValueError:
            return
        if not isinstance(rows, list):
            return
        numbers = [row for row in rows if isinstance(row, list) and len(row) == 3 and all(map(is_count, row))]
        if not numbers or [row[0] for row in numbers] != sorted({row[0] for row in numbers}):
            return
        *known, (end, _, _) = numbers
        self._firsts, self._turns = [row[0] for row in known], [(row[1], float(row[2])) for row in known]
        self._seen = end - 1
