"""Deleting, many at once; one that fails does not keep the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar

from holdfast.cli.locations import Location
from holdfast.errors import HoldfastError, StorageError
from holdfast.eviction import Chains
from holdfast.eviction.deletions import mark_leaving
from holdfast.eviction.inventory import Departure, Inventory
from holdfast.storage import Entry, SupportsDelete, SupportsInspect, SupportsTouch
from holdfast.storage.tombstones import Eviction

__all__ = ["Freed", "Removing", "departures_alone", "departures_of", "find_all", "free", "remove_all", "side_by_side"]

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 32
_BECAUSE = "it was removed, or its chain was"


class Removing(SupportsDelete, SupportsInspect, SupportsTouch, Protocol):
    """A storage that can look at an entry, mark it and delete it."""


@dataclass(slots=True)
class Freed:
    """What became of entries that leave together: those that went, and why others did not."""

    freed: list[Eviction] = field(default_factory=list)
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


async def free(
    storage: Removing, departure: Departure, present: Container[str], freed: list[Eviction], *, dry_run: bool
) -> None:
    """Delete what is *present*, in its order, and write down in *freed* what went, also if something fails then."""

    async def free_one(eviction: Eviction) -> None:
        if not dry_run:
            await storage.delete(eviction.reference)
        freed.append(eviction)

    if not dry_run:
        await mark_leaving(storage, departure)
    for step in departure.steps:
        leaving = (eviction for eviction in step if eviction.reference in present)
        for failure in filter(None, await asyncio.gather(*map(free_one, leaving), return_exceptions=True)):
            raise failure


def find_all(location: Location, references: Iterable[str]) -> AsyncIterator[Entry | str]:
    """Look for what is to be removed, also for what a storage shows no more; yield why where there is nothing."""
    storage = location.open()

    async def find(reference: str) -> Entry | str:
        try:
            return await storage.inspect(reference)
        except StorageError as error:
            return await location.broken(reference) or str(error)

    return side_by_side(find, references)


def departures_of(named: Mapping[str, Entry], entries: Iterable[Entry], now: float) -> list[Departure]:
    """Return how *named* leave, each with those of *entries* that are in a chain with it."""
    inventory = Inventory([Chains()])
    for entry in sorted(({entry.reference: entry for entry in entries} | dict(named)).values(), key=_by_use):
        inventory.learn(entry, now)
    return [departure for reference in named for departure in inventory.take_chain(reference, _BECAUSE, now)]


def departures_alone(named: Mapping[str, Entry], now: float) -> list[Departure]:
    """Return how *named* leave, and nothing else."""
    inventory = Inventory([])
    for entry in named.values():
        inventory.learn(entry, now)
    return inventory.take(named, _BECAUSE, now)


def remove_all(storage: Removing, departures: Iterable[Departure], *, dry_run: bool) -> AsyncIterator[Freed]:
    """Remove entries; with *dry_run*, only say what would go."""

    async def remove(departure: Departure) -> Freed:
        done, everything = Freed(), {eviction.reference for eviction in departure.evictions}
        try:
            await free(storage, departure, everything, done.freed, dry_run=dry_run)
        except HoldfastError as error:
            done.failure = str(error)
        return done

    return side_by_side(remove, departures)


def _by_use(entry: Entry) -> float:
    return entry.last_used
