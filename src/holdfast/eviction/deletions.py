"""Deleting what was evicted: in the background, again if it fails, and never what another process still uses."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from holdfast.errors import StorageError
from holdfast.eviction.inventory import Departure
from holdfast.eviction.labels import labelled
from holdfast.storage.checks import reserved_parameters
from holdfast.storage.protocols import Entry, SupportsDelete, SupportsInspect, SupportsTouch, offers

__all__ = ["AT_ONCE", "SAME_MOMENT", "Deletions", "delete_quietly", "is_dead", "mark_leaving", "slices"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE = 32
_A_MOMENT = 0.02
_MOST_WAITING = 1_000
# File systems keep times less exactly than clocks tell them.
SAME_MOMENT = 0.001


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
        self._given_up: dict[str, Departure] = {}
        self._under_way: dict[asyncio.Task[None], Departure | None] = {}
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self._pending: Counter[str] = Counter()

    def is_pending(self, reference: str) -> bool:
        """Say whether something is being deleted, so that what a listing still shows of it is not new."""
        return reference in self._pending

    def references(self) -> list[str]:
        """Return what is being deleted."""
        return list(self._pending)

    @contextmanager
    def pending(self, references: Sequence[str]) -> Iterator[None]:
        """Count *references* as being deleted."""
        self._pending.update(references)
        try:
            yield
        finally:
            self._settled(references)

    def add(self, departure: Departure) -> None:
        """Delete *departure* soon."""
        self._pending.update(departure.references)
        self._waiting.append(departure)
        self.start_soon()

    def start_soon(self) -> None:
        """Go on with what waits, in a moment: many deletions at once cost less than one by one."""
        if not self._waiting:
            return
        with suppress(RuntimeError):  # without a running event loop, the next store in one starts it
            loop = asyncio.get_running_loop()
            if self._timer is None or is_dead(self._timer[0]):
                self._timer = (loop, loop.call_later(_A_MOMENT, self._start))

    async def keep_up(self) -> None:
        """Wait while more deletions are due than memory should be asked to remember."""
        while len(self._waiting) > _MOST_WAITING:
            self._start()
            await self._wait_for_some(asyncio.FIRST_COMPLETED)

    async def delete_now(self, departure: Departure) -> None:
        """Delete at once. If that fails, it is raised, and tried again in the background."""
        with self.pending(departure.references):
            try:
                await self._delete(departure)
            except BaseException:
                self.add(departure)
                raise

    async def finish(self) -> None:
        """Wait until all is deleted; what resisted is tried once more, and then raised."""
        for departure in self._given_up.values():
            self._pending.update(departure.references)
            self._waiting.append(departure)
        self._given_up.clear()
        while self._waiting or self._under_way:
            self._start()
            await self._wait_for_some()
        if self._given_up:
            left = sum(len(departure.references) for departure in self._given_up.values())
            raise StorageError(
                f"{left} evicted contents could not be deleted, the first of them {next(iter(self._given_up))}; "
                "the log says why. The next sweep tries again"
            )

    def _start(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        self._leave_dead_loops()
        loop = asyncio.get_running_loop()
        for _ in range(min(len(self._waiting), AT_ONCE - len(self._under_way))):
            task = loop.create_task(self._work())
            # If the loop is closed before it is done, another takes over; asyncio has no public way to hear that.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            self._under_way[task] = None
            task.add_done_callback(lambda task: self._under_way.pop(task, None))

    async def _wait_for_some(self, until: str = asyncio.ALL_COMPLETED) -> None:
        here = [task for task in self._under_way if task.get_loop() is asyncio.get_running_loop()]
        if here:
            await asyncio.wait(here, return_when=until)
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
                logger.warning("cannot delete evicted %s: %s", departure.references[0], error)
            else:
                break
            if delay is not None:
                await asyncio.sleep(delay)
        else:
            self._given_up[departure.references[0]] = departure
        self._settled(departure.references)

    async def _delete(self, departure: Departure) -> None:
        """Delete, unless another process used it since."""
        if self._recheck and departure.by_use:
            entries = [entry async for entry in self._inspected(departure.references)]
            if any(entry.last_used > departure.last_used + SAME_MOMENT for entry in entries):
                self._settled(departure.references)
                self._on_spared(entries)
                self._pending.update(departure.references)
                return
        if self._marks:
            await mark_leaving(self._inner, departure)
        for step in departure.steps:
            for some in slices(step, AT_ONCE):
                await asyncio.gather(*(delete_quietly(self._inner, eviction.reference) for eviction in some))

    async def _inspected(self, references: Sequence[str]) -> AsyncIterator[Entry]:
        for some in slices(references, AT_ONCE):
            for answer in await asyncio.gather(*map(self._inner.inspect, some), return_exceptions=True):
                if isinstance(answer, Entry):
                    yield answer
                elif not isinstance(answer, KeyError):
                    raise answer

    def _settled(self, references: Sequence[str]) -> None:
        self._pending.subtract(references)
        for reference in references:
            if self._pending[reference] <= 0:
                del self._pending[reference]

    def _leave_dead_loops(self) -> None:
        """Take back what tasks of event loops that stopped left undone."""
        for task in [task for task in self._under_way if is_dead(task.get_loop())]:
            departure = self._under_way.pop(task)
            if departure is not None and not task.done():
                self._waiting.append(departure)


async def mark_leaving(storage: SupportsTouch, departure: Departure) -> None:
    """Mark a chain that is about to be deleted, so that whoever finds the rest of it goes on, should we die.

    A disk that is full, or a right that is missing, must not keep it from being deleted: then it goes unmarked.
    """
    last = departure.steps[-1][-1]
    if len(departure.references) == 1:
        return
    marked = labelled(last.content_type, None, departure.chains_of_last, left_at=last.evicted_at)
    try:
        with reserved_parameters():
            await storage.touch(last.reference, departure.last_used, marked)
    except Exception as error:
        logger.warning("cannot mark the chain of %s, so it is deleted without: %s", last.reference, error)


async def delete_quietly(storage: SupportsDelete, reference: str) -> None:
    """Delete; what is not there is deleted."""
    with suppress(KeyError):
        await storage.delete(reference)


def is_dead(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether nothing that was started in *loop* goes on by itself."""
    return loop.is_closed() or not loop.is_running()


def slices(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield *items* in pieces."""
    return (items[first : first + size] for first in range(0, len(items), size))
