"""Worker threads that keep blocking calls off the event loop.

Storing 10 KB takes less time than waking a thread for it and the event loop after it. So while calls are quick they
are not spread over threads: they queue behind a thread that is awake, and their answers are told together. When the
queue stands still for longer than *patience*, each call in it gets a thread of its own. Measured in
docs/decisions/0003-own-worker-threads.md.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

__all__ = ["WorkerThreads"]

T = TypeVar("T")


class _Call(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]


class _Answer(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any
    error: BaseException | None


class WorkerThreads:
    """Up to *limit* daemon threads, started as calls need them and anew after a fork; for the life of the process."""

    _watchers: list[asyncio.AbstractEventLoop]

    def __init__(self, limit: int, *, name: str, patience: float = 0.0) -> None:
        self._limit = limit
        self._name = name
        self._patience = patience
        self._start_over()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_over)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call *function* in a thread. A cancelled caller stops waiting; the call itself runs to its end."""
        loop = asyncio.get_running_loop()
        call = _Call(loop, loop.create_future(), function, args)
        with self._lock:
            self._waiting.append(call)
            if not self._awake or not self._patience:
                self._wake_one()
            elif loop not in self._watchers:
                self._watchers = [watcher for watcher in self._watchers if watcher.is_running()] + [loop]
                loop.call_later(self._patience, self._watch, loop, self._taken)
        return await call.future  # type: ignore[no-any-return]

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._asleep: list[threading.Lock] = []
        self._started = 0
        self._awake = 0
        self._taken = 0
        self._watchers = []

    def _wake_one(self) -> None:
        """Wake the thread that fell asleep last, which wakes fastest, or start one. The caller holds the lock."""
        if self._asleep:
            self._awake += 1
            self._asleep.pop().release()
        elif self._started < self._limit:
            self._awake += 1
            self._started += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()

    def _watch(self, loop: asyncio.AbstractEventLoop, taken_before: int) -> None:
        """Look whether the queue moved; wake a thread for each call in it if not."""
        with self._lock:
            if not self._waiting:
                self._watchers = [watcher for watcher in self._watchers if watcher is not loop]
                return
            loop.call_later(self._patience, self._watch, loop, self._taken)
            if self._taken == taken_before:
                for _ in self._waiting:
                    self._wake_one()

    def _work(self) -> None:
        bed = threading.Lock()
        bed.acquire()
        while True:
            self._empty_the_queue(bed)
            bed.acquire()

    def _empty_the_queue(self, bed: threading.Lock) -> None:
        answers: list[_Answer] = []
        tell_at = time.monotonic() + self._patience
        while (call := self._take_or_sleep(bed)) is not None:
            answers.append(_answer(call))
            if time.monotonic() >= tell_at:
                _tell(answers)
                answers, tell_at = [], time.monotonic() + self._patience
        _tell(answers)

    def _take_or_sleep(self, bed: threading.Lock) -> _Call | None:
        """Take the next call. If there is none, go to bed before answers are told, so that callers find it there."""
        with self._lock:
            if self._waiting:
                self._taken += 1
                return self._waiting.popleft()
            self._awake -= 1
            self._asleep.append(bed)
            return None


def _answer(call: _Call) -> _Answer:
    try:
        return _Answer(call.loop, call.future, call.function(*call.args), None)
    except BaseException as error:  # it belongs to the caller, who awaits it
        return _Answer(call.loop, call.future, None, error)


def _tell(answers: Iterable[_Answer]) -> None:
    for loop, of_loop in groupby(answers, key=lambda answer: answer.loop):
        try:
            loop.call_soon_threadsafe(_settle, list(of_loop))
        except RuntimeError:
            if not loop.is_closed():
                raise


def _settle(answers: list[_Answer]) -> None:
    for _, future, result, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
