"""A storage confined to one session or tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

from holdfast.errors import InvalidValueError, NotFoundError, StorageError
from holdfast.storage.checks import check_range, check_reference, check_store
from holdfast.storage.protocols import Entry, Part, Storage, SupportsDelete, SupportsEntries, SupportsRange

__all__ = ["ScopedStorage"]

_LONGEST_SCOPE = 200
_LONGEST_MARK = 400
_DELETES_AT_ONCE = 32


class ScopedStorage:
    """Wraps any storage so that what was stored in one *scope* can be had in that scope only.

    The scope is written into the content type (``text/plain; holdfast-scope=tenant-7``) and taken out again: it is
    stored with the content, survives a restart, and no reference can forge it. Scopes nest.
    """

    def __init__(self, inner: Storage, scope: str) -> None:
        if not isinstance(scope, str) or not 0 < len(scope) <= _LONGEST_SCOPE:
            raise InvalidValueError(f"scope must be a string of 1 to {_LONGEST_SCOPE} characters, got {scope!r}")
        self._inner = inner
        self._scope = scope
        self._mark = f"; holdfast-scope={quote(scope, safe='', errors='surrogatepass')}"
        if len(self._mark) > _LONGEST_MARK:
            raise InvalidValueError(f"scope is too long once percent-encoded for a header: {scope!r}; shorten it")

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Store in this scope."""
        check_store(key, content, content_type)
        return await self._inner.store(key, content, content_type + self._mark)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type of what this scope stored."""
        content, content_type = await self._inner.retrieve(check_reference(reference))
        return content, self._own(reference, content_type)

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Return a part of what this scope stored."""
        check_range(start, end)
        if not isinstance(self._inner, SupportsRange):
            content, content_type = await self.retrieve(reference)
            return Part(content[start:end], content_type, start, len(content))
        part = await self._inner.retrieve_range(check_reference(reference), start, end)
        return replace(part, content_type=self._own(reference, part.content_type))

    async def delete(self, reference: str) -> None:
        """Forget one content. Quiet if this scope has none such."""
        inner = self._deleting()
        with suppress(KeyError):
            await self.retrieve_range(reference, 0, 0)
            await inner.delete(reference)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield the entries of this scope."""
        async for entry in self._listing().entries():
            if entry.content_type.endswith(self._mark):
                yield replace(entry, content_type=entry.content_type.removesuffix(self._mark))

    async def clear(self) -> None:
        """Forget all of this scope, and nothing else."""
        inner = self._deleting()
        references = [entry.reference async for entry in self.entries()]
        for first in range(0, len(references), _DELETES_AT_ONCE):
            await asyncio.gather(*map(inner.delete, references[first : first + _DELETES_AT_ONCE]))

    def _own(self, reference: str, content_type: str) -> str:
        if not content_type.endswith(self._mark):
            raise NotFoundError(reference, f"it was not stored in the scope {self._scope!r}")
        return content_type.removesuffix(self._mark)

    def _deleting(self) -> SupportsDelete:
        if isinstance(self._inner, SupportsDelete):
            return self._inner
        raise self._unable("delete")

    def _listing(self) -> SupportsEntries:
        if isinstance(self._inner, SupportsEntries):
            return self._inner
        raise self._unable("list entries")

    def _unable(self, verb: str) -> StorageError:
        return StorageError(f"{type(self._inner).__name__} cannot {verb}, so a scope of it cannot either")
