"""A storage that stays within bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any

from holdfast.errors import InvalidValueError, NotFoundError, SharedStorageError, StorageError
from holdfast.eviction.chains import check_parent
from holdfast.eviction.deletions import AT_ONCE, slices
from holdfast.eviction.groups import Held
from holdfast.eviction.housekeeping import Housekeeping
from holdfast.eviction.labels import labelled, split_label
from holdfast.eviction.options import able_to_delete, checked_policies, short_forms, with_policies_of
from holdfast.eviction.policies import Policy
from holdfast.storage.checks import (
    LONGEST_MIME_TYPE,
    check_range,
    check_reference,
    check_store,
    check_touch,
    require_positive,
    reserved_parameters,
)
from holdfast.storage.liveness import checked_live, takes_owner
from holdfast.storage.protocols import (
    Entry,
    Part,
    Storage,
    SupportsClear,
    SupportsEntries,
    SupportsLive,
    SupportsRange,
    SupportsTurns,
    offers,
)
from holdfast.storage.tombstones import Eviction

__all__ = ["EvictingStorage"]

_LAST_TURN = 10**12
_RETRY_DELAYS = (0.1, 0.5, 2.0, 10.0)
_USES_WRITTEN_AFTER = 5.0


class EvictingStorage:
    """Wraps any storage that can delete, and drops what its policies say.

    Short forms stand for the policies of the same meaning: ``max_entries`` and ``max_bytes`` (`LeastRecentlyUsed`),
    ``ttl``, seconds or a timedelta (`TimeToLive`), ``turns`` (`TurnsToLive`), ``chains`` (`Chains`). Without any
    policy, only what is deleted leaves; but the turns after which an InMemoryStorage forgets count here too. Within a
    process, use the inner storage through this wrapper only; other processes may wrap the same directory or bucket.

    Unless the inner storage forgets at once, deletions run in the background and are tried again. Storing waits for
    them only when a thousand are due; `aclose` waits for all, and writes down the latest uses.
    """

    def __init__(
        self,
        inner: Storage,
        *more_policies: Policy,
        policies: Iterable[Policy] = (),
        max_entries: int | None = None,
        max_bytes: int | None = None,
        ttl: float | timedelta | None = None,
        turns: int | None = None,
        chains: bool = False,
        tombstones: int = 1_000,
        on_evict: Callable[[Eviction], object] | None = None,
        clock: Callable[[], float] | None = None,
        retry_delays: Sequence[float] = _RETRY_DELAYS,
    ) -> None:
        self._inner: Any = able_to_delete(inner)
        short = short_forms(max_entries, max_bytes, ttl, turns, chains=chains)
        given = [*checked_policies(more_policies), *checked_policies(policies), *short]
        all_policies = with_policies_of(inner, given)
        require_positive("tombstones", tombstones)
        options: dict[str, Any] = {
            "clock": clock,
            "tombstones": tombstones,
            "on_evict": on_evict,
            "retry_delays": retry_delays,
        }
        self._house = Housekeeping(inner, all_policies, **options)
        self._around: Callable[[Storage], EvictingStorage] = partial(EvictingStorage, policies=given, **options)
        # The turns of a storage that evicts by itself are counted here instead, where it is known what is live.
        self._forwards_turns = isinstance(inner, SupportsTurns) and not hasattr(inner, "evict_after_turns")
        self._reads_ranges = isinstance(inner, SupportsRange)
        self._inner_spares, self._inner_tells_apart = isinstance(inner, SupportsLive), takes_owner(inner)
        self._owner: object | None = None

    def for_sandbox(self, sandbox: Any) -> EvictingStorage:
        """Return a wrapper with the same policies around the inner storage bound to *sandbox*."""
        return self._around(self._inner.for_sandbox(sandbox))

    def watch(self, on_evict: Callable[[Eviction], object]) -> None:
        """Call *on_evict* with each eviction from now on. A method is held weakly, and ends with its object."""
        self._house.watchers.add(on_evict)

    @property
    def inner(self) -> Storage:
        """The storage that is wrapped."""
        inner: Storage = self._inner
        return inner

    @property
    def clock(self) -> Callable[[], float]:
        """Where the time comes from."""
        return self._house.clock

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
        if not self._house.listing.complete:
            await self._house.listing.begin()
        check_parent(parent)
        size = len(content)
        chains = self._house.chains_for(content_type, parent) if self._house.inventory.has_chains else ()
        self._house.refuse_if_too_large(key, size, chains)
        turn = self._house.inventory.turn if self._house.counts_turns and self._house.knows_turn else None
        reference = await self._store(key, content, _fitting(labelled(content_type, turn, chains)))
        await self._house.hold(reference, key, content_type, size, chains)
        if self._house.counts_turns and turn is None and self._house.uses is not None:
            self._house.uses.note(reference)
        return reference

    async def _store(self, key: str, content: bytes, content_type: str) -> str:
        try:
            with reserved_parameters() if "; holdfast-" in content_type else nullcontext():
                reference: str = await self._inner.store(key, content, content_type)
        except BaseException:
            self._house.listing.note_lost_store()
            raise
        return reference

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type, and count it as used."""
        canonical = await self._house.use(reference)
        try:
            content, content_type = await self._inner.retrieve(reference)
        except KeyError as error:
            raise self._house.vanished(canonical, error) from None
        self._house.used(canonical)
        return content, split_label(content_type)[0]

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Return a part of the content, and count it as used."""
        check_range(start, end)
        if not self._reads_ranges:
            content, content_type = await self.retrieve(reference)
            return Part(content[start:end], content_type, start, len(content))
        canonical = await self._house.use(reference)
        try:
            part: Part = await self._inner.retrieve_range(reference, start, end)
        except KeyError as error:
            raise self._house.vanished(canonical, error) from None
        self._house.used(canonical)
        return replace(part, content_type=split_label(part.content_type)[0])

    async def inspect(self, reference: str) -> Entry:
        """Return what is known of one content, without counting it as used."""
        self._house.evict(all_due=True)
        held = self._house.inventory.get(check_reference(reference)) or await self._house.look_up(reference)
        if self._house.inspects:
            return _as_given(await self._inner.inspect(reference if held is None else held.reference))
        if held is None:
            raise NotFoundError(reference, "nothing is known of it here: never stored, deleted, or of another process")
        return _entry_of(held)

    async def delete(self, reference: str) -> None:
        """Forget one content, and its chain unless something else of that is still visible in the conversation."""
        held = await self._house.find(reference)
        if held is not None and self._house.inventory.leaves_with_others(held):
            await self._house.delete_chain(held.reference, "it was deleted, or its chain was")
        else:
            await self._house.delete_now([reference if held is None else held.reference], "it was deleted")

    async def evict(self, references: Iterable[str], because: str) -> None:
        """Forget exactly these. *because* completes "it is gone because …" for whoever asks for one later."""
        for some in slices(list(references), AT_ONCE):
            await self._house.delete_now(some, because)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield what is held, whichever process stored it."""
        listed = await self._house.listing.refresh()
        self._house.evict(all_due=True)
        if not offers(self._inner, SupportsEntries):
            listed = [_entry_of(held) for held in self._house.inventory.held()]
        for entry in listed:
            if entry.reference in self._house.inventory:
                yield _as_given(entry)

    async def clear(self) -> None:
        """Forget all entries."""
        because = "the storage was cleared"
        if offers(self._inner, SupportsClear):
            with self._house.taken(self._house.inventory.references(), because):
                await self._inner.clear()
        else:
            await self._house.listing.refresh()
            await self.evict(self._house.inventory.references(), because)

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Note a use at *used_at*, and a new content type if one is given."""
        check_touch(used_at, content_type)
        if content_type is not None and not self._house.touches:
            raise StorageError(f"{type(self._inner).__name__} cannot touch, so the content type cannot be changed")
        held = await self._house.find(reference)
        if held is None:
            return
        with self._house.lock:
            self._house.inventory.use(held.reference, used_at)
            held.content_type = content_type or held.content_type
        if self._house.touches:
            given = None if content_type is None else self._house.labelled_type(held)
            with reserved_parameters():
                await self._inner.touch(held.reference, used_at, given)

    def set_live(self, references: Iterable[str], *, owner: object | None = None) -> None:
        """Say which references are visible in the conversation; say it again whenever that changes.

        From then on, these, and what is stored until the next time, are not evicted by age, turns or chains. Only a
        capacity takes them, when nothing else is left, the least recently used first. Where several conversations share
        the storage, each is an *owner*, an object that is held weakly: what it said ends with it.
        """
        live = checked_live(references, owner)
        with self._house.lock:
            shows_less = self._house.inventory.set_live(live, owner)
        self._pass_on(live, owner)
        # Else nothing leaves here: whoever begins to speak may not have said all yet.
        if shows_less:
            self._house.evict()

    def _pass_on(self, live: frozenset[str], owner: object | None) -> None:
        """Tell the inner storage; one that takes no owner is told of all that is visible to anybody."""
        if self._inner_tells_apart:
            self._inner.set_live(live, owner=owner)
        elif self._inner_spares:
            with self._house.lock:
                live = self._house.inventory.shown()
            self._inner.set_live(live)

    def advance_turn(self, to: int | None = None) -> None:
        """Say that the conversation's next turn begins.

        A conversation that counts its own turns, also across restarts, says which one it is: *to*. Else a restarted
        process goes on with the latest turn in which anything was stored or used.
        """
        if to is not None:
            _check_turn(to)
        with self._house.lock:
            before = self._house.inventory.turn
            self._house.inventory.advance_turn(to)
            advanced = self._house.inventory.turn > before
        if advanced and self._forwards_turns:
            self._inner.advance_turn()
        # What an earlier process left may be due, even if this one never stores anything.
        self._house.listing.begin_soon()
        self._house.evict()

    def discard(self, reference: str) -> None:
        """Forget one content at once, if the inner storage can."""
        if not self._house.forgets_at_once:
            raise StorageError(f"{type(self._inner).__name__} cannot discard; use delete")
        with self._house.lock:
            departures = self._house.inventory.take([reference], "it was deleted", self._house.clock())
        self._inner.discard(reference)
        self._house.tell(departures)

    def bind(self, owner: object) -> None:
        """Take *owner* as the agent that uses this storage. With a policy that counts turns, no second one may."""
        with self._house.lock:
            if self._house.counts_turns and self._owner is not None and self._owner is not owner:
                raise SharedStorageError(
                    "this EvictingStorage evicts by the turns of another agent, so a second agent cannot use it; give "
                    "each agent its own, for example EvictingStorage(ScopedStorage(inner, session_id), turns=20)"
                )
            # One that needs not be known is not held: what it shows is to end with it.
            self._owner = owner if self._house.counts_turns else None
        if hasattr(self._inner, "bind"):
            self._inner.bind(owner)

    async def sweep(self) -> None:
        """List the inner storage anew, evict what is due, and wait until all is deleted."""
        await self._house.listing.refresh()
        self._house.evict(all_due=True)
        await self._house.deletions.finish()

    async def aclose(self) -> None:
        """Wait until what was evicted is deleted, and write down the latest uses. The storage stays usable."""
        await self._house.listing.finish()
        if self._house.uses is not None:
            await self._house.uses.write()
        await self._house.deletions.finish()

    async def __aenter__(self) -> EvictingStorage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _check_turn(to: int) -> None:
    require_positive("to", to)
    if to > _LAST_TURN:
        raise InvalidValueError(f"to must be the number of a turn, at most {_LAST_TURN:,}, got {to}")


def _fitting(content_type: str) -> str:
    if len(content_type) > LONGEST_MIME_TYPE:
        raise InvalidValueError(
            f"content_type is too long: with what eviction has to remember it has {len(content_type):,} characters, "
            f"and {LONGEST_MIME_TYPE:,} are allowed"
        )
    return content_type


def _as_given(entry: Entry) -> Entry:
    return replace(entry, content_type=split_label(entry.content_type)[0])


def _entry_of(held: Held) -> Entry:
    return Entry(held.reference, held.key, held.content_type, held.size, held.first_stored_at, held.last_used)
