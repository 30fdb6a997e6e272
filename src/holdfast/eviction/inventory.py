"""What is held, and what of it leaves: all decisions of eviction, without any input or output.

An operation costs O(log n): policies look at the front of an order, uses are noted where they happen, and each entry
that leaves was put in once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from math import inf
from typing import NamedTuple

from holdfast.errors import EvictedError
from holdfast.eviction.asking import Asked, View, needs_of
from holdfast.eviction.chains import Link
from holdfast.eviction.groups import Alone, Chain, Group, Held, Linked
from holdfast.eviction.labels import scopes_in, split_label
from holdfast.eviction.policies import Chains, Moment, Policy
from holdfast.eviction.queues import Orders
from holdfast.eviction.ties import Ties, last_to_first
from holdfast.storage.liveness import LiveReferences
from holdfast.storage.protocols import Entry
from holdfast.storage.tombstones import Eviction, Tombstones

__all__ = ["Departure", "Inventory", "plan_evictions"]


class Departure(NamedTuple):
    """Entries that leave together, in the steps in which to delete them.

    Whatever is left after some steps is still tied together, and to the very last one, whose chains are told.
    """

    steps: Sequence[Sequence[Eviction]]
    last_used: float
    by_use: bool
    chains_of_last: tuple[str, ...]

    @property
    def evictions(self) -> list[Eviction]:
        """All of them."""
        return [eviction for step in self.steps for eviction in step]

    @property
    def references(self) -> list[str]:
        """The references of all of them."""
        return [eviction.reference for step in self.steps for eviction in step]


class Inventory:
    """The entries held, their chains, uses and liveness, and the tombstones of those that left."""

    def __init__(self, policies: Sequence[Policy], *, tombstones: int = 1_000) -> None:
        # The hard ones last: what others drop anyway need not be made room for.
        self._asked = sorted(map(Asked, policies), key=lambda asked: asked.hard)
        self._heeding = [asked for asked in self._asked if asked.heeds_stores]
        self._bounding = [(asked.exceeds, asked) for asked in self._asked if asked.exceeds is not None]
        self._held: dict[str, Held] = {}
        self._orders = Orders(lambda: dict.fromkeys(held.group for held in self._held.values()))
        self.view = View(self._held, self._orders)
        self._keep_orders_from_the_start(policies)
        self.has_chains = any(isinstance(policy, Chains) for policy in policies)
        self._ties = Ties() if self.has_chains else None
        self._tombstones = Tombstones(tombstones)
        # What the conversations show, what was stored since any of them said so, and both together.
        self._shown = LiveReferences()
        self._fresh: set[str] = set()
        self._live: set[str] = set()
        self._knows_live = False
        self._leaving: list[tuple[Held, float]] = []
        self._operations = 0
        self._order = 0
        self.counted_from_start = False
        self.quiet_until = -inf
        self.turn = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, reference: object) -> bool:
        return reference in self._held

    def held(self) -> list[Held]:
        """Return what is held."""
        return list(self._held.values())

    def references(self) -> list[str]:
        """Return the references of what is held."""
        return list(self._held)

    def get(self, reference: str) -> Held | None:
        """Return the entry, if it is held."""
        return self._held.get(reference)

    @property
    def total_size(self) -> int:
        """How many bytes are held."""
        return self.view.total_size

    def set_live(self, references: Set[str], owner: object | None = None) -> bool:
        """Take *references* as those that are visible to *owner*. Say whether it showed more before."""
        change = self._shown.say(frozenset(references), owner)
        fresh, self._fresh, self._knows_live = self._fresh, set(), True
        self._count([reference for reference in change.came if reference not in fresh], 1)
        self._count([*change.went, *(reference for reference in fresh if reference not in self._shown)], -1)
        self._wake()
        return change.shows_less

    def shown(self) -> frozenset[str]:
        """Return what is visible to any owner."""
        return self._shown.all()

    def _count(self, references: Iterable[str], step: int) -> None:
        """Count these as live, or as live no more."""
        for reference in references:
            (self._live.add if step > 0 else self._live.discard)(reference)
            if (held := self._held.get(reference)) is not None:
                held.group.live += step
                self._orders.changed(held.group)

    def advance_turn(self, to: int | None = None) -> None:
        """Begin the next turn, or the one that the conversation counts as *to*. Turns never go back."""
        self.turn = self.turn + 1 if to is None else max(self.turn, to)
        self.counted_from_start |= to is not None
        self._wake()

    def chains_for(self, content_type: str, links: Iterable[Link], parent: str | None = None) -> tuple[str, ...]:
        """Return the chains that something stored inside *links* joins."""
        return () if self._ties is None else self._ties.chains_for(content_type, links, parent)

    def refusal(self, size: int, chains: Iterable[str] = ()) -> str | None:
        """Return why something of *size*, with the chains that it joins, can never be held; None if it can."""
        count, total = 1, size
        for group in () if self._ties is None else self._ties.groups(chains):
            count, total = count + len(group.members), total + group.size
        return self._refusal(count, total)

    def _refusal(self, count: int, total: int) -> str | None:
        for exceeds, asked in self._bounding:
            if exceeds(count, total):
                chain = f" in a chain of {count:,} entries" if count > 1 else ""
                return f"{total:,} bytes{chain}, but the limit is {asked.limits}"
        return None

    def outgrown(self, reference: str) -> str | None:
        """Return why the group of *reference* is too large to be held, if it is."""
        held = self._held.get(reference)
        return None if held is None else self._refusal(len(held.group.members), held.group.size)

    def add(
        self, reference: str, key: str, content_type: str, size: int, stored_at: float, chains: tuple[str, ...] = ()
    ) -> None:
        """Hold what was just stored. Until the next `set_live`, it counts as visible in the conversation."""
        if self._knows_live:
            self._count_as_live(reference)
        self._hold(reference, key, content_type, size, stored_at, chains, stored_at, self.turn)
        # The first one may be due before anything that was there when a policy was last asked: there was nothing.
        for asked in self._heeding if len(self._held) > 1 else self._asked:
            if asked.exceeds is None or asked.exceeds(len(self._held), self.view.total_size):
                asked.quiet_until = self.quiet_until = -inf

    def _count_as_live(self, reference: str) -> None:
        """Add a reference that was just stored; a listing may have seen it before."""
        if reference not in self._live:
            self._fresh.add(reference)
            self._count([reference], 1)

    def learn(self, entry: Entry, now: float) -> None:
        """Hold what a backend listed. What claims to be from the future counts as from now."""
        content_type, label = split_label(entry.content_type)
        stored_at, last_used = min(entry.stored_at, now), min(entry.last_used, now)
        turn = self.turn if label.turn is None else label.turn
        self._tombstones.discard(entry.reference)
        held = self._hold(
            entry.reference, entry.key, content_type, entry.size, stored_at, label.chains, last_used, turn
        )
        self._wake()
        if label.left_at is not None and self.has_chains:
            self._leaving.append((held, label.left_at))

    def begin_at(self, turn: int) -> None:
        """Go on from *turn*, with all that happened so far behind it, unless the conversation said where it is."""
        if self.counted_from_start:
            return
        self.turn += turn
        for group in {held.group for held in self._held.values()}:
            group.last_turn += turn

    def use(self, reference: str, now: float) -> Held | None:
        """Note a use, if the entry is held."""
        held = self._held.get(reference)
        if held is not None:
            self._order += 1
            held.group.use(now, self.turn, self._order)
        return held

    def evict(self, now: float, *, at_most: int | None = None) -> list[Departure]:
        """Ask every policy, and let go what it drops: with *at_most*, about that many of each that is not hard."""
        self._operations += 1
        departures: list[Departure] = []
        while self._leaving:
            departures += self._finish(*self._leaving.pop(), now)
        self.quiet_until = inf
        for asked in self._asked:
            if now > asked.quiet_until:
                departures += self._ask(asked, now, None if asked.hard else at_most)
            if asked.quiet_until < self.quiet_until:
                self.quiet_until = asked.quiet_until
        return departures

    def take(self, references: Iterable[str], because: str, now: float) -> list[Departure]:
        """Let go exactly the entries named."""
        taken = [held for reference in references if (held := self._held.get(reference)) is not None]
        return [self._let_go([held], because, now) for held in taken]

    def take_chain(self, reference: str, because: str, now: float) -> list[Departure]:
        """Let go an entry and its chain."""
        held = self._held.get(reference)
        return [] if held is None else [self._let_go_all(held.group, because, now, by_use=False)]

    def leaves_with_others(self, held: Held) -> bool:
        """Say whether *held* has a chain that may go with it: not if something of that is live, or of another scope."""
        others_live = held.group.live > (held.reference in self._live)
        if len(held.group.members) == 1 or others_live:
            return False
        scopes = scopes_in(held.content_type)
        return all(scopes_in(member.content_type) == scopes for member in held.group.members)

    def forget(self, reference: str) -> None:
        """Drop what is not there any more, without a tombstone."""
        if (held := self._held.get(reference)) is not None:
            self._remove(held)

    def put_back(self, held: Held) -> None:
        """Hold again what was taken but could not be deleted."""
        self._tombstones.discard(held.reference)
        described = (held.reference, held.key, held.content_type, held.size, held.first_stored_at, held.chains)
        self._hold(*described, held.last_used, held.last_turn)
        self._wake()

    def why_gone(self, reference: str) -> EvictedError | None:
        """Return what to raise for something that left."""
        return self._tombstones.error(reference)

    def _keep_orders_from_the_start(self, policies: Iterable[Policy]) -> None:
        """Begin, while nothing is held, with the orders that will be asked for."""
        needs = frozenset[str]().union(*map(needs_of, policies))
        if "use" in needs:
            self._orders.by_use()
        if "turn" in needs:
            self._orders.by_turn()

    def _ask(self, asked: Asked, now: float, at_most: int | None) -> list[Departure]:
        departures = []
        for reference in asked.expired(self.view, Moment(now, self.turn, self._live), self._operations, at_most):
            held = self._held.get(reference)
            if held is not None and (asked.hard or not held.group.live):
                departures.append(self._let_go_all(held.group, asked.because, now, by_use=asked.by_use))
        return departures

    def _finish(self, marked: Held, left_at: float, now: float) -> list[Departure]:
        """Let go the rest of a chain that was being deleted when a process ended; what joined it since stays."""
        if self._held.get(marked.reference) is not marked:
            return []
        rest = [held for held in marked.group.members if held is marked or held.first_stored_at < left_at]
        return [self._let_go(rest, "its chain was leaving when a process ended", now)]

    def _wake(self) -> None:
        """Ask every policy next time."""
        self.quiet_until = -inf
        for asked in self._asked:
            asked.quiet_until = -inf

    def _hold(
        self,
        reference: str,
        key: str,
        content_type: str,
        size: int,
        stored_at: float,
        chains: tuple[str, ...],
        last_used: float,
        turn: int,
    ) -> Held:
        if (known := self._held.get(reference)) is not None:
            return known
        self._order += 1
        self.view.total_size += size
        live = int(reference in self._live)
        if self._ties is None:
            alone = Alone(reference, key, content_type, size, stored_at, last_used, turn, self._order, live)
            self._held[reference] = alone
            self._orders.push(alone)
            return alone
        linked = self._held[reference] = Linked(reference, key, content_type, size, stored_at, chains)
        new = Chain(linked, last_used, turn, self._order, live)
        self._tie(self._ties, linked, new)
        return linked

    def _tie(self, ties: Ties, linked: Linked, new: Chain) -> None:
        self._order += 1
        if ties.join(linked, self._order) is new:
            self._orders.push(new)
        else:
            self._orders.changed(linked.group)

    def _let_go_all(self, group: Group, because: str, now: float, *, by_use: bool) -> Departure:
        """Let go a whole group, as is the rule."""
        members: list[Held] = [*group.members]
        departure = self._departure(members, because, now, by_use=by_use)
        group.gone = True
        self.view.total_size -= group.size
        for held in members:
            self._forget(held)
        return departure

    def _let_go(self, members: Sequence[Held], because: str, now: float) -> Departure:
        """Let go some members of a group."""
        departure = self._departure(members, because, now, by_use=False)
        for held in members:
            self._remove(held)
        return departure

    def _departure(self, members: Sequence[Held], because: str, now: float, *, by_use: bool) -> Departure:
        last = members[0]
        if len(members) == 1:
            return Departure([[self._eviction(last, because, now)]], last.last_used, by_use, last.chains)
        steps = [[self._eviction(held, because, now) for held in step] for step in last_to_first(members)]
        return Departure(steps, last.last_used, by_use, last.chains)

    def _eviction(self, held: Held, because: str, now: float) -> Eviction:
        reference = held.reference
        was_live = reference in self._shown
        eviction = Eviction(
            reference, held.key, held.content_type, held.size, held.first_stored_at, now, because, was_live
        )
        self._tombstones.add(eviction)
        return eviction

    def _remove(self, held: Held) -> None:
        self.view.total_size -= held.size
        held.group.remove(held)
        held.group.live -= held.reference in self._live
        self._forget(held)
        if not held.group.gone:
            self._orders.changed(held.group)
            self._wake()

    def _forget(self, held: Held) -> None:
        del self._held[held.reference]
        if held.reference in self._fresh:
            self._fresh.discard(held.reference)
            self._live.discard(held.reference)
        if isinstance(held, Linked) and self._ties is not None:
            self._ties.leave(held)


def plan_evictions(entries: Iterable[Entry], policies: Sequence[Policy], now: Moment) -> list[Eviction]:
    """Return what *policies* drop of *entries*, without doing anything about it."""
    inventory = Inventory(policies)
    inventory.set_live(now.live)
    inventory.turn = now.turn
    for entry in sorted(entries, key=lambda entry: entry.last_used):
        inventory.learn(entry, now.time)
    return [eviction for departure in inventory.evict(now.time) for eviction in departure.evictions]
