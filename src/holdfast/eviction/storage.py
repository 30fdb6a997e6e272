"""A storage that stays within bounds."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any

from holdfast.errors import InvalidTypeError, NotFoundError, SharedStorageError, StorageError, TooLargeError
from holdfast.eviction.asking import needs_of
from holdfast.eviction.chains import check_parent, current_links
from holdfast.eviction.deletions import Deletions
from holdfast.eviction.groups import Held
from holdfast.eviction.inventory import Departure, Inventory
from holdfast.eviction.labels import labelled, split_label
from holdfast.eviction.listing import Listing
from holdfast.eviction.policies import Chains, LeastRecentlyUsed, Policy, TimeToLive, TurnsToLive
from holdfast.eviction.uses import Use, UseWriter
from holdfast.storage.checks import check_range, check_reference, check_store, check_touch, require_positive
from holdfast.storage.protocols import (
    Entry,
    Part,
    Storage,
    SupportsClear,
    SupportsDelete,
    SupportsDiscard,
    SupportsEntries,
    SupportsInspect,
    SupportsRange,
    SupportsTouch,
    SupportsTurns,
    offers,
)
from holdfast.storage.tombstones import Eviction

__all__ = ["EvictingStorage"]

logger = logging.getLogger(__name__)

_AT_ONCE = 32
_AT_A_TIME = 1_000
_RETRY_DELAYS = (0.1, 0.5, 2.0, 10.0)
_USES_WRITTEN_AFTER = 5.0


class EvictingStorage:
    """Wraps any storage that can delete, and drops what its policies say.

    Short forms stand for the policies of the same meaning: ``max_entries`` and ``max_bytes`` (`LeastRecentlyUsed`),
    ``ttl`` in seconds (`TimeToLive`), ``turns`` (`TurnsToLive`), ``chains`` (`Chains`). Without any policy, only what
    is deleted leaves. Within a process, use the inner storage through this wrapper only; other processes may wrap the
    same directory or bucket.

    Storing never waits for an eviction: unless the inner storage forgets at once, deletions run in the background and
    are tried again. `aclose` waits for them, and writes down the latest uses.
    """

    def __init__(
        self,
        inner: Storage,
        *more_policies: Policy,
        policies: Iterable[Policy] = (),
        max_entries: int | None = None,
        max_bytes: int | None = None,
        ttl: float | None = None,
        turns: int | None = None,
        chains: bool = False,
        tombstones: int = 1_000,
        on_evict: Callable[[Eviction], object] | None = None,
        clock: Callable[[], float] | None = None,
        retry_delays: Sequence[float] = _RETRY_DELAYS,
    ) -> None:
        self._inner: Any = _able_to_delete(inner)
        all_policies = [*more_policies, *policies, *_short_forms(max_entries, max_bytes, ttl, turns, chains=chains)]
        _check_policies(all_policies)
        require_positive("tombstones", tombstones)
        inner_clock = getattr(inner, "clock", time.time)
        needs = frozenset[str]().union(*map(needs_of, all_policies))
        noted = {"use"} if self.notes_uses else set()
        self._on_evict = on_evict
        self._clock = clock or inner_clock
        self._counts_turns = "turn" in needs
        self._forgets_at_once = isinstance(inner, SupportsDiscard)
        self._forwards_turns = isinstance(inner, SupportsTurns)
        self._reads_ranges = isinstance(inner, SupportsRange)
        self._inspects = offers(inner, SupportsInspect)
        self._touches = offers(inner, SupportsTouch)
        self._owner: object | None = None
        self._lock = threading.RLock()
        self._inventory = Inventory(all_policies, tombstones=tombstones)
        # Times can be compared with those of the inner storage only if both come from one clock.
        self._deletions = Deletions(
            inner, recheck=self._clock == inner_clock, retry_delays=retry_delays, on_spared=self._take_back
        )
        self._listing = Listing(
            inner,
            self._inventory,
            self._lock,
            self._clock,
            is_leaving=self._deletions.pending.__contains__,
            on_complete=self._listing_complete,
        )
        self._uses: UseWriter | None = None
        if needs - noted and self._touches and not self._forgets_at_once:
            self._uses = UseWriter(inner, self._last_use, delay=_USES_WRITTEN_AFTER)

    @property
    def inner(self) -> Storage:
        """The storage that is wrapped."""
        inner: Storage = self._inner
        return inner

    @property
    def clock(self) -> Callable[[], float]:
        """Where the time comes from."""
        return self._clock

    @property
    def notes_uses(self) -> bool:
        """Whether `retrieve` of the inner storage writes down the use for other processes."""
        return bool(getattr(self._inner, "notes_uses", False))

    async def store(
        self, key: str, content: bytes, content_type: str = "text/plain", *, parent: str | None = None
    ) -> str:
        """Store, and let leave what is too much then.

        With `Chains`, the content joins the chain of *parent*, a reference, and those of the surrounding `in_chain`
        blocks. What can never be held, alone or with its chain, is refused with a TooLargeError.
        """
        check_store(key, content, content_type)
        if not self._listing.complete:
            await self._listing.begin()
        check_parent(parent)
        size = len(content)
        chains = self._chains(content_type, parent) if self._inventory.has_chains else ()
        self._refuse_if_too_large(key, size, chains)
        turn = self._inventory.turn if self._counts_turns and self._knows_turn else None
        reference: str = await self._inner.store(key, content, labelled(content_type, turn, chains))
        self._hold(reference, key, content_type, size, chains)
        if self._counts_turns and turn is None and self._uses is not None:
            self._uses.note(reference)
        return reference

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type, and count it as used."""
        canonical = await self._use(reference)
        try:
            content, content_type = await self._inner.retrieve(reference)
        except KeyError as error:
            raise self._vanished(canonical, error) from None
        self._used(canonical)
        return content, split_label(content_type)[0]

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Return a part of the content, and count it as used."""
        check_range(start, end)
        if not self._reads_ranges:
            content, content_type = await self.retrieve(reference)
            return Part(content[start:end], content_type, start, len(content))
        canonical = await self._use(reference)
        try:
            part: Part = await self._inner.retrieve_range(reference, start, end)
        except KeyError as error:
            raise self._vanished(canonical, error) from None
        self._used(canonical)
        return replace(part, content_type=split_label(part.content_type)[0])

    async def inspect(self, reference: str) -> Entry:
        """Return what is known of one content, without counting it as used."""
        self._evict()
        held = self._inventory.get(check_reference(reference)) or await self._look_up(reference)
        if held is None:
            raise NotFoundError(
                reference, "nothing is known of it here: never stored, deleted or of an earlier process"
            )
        if self._inspects:
            return _as_given(await self._inner.inspect(held.reference))
        return _entry_of(held)

    async def delete(self, reference: str) -> None:
        """Forget one content, and its chain unless something else of that is still visible in the conversation."""
        held = await self._find(reference)
        if held is None or not self._inventory.leaves_with_others(held):
            await self._delete_now([reference if held is None else held.reference], "it was deleted")
            return
        with self._lock:
            departures = self._inventory.take_chain(held.reference, "it was deleted, or its chain was", self._clock())
        self._tell(departures)
        for departure in departures:
            await self._deletions.delete(departure)

    async def evict(self, references: Iterable[str], because: str) -> None:
        """Forget exactly these. *because* completes "it is gone because …" for whoever asks for one later."""
        references = list(references)
        for first in range(0, len(references), _AT_ONCE):
            await self._delete_now(references[first : first + _AT_ONCE], because)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield what is held, whichever process stored it."""
        listed = await self._listing.refresh()
        self._evict()
        if not offers(self._inner, SupportsEntries):
            listed = [_entry_of(held) for held in self._inventory.held()]
        for entry in listed:
            if entry.reference in self._inventory:
                yield _as_given(entry)

    async def clear(self) -> None:
        """Forget all entries."""
        if offers(self._inner, SupportsClear):
            with self._taken([held.reference for held in self._inventory.held()], "the storage was cleared"):
                await self._inner.clear()
        else:
            await self._listing.refresh()
            await self.evict([held.reference for held in self._inventory.held()], "the storage was cleared")

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Note a use at *used_at*, and a new content type if one is given."""
        check_touch(used_at, content_type)
        if content_type is not None and not self._touches:
            raise StorageError(f"{type(self._inner).__name__} cannot touch, so the content type cannot be changed")
        held = await self._find(reference)
        if held is None:
            return
        with self._lock:
            self._inventory.use(held.reference, used_at)
            held.content_type = content_type or held.content_type
        if self._touches:
            given = None if content_type is None else self._labelled(held)
            await self._inner.touch(held.reference, used_at, given)

    def set_live(self, references: Iterable[str]) -> None:
        """Say which references are visible in the conversation; say it again whenever that changes.

        From then on, these, and what is stored until the next time, are not evicted by age, turns or chains. Only a
        capacity takes them, when nothing else is left, the least recently used first.
        """
        with self._lock:
            self._inventory.set_live(set(references))
        self._evict()

    def advance_turn(self, to: int | None = None) -> None:
        """Say that the conversation's next turn begins.

        A conversation that counts its own turns, also across restarts, says which one it is: *to*. Else a restarted
        process goes on with the latest turn in which anything was stored or used.
        """
        if to is not None:
            require_positive("to", to)
        with self._lock:
            self._inventory.advance_turn(to)
        if self._forwards_turns:
            self._inner.advance_turn()
        self._evict()

    def bind(self, owner: object) -> None:
        """Take *owner* as the agent that uses this storage. With a policy that counts turns, no second one may."""
        with self._lock:
            if self._counts_turns and self._owner is not None and self._owner is not owner:
                raise SharedStorageError(
                    "this EvictingStorage evicts by the turns of another agent, so a second agent cannot use it; give "
                    "each agent its own, for example EvictingStorage(ScopedStorage(inner, session_id), turns=20)"
                )
            self._owner = owner
        if hasattr(self._inner, "bind"):
            self._inner.bind(owner)

    async def sweep(self) -> None:
        """List the inner storage anew, evict what is due, and wait until all is deleted."""
        await self._listing.refresh()
        self._evict()
        await self._deletions.finish()

    async def aclose(self) -> None:
        """Wait until what was evicted is deleted, and write down the latest uses. The storage stays usable."""
        await self._listing.finish()
        if self._uses is not None:
            await self._uses.write()
        await self._deletions.finish()

    async def __aenter__(self) -> EvictingStorage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _chains(self, content_type: str, parent: str | None) -> tuple[str, ...]:
        """Return the chains to join. What is due leaves before: nothing joins a chain that is as good as gone."""
        self._evict()
        with self._lock:
            return self._inventory.chains_for(content_type, current_links(), parent)

    def _refuse_if_too_large(self, key: str, size: int, chains: tuple[str, ...]) -> None:
        if why := self._inventory.refusal(size, chains):
            raise TooLargeError(
                f"cannot store {key[:100]!r}: it would be {why}. Nothing was stored or evicted; raise the limit, "
                f"or {'store it outside of the chain' if chains else 'keep the content where it is'}"
            )

    def _hold(self, reference: str, key: str, content_type: str, size: int, chains: tuple[str, ...]) -> None:
        with self._lock:
            # Others may have joined the chain while this was being stored.
            too_large = bool(chains) and self._inventory.refusal(size, chains) is not None
            if reference not in self._inventory:
                self._inventory.add(reference, key, content_type, size, self._clock(), () if too_large else chains)
            if too_large:
                self._leave(self._inventory.take([reference], "its chain became too large", self._clock()))
        if too_large:
            self._refuse_if_too_large(key, size, chains)
        self._evict()
        if not self._forgets_at_once:
            self._deletions.start_soon()
            self._listing.note_store()

    async def _use(self, reference: str) -> str:
        """Note a use, and return the reference that `store` gave. Raises if the entry left."""
        if not self._listing.complete:
            await self._listing.wait()
        self._evict()
        with self._lock:
            held = self._inventory.use(check_reference(reference), self._clock())
        if held is None and (held := await self._look_up(reference)) is None:
            return reference
        return held.reference

    def _used(self, reference: str) -> None:
        """Note when the inner storage was done, which is what it noted itself, if it does."""
        if self._forgets_at_once:
            return
        with self._lock:
            held = self._inventory.use(reference, self._clock())
        if held is not None and self._uses is not None:
            self._uses.note(reference)

    async def _find(self, reference: str) -> Held | None:
        try:
            return self._inventory.get(check_reference(reference)) or await self._look_up(reference)
        except KeyError:
            return None

    async def _look_up(self, reference: str) -> Held | None:
        """Find what is not held under this name: it left, comes from another process, or is spelt differently."""
        if not self._listing.complete:
            await self._listing.wait()
        self._raise_if_gone(reference)
        if reference in self._inventory or not self._listing.complete or not self._inspects:
            self._raise_if_gone(reference)
            return self._inventory.get(reference)
        entry = await self._inner.inspect(reference)
        self._raise_if_gone(entry.reference)
        with self._lock:
            if entry.reference not in self._inventory:
                self._inventory.learn(entry, self._clock())
        self._evict()
        self._raise_if_gone(entry.reference)
        return self._inventory.get(entry.reference)

    def _raise_if_gone(self, reference: str) -> None:
        if (error := self._inventory.why_gone(reference)) is not None:
            raise error

    def _vanished(self, reference: str, error: KeyError) -> KeyError:
        """Return what to raise when the inner storage has not what the inventory holds."""
        with self._lock:
            self._inventory.forget(reference)
            return self._inventory.why_gone(reference) or error

    async def _delete_now(self, references: Sequence[str], because: str) -> None:
        """Delete; what resists is held again, and the first failure raised."""
        with self._taken(references, because) as taken:
            answers = await asyncio.gather(*map(self._inner.delete, references), return_exceptions=True)
            failures = {ref: answer for ref, answer in zip(references, answers, strict=True) if answer is not None}
            taken.difference_update(failures)
        for failure in failures.values():
            raise failure

    @contextmanager
    def _taken(self, references: Sequence[str], because: str) -> Iterator[set[str]]:
        """Take entries out of the inventory while they are deleted; those not left in the set come back in the end."""
        with self._lock:
            before = [held for reference in references if (held := self._inventory.get(reference)) is not None]
            departures = self._inventory.take(references, because, self._clock())
        self._deletions.pending.update(references)
        gone: set[str] = set()
        try:
            yield (deleting := set(references))
            gone = deleting
        finally:
            self._deletions.pending.difference_update(references)
            with self._lock:
                for held in before:
                    if held.reference not in gone:
                        self._inventory.put_back(held)
        self._tell([departure for departure in departures if departure.evictions[0].reference in gone])

    def _evict(self) -> None:
        """Let leave what is due. Nothing is, before it is known what there is."""
        now = self._clock()
        if now <= self._inventory.quiet_until or not self._listing.complete:
            return
        with self._lock:
            departures = self._inventory.evict(now)
        if departures:
            self._leave(departures)

    def _leave(self, departures: list[Departure]) -> None:
        for departure in departures:
            if not self._forgets_at_once:
                self._deletions.add(departure)
            for eviction in departure.evictions:
                if self._forgets_at_once:
                    self._inner.discard(eviction.reference)
                if eviction.was_live:
                    logger.warning("evicted what is still visible in the conversation: %s", eviction.story)
        self._tell(departures)

    def _tell(self, departures: list[Departure]) -> None:
        if self._forgets_at_once and self._on_evict is None:
            return
        for departure in departures:
            for eviction in departure.evictions:
                self._listing.note_gone(eviction.reference)
                if self._on_evict is not None:
                    _call(self._on_evict, eviction)

    def _take_back(self, entries: list[Entry]) -> None:
        """Hold again what another process used meanwhile; something else may have to go instead."""
        with self._lock:
            for entry in entries:
                self._inventory.learn(entry, self._clock())
        self._evict()

    async def _listing_complete(self) -> None:
        """Evict what an earlier process left, without keeping the event loop busy for long."""
        while True:
            with self._lock:
                departures = self._inventory.evict(self._clock(), at_most=_AT_A_TIME)
            if not departures:
                return
            self._leave(departures)
            await asyncio.sleep(0)

    def _last_use(self, reference: str) -> Use | None:
        with self._lock:
            held = self._inventory.get(reference)
            if held is None:
                return None
            if self._uses is not None and self._counts_turns and not self._knows_turn:
                self._uses.note(reference)
                return None
            return Use(held.last_used, self._labelled(held) if self._knows_turn else None)

    @property
    def _knows_turn(self) -> bool:
        """Whether entries are labelled with turns, and the turn is known: an earlier process may have counted some."""
        return self._counts_turns and (self._listing.complete or self._inventory.counted_from_start)

    def _labelled(self, held: Held) -> str:
        return labelled(held.content_type, held.last_turn if self._knows_turn else None, held.chains)


def _call(on_evict: Callable[[Eviction], object], eviction: Eviction) -> None:
    try:
        on_evict(eviction)
    except Exception:
        # A listener's mistake must not make a store that succeeded look failed.
        logger.exception("on_evict failed for %s", eviction.reference)


def _short_forms(
    max_entries: int | None, max_bytes: int | None, ttl: float | None, turns: int | None, *, chains: bool
) -> Iterator[Policy]:
    if max_entries is not None or max_bytes is not None:
        yield LeastRecentlyUsed(max_entries=max_entries, max_bytes=max_bytes)
    if ttl is not None:
        yield TimeToLive(seconds=ttl)
    if turns is not None:
        yield TurnsToLive(turns=turns)
    if chains:
        yield Chains()


def _check_policies(policies: Iterable[object]) -> None:
    for policy in policies:
        if isinstance(policy, type) or not callable(getattr(policy, "expired", None)):
            raise InvalidTypeError(
                f"a policy needs a method expired(entries, now), got {policy!r}; "
                "for example TimeToLive(seconds=3600) or LeastRecentlyUsed(max_entries=100)"
            )


def _able_to_delete(storage: Storage) -> Storage:
    """Return *storage* if it, and what it wraps, can delete."""
    if not offers(storage, SupportsDelete):
        unable: Any = storage
        while isinstance(unable, SupportsDelete):
            unable = getattr(unable, "inner", None)
        raise InvalidTypeError(
            f"EvictingStorage needs a storage that can delete, and {type(unable).__name__} has no "
            "`async delete(reference)`; add one, or use InMemoryStorage, FileStorage or S3Storage"
        )
    return storage


def _as_given(entry: Entry) -> Entry:
    return replace(entry, content_type=split_label(entry.content_type)[0])


def _entry_of(held: Held) -> Entry:
    return Entry(held.reference, held.key, held.content_type, held.size, held.first_stored_at, held.last_used)
