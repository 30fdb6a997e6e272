"""Memory and time for a replay: the same recording gives the same figures, whenever it is replayed.

References hold numbers drawn at random, and markers the time of day. Both differ in length from run to run, and with
them would what a window holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from holdfast.archive.chronicle import Chronicle
from holdfast.eviction import EvictingStorage
from holdfast.manager import ContextManager
from holdfast.storage import InMemoryStorage, Storage

__all__ = ["make_steady"]

_MOMENT, _SECONDS_OF_A_TURN = 1_700_000_000, 15
_FIRST = 412_345_678_900
# What the parts of a manager draw, so that no two of them give the same key.
_DRAWN = re.compile(r"^(history-)?[0-9a-f]{6}(?:[0-9a-f]{2})?(?=-)")


def make_steady(manager: ContextManager, bounds: Mapping[str, Any] | None) -> None:
    """Have a manager that keeps all in memory, within *bounds*, leave nothing to chance or to the clock."""
    if manager.hold is not None:
        turns = getattr(_innermost(manager.hold.storage), "evict_after_turns", None)
        memory = _SteadyMemory(turns)
        manager.hold.keep_in(memory if bounds is None else EvictingStorage(memory, **bounds))
    if manager.archive is not None:
        manager.archive.chronicle = _SteadyChronicle()


class _SteadyMemory(InMemoryStorage):
    """Counts from the same number each time, and takes nothing random into a reference."""

    def __init__(self, evict_after_turns: int | None) -> None:
        super().__init__(evict_after_turns, clock=_ticking())
        self._number = _FIRST

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        return await super().store(_DRAWN.sub(_as_if_drawn, key), content, content_type)


class _SteadyChronicle(Chronicle):
    """Has turns take as long as turns do, and not as long as their replay."""

    def note(self, count: int, turn: int, at: float) -> None:
        super().note(count, turn, _MOMENT + turn * _SECONDS_OF_A_TURN)


def _innermost(storage: Storage) -> Storage:
    return storage.inner if isinstance(storage, EvictingStorage) else storage


def _ticking() -> Callable[[], float]:
    ticks = count()
    return lambda: _MOMENT + next(ticks) / 1_000


def _as_if_drawn(drawn: re.Match[str]) -> str:
    return "history-3f9a1c" if drawn[1] else "3f9a1c7e"
