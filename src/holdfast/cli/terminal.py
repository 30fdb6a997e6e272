"""What the commands show and how: nothing that was found in a store is taken for markup or for an escape sequence."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from holdfast.errors import HoldfastError

__all__ = ["complain", "each", "failures_told", "printable", "prints_to_a_terminal", "say", "tracked", "warnings_told"]

T = TypeVar("T")


def printable(text: str) -> str:
    """Return *text* on one line, with control characters, invisible ones and lone surrogates spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(text: str, *, bold: bool = False) -> None:
    """Print one line to the standard output."""
    _print(text, bold=bold)


def complain(text: str) -> None:
    """Print one line to the standard error."""
    _print(text, err=True)


def prints_to_a_terminal() -> bool:
    """Say whether the standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def each(items: AsyncIterator[T], *, at_once: int = 1) -> Iterator[T]:
    """Iterate in an event loop that runs only between the items, so that printing them blocks nothing.

    It runs for *at_once* of them at a time. Ctrl-C ends it as it ends any other code, by a KeyboardInterrupt.
    """
    loop = asyncio.new_event_loop()
    try:
        while some := _run(loop, _some(items, at_once)):
            yield from some
    finally:
        _close(loop)


@contextmanager
def failures_told() -> Iterator[None]:
    """Turn errors of holdfast into one line and the exit code 1."""
    try:
        yield
    except HoldfastError as error:
        raise click.ClickException(printable(str(error))) from error


@contextmanager
def warnings_told() -> Iterator[None]:
    """Print what holdfast logs to the standard error."""
    logger, handler = logging.getLogger("holdfast"), _Teller(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def tracked(items: Iterable[T], doing: str, total: int | None = None) -> Iterator[T]:
    """Yield *items* and meanwhile count them on the standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn(doing), MofNCompleteColumn(), TimeElapsedColumn())
    extra = SpinnerColumn() if total is None else BarColumn()
    with Progress(extra, *columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=total)
        for item in items:
            progress.advance(task)
            yield item


class _Teller(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(f"{record.levelname.capitalize()}: {record.getMessage()}")


def _print(text: str, *, bold: bool = False, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # closed before the program began
        return
    encoding = stream.encoding or "utf-8"
    # A stream that knows only some characters gets the others spelt out, not an error.
    line = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    click.echo(click.style(line, bold=True) if bold else line, err=err)


async def _some(items: AsyncIterator[T], number: int) -> list[T]:
    some: list[T] = []
    async for item in items:
        some.append(item)
        if len(some) >= number:
            break
    return some


def _run(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run *work*; Ctrl-C cancels it first, so that it ends where it waits, and not wherever the loop is just then."""
    task = loop.create_task(work)
    try:
        with _interrupts_cancel(task):
            return loop.run_until_complete(task)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _interrupts_cancel(task: asyncio.Task[Any]) -> Iterator[None]:
    """Let Ctrl-C cancel *task*; if that is done by then, it is raised all the same."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []

    def cancel(number: int, frame: object) -> None:
        came.append(number)
        task.get_loop().call_soon_threadsafe(task.cancel)

    signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs, as after an interrupt, before the loop goes; who interrupts that too has it end at once."""
    try:
        with suppress(KeyboardInterrupt):
            _run(loop, _end_all_tasks())
            _run(loop, loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _end_all_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
