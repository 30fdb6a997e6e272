"""Policies: pure decisions, ours and a user's."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from holdfast import Entry, EvictingStorage, InMemoryStorage
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.eviction import (
    Candidate,
    Candidates,
    Chains,
    LeastRecentlyUsed,
    Moment,
    TimeToLive,
    TurnsToLive,
    plan_evictions,
)
from holdfast.testing import FakeClock, PolicyContract


@dataclass(frozen=True)
class ImagesLeaveEarly:
    """A user's own policy."""

    seconds: float
    because = "images are kept only for a while"

    def expired(self, entries: Candidates, now: Moment) -> list[Candidate]:
        old = entries.by_age(before=now.time - self.seconds)
        return [entry for entry in old if entry.content_type.startswith("image/")]


class EverySecond:
    """The least that a policy can be: it looks at everything, and says nothing of itself."""

    def expired(self, entries, now):
        return [entry for entry in entries if entry.size % 2 and entry.last_turn < now.turn]


class TestTimeToLive(PolicyContract):
    @pytest.fixture(params=["stored", "use"])
    def policy(self, request):
        return TimeToLive(seconds=9_000, since=request.param)


class TestLeastRecentlyUsed(PolicyContract):
    @pytest.fixture(params=[{"max_entries": 40}, {"max_bytes": 500_000}, {"max_entries": 90, "max_bytes": 1_000_000}])
    def policy(self, request):
        return LeastRecentlyUsed(**request.param)


class TestTurnsToLive(PolicyContract):
    @pytest.fixture
    def policy(self):
        return TurnsToLive(turns=20)


class TestChains(PolicyContract):
    @pytest.fixture
    def policy(self):
        return Chains()


class TestImagesLeaveEarly(PolicyContract):
    @pytest.fixture
    def policy(self):
        return ImagesLeaveEarly(600)


class TestEverySecond(PolicyContract):
    @pytest.fixture
    def policy(self):
        return EverySecond()


def entry(
    name: str, *, stored: float = 0.0, used: float | None = None, size: int = 10, turn: int | None = None
) -> Entry:
    content_type = "text/plain" if turn is None else f"text/plain; holdfast-kept=k.t{turn}"
    return Entry(f"1_1_{name}", name, content_type, size, stored, stored if used is None else used)


def dropped(entries, *policies, **moment) -> list[str]:
    return [eviction.key for eviction in plan_evictions(entries, policies, Moment(**moment))]


@pytest.mark.parametrize(
    ("policy", "gone"),
    [
        (TimeToLive(seconds=100), ["a", "b"]),
        (TimeToLive(seconds=100, since="use"), ["a"]),
        (TimeToLive(seconds=200), []),
        (LeastRecentlyUsed(max_entries=2), ["a"]),
        (LeastRecentlyUsed(max_entries=1), ["a", "c"]),
        (LeastRecentlyUsed(max_bytes=30), []),
        (LeastRecentlyUsed(max_bytes=29), ["a"]),
        (LeastRecentlyUsed(max_bytes=9), ["a", "c", "b"]),
        (LeastRecentlyUsed(max_entries=2, max_bytes=10), ["a", "c"]),
    ],
)
def test_each_policy_drops_what_it_says(policy, gone):
    entries = [entry("a", stored=0), entry("b", stored=1, used=150), entry("c", stored=100)]
    assert dropped(entries, policy, time=101.5) == gone


def test_something_exactly_as_old_as_allowed_stays():
    assert dropped([entry("a", stored=0)], TimeToLive(seconds=100), time=100.0) == []


def test_turns_are_counted_from_the_last_use():
    entries = [entry("old", turn=1), entry("younger", turn=3), entry("unlabelled")]
    assert dropped(entries, TurnsToLive(turns=5), time=0, turn=7) == ["old"]
    assert dropped(entries, TurnsToLive(turns=5), time=0, turn=6) == []


def test_any_policy_may_drop_and_nothing_is_dropped_twice():
    entries = [entry("a", stored=0), entry("b", stored=50), entry("c", stored=60), entry("d", stored=70)]
    assert dropped(entries, LeastRecentlyUsed(max_entries=3), TimeToLive(seconds=80), time=100.0) == ["a"]
    assert dropped(entries, LeastRecentlyUsed(max_entries=2), TimeToLive(seconds=80), time=100.0) == ["a", "b"]


def test_live_entries_stay_but_a_capacity_takes_them_last_and_oldest_first():
    entries = [entry(name, stored=number) for number, name in enumerate("abcd")]
    live = {entries[0].reference, entries[2].reference}
    assert dropped(entries, TimeToLive(seconds=1), TurnsToLive(turns=1), time=99, turn=9, live=live) == ["b", "d"]
    assert dropped(entries, LeastRecentlyUsed(max_entries=2), time=9, live=live) == ["b", "d"]
    assert dropped(entries, LeastRecentlyUsed(max_entries=1), time=9, live=live) == ["b", "d", "a"]


def test_an_eviction_tells_its_story():
    (eviction,) = plan_evictions([entry("grep", size=51_234)], [TimeToLive(seconds=60)], Moment(3_600.0))
    assert eviction.story == (
        "stored 1970-01-01 00:00:00 UTC, gone since 1970-01-01 01:00:00 UTC because it was stored more than 60 seconds "
        "before; it was 'grep', text/plain, 51,234 bytes"
    )


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: TimeToLive(seconds=0), "seconds must be a positive number, got 0"),
        (lambda: TimeToLive(seconds="1h"), "seconds must be a positive number, got '1h'"),
        (lambda: TimeToLive(seconds=float("nan")), "seconds must be a positive number, got nan"),
        (lambda: TimeToLive(seconds=1, since="read"), "since must be 'stored' or 'use', got 'read'"),
        (lambda: TurnsToLive(turns=0), "turns must be a positive integer, got 0"),
        (lambda: LeastRecentlyUsed(), "needs max_entries, max_bytes or both"),
        (lambda: LeastRecentlyUsed(max_entries=0), "max_entries must be a positive integer, got 0"),
        (lambda: LeastRecentlyUsed(max_bytes=1.5), "max_bytes must be a positive integer, got 1.5"),
        (lambda: storage(max_entries=-1), "max_entries must be a positive integer, got -1"),
        (lambda: storage(ttl=0), "seconds must be a positive number, got 0"),
        (lambda: storage(turns=0), "turns must be a positive integer, got 0"),
        (lambda: storage(tombstones=0), "tombstones must be a positive integer, got 0"),
        (lambda: storage(policies=[TimeToLive]), r"a policy needs a method expired\(entries, now\), got <class"),
        (lambda: storage(policies=[3600]), r"a policy needs a method expired\(entries, now\), got 3600; for example"),
    ],
)
def test_bad_limits_are_refused_when_built(make, advice):
    with pytest.raises((InvalidValueError, InvalidTypeError), match=advice):
        make()


class Needy:
    def __init__(self, needs):
        self.needs = needs

    def expired(self, entries, now):
        return ()


@pytest.mark.parametrize("needs", [frozenset({"uses"}), {"use", "turn", "age"}, ["turn", None], [[]], "use", None])
def test_a_policy_that_needs_what_nobody_writes_down_is_refused_when_built(needs):
    advice = f"needs of a policy must be a set of 'use', 'turn', both or nothing, got {needs!r} in <"
    for build in (lambda: storage(policies=[Needy(needs)]), lambda: EvictingStorage(InMemoryStorage(), Needy(needs))):
        with pytest.raises(InvalidValueError, match=re.escape(advice)):
            build()


@pytest.mark.parametrize("needs", [(), {"use"}, frozenset({"turn"}), ["use", "turn"]])
def test_what_is_written_down_may_be_needed(needs):
    assert storage(policies=[Needy(needs)])


def storage(**options) -> EvictingStorage:
    return EvictingStorage(InMemoryStorage(evict_after_turns=None), **options)


class Failing:
    def expired(self, entries, now):
        raise ZeroDivisionError("a mistake")


async def test_a_policy_that_fails_costs_nothing_and_is_told(caplog):
    failing = storage(policies=[Failing()], max_entries=1)
    await failing.store("a", b"1")
    reference = await failing.store("b", b"2")
    assert await failing.retrieve(reference) == (b"2", "text/plain")
    assert len([entry async for entry in failing.entries()]) == 1
    assert "Failing object at" in caplog.text
    assert "ZeroDivisionError: a mistake" in caplog.text


class Forging:
    def expired(self, entries, now):
        return [entry("made up"), *entries, *entries]


async def test_a_policy_that_makes_up_entries_or_repeats_itself_does_no_harm():
    forging = storage(policies=[Forging()])
    reference = await forging.store("a", b"1")
    with pytest.raises(KeyError):
        await forging.retrieve(reference)


class Counting:
    def __init__(self):
        self.asked = 0

    def expired(self, entries, now):
        self.asked += 1
        return [entry for entry in entries if entry.key == "drop me"]


async def test_a_policy_that_looks_at_everything_is_asked_the_less_often_the_more_there_is():
    clock, counting = FakeClock(), Counting()
    looking = storage(policies=[counting], clock=clock)
    for number in range(900):
        await looking.store(f"key_{number}", b"")
    assert counting.asked >= 900
    for number in range(9_000):
        await looking.store(f"key_{number}", b"")
    assert counting.asked < 6_000
    reference = await looking.store("drop me", b"")
    for _ in range(12):
        looking.advance_turn()
    with pytest.raises(KeyError):
        await looking.retrieve(reference)
