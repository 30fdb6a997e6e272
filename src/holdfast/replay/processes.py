"""Work shared out among processes. Results come in order, and who stops in the middle waits for nothing.

A pool of `concurrent.futures` hands work out by a thread. If a process dies or Ctrl-C comes while that thread is in the
middle of a long recording, it waits for ever on Python 3.10, and may complain at the end on others. Here is no thread.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from holdfast.errors import HoldfastError

__all__ = ["shared_out"]

T = TypeVar("T")
R = TypeVar("R")

# What Python exits with after an error: before the first recording, as `work` does not raise.
_COULD_NOT_BEGIN = 1
_LAST_WORDS = 1.0
# A process that is forked while another thread holds a lock may wait for it for ever.
_SPAWN = multiprocessing.get_context("spawn")


def shared_out(work: Callable[[T], R], items: Iterable[T], count: int) -> Iterator[R]:
    """Yield what *work* makes of each item, in order, by up to *count* processes. It must be picklable, and not raise.

    A process that dies is an error. One item alone is not worth a process.
    """
    waiting = iter(items)
    first = list(islice(waiting, count))
    if len(first) < 2:
        yield from map(work, first)
        return
    with _crew(work, len(first)) as crew:
        yield from _in_order(_done_by(crew, chain(first, waiting)))


def _done_by(crew: _Crew[T, R], items: Iterable[T]) -> Iterator[tuple[int, R]]:
    """Yield results as they come, with the numbers of their items. While all are busy, the next item is ready."""
    for number, item in enumerate(items):
        if not crew.idle:
            yield from crew.results()
        crew.give(number, item)
    while crew.busy:
        yield from crew.results()


def _in_order(numbered: Iterable[tuple[int, R]]) -> Iterator[R]:
    # Held until those before are done: a result is small, and no process waits for a long one.
    held: dict[int, R] = {}
    due = 0
    for number, result in numbered:
        held[number] = result
        while due in held:
            yield held.pop(due)
            due += 1


class _Crew(Generic[T, R]):
    """Processes with something to do, each with the number of it, and those with nothing."""

    def __init__(self) -> None:
        self._processes: list[BaseProcess] = []
        self.idle: list[Connection] = []
        self.busy: dict[Connection, int] = {}

    def begin(self, work: Callable[[T], R]) -> None:
        """Have one more process, idle at first."""
        ours, theirs = _SPAWN.Pipe()
        self.idle.append(ours)
        process = _SPAWN.Process(target=_work_until_closed, args=(theirs, work), daemon=True)
        process.start()
        self._processes.append(process)
        # Else it would never be known to be closed.
        theirs.close()

    def give(self, number: int, item: T) -> None:
        """Have an idle one begin with an item."""
        connection, packed = self.idle.pop(), pickle.dumps(item)
        self.busy[connection] = number
        with self._deaths_told():
            # By `send`, Python 3.13 would complain of a buffer that is still in use where this fails.
            connection.send_bytes(packed)

    def results(self) -> list[tuple[int, R]]:
        """Wait for one or more to be done."""
        done: Any = wait(list(self.busy))
        with self._deaths_told():
            results = [(self.busy.pop(connection), connection.recv()) for connection in done]
        self.idle += done
        return results

    @contextmanager
    def _deaths_told(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            raise HoldfastError(self._why()) from error

    def _why(self) -> str:
        ended = wait([process.sentinel for process in self._processes], _LAST_WORDS)
        dead = [process for process in self._processes if process.sentinel in ended]
        for process in dead:
            process.join(_LAST_WORDS)
        if any(process.exitcode == _COULD_NOT_BEGIN for process in dead):
            return (
                "a process of the replay could not begin; a program that asks for several must be a file, and replay "
                'below `if __name__ == "__main__":`'
            )
        return "a process of the replay died, most likely for want of memory; try fewer of them"

    def end(self, *, at_once: bool) -> None:
        """Let all end, or kill them."""
        for connection in (*self.idle, *self.busy):
            connection.close()
        for process in self._processes:
            if at_once:
                process.kill()
            process.join()


@contextmanager
def _crew(work: Callable[[T], R], count: int) -> Iterator[_Crew[T, R]]:
    crew: _Crew[T, R] = _Crew()
    at_once = True
    try:
        with _interrupts_held():
            for _ in range(count):
                crew.begin(work)
        yield crew
        at_once = False
    finally:
        crew.end(at_once=at_once)


def _work_until_closed(connection: Connection, work: Callable[[Any], Any]) -> None:
    # Ctrl-C is for the one that gives the work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            connection.send(work(connection.recv()))
    except (EOFError, ConnectionError):
        return


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end. Processes that begin meanwhile never get it, also while they load modules."""
    with _interrupts_noted():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        # As it begins, it lets interrupts through.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupts_noted() -> Iterator[None]:
    """Raise a KeyboardInterrupt at the end if Ctrl-C came: other threads get it where this one holds it back."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
