"""The contract of an eviction policy, as tests. The test file of a policy of your own is a fixture and its quirks:

class TestImagesLast(PolicyContract):
    @pytest.fixture
    def policy(self):
        return ImagesLast()
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest

from holdfast.eviction import EvictingStorage, Moment, Policy, plan_evictions
from holdfast.eviction.inventory import Inventory
from holdfast.storage import Entry, InMemoryStorage
from holdfast.testing.fakes import FakeClock

__all__ = ["PolicyContract"]

_NOW = 1_000_000.0
_TYPES = ("text/plain", "application/json", "image/png")


@pytest.mark.asyncio
class PolicyContract:
    """What every policy promises. Subclass it and override the fixture `policy`."""

    @pytest.fixture
    def policy(self) -> Policy:
        """The policy to test."""
        raise NotImplementedError("override the fixture `policy`")

    @pytest.fixture
    def moments(self) -> list[Moment]:
        """The moments at which it is asked: now, later, much later; in the first turn, and many turns on."""
        return [Moment(_NOW + later, turn) for later in (0.0, 1e4, 1e9) for turn in (0, 1_000)]

    async def test_drops_nothing_of_nothing(self, policy: Policy, moments: list[Moment]) -> None:
        assert [plan_evictions([], [policy], moment) for moment in moments] == [[]] * len(moments)

    async def test_drops_only_what_it_was_shown(self, policy: Policy, moments: list[Moment]) -> None:
        for moment in moments:
            inventory = _inventory(_entries(300))
            shown = {held.reference: held for held in inventory.held()}
            dropped = list(policy.expired(inventory.view, moment))
            assert all(shown.get(candidate.reference) is candidate for candidate in dropped)

    async def test_the_same_question_gets_the_same_answer(self, policy: Policy, moments: list[Moment]) -> None:
        for moment in moments:
            plans = [plan_evictions(_entries(300), [policy], moment) for _ in range(2)]
            assert plans[0] == plans[1]

    async def test_asking_changes_nothing(self, policy: Policy, moments: list[Moment]) -> None:
        inventory = _inventory(_entries(300))
        before = [_seen(held) for held in inventory.held()]
        for moment in moments:
            list(policy.expired(inventory.view, moment))
            inventory.view.close()
        assert [_seen(held) for held in inventory.held()] == before

    async def test_is_content_once_it_had_its_way(self, policy: Policy, moments: list[Moment]) -> None:
        for moment in moments:
            entries = _entries(300)
            gone = {eviction.reference for eviction in plan_evictions(entries, [policy], moment)}
            left = [entry for entry in entries if entry.reference not in gone]
            assert plan_evictions(left, [policy], moment) == []

    async def test_what_is_live_stays_unless_the_policy_is_hard(self, policy: Policy, moments: list[Moment]) -> None:
        entries = _entries(300)
        live = frozenset(entry.reference for entry in entries[::3])
        for moment in moments:
            gone = plan_evictions(entries, [policy], moment._replace(live=live))
            assert getattr(policy, "hard", False) or live.isdisjoint(eviction.reference for eviction in gone)

    async def test_says_why_in_words_that_complete_a_sentence(self, policy: Policy) -> None:
        because = getattr(policy, "because", "it was dropped")
        assert isinstance(because, str)
        assert because
        assert not because.endswith(".")
        assert getattr(policy, "needs", frozenset()) <= {"use", "turn"}

    async def test_serves_a_storage_without_failing(self, policy: Policy, caplog: pytest.LogCaptureFixture) -> None:
        clock = FakeClock(_NOW)
        storage = EvictingStorage(InMemoryStorage(evict_after_turns=None), policy, clock=clock)
        kept = {}
        with caplog.at_level(logging.ERROR, "holdfast.eviction"):
            for number in range(100):
                kept[await storage.store(f"key_{number}", b"x" * number, _TYPES[number % 3])] = number
                storage.advance_turn()
                clock.advance(60)
        assert caplog.records == []
        async for entry in storage.entries():
            assert await storage.retrieve(entry.reference) == (b"x" * kept[entry.reference], entry.content_type)


def _entries(count: int) -> list[Entry]:
    return list(_some_entries(count, random.Random(7)))


def _some_entries(count: int, chance: random.Random) -> Iterator[Entry]:
    for number in range(count):
        stored_at = _NOW - chance.uniform(0, 2e4)
        last_used = chance.choice((stored_at, chance.uniform(stored_at, _NOW)))
        size = chance.randrange(100_000)
        yield Entry(f"{number}_1_key", f"key_{number}", chance.choice(_TYPES), size, stored_at, last_used)


def _inventory(entries: list[Entry]) -> Inventory:
    inventory = Inventory([])
    for entry in entries:
        inventory.learn(entry, _NOW)
    return inventory


def _seen(held: object) -> tuple[object, ...]:
    names = ("reference", "key", "content_type", "size", "stored_at", "last_used", "last_turn")
    return tuple(getattr(held, name) for name in names)
