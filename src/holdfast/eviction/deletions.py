"""Deleting what was evicted: in the background, again if it fails, and never what another process still uses."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from holdfast.errors import StorageError
from holdfast.eviction.inventory import Departure
from holdfast.eviction.labels import labelled
from holdfast.storage.protocols import Entry, SupportsInspect, SupportsTouch, offers

__all__ = ["Deletions", "mark_leaving"]

logger = logging.getLogger(__name__)

_AT_ONCE = 32
_A_MOMENT = 0.02
# File systems keep times less exactly than clocks tell them.
_SAME_MOMENT = 0.001


class Deletions:
    """Carries out departures, up to 32 at once, in whichever event loop runs. Safe to call from any thread."""

    def __init__(
        self,
        inner: Any,
        *,
        recheck: bool,
        retry_delays: Sequence[float],
        on_spared: Callable[[list[Entry]], None],
    ) -> None:
        self._inner = inner
        self._recheck = recheck and offers(inner, SupportsInspect)
        self._marks = offers(inner, SupportsTouch)
        self._retry_delays = retry_delays
        self._on_spared = on_spared
        self._waiting: deque[Departure] = deque()
        self._given_up: deque[Departure] = deque()
        self._under_way: dict[asyncio.Task[None], Departure | None] = {}
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self.pending: set[str] = set()

    def add(self, departure: Departure) -> None:
        """Delete *departure* soon."""
        self.pending.update(eviction.reference for eviction in departure.evictions)
        self._waiting.append(departure)
        self.start_soon()

    def start_soon(self) -> None:
        """Go on with what waits, in a moment: many deletions at once cost less than one by one."""
        if not self._waiting:
            return
        with suppress(RuntimeError):  # without a running event loop, the next store in one starts it
            loop = asyncio.get_running_loop()
            if self._timer is None or self._timer[0].is_closed():
                self._timer = (loop, loop.call_later(_A_MOMENT, self._start))

    def _start(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        self._leave_dead_loops()
        for _ in range(min(len(self._waiting), _AT_ONCE - len(self._under_way))):
            task = loop.create_task(self._work())
            self._under_way[task] = None
            task.add_done_callback(lambda task: self._under_way.pop(task, None))

    async def finish(self) -> None:
        """Wait until all is deleted; what resisted is tried once more, and then raised."""
        self._waiting.extend(self._given_up)
        self._given_up.clear()
        while self._waiting or self._under_way:
            self._start()
            await self._wait_for_some()
        if self._given_up:
            left = sum(len(departure.evictions) for departure in self._given_up)
            raise StorageError(
                f"{left} evicted contents could not be deleted, the first of them "
                f"{self._given_up[0].evictions[0].reference}; the log says why. The next sweep tries again"
            )

    async def delete_now(self, departure: Departure) -> None:
        """Delete at once. If that fails, it is raised, and tried again in the background."""
        references = [eviction.reference for eviction in departure.evictions]
        self.pending.update(references)
        try:
            await self._delete(departure)
        except BaseException:
            self._waiting.append(departure)
            self.start_soon()
            raise
        self.pending.difference_update(references)

    async def _wait_for_some(self) -> None:
        here = [task for task in self._under_way if task.get_loop() is asyncio.get_running_loop()]
        if here:
            await asyncio.wait(here)
        else:
            # All that is under way is another thread's, whose tasks cannot be awaited here.
            await asyncio.sleep(0.01)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while self._waiting:
            departure = self._waiting.popleft()
            self._under_way[task] = departure
            try:
                await self._carry_out(departure)
            except asyncio.CancelledError:
                self._waiting.appendleft(departure)
                raise
            self._under_way[task] = None

    async def _carry_out(self, departure: Departure) -> None:
        for delay in (*self._retry_delays, None):
            try:
                await self._delete(departure)
            except Exception as error:
                # A backend may fail in ways of its own; whatever it was, it is told and tried again.
                logger.warning("cannot delete evicted %s: %s", departure.evictions[0].reference, error)
            else:
                self._settled(departure)
                return
            if delay is not None:
                await asyncio.sleep(delay)
        self._given_up.append(departure)
        self._settled(departure)

    async def _delete(self, departure: Departure) -> None:
        """Delete, unless another process used it since."""
        evictions = departure.evictions
        if self._recheck and departure.by_use:
            entries = await self._inspect([eviction.reference for eviction in evictions])
            if any(entry.last_used > departure.last_used + _SAME_MOMENT for entry in entries):
                self._settled(departure)
                self._on_spared(entries)
                return
        if self._marks:
            await mark_leaving(self._inner, departure)
        for step in departure.steps:
            await asyncio.gather(*(self._inner.delete(eviction.reference) for eviction in step))

    async def _inspect(self, references: Sequence[str]) -> list[Entry]:
        found = await asyncio.gather(*map(self._inner.inspect, references), return_exceptions=True)
        for answer in found:
            if isinstance(answer, BaseException) and not isinstance(answer, KeyError):
                raise answer
        return [entry for entry in found if isinstance(entry, Entry)]

    def _settled(self, departure: Departure) -> None:
        self.pending.difference_update(eviction.reference for eviction in departure.evictions)

    def _leave_dead_loops(self) -> None:
        """Take back what tasks of closed event loops left undone."""
        for task in [task for task in self._under_way if task.get_loop().is_closed()]:
            departure = self._under_way.pop(task)
            if departure is not None and not task.done():
                self._waiting.append(departure)


async def mark_leaving(storage: SupportsTouch, departure: Departure) -> None:
    """Mark a chain that is about to be deleted, so that whoever finds the rest of it goes on, should we die."""
    last = departure.steps[-1][-1]
    if len(departure.evictions) > 1:
        marked = labelled(last.content_type, None, departure.chains_of_last, left_at=last.evicted_at)
        await storage.touch(last.reference, departure.last_used, marked)
