"""Carrying out what the inventory decides."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.errors import EvictedError, NotFoundError, TooLargeError
from holdfast.eviction.asking import needs_of
from holdfast.eviction.chains import current_links
from holdfast.eviction.deletions import Deletions, delete_quietly
from holdfast.eviction.groups import Held
from holdfast.eviction.inventory import Departure, Inventory
from holdfast.eviction.labels import labelled, split_label
from holdfast.eviction.listing import Listing
from holdfast.eviction.policies import Policy
from holdfast.eviction.uses import Use, UseWriter
from holdfast.storage.checks import check_reference
from holdfast.storage.protocols import Entry, SupportsDiscard, SupportsInspect, SupportsTouch, offers
from holdfast.storage.tombstones import Eviction
from holdfast.storage.watching import Watchers

__all__ = ["Housekeeping"]

logger = logging.getLogger(__name__)

_AT_A_TIME = 1_000
_USES_WRITTEN_AFTER = 5.0


class Housekeeping:
    """Keeps an inner storage and its inventory in step: lists, deletes, writes uses down, and tells."""

    def __init__(
        self,
        inner: Any,
        policies: Sequence[Policy],
        *,
        clock: Callable[[], float] | None,
        tombstones: int,
        on_evict: Callable[[Eviction], object] | None,
        retry_delays: Sequence[float],
    ) -> None:
        inner_clock = getattr(inner, "clock", time.time)
        needs = frozenset[str]().union(*map(needs_of, policies))
        noted = {"use"} if getattr(inner, "notes_uses", False) else set()
        self._inner = inner
        self.watchers = Watchers(on_evict)
        self.clock = clock or inner_clock
        self.counts_turns = "turn" in needs
        self.forgets_at_once = offers(inner, SupportsDiscard)
        self.inspects = offers(inner, SupportsInspect)
        self.touches = offers(inner, SupportsTouch)
        self.lock = threading.RLock()
        self.inventory = Inventory(policies, tombstones=tombstones)
        # Times can be compared with those of the inner storage only if both come from one clock.
        self.deletions = Deletions(
            inner, recheck=self.clock == inner_clock, retry_delays=retry_delays, on_spared=self._take_back
        )
        self.listing = Listing(
            inner,
            self.inventory,
            self.lock,
            self.clock,
            leaving=self.deletions.references,
            on_complete=self._listing_complete,
        )
        self.uses: UseWriter | None = None
        if needs - noted and self.touches and not self.forgets_at_once:
            self.uses = UseWriter(inner, self._last_use, delay=_USES_WRITTEN_AFTER)

    def chains_for(self, content_type: str, parent: str | None) -> tuple[str, ...]:
        """Return the chains to join. What is due leaves before: nothing joins a chain that is as good as gone."""
        self.evict()
        with self.lock:
            return self.inventory.chains_for(content_type, current_links(), parent)

    def refuse_if_too_large(self, key: str, size: int, chains: tuple[str, ...]) -> None:
        """Raise if something of *size*, with the chains that it joins, can never be held."""
        if why := self.inventory.refusal(size, chains):
            raise _too_large(key, why, chains)

    async def hold(self, reference: str, key: str, content_type: str, size: int, chains: tuple[str, ...]) -> None:
        """Hold what was just stored, and let leave what is too much then."""
        now = self.clock()
        with self.lock:
            self.inventory.add(reference, key, content_type, size, now, chains)
            # Others may have joined the chain while this was being stored.
            why = self.inventory.outgrown(reference) if chains else None
            departures = [] if why is None else self.inventory.take([reference], "its chain became too large", now)
        self.leave(departures)
        if why is not None:
            raise _too_large(key, why, chains)
        self.evict()
        if not self.forgets_at_once:
            self.listing.note_store()
            self.deletions.start_soon()
            await self.deletions.keep_up()

    async def use(self, reference: str) -> str:
        """Note a use, and return the reference that `store` gave. Raises if the entry left."""
        if not self.listing.complete:
            await self.listing.wait()
        self.evict(all_due=True)
        with self.lock:
            held = self.inventory.use(check_reference(reference), self.clock())
        if held is None and (held := await self.look_up(reference)) is None:
            return reference
        return held.reference

    def used(self, reference: str) -> None:
        """Note when the inner storage was done, which is what it noted itself, if it does."""
        if self.forgets_at_once:
            return
        with self.lock:
            held = self.inventory.use(reference, self.clock())
        if held is not None and self.uses is not None:
            self.uses.note(reference)

    async def find(self, reference: str) -> Held | None:
        """Find an entry under any of its names; None if there is none."""
        try:
            return self.inventory.get(check_reference(reference)) or await self.look_up(reference)
        except KeyError:
            return None

    async def look_up(self, reference: str) -> Held | None:
        """Find what is not held under this name: it left, comes from another process, or is spelt differently."""
        if not self.listing.complete:
            await self.listing.wait()
        self._raise_if_gone(reference)
        if reference in self.inventory or not self.listing.complete or not self.inspects:
            return self.inventory.get(reference)
        entry = await self._inner.inspect(reference)
        self._raise_if_gone(entry.reference)
        with self.lock:
            self.inventory.learn(entry, self.clock())
        self.evict(all_due=True)
        self._raise_if_gone(entry.reference)
        return self.inventory.get(entry.reference)

    def _raise_if_gone(self, reference: str) -> None:
        if (error := self.inventory.why_gone(reference)) is not None:
            raise error
        if self.deletions.is_pending(reference):
            raise NotFoundError(reference, "it was evicted or deleted a moment ago")

    def vanished(self, reference: str, error: KeyError) -> KeyError:
        """Return what to raise when the inner storage has not what the inventory holds."""
        with self.lock:
            self.inventory.forget(reference)
            return self.inventory.why_gone(reference) or _without_label(error)

    async def delete_now(self, references: Sequence[str], because: str) -> None:
        """Delete; what resists is held again, and the first failure raised."""
        with self.taken(references, because) as taken:
            answers = await asyncio.gather(
                *(delete_quietly(self._inner, reference) for reference in references), return_exceptions=True
            )
            failures = {ref: answer for ref, answer in zip(references, answers, strict=True) if answer is not None}
            taken.difference_update(failures)
        for failure in failures.values():
            raise failure

    async def delete_chain(self, reference: str, because: str) -> None:
        """Delete an entry with its chain; if that fails, it is raised, and goes on in the background."""
        with self.lock:
            departures = self.inventory.take_chain(reference, because, self.clock())
        for departure in departures:
            await self.deletions.delete_now(departure)
        self.tell(departures)

    @contextmanager
    def taken(self, references: Sequence[str], because: str) -> Iterator[set[str]]:
        """Take entries out of the inventory while they are deleted; those not left in the set come back in the end."""
        with self.lock:
            before = [held for reference in references if (held := self.inventory.get(reference)) is not None]
            departures = self.inventory.take(references, because, self.clock())
        gone: set[str] = set()
        for reference in references:
            self.listing.note_gone(reference)
        try:
            with self.deletions.pending(references):
                yield (deleting := set(references))
                gone = deleting
        finally:
            with self.lock:
                for held in before:
                    if held.reference not in gone:
                        self.inventory.put_back(held)
        self.tell([departure for departure in departures if departure.references[0] in gone])

    def evict(self, *, all_due: bool = False) -> None:
        """Let leave what is due. Nothing is, before it is known what there is.

        If very much is due at once, the rest follows in the background, unless *all_due* is asked for.
        """
        now = self.clock()
        if now <= self.inventory.quiet_until or not self.listing.complete:
            return
        at_most = None if all_due else _AT_A_TIME
        with self.lock:
            departures = self.inventory.evict(now, at_most=at_most)
        if departures:
            self.leave(departures)
        if len(departures) >= _AT_A_TIME and not all_due:
            self._go_on()

    def _go_on(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self.evict)
        except RuntimeError:
            self.evict(all_due=True)

    def leave(self, departures: list[Departure]) -> None:
        """Delete what left the inventory, at once or soon, and tell."""
        for departure in departures:
            if not self.forgets_at_once:
                self.deletions.add(departure)
            for step in departure.steps:
                for eviction in step:
                    if self.forgets_at_once:
                        self._inner.discard(eviction.reference)
                    if eviction.was_live:
                        logger.warning("evicted what is still visible in the conversation: %s", eviction.story)
        self.tell(departures)

    def tell(self, departures: list[Departure]) -> None:
        """Tell the listing and the listener of what left."""
        if self.forgets_at_once and not self.watchers:
            return
        for departure in departures:
            for eviction in departure.evictions:
                self.listing.note_gone(eviction.reference)
                self.watchers.tell(eviction)

    def _take_back(self, entries: list[Entry]) -> None:
        """Hold again what another process used meanwhile; something else may have to go instead."""
        with self.lock:
            for entry in entries:
                self.inventory.learn(entry, self.clock())
        self.evict()

    async def _listing_complete(self) -> None:
        """Evict what an earlier process left, without keeping the event loop busy for long."""
        while True:
            with self.lock:
                departures = self.inventory.evict(self.clock(), at_most=_AT_A_TIME)
            if not departures:
                return
            self.leave(departures)
            await asyncio.sleep(0)

    def _last_use(self, reference: str) -> Use | None:
        with self.lock:
            held = self.inventory.get(reference)
            if held is None:
                return None
            if self.uses is not None and self.counts_turns and not self.knows_turn:
                self.uses.note(reference)
                return None
            return Use(held.last_used, self.labelled_type(held) if self.knows_turn else None)

    @property
    def knows_turn(self) -> bool:
        """Whether entries are labelled with turns, and the turn is known: an earlier process may have counted some."""
        return self.counts_turns and (self.listing.complete or self.inventory.counted_from_start)

    def labelled_type(self, held: Held) -> str:
        """Return the content type to store, with what policies need to know after a restart."""
        return labelled(held.content_type, held.last_turn if self.knows_turn else None, held.chains)


def _without_label(error: KeyError) -> KeyError:
    """Return an inner storage's story without what was written into the content type."""
    if not isinstance(error, EvictedError):
        return error
    plain = split_label(error.content_type)[0]
    reason = error.reason.replace(error.content_type, plain)
    told = (error.key, plain, error.size, error.stored_at, error.evicted_at, error.because)
    return EvictedError(error.reference, reason, *told)


def _too_large(key: str, why: str, chains: tuple[str, ...]) -> TooLargeError:
    return TooLargeError(
        f"cannot store {key[:100]!r}: it would be {why}. Nothing is stored, and nothing else was evicted; raise the "
        f"limit, or {'store it outside of the chain' if chains else 'keep the content where it is'}"
    )
