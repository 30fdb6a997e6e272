"""Worker threads that keep blocking calls off the event loop.

Storing 10 KB takes less time than waking a thread for it and the event loop after it. So the way there and back is
kept short: a call goes straight to the thread that fell asleep last, and quick calls that are made in the same moment
may share one hand-over. Measured in docs/decisions/0003-own-worker-threads.md.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

__all__ = ["WorkerThreads"]

T = TypeVar("T")

_LONGEST_BURST = 16


class _Call(NamedTuple):
    future: asyncio.Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]


class _Answer(NamedTuple):
    future: asyncio.Future[Any]
    result: Any
    error: BaseException | None


class WorkerThreads:
    """Up to *limit* daemon threads, started as calls need them and anew after a fork; for the life of the process."""

    def __init__(self, limit: int, *, name: str) -> None:
        self._limit = limit
        self._name = name
        self._start_over()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_over)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call *function* in a thread. A cancelled caller stops waiting; the call itself runs to its end."""
        call = _Call(asyncio.get_running_loop().create_future(), function, args)
        self._submit([call])
        return await call.future  # type: ignore[no-any-return]

    async def run_together(self, function: Callable[..., T], *args: Any) -> T:
        """Like `run`, for quick calls: those that are made before the event loop next looks up share a thread."""
        loop = asyncio.get_running_loop()
        call = _Call(loop.create_future(), function, args)
        if loop not in self._bursts:
            self._bursts[loop] = []
            loop.call_soon(self._submit_burst, loop)
        self._bursts[loop].append(call)
        return await call.future  # type: ignore[no-any-return]

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._bursts: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
        self._waiting: deque[list[_Call]] = deque()
        self._asleep: list[threading.Lock] = []
        self._started = 0

    def _submit_burst(self, loop: asyncio.AbstractEventLoop) -> None:
        calls = self._bursts.pop(loop)
        for first in range(0, len(calls), _LONGEST_BURST):
            self._submit(calls[first : first + _LONGEST_BURST])

    def _submit(self, calls: list[_Call]) -> None:
        with self._lock:
            self._waiting.append(calls)
            if self._asleep:
                self._asleep.pop().release()
            elif self._started < self._limit:
                self._started += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()

    def _work(self) -> None:
        bed = threading.Lock()
        bed.acquire()
        answers: list[_Answer] = []
        while True:
            calls = self._take_or_go_to_bed(bed)
            # Told only now, so that a caller's next call finds this thread in bed.
            _tell(answers)
            answers = [_answer(call) for call in calls]
            if not calls:
                bed.acquire()

    def _take_or_go_to_bed(self, bed: threading.Lock) -> list[_Call]:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._asleep.append(bed)
            return []


def _answer(call: _Call) -> _Answer:
    try:
        return _Answer(call.future, call.function(*call.args), None)
    except BaseException as error:  # it belongs to the caller, who awaits it
        return _Answer(call.future, None, error)


def _tell(answers: list[_Answer]) -> None:
    if not answers:
        return
    loop = answers[0].future.get_loop()
    try:
        loop.call_soon_threadsafe(_settle, answers)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _settle(answers: list[_Answer]) -> None:
    for future, result, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
