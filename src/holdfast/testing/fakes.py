"""Fakes for time and for faults. They are public: a backend's or an application's tests may use them too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

from holdfast.errors import StorageAccessError
from holdfast.storage import Entry, Part

__all__ = ["FakeClock", "FlakyStorage", "SlowStorage"]


class FakeClock:
    """A clock that stands still until it is told to go on. Give it as `clock`, and its `sleep` as `sleep`."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        """Let time pass at once, and other tasks run."""
        self.advance(seconds)
        await asyncio.sleep(0)


class _Interposed:
    """A storage that does something around each call of the one it wraps."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def _around(self, call: Callable[[], Awaitable[Any]]) -> Any:
        raise NotImplementedError

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        reference: str = await self._around(lambda: self.inner.store(key, content, content_type))
        return reference

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        found: tuple[bytes, str] = await self._around(lambda: self.inner.retrieve(reference))
        return found

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        part: Part = await self._around(lambda: self.inner.retrieve_range(reference, start, end))
        return part

    async def inspect(self, reference: str) -> Entry:
        entry: Entry = await self._around(lambda: self.inner.inspect(reference))
        return entry

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        await self._around(lambda: self.inner.touch(reference, used_at, content_type))

    async def delete(self, reference: str) -> None:
        await self._around(lambda: self.inner.delete(reference))

    async def entries(self) -> AsyncIterator[Entry]:
        async def listed() -> list[Entry]:
            return [entry async for entry in self.inner.entries()]

        for entry in await self._around(listed):
            yield entry

    async def clear(self) -> None:
        await self._around(self.inner.clear)


class FlakyStorage(_Interposed):
    """Fails the calls whose numbers, counted from 1, are in *fail_on*.

    The fault comes before the inner call, which then never happens; with ``lose_answers=True`` it comes after it, as
    when a connection breaks while the answer is on its way.
    """

    def __init__(
        self,
        inner: Any,
        fail_on: Collection[int],
        *,
        error: Callable[[], Exception] = lambda: StorageAccessError("injected fault"),
        lose_answers: bool = False,
    ) -> None:
        super().__init__(inner)
        self.calls = 0
        self._fail_on = fail_on
        self._error = error
        self._lose_answers = lose_answers

    async def _around(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls += 1
        fails = self.calls in self._fail_on
        if fails and not self._lose_answers:
            raise self._error()
        answer = await call()
        if fails:
            raise self._error()
        return answer


class SlowStorage(_Interposed):
    """Takes *seconds* before each call. With ``sleep=clock.sleep`` of a `FakeClock`, no test has to wait for it."""

    def __init__(self, inner: Any, seconds: float, *, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        super().__init__(inner)
        self._seconds = seconds
        self._sleep = sleep

    async def _around(self, call: Callable[[], Awaitable[Any]]) -> Any:
        await self._sleep(self._seconds)
        return await call()
