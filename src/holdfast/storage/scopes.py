"""A storage confined to one session or tenant."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, cast
from urllib.parse import quote

from holdfast.errors import EvictedError, InvalidValueError, NotFoundError, StorageError
from holdfast.storage.checks import check_range, check_reference, check_store, check_touch, reserved_parameters
from holdfast.storage.liveness import checked_live, takes_owner
from holdfast.storage.protocols import (
    Entry,
    Part,
    Storage,
    SupportsDelete,
    SupportsDiscard,
    SupportsEntries,
    SupportsEvict,
    SupportsInspect,
    SupportsRange,
    SupportsTouch,
    SupportsWatch,
    offers,
)
from holdfast.storage.tombstones import Eviction

__all__ = ["ScopedStorage"]

logger = logging.getLogger(__name__)

_LONGEST_SCOPE = 200
_LONGEST_MARK = 400
_DELETES_AT_ONCE = 32


class ScopedStorage:
    """Wraps any storage so that what was stored in one *scope* can be had in that scope only.

    The scope is written into the content type (``text/plain; holdfast-scope=tenant-7``) and taken out again: it is
    stored with the content, survives a restart, and no reference can forge it. Scopes nest. In an ``async with``, the
    scope is cleared at the end. What is visible is passed on to an inner storage that tells its owners apart. Turns are
    not: one scope does not speak for all.
    """

    def __init__(self, inner: Storage, scope: str) -> None:
        if not isinstance(scope, str) or not 0 < len(scope) <= _LONGEST_SCOPE:
            raise InvalidValueError(f"scope must be a string of 1 to {_LONGEST_SCOPE} characters, got {scope!r}")
        self._inner = inner
        self._inspects = offers(inner, SupportsInspect)
        self._passes_live_on = takes_owner(inner)
        self._scope = scope
        self._mark = f"; holdfast-scope={quote(scope, safe='', errors='surrogatepass')}"
        if len(self._mark) > _LONGEST_MARK:
            raise InvalidValueError(f"scope is too long once percent-encoded for a header: {scope!r}; shorten it")

    async def __aenter__(self) -> ScopedStorage:
        self._deleting()
        self._listing()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.clear()
        except Exception as failure:
            if error is None:
                raise
            logger.warning("cannot clear the scope %r after %r: %s", self._scope, error, failure)

    def for_sandbox(self, sandbox: Any) -> ScopedStorage:
        """Return the same scope of the inner storage bound to *sandbox*."""
        return ScopedStorage(cast("Any", self._inner).for_sandbox(sandbox), self._scope)

    @property
    def inner(self) -> Storage:
        """The storage that all scopes of it share."""
        return self._inner

    @property
    def clock(self) -> Callable[[], float]:
        """The inner storage's clock, or the system's if it has none."""
        return cast("Callable[[], float]", getattr(self._inner, "clock", time.time))

    @property
    def notes_uses(self) -> bool:
        """Whether `retrieve` of the inner storage writes down the use for other processes."""
        return bool(getattr(self._inner, "notes_uses", False))

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Store in this scope."""
        check_store(key, content, content_type)
        with reserved_parameters():
            return await self._inner.store(key, content, content_type + self._mark)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type of what this scope stored."""
        with self._evictions_told_to_their_scope(check_reference(reference)):
            content, content_type = await self._inner.retrieve(reference)
        return content, self._own(reference, content_type)

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Return a part of what this scope stored."""
        check_range(start, end)
        if not isinstance(self._inner, SupportsRange):
            content, content_type = await self.retrieve(reference)
            return Part(content[start:end], content_type, start, len(content))
        with self._evictions_told_to_their_scope(check_reference(reference)):
            part = await self._inner.retrieve_range(reference, start, end)
        return replace(part, content_type=self._own(reference, part.content_type))

    async def inspect(self, reference: str) -> Entry:
        """Return what is known of a content that this scope stored."""
        inner = self._inspecting()
        with self._evictions_told_to_their_scope(check_reference(reference)):
            entry = await inner.inspect(reference)
        return replace(entry, content_type=self._own(reference, entry.content_type))

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Note a use of what this scope stored, and another content type. Quiet if this scope has none such."""
        check_touch(used_at, content_type)
        inner = self._touching()
        with suppress(KeyError):
            await self.inspect(reference)
            with reserved_parameters():
                await inner.touch(reference, used_at, None if content_type is None else content_type + self._mark)

    async def delete(self, reference: str) -> None:
        """Forget one content. Quiet if this scope has none such."""
        inner = self._deleting()
        with suppress(KeyError):
            # Inspecting is no use of it; else another process that evicts would take it for one, and spare it.
            await (self.inspect(reference) if self._inspects else self.retrieve_range(reference, 0, 0))
            await inner.delete(reference)

    def discard(self, reference: str) -> None:
        """Forget at once what this scope stored, if the inner storage can. Only for references of this scope."""
        if not isinstance(self._inner, SupportsDiscard):
            raise self._unable("discard")
        self._inner.discard(reference)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield the entries of this scope."""
        async for entry in self._listing().entries():
            if entry.content_type.endswith(self._mark):
                yield replace(entry, content_type=entry.content_type.removesuffix(self._mark))

    def watch(self, on_evict: Callable[[Eviction], object]) -> None:
        """Call *on_evict* with each eviction of the inner storage, whatever its scope, if it evicts at all."""
        if isinstance(self._inner, SupportsWatch):
            self._inner.watch(on_evict)

    def set_live(self, references: Iterable[str], *, owner: object | None = None) -> None:
        """Say which references of this scope are visible, if the inner storage can tell that from what others say.

        Without an *owner*, it is this object that says so.
        """
        live = checked_live(references, owner)
        if self._passes_live_on:
            cast("Any", self._inner).set_live(live, owner=self if owner is None else owner)

    async def clear(self) -> None:
        """Forget all of this scope, and nothing else. An inner storage that tells why something left is told it."""
        inner = self._deleting()
        references = [entry.reference async for entry in self.entries()]
        if isinstance(inner, SupportsEvict):
            await inner.evict(references, f"the scope {self._scope!r} was cleared")
            return
        for first in range(0, len(references), _DELETES_AT_ONCE):
            await asyncio.gather(*map(inner.delete, references[first : first + _DELETES_AT_ONCE]))

    def _own(self, reference: str, content_type: str) -> str:
        if not content_type.endswith(self._mark):
            raise NotFoundError(reference, f"it was not stored in the scope {self._scope!r}")
        return content_type.removesuffix(self._mark)

    @contextmanager
    def _evictions_told_to_their_scope(self, reference: str) -> Iterator[None]:
        try:
            yield
        except EvictedError as error:
            raise self._told_here(reference, error) from None

    def _told_here(self, reference: str, error: EvictedError) -> NotFoundError:
        try:
            own = self._own(reference, error.content_type)
        except NotFoundError as not_ours:
            return not_ours
        return EvictedError(
            reference,
            _requoted(error.reason, error.content_type, own),
            error.key,
            own,
            error.size,
            error.stored_at,
            error.evicted_at,
            error.because,
        )

    def _deleting(self) -> SupportsDelete:
        if isinstance(self._inner, SupportsDelete):
            return self._inner
        raise self._unable("delete")

    def _listing(self) -> SupportsEntries:
        if isinstance(self._inner, SupportsEntries):
            return self._inner
        raise self._unable("list entries")

    def _inspecting(self) -> SupportsInspect:
        if isinstance(self._inner, SupportsInspect):
            return self._inner
        raise self._unable("inspect")

    def _touching(self) -> SupportsTouch:
        if isinstance(self._inner, SupportsTouch):
            return self._inner
        raise self._unable("touch")

    def _unable(self, verb: str) -> StorageError:
        return StorageError(f"{type(self._inner).__name__} cannot {verb}, so a scope of it cannot either")


def _requoted(reason: str, content_type: str, own: str) -> str:
    """Return *reason* with *own* where it quotes the content type, whole or cut short somewhere in the mark."""
    for length in range(len(content_type), len(own), -1):
        if content_type[:length] in reason:
            return reason.replace(content_type[:length], own)
    return reason
