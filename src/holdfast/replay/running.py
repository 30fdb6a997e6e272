"""Many recordings, lived through in as many processes as there are cores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from holdfast.errors import InvalidValueError
from holdfast.recordings import Recording, Unreadable
from holdfast.replay.living import live
from holdfast.replay.outcomes import Replayed
from holdfast.replay.policies import UNMANAGED, Policy
from holdfast.replay.prepared import Prepared
from holdfast.replay.processes import shared_out
from holdfast.tokens import estimate_text, exact_counter

__all__ = ["Replay", "Result"]

logger = logging.getLogger(__name__)

Result: TypeAlias = Replayed | Unreadable
_SMALLEST_WINDOW = 1_000


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Lives recordings through again under *policies*, with a *window* of so many tokens.

    Tokens are estimated, or counted as OpenAI's newest models do if *exact*. With more *workers* than one, recordings
    are shared out among processes; a program that asks for that needs ``if __name__ == "__main__":``, as for any pool
    of processes.
    """

    policies: tuple[Policy, ...]
    window: int = 100_000
    exact: bool = False
    workers: int = 1

    def __post_init__(self) -> None:
        if not self.policies:
            raise InvalidValueError("policies must hold at least one Policy")
        for name, least in (("window", _SMALLEST_WINDOW), ("workers", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidValueError(f"{name} must be a whole number, {least:,} or more, got {value!r:.80}")
        if self.exact:
            _counter(exact=True)

    def one(self, recording: Recording) -> Replayed:
        """Live through one recording, under each policy; also in a notebook, where an event loop runs already."""
        with _quietly():
            return _completed(self._lived(Prepared(recording, _counter(exact=self.exact))))

    def all(self, recordings: Iterable[Recording | Unreadable]) -> Iterator[Result]:
        """Yield what becomes of each recording, in order. What cannot be replayed is told, and the rest goes on."""
        if self.workers == 1:
            yield from map(self._told, recordings)
            return
        yield from shared_out(self._told, recordings, self.workers)

    def _told(self, recording: Recording | Unreadable) -> Result:
        if isinstance(recording, Unreadable):
            return recording
        try:
            return self.one(recording)
        except Exception as error:
            # A file may hold anything, and one that nobody foresaw must not cost the others. It is told by one line.
            logger.debug("%s cannot be replayed", recording.name, exc_info=True)
            return Unreadable(recording.name, None, f"it cannot be replayed: {type(error).__name__}: {error}")

    async def _lived(self, prepared: Prepared) -> Replayed:
        outcomes = [await live(prepared, policy, self.window) for policy in self.policies]
        alone = next(
            (each for policy, each in zip(self.policies, outcomes, strict=True) if policy.config is None), None
        )
        alone = alone or await live(prepared, UNMANAGED, self.window)
        recording = prepared.recording
        return Replayed(
            recording.name,
            recording.format,
            len(recording.messages),
            prepared.values,
            prepared.largest,
            tuple(outcomes),
            alone.counts,
        )


def _completed(lived: Coroutine[Any, Any, Replayed]) -> Replayed:
    if not _in_a_loop():
        return asyncio.run(lived)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, lived).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _counter(*, exact: bool) -> Callable[[str], int]:
    return exact_counter() if exact else estimate_text


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what a manager would log: it is part of the outcome."""
    above = logging.getLogger("holdfast")
    level = above.level
    above.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        above.setLevel(level)
