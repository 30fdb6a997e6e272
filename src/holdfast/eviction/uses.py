"""Writing uses down for the next process, in the background and not one by one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.eviction.deletions import AT_ONCE, is_dead, slices
from holdfast.storage.checks import reserved_parameters

__all__ = ["Use", "UseWriter"]

logger = logging.getLogger(__name__)


class Use(NamedTuple):
    """What to write down: when, and the content type with its label if that changed."""

    at: float
    content_type: str | None


class UseWriter:
    """Collects references that were used, and writes down their last use *delay* seconds after the first of them."""

    def __init__(self, inner: Any, last_use: Callable[[str], Use | None], *, delay: float) -> None:
        self._inner = inner
        self._last_use = last_use
        self._delay = delay
        self._used: dict[str, None] = {}
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        self._writing: asyncio.Task[None] | None = None

    def note(self, reference: str) -> None:
        """Remember a use."""
        self._used[reference] = None
        if self._timer is None or is_dead(self._timer[0]):
            loop = asyncio.get_running_loop()
            self._timer = (loop, loop.call_later(self._delay, self._begin))

    async def write(self) -> None:
        """Write down what was noted. A failure costs the note, never the content, and is logged."""
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        if (writing := self._writing) is not None and writing.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([writing])
        await self._write_all()

    async def _write_all(self) -> None:
        for some in slices(list(self._used), AT_ONCE):
            for reference in some:
                self._used.pop(reference, None)
            await asyncio.gather(*map(self._write_one, some))

    def _begin(self) -> None:
        self._timer = None
        self._writing = asyncio.get_running_loop().create_task(self._write_all())

    async def _write_one(self, reference: str) -> None:
        use = self._last_use(reference)
        if use is None:
            return
        try:
            with reserved_parameters():
                await self._inner.touch(reference, use.at, use.content_type)
        except Exception as error:
            # Any backend, any failure: the content is unharmed, only its last use looks earlier after a restart.
            logger.warning("cannot write down the last use of %s: %s", reference, error)
