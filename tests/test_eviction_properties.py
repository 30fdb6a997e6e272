"""Random lives of a storage, against a model that is too simple to be wrong, and crashes at random moments."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from holdfast import EvictingStorage, FileStorage, InMemoryStorage
from holdfast.errors import TooLargeError
from holdfast.eviction import Chains, LeastRecentlyUsed, TimeToLive, TurnsToLive, in_chain, new_chain
from holdfast.testing import FakeClock

LIMITS = st.fixed_dictionaries(
    {
        "max_entries": st.none() | st.integers(1, 6),
        "max_bytes": st.none() | st.integers(20, 120),
        "ttl": st.none() | st.integers(3, 30),
        "idle": st.none() | st.integers(3, 20),
        "turns": st.none() | st.integers(1, 4),
        "chains": st.booleans(),
    }
)


def policies(limits):
    if limits["ttl"]:
        yield TimeToLive(seconds=limits["ttl"])
    if limits["idle"]:
        yield TimeToLive(seconds=limits["idle"], since="use")
    if limits["turns"]:
        yield TurnsToLive(turns=limits["turns"])
    if limits["max_entries"] or limits["max_bytes"]:
        yield LeastRecentlyUsed(max_entries=limits["max_entries"], max_bytes=limits["max_bytes"])
    if limits["chains"]:
        yield Chains()


class Thing:
    """An entry of the model."""

    def __init__(self, reference, size, ids, now, turn, use):
        self.reference, self.size, self.ids, self.stored = reference, size, ids, now
        self.used, self.turn, self.use = now, turn, use


class Group:
    """Things that leave together."""

    def __init__(self, things):
        self.things = things

    @property
    def references(self):
        return {thing.reference for thing in self.things}

    def freshest(self, attribute):
        return max(getattr(thing, attribute) for thing in self.things)


class Model:
    """The rules, spelt out: groups, looked through from end to end each time."""

    def __init__(self, limits):
        self.limits = limits
        self.groups: list[Group] = []
        self.departed: list[set[str]] = []
        self.ever: set[str] = set()
        self.seen_to_leave: set[str] = set()
        self.turn = 0
        self.live = None
        self.uses = itertools.count()

    def held(self):
        return [group.references for group in self.groups]

    def references(self):
        return set().union(*self.held())

    def size(self):
        return sum(thing.size for group in self.groups for thing in group.things)

    def ids_of(self, parent):
        """A parent that was seen to leave ties nothing."""
        return {parent} - self.seen_to_leave - {None}

    def joined(self, ids):
        chains = self.limits["chains"]
        return [group for group in self.groups if chains and any(ids & thing.ids for thing in group.things)]

    def too_large(self, size, ids):
        things = [thing for group in self.joined(ids) for thing in group.things]
        return self.exceeds(len(things) + 1, sum(thing.size for thing in things) + size)

    def exceeds(self, count, size):
        return (self.limits["max_entries"] or count) < count or (self.limits["max_bytes"] or size) < size

    def store(self, reference, size, ids, now):
        self.ever.add(reference)
        self.join(Thing(reference, size, ids | {reference}, now, self.turn, next(self.uses)))
        if self.live is not None:
            self.live = self.live | {reference}

    def join(self, thing):
        joined = self.joined(thing.ids)
        self.groups = [group for group in self.groups if group not in joined]
        self.groups.append(Group([*itertools.chain(*(group.things for group in joined)), thing]))

    def use(self, reference, now):
        for thing in itertools.chain(*(group.things for group in self.groups)):
            if thing.reference == reference:
                thing.used, thing.turn, thing.use = now, max(thing.turn, self.turn), next(self.uses)

    def delete(self, reference):
        for group in [group for group in self.groups if reference in group.references]:
            if (group.references - {reference}) & (self.live or set()):
                group.things = [thing for thing in group.things if thing.reference != reference]
            else:
                self.groups.remove(group)

    def is_live(self, group):
        return bool(group.references & (self.live or set()))

    def evict(self, now):
        for limit, age in (
            ("ttl", lambda group: now - group.freshest("stored")),
            ("idle", lambda group: now - group.freshest("used")),
            ("turns", lambda group: self.turn - group.freshest("turn")),
        ):
            if self.limits[limit]:
                self.groups = [g for g in self.groups if self.is_live(g) or age(g) <= self.limits[limit]]
        while self.exceeds(len(self.references()), self.size()):
            leaving = min(self.groups, key=lambda g: (self.is_live(g), g.freshest("used"), g.freshest("use")))
            self.groups.remove(leaving)
            self.departed.append(leaving.references)
        self.seen_to_leave |= self.ever - self.references()

    def restart(self):
        """Forget what no backend keeps: what is live, what left, and ties whose only witness was deleted."""
        self.live = None
        self.ever, self.seen_to_leave = self.references(), set()
        things = [thing for group in self.groups for thing in group.things]
        self.groups = []
        for thing in things:
            self.join(thing)


class EvictionMachine(RuleBasedStateMachine):
    references = Bundle("references")

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()

    @initialize(limits=LIMITS)
    def begin(self, limits):
        self.limits = limits
        self.model = Model(limits)
        self.inner = self.open_inner()
        self.storage = EvictingStorage(self.inner, *policies(limits))
        self.chain = new_chain()

    def open_inner(self):
        return InMemoryStorage(evict_after_turns=None, clock=self.clock)

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def teardown(self):
        with contextlib.suppress(AttributeError):
            self.run(self.storage.aclose())
        self.loop.close()

    def settle(self):
        """Let a moment pass, so that no two uses are of the same time."""
        self.clock.advance(0.5)
        self.model.evict(self.clock())

    @rule(target=references, size=st.integers(0, 60), parent=st.none() | references, in_message=st.booleans())
    def store(self, size, parent, in_message):
        self.settle()
        ids = self.model.ids_of(parent) | ({self.chain} if in_message else set())
        refused = self.model.too_large(size, ids)
        context = in_chain(self.chain) if in_message else contextlib.nullcontext()
        try:
            with context:
                reference = self.run(self.storage.store("key", b"x" * size, parent=parent))
        except TooLargeError:
            assert refused
            return multiple()
        assert not refused
        self.model.store(reference, size, ids, self.clock())
        self.model.evict(self.clock())
        assert reference in self.model.references()
        return reference

    @rule()
    def next_message(self):
        self.chain = new_chain()

    @rule(reference=references)
    def retrieve(self, reference):
        self.settle()
        if reference in self.model.references():
            assert self.run(self.storage.retrieve(reference))[1] == "text/plain"
            self.model.use(reference, self.clock())
            return
        with pytest.raises(KeyError):
            self.run(self.storage.retrieve(reference))

    @rule(seconds=st.integers(1, 12))
    def wait(self, seconds):
        self.clock.advance(seconds)

    @rule()
    def turn(self):
        self.settle()
        self.model.turn += 1
        self.storage.advance_turn(to=self.model.turn)
        self.model.evict(self.clock())

    @rule(live=st.lists(references, max_size=4))
    def set_live(self, live):
        self.clock.advance(0.5)
        self.model.live = set(live)
        self.storage.set_live(live)
        self.model.evict(self.clock())

    @rule(reference=consumes(references))
    def delete(self, reference):
        self.settle()
        self.run(self.storage.delete(reference))
        self.model.delete(reference)
        self.model.evict(self.clock())

    @invariant()
    def both_hold_the_same(self):
        if not hasattr(self, "model"):
            return
        self.settle()
        held = self.run(self.listed())
        assert {entry.reference for entry in held} == self.model.references()
        assert not self.model.exceeds(len(held), sum(entry.size for entry in held))

    async def listed(self):
        return [entry async for entry in self.storage.entries()]


class RestartingMachine(EvictionMachine):
    """The same on files, with processes that end properly now and then."""

    def open_inner(self):
        if not hasattr(self, "folder"):
            self.folder = tempfile.TemporaryDirectory()
        return FileStorage(self.folder.name, clock=self.clock)

    @precondition(lambda self: hasattr(self, "model"))
    @rule()
    def restart(self):
        self.settle()
        self.run(self.storage.aclose())
        self.storage = EvictingStorage(self.open_inner(), *policies(self.limits))
        if self.model.turn:
            self.storage.advance_turn(to=self.model.turn)
        self.model.restart()
        self.chain = new_chain()

    @invariant()
    def the_directory_holds_no_more(self):
        if hasattr(self, "model"):
            self.run(self.storage.aclose())
            held = self.run(self.listed_inside())
            assert held == self.model.references()

    async def listed_inside(self):
        return {entry.reference async for entry in self.open_inner().entries()}

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


TestEviction = EvictionMachine.TestCase
TestEviction.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestEvictionWithRestarts = RestartingMachine.TestCase
TestEvictionWithRestarts.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


class Mortal:
    """Passes calls on until the process dies, which it does before one of them; nothing comes back from then on."""

    notes_uses = True

    def __init__(self, inner, calls):
        self._inner, self._calls, self.clock = inner, calls, inner.clock
        self.died = asyncio.Event()

    async def _call(self, verb, *args):
        if self._calls == 0:
            self.died.set()
            await asyncio.Event().wait()
        self._calls -= 1
        await asyncio.sleep(0)
        return await getattr(self._inner, verb)(*args)

    async def store(self, key, content, content_type="text/plain"):
        return await self._call("store", key, content, content_type)

    async def retrieve(self, reference):
        return await self._call("retrieve", reference)

    async def delete(self, reference):
        await self._call("delete", reference)

    async def inspect(self, reference):
        return await self._call("inspect", reference)

    async def touch(self, reference, used_at, content_type=None):
        await self._call("touch", reference, used_at, content_type)

    async def entries(self):
        for entry in [entry async for entry in self._inner.entries()]:
            yield entry


@settings(max_examples=300, deadline=None)
@given(
    parents=st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=30),
    calls=st.integers(0, 90),
    max_entries=st.integers(4, 9),
)
def test_a_crash_at_any_moment_loses_no_live_entry_and_leaks_nothing_past_the_next_sweep(parents, calls, max_entries):
    asyncio.run(crash_and_recover(parents, calls, max_entries))


async def crash_and_recover(parents, calls, max_entries):
    clock = FakeClock()
    durable = InMemoryStorage(evict_after_turns=None, clock=clock)
    rules = [Chains(), LeastRecentlyUsed(max_entries=max_entries)]
    stored = Model(dict.fromkeys(("max_bytes", "ttl", "idle", "turns")) | {"max_entries": max_entries, "chains": True})
    mortal = Mortal(durable, calls)
    life = asyncio.create_task(live(EvictingStorage(mortal, *rules), clock, parents, stored))
    death = asyncio.create_task(mortal.died.wait())
    await asyncio.wait([life, death], return_when=asyncio.FIRST_COMPLETED)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

    async with EvictingStorage(durable, *rules) as recovered:
        recovered.set_live(stored.live or ())
        await recovered.sweep()
        kept = {entry.reference async for entry in durable.entries()}
        assert kept == {entry.reference async for entry in recovered.entries()}
    assert len(kept) <= max_entries
    for members in stored.departed + stored.held():
        assert members <= kept or not members & kept
    assert stored.live is None or stored.live <= kept


async def live(storage, clock, parents, stored):
    """Store, with some of the earlier as parents; only the latest, with its chain, is visible at any time."""
    references = []
    for number in parents:
        clock.advance(1)
        parent = references[number % len(references)] if references and number is not None else None
        with contextlib.suppress(TooLargeError):
            reference = await storage.store("key", b"x", parent=parent)
            references.append(reference)
            stored.store(reference, 1, stored.ids_of(parent), clock())
            stored.evict(clock())
            stored.live = {reference}
            storage.set_live([reference])
    await storage.aclose()
