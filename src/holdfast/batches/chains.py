"""Batches one after another: each names those before it, so that several are read at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from holdfast.batches.batch import Batch
from holdfast.errors import StorageError

__all__ = ["Chain", "Link", "Missing", "back_from", "batches_up_to", "grouped"]

# How large batches are, those before them tell.
_AT_ONCE, _BYTES_AT_ONCE = 8, 16_000_000
_MOST_SHOWN, _MOST_BYTES_SHOWN = 200, 32_000_000
_MOST_BATCHES = 10_000
# A storage that does not answer is asked for one batch after another no longer than that.
_SECONDS_IN_VAIN = 30.0


class Missing(NamedTuple):
    """What is in the place of a batch that cannot be read: why, in words. With an *error* it may be there later."""

    why: str
    error: StorageError | None = None


Link: TypeAlias = tuple[str, Batch | Missing]
_Read: TypeAlias = Callable[[str], Awaitable[Batch | Missing]]


class Chain(NamedTuple):
    """Batches by their references, oldest first. *earlier* is the one before them, if there are more than these."""

    links: list[Link]
    earlier: str | None = None


async def batches_up_to(name: str, batch: Batch, read: _Read) -> Chain:
    """Return a batch and those before it: all that left up to then, or 200 batches or 32 MB of it."""
    links: list[Link] = []
    size = 0
    async for earlier, there in back_from(name, batch, read):
        size += _size(there)
        if links and (len(links) == _MOST_SHOWN or size > _MOST_BYTES_SHOWN):
            return Chain(links[::-1], earlier)
        links.append((earlier, there))
    return Chain(links[::-1])


async def back_from(name: str, batch: Batch, read: _Read) -> AsyncIterator[Link]:
    """Yield a batch and those before it, the latest first: what is missing hides nothing that is older."""
    yield name, batch
    seen, oldest = {name}, batch
    while len(seen) < _MOST_BATCHES and (before := [named for named in oldest.before[::-1] if named not in seen]):
        seen.update(before)
        async for earlier, there in _each(before, read, oldest.size):
            if isinstance(there, Batch):
                oldest = there
            yield earlier, there


async def _each(names: Sequence[str], read: _Read, size: int) -> AsyncIterator[Link]:
    """Yield these batches, of which some are read at the same time; *size* is how large one of them may be."""
    clock = asyncio.get_running_loop().time
    place, in_vain = 0, 0.0
    found: list[Batch | Missing] = []
    while place < len(names) and in_vain < _SECONDS_IN_VAIN:
        began, group = clock(), names[place : place + _at_once(size)]
        found = await asyncio.gather(*map(read, group))
        in_vain += clock() - began if all(map(_is_unread, found)) else 0.0
        place, size = place + len(group), max(map(_size, found))
        for link in zip(group, found, strict=True):
            yield link
    for name in names[place:]:
        yield name, found[-1]


def _at_once(size: int) -> int:
    return max(min(_AT_ONCE, _BYTES_AT_ONCE // max(size, 1)), 1)


def _size(there: Batch | Missing) -> int:
    return there.size if isinstance(there, Batch) else 0


def _is_unread(there: Batch | Missing) -> bool:
    return isinstance(there, Missing) and there.error is not None


def grouped(references: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield these references in groups that may be read at the same time."""
    for place in range(0, len(references), _AT_ONCE):
        yield references[place : place + _AT_ONCE]
