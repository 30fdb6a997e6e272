"""A lock for the coroutines of several event loops, as an agent's and those of tools in threads."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.errors import HoldfastError

__all__ = ["LockOfLoops"]

_SECONDS_BETWEEN_LOOKS = 0.005
_SECONDS_OF_PATIENCE = 60.0


class LockOfLoops:
    """Lets in one coroutine at a time, whichever event loop it runs in.

    Within a loop they wait in line. That another loop is done, which is rare, is found out by looking now and then: one
    that was left in the midst of something could wake nobody.
    """

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._guard = Lock()
        self._inside: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        own = self._lock_of(loop)
        await own.acquire()
        try:
            await self._enter(loop)
        except BaseException:
            own.release()
            raise

    async def __aexit__(self, *_: Any) -> None:
        loop = asyncio.get_running_loop()
        with self._guard:
            if self._inside is loop:
                self._inside = None
        self._lock_of(loop).release()

    async def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        until = loop.time() + _SECONDS_OF_PATIENCE
        while not self._entered(loop):
            if loop.time() > until:
                raise HoldfastError(
                    "another event loop is busy with this search index and does not go on; "
                    "do not block the loop of an agent while something in another thread searches"
                )
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    def _entered(self, loop: asyncio.AbstractEventLoop) -> bool:
        with self._guard:
            if self._inside is None or not self._inside.is_running():
                self._inside = loop
            return self._inside is loop

    def _lock_of(self, loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
        with self._guard:
            return self._locks.setdefault(loop, asyncio.Lock())
