"""Worker threads that keep blocking calls off the event loop.

`asyncio.to_thread` would do, at twice the price per call. Storing 10 KB takes about as long as handing it to a
thread and back, so the hand-over is kept as short as it can be (docs/decisions/0003-own-worker-threads.md).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["WorkerThreads"]

T = TypeVar("T")
Call = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class WorkerThreads:
    """At most *limit* daemon threads, started as calls need them and anew after a fork. Lives as long as the process."""

    def __init__(self, limit: int, *, name: str) -> None:
        self._limit = limit
        self._name = name
        self._start_over()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_over)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call *function* in a thread. A cancelled caller stops waiting; the call itself runs to its end."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._reserve_thread()
        self._calls.put((loop, future, function, args))
        return await future

    def _start_over(self) -> None:
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._idle = 0

    def _reserve_thread(self) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._started < self._limit:
                self._started += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()

    def _work(self) -> None:
        calls = self._calls
        while True:
            _answer(*calls.get())
            with self._lock:
                self._idle += 1


def _answer(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], function: Callable[..., T], args: tuple[Any, ...]
) -> None:
    settle: Callable[[Any], None]
    outcome: Any
    try:
        settle, outcome = future.set_result, function(*args)
    except BaseException as error:  # it belongs to the caller, who awaits it
        settle, outcome = future.set_exception, error
    try:
        loop.call_soon_threadsafe(_settle, future, settle, outcome)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _settle(future: asyncio.Future[Any], settle: Callable[[Any], None], outcome: Any) -> None:
    if not future.done():
        settle(outcome)
