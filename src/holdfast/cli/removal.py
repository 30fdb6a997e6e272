"""Deleting, many at once; one that fails does not keep the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

from holdfast.errors import StorageError
from holdfast.storage import Entry, SupportsDelete, SupportsInspect, SupportsTouch

__all__ = ["Removed", "Removing", "remove_all", "side_by_side"]

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 32


class Removing(SupportsDelete, SupportsInspect, SupportsTouch, Protocol):
    """A storage that can look at an entry, mark it and delete it."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a wish to remove: the entry that went, or why none did."""

    reference: str
    entry: Entry | None
    failure: str = ""


async def side_by_side(work: Callable[[T], Awaitable[R]], items: Iterable[T]) -> AsyncIterator[R]:
    """Yield what *work* makes of *items*, in the order in which it is done, with up to 32 under way."""
    waiting = iter(items)
    under_way: set[asyncio.Future[R]] = set()
    while under_way := under_way | set(
        map(asyncio.ensure_future, map(work, islice(waiting, _AT_ONCE - len(under_way))))
    ):
        done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            yield future.result()


def remove_all(storage: Removing, references: Iterable[str], *, dry_run: bool) -> AsyncIterator[Removed]:
    """Remove entries; with *dry_run*, only look whether they are there."""

    async def remove(reference: str) -> Removed:
        try:
            entry = await storage.inspect(reference)
            if not dry_run:
                await storage.delete(entry.reference)
        except StorageError as error:
            return Removed(reference, None, str(error))
        return Removed(reference, entry)

    return side_by_side(remove, references)
