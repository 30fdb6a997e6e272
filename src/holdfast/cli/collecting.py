"""Deleting what policies drop: whole chains, and nothing that is used meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.filesize import decimal

from holdfast.cli.listing import Amount
from holdfast.cli.quantities import duration_text
from holdfast.cli.removal import Removing, side_by_side
from holdfast.errors import NotFoundError, StorageError
from holdfast.eviction import Chains, LeastRecentlyUsed, Policy, TimeToLive
from holdfast.eviction.deletions import mark_leaving
from holdfast.eviction.inventory import Departure, Inventory
from holdfast.storage import Entry
from holdfast.storage.tombstones import Eviction

__all__ = ["Collected", "collect", "plan", "policies_for", "report"]

# File systems keep times less exactly than clocks tell them.
_SAME_MOMENT = 0.001


@dataclass(slots=True)
class Collected:
    """What became of entries that leave together. Those that were gone already are in none of the lists."""

    freed: list[Eviction] = field(default_factory=list)
    spared: list[Eviction] = field(default_factory=list)
    failure: str = ""


def policies_for(
    max_age: float | None, idle: float | None, max_entries: int | None, max_bytes: int | None
) -> dict[str, Policy]:
    """Return a policy for each limit that is set, by the option that sets it."""
    policies: dict[str, Policy] = {}
    if max_age is not None:
        policies[f"--max-age {duration_text(max_age)}"] = TimeToLive(seconds=max_age)
    if idle is not None:
        policies[f"--idle {duration_text(idle)}"] = TimeToLive(seconds=idle, since="use")
    if max_entries is not None:
        policies[f"--max-entries {max_entries}"] = LeastRecentlyUsed(max_entries=max_entries)
    if max_bytes is not None:
        policies[f"--max-bytes {decimal(max_bytes)}"] = LeastRecentlyUsed(max_bytes=max_bytes)
    return policies


def plan(entries: Iterable[Entry], policies: Iterable[Policy], now: float) -> list[Departure]:
    """Return what *policies* drop, with chains as one departure each."""
    inventory = Inventory([*policies, Chains()])
    for entry in sorted(entries, key=lambda entry: entry.last_used):
        inventory.learn(entry, now)
    return inventory.evict(now)


def collect(
    storage: Removing, departures: Iterable[Departure], entries: Iterable[Entry], *, dry_run: bool
) -> AsyncIterator[Collected]:
    """Delete *departures* of *entries*, up to 32 at once; with *dry_run*, only look whether they would go."""
    listed = {entry.reference: entry for entry in entries}

    async def carry_out(departure: Departure) -> Collected:
        done = Collected()
        try:
            await _carry_out(storage, departure, listed, done, dry_run=dry_run)
        except StorageError as error:
            done.failure = str(error)
        return done

    return side_by_side(carry_out, departures)


def report(
    entries: Sequence[Entry], collected: Sequence[Collected], policies: Mapping[str, Policy], *, dry_run: bool
) -> Iterator[str]:
    """Say what was freed and why, what was spared, and what stays."""
    freed = [eviction for each in collected for eviction in each.freed]
    yield f"{'would free' if dry_run else 'freed'} {_total(freed)}"
    for option, policy in policies.items():
        if dropped := [eviction for eviction in freed if eviction.because == getattr(policy, "because", "")]:
            yield f"  {_total(dropped)} by {option}"
    if spared := [eviction for each in collected for eviction in each.spared]:
        yield f"spared {_total(spared)}, used meanwhile or in a chain with something that was"
    gone = {eviction.reference for eviction in freed}
    yield f"{_total(entry for entry in entries if entry.reference not in gone)} stay"


def _total(things: Iterable[Entry | Eviction]) -> Amount:
    amount = Amount()
    for thing in things:
        amount.add(thing.size)
    return amount


async def _carry_out(
    storage: Removing, departure: Departure, listed: Mapping[str, Entry], done: Collected, *, dry_run: bool
) -> None:
    """Write down in *done* what was done, also if something fails then."""
    present = await _present(storage, departure.evictions)
    if any(entry.last_used > listed[reference].last_used + _SAME_MOMENT for reference, entry in present.items()):
        done.spared += departure.evictions
        return
    if not dry_run:
        await mark_leaving(storage, departure)
    for step in departure.steps:
        leaving = (eviction for eviction in step if eviction.reference in present)
        answers = await asyncio.gather(
            *(_free(storage, eviction, done, dry_run=dry_run) for eviction in leaving), return_exceptions=True
        )
        for failure in filter(None, answers):
            raise failure


async def _free(storage: Removing, eviction: Eviction, done: Collected, *, dry_run: bool) -> None:
    if not dry_run:
        await storage.delete(eviction.reference)
    done.freed.append(eviction)


async def _present(storage: Removing, evictions: Sequence[Eviction]) -> dict[str, Entry]:
    """Look at entries again; those that somebody else deleted meanwhile are left out."""
    answers = await asyncio.gather(*(_inspect(storage, eviction.reference) for eviction in evictions))
    return {entry.reference: entry for entry in answers if entry is not None}


async def _inspect(storage: Removing, reference: str) -> Entry | None:
    try:
        return await storage.inspect(reference)
    except NotFoundError:
        return None
