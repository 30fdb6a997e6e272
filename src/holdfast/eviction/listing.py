"""Bringing in what earlier and other processes stored."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from math import inf
from typing import Any

from holdfast.eviction.deletions import is_dead
from holdfast.eviction.inventory import Inventory
from holdfast.eviction.labels import split_label
from holdfast.storage.protocols import Entry, SupportsDiscard, SupportsEntries, offers

__all__ = ["Listing"]

logger = logging.getLogger(__name__)

_AT_A_TIME = 1_000
_FEW_STORES = 1_000
_LONGEST_WAIT = 1.0
_LISTED_EVERY = 300.0


class Listing:
    """Keeps the inventory in step with what the inner storage lists.

    The first listing begins with the first operation, and nothing is evicted before it is complete. Later ones run in
    the background, after as many stores as there are entries, and after five minutes.
    """

    def __init__(
        self,
        inner: Any,
        inventory: Inventory,
        lock: threading.RLock,
        clock: Callable[[], float],
        *,
        leaving: Callable[[], Iterable[str]],
        on_complete: Callable[[], Awaitable[None]],
    ) -> None:
        self._inner = inner
        self._inventory = inventory
        self._lock = lock
        self._clock = clock
        self._leaving = leaving
        self._on_complete = on_complete
        self._task: asyncio.Task[list[Entry]] | None = None
        self._gone: set[str] = set()
        self._stores = 0
        self._began_at = 0.0
        self._due_at = inf
        self._listed_once = False
        self._lists = offers(inner, SupportsEntries)
        self._at_once = offers(inner, SupportsDiscard)
        self.complete = not self._lists

    async def begin(self) -> None:
        """Start the first listing, and let it go on; wait for it only where there is nothing to wait for."""
        task = self._start()
        if self._at_once:
            await _end_of(task)
        else:
            await asyncio.sleep(0)

    def begin_soon(self) -> None:
        """Start the first listing if nobody did, and an event loop runs."""
        if self.complete or self._running() is not None:
            return
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            self._start()

    async def wait(self) -> None:
        """Wait for the first listing, but not longer than a second after it began."""
        task = self._start()
        await _end_of(task, at_most=self._began_at + _LONGEST_WAIT - time.monotonic())

    async def refresh(self) -> list[Entry]:
        """List anew, and return what the inner storage holds."""
        if not self._lists:
            return []
        # One that is under way may have missed what happened since; all who wait share the next.
        if (earlier := self._running()) is not None:
            await _end_of(earlier)
        task = self._start()
        await _end_of(task)
        return task.result()

    def note_store(self) -> None:
        """Count a store; list in the background after many, or after a while: other processes may have stored too."""
        self._stores += 1
        if self._lists and (self._stores > max(_FEW_STORES, len(self._inventory)) or time.monotonic() > self._due_at):
            self._start()

    def note_lost_store(self) -> None:
        """List soon: a store was cut short, so there may be something that nobody knows of."""
        self._due_at = 0.0

    def note_gone(self, reference: str) -> None:
        """Do not take this for new if a listing that is under way still shows it."""
        if self._task is not None and not self._task.done():
            self._gone.add(reference)

    async def finish(self) -> None:
        """Wait for the listing that is under way, or is due, if any."""
        due = self._lists and self._due_at <= time.monotonic()
        if self._running() is not None or due or (self._task is not None and not self.complete):
            await _end_of(self._start())

    def _running(self) -> asyncio.Task[list[Entry]] | None:
        if self._task is None or self._task.done() or is_dead(self._task.get_loop()):
            return None
        return self._task

    def _start(self) -> asyncio.Task[list[Entry]]:
        task = self._running()
        if task is None:
            self._stores = 0
            # What is being deleted may be listed still, and be gone before the listing is looked at.
            self._gone = set(self._leaving())
            self._began_at = time.monotonic()
            self._due_at = self._began_at + _LISTED_EVERY
            task = self._task = asyncio.get_running_loop().create_task(self._list())
            task.add_done_callback(_log_failure)
        return task

    async def _list(self) -> list[Entry]:
        with self._lock:
            known = set(self._inventory.references())
        try:
            listed = [entry async for entry in self._inner.entries()]
        except Exception:
            # What this process stored can be evicted all the same; the rest, once a later listing succeeds.
            self.complete = True
            raise
        if not self._listed_once:
            self._begin_at_latest_turn(listed)
        await self._learn(listed)
        with self._lock:
            for reference in known.difference(entry.reference for entry in listed):
                self._inventory.forget(reference)
        self.complete = self._listed_once = True
        await self._on_complete()
        return listed

    def _begin_at_latest_turn(self, listed: list[Entry]) -> None:
        with self._lock:
            self._inventory.begin_at(max((split_label(entry.content_type)[1].turn or 0 for entry in listed), default=0))

    async def _learn(self, listed: list[Entry]) -> None:
        """Hold what is new. Once there are evictions, in one go: none may see half a chain."""
        for first in range(0, len(listed), _AT_A_TIME):
            with self._lock:
                for entry in listed[first : first + _AT_A_TIME]:
                    if self._is_new(entry.reference):
                        self._inventory.learn(entry, self._clock())
            if not self._listed_once:
                await asyncio.sleep(0)

    def _is_new(self, reference: str) -> bool:
        return reference not in self._inventory and reference not in self._gone


async def _end_of(task: asyncio.Task[Any], at_most: float | None = None) -> None:
    """Wait until *task* is done, but not longer than *at_most* seconds. It may be of another thread's event loop."""
    if task.get_loop() is asyncio.get_running_loop():
        await asyncio.wait([task], timeout=at_most)
        return
    deadline = inf if at_most is None else time.monotonic() + at_most
    while not task.done() and not is_dead(task.get_loop()) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("cannot list what is stored, so what other processes stored is not evicted yet: %s", error)
