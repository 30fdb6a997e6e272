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

    def run(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Call *function* in a thread. A call that was cancelled before it began is not made."""
        # A plain function: a coroutine's frame would hold the future, and so keep an error's content alive.
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._submit(deque([_Call(future, function, args)]))
        return future

    def run_together(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Like `run`, for quick calls: those that are made before the event loop next looks up share a thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            if loop not in self._bursts:
                self._forget_closed_loops()
                loop.call_soon(self._submit_burst, loop)
            self._bursts.setdefault(loop, []).append(_Call(future, function, args))
        return future

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._bursts: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
        self._waiting: deque[deque[_Call]] = deque()
        self._asleep: list[threading.Lock] = []
        self._started = 0

    def _forget_closed_loops(self) -> None:
        """Drop bursts that no loop will ever submit. The caller holds the lock."""
        for loop in [loop for loop in self._bursts if loop.is_closed()]:
            del self._bursts[loop]

    def _submit_burst(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            calls = self._bursts.pop(loop)
        for first in range(0, len(calls), _LONGEST_BURST):
            self._submit(deque(calls[first : first + _LONGEST_BURST]))

    def _submit(self, calls: deque[_Call]) -> None:
        with self._lock:
            if self._asleep:
                self._asleep.pop().release()
            elif self._started < self._limit:
                try:
                    self._start_thread()
                except RuntimeError as error:
                    if not self._started:
                        _settle([_Answer(call.future, None, error) for call in calls])
                        return
            self._waiting.append(calls)

    def _start_thread(self) -> None:
        name = f"{self._name}-{self._started + 1}"
        threading.Thread(target=self._work, name=name, daemon=True).start()
        self._started += 1

    def _work(self) -> None:
        bed = threading.Lock()
        bed.acquire()
        answers: list[_Answer] = []
        while True:
            calls = self._take_or_go_to_bed(bed)
            # Told only now, so that a caller's next call finds this thread in bed.
            _tell(answers)
            answers = []
            if not calls:
                bed.acquire()
            while calls:
                answers.append(_answer(calls.popleft()))

    def _take_or_go_to_bed(self, bed: threading.Lock) -> deque[_Call]:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._asleep.append(bed)
            return deque()


def _answer(call: _Call) -> _Answer:
    future, function, args = call
    try:
        return _Answer(future, None if future.cancelled() else function(*args), None)
    except StopIteration as error:  # a future refuses it
        return _Answer(future, None, RuntimeError(f"{function} raised {error!r}"))
    except BaseException as error:  # it belongs to the caller, who awaits it
        return _Answer(future, None, error)
    finally:
        # An error's traceback keeps this frame; the frame must not keep the error's future, nor the content.
        del call, future, function, args


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
