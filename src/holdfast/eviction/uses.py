"""Writing uses down for the next process, in the background and not one by one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Use", "UseWriter"]

logger = logging.getLogger(__name__)

_AT_ONCE = 32


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
        if self._timer is None or self._timer[0].is_closed():
            loop = asyncio.get_running_loop()
            self._timer = (loop, loop.call_later(self._delay, self._begin))

    async def write(self) -> None:
        """Write down what was noted. A failure costs the note, never the content, and is logged."""
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        used, self._used = list(self._used), {}
        for first in range(0, len(used), _AT_ONCE):
            await asyncio.gather(*map(self._write_one, used[first : first + _AT_ONCE]))

    def _begin(self) -> None:
        self._writing = asyncio.get_running_loop().create_task(self.write())

    async def _write_one(self, reference: str) -> None:
        use = self._last_use(reference)
        if use is None:
            return
        try:
            await self._inner.touch(reference, use.at, use.content_type)
        except Exception as error:
            # Any backend, any failure: the content is unharmed, only its last use looks earlier after a restart.
            logger.warning("cannot write down the last use of %s: %s", reference, error)
