"""Deleting what policies drop: whole chains, and nothing that is used meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.filesize import decimal

from holdfast.cli.listing import Amount
from holdfast.cli.quantities import duration_text
from holdfast.cli.removal import Freed, Removing, free, side_by_side
from holdfast.errors import HoldfastError, NotFoundError
from holdfast.eviction import Chains, LeastRecentlyUsed, Policy, TimeToLive
from holdfast.eviction.deletions import SAME_MOMENT
from holdfast.eviction.inventory import Departure, Inventory
from holdfast.storage import Entry
from holdfast.storage.tombstones import Eviction

__all__ = ["Collected", "collect", "plan", "policies_for", "report"]


@dataclass(slots=True)
class Collected(Freed):
    """What became of entries that policies drop. Those that were gone already are in none of the lists."""

    spared: list[Eviction] = field(default_factory=list)


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
    storage: Removing,
    departures: Iterable[Departure],
    entries: Iterable[Entry],
    collected: list[Collected],
    *,
    dry_run: bool,
) -> AsyncIterator[None]:
    """Delete *departures* of *entries*, up to 32 at once; with *dry_run*, only look whether they would go.

    What becomes of each is written down in *collected* while it happens, so that an interrupt loses no account.
    """
    listed = {entry.reference: entry for entry in entries}

    async def carry_out(departure: Departure) -> None:
        done = Collected()
        collected.append(done)
        try:
            await _carry_out(storage, departure, listed, done, dry_run=dry_run)
        except HoldfastError as error:
            done.failure = str(error)

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
    reasons = {getattr(policy, "because", "") for policy in policies.values()}
    if others := [eviction for eviction in freed if eviction.because not in reasons]:
        yield f"  {_total(others)} of chains whose deletion was interrupted before"
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
    if any(entry.last_used > listed[reference].last_used + SAME_MOMENT for reference, entry in present.items()):
        done.spared += departure.evictions
        return
    await free(storage, departure, present, done.freed, dry_run=dry_run)


async def _present(storage: Removing, evictions: Sequence[Eviction]) -> dict[str, Entry]:
    """Look at entries again; those that somebody else deleted meanwhile are left out."""
    answers = await asyncio.gather(*(_inspect(storage, eviction.reference) for eviction in evictions))
    return {entry.reference: entry for entry in answers if entry is not None}


async def _inspect(storage: Removing, reference: str) -> Entry | None:
    try:
        return await storage.inspect(reference)
    except NotFoundError:
        return None
