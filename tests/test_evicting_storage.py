"""EvictingStorage: a storage like any other, that stays within bounds."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import threading
import tracemalloc
from contextlib import suppress
from datetime import timedelta

import pytest
from own_contract import OwnStorageContract

from holdfast import Entry, EvictingStorage, FileStorage, InMemoryStorage, ScopedStorage
from holdfast.errors import (
    EvictedError,
    InvalidTypeError,
    NotFoundError,
    SharedStorageError,
    StorageAccessError,
    StorageError,
    StorageFullError,
    TooLargeError,
)
from holdfast.eviction import Chains, LeastRecentlyUsed, TimeToLive, TurnsToLive, in_chain, new_chain
from holdfast.storage import (
    SupportsClear,
    SupportsDelete,
    SupportsEntries,
    SupportsInspect,
    SupportsRange,
    SupportsTouch,
)
from holdfast.testing import FakeClock, FlakyStorage, SlowStorage, StorageContract, storage_machine


class FailingDeletes:
    """Fails the first deletions, as many as told."""

    def __init__(self, inner, failures):
        self.inner, self.failures = inner, failures
        self.store, self.retrieve, self.entries = inner.store, inner.retrieve, inner.entries

    async def delete(self, reference):
        if self.failures:
            self.failures -= 1
            raise StorageAccessError("injected fault")
        await self.inner.delete(reference)


class Minimal:
    """What any user's backend may be: it can store, retrieve and delete."""

    def __init__(self):
        self.held = {}

    async def store(self, key, content, content_type="text/plain"):
        reference = f"minimal:{len(self.held)}"
        self.held[reference] = (content, content_type)
        return reference

    async def retrieve(self, reference):
        return self.held[reference]

    async def delete(self, reference):
        self.held.pop(reference, None)


def memory() -> InMemoryStorage:
    return InMemoryStorage(evict_after_turns=None)


async def keys(storage) -> list[str]:
    return sorted([entry.key async for entry in storage.entries()])


class TestOverMemory(OwnStorageContract):
    @pytest.fixture
    def storage(self):
        return EvictingStorage(memory(), max_entries=1_000, ttl=3_600)


class TestWithEveryPolicyOverFiles(OwnStorageContract):
    @pytest.fixture
    async def storage(self, tmp_path):
        async with EvictingStorage(
            FileStorage(tmp_path), max_entries=1_000, max_bytes=100_000_000, ttl=3_600, turns=20, chains=True
        ) as storage:
            yield storage


class TestOverAScope(OwnStorageContract):
    @pytest.fixture
    async def storage(self, tmp_path):
        async with EvictingStorage(ScopedStorage(FileStorage(tmp_path), "session"), turns=20, chains=True) as storage:
            yield storage


class TestUnderAScope(OwnStorageContract):
    @pytest.fixture
    def storage(self):
        return ScopedStorage(EvictingStorage(memory(), turns=20, chains=True), "session")


class TestTwice(OwnStorageContract):
    @pytest.fixture
    def storage(self):
        return EvictingStorage(EvictingStorage(memory(), turns=20, chains=True), turns=10, chains=True)


class TestTwiceWithPlainPoliciesInside(StorageContract):
    @pytest.fixture
    def storage(self):
        return EvictingStorage(EvictingStorage(memory(), ttl=99), turns=10, chains=True)


class TestOverTheLeastThatCanDelete(StorageContract):
    lacks = (SupportsTouch,)

    @pytest.fixture
    async def storage(self):
        async with EvictingStorage(Minimal(), max_entries=1_000, turns=20) as storage:
            yield storage


TestMachineOverMemory = storage_machine(lambda: EvictingStorage(memory(), ttl=3_600, turns=5, chains=True)).TestCase


def test_offers_every_verb():
    for verb in (SupportsClear, SupportsDelete, SupportsEntries, SupportsInspect, SupportsRange):
        assert isinstance(EvictingStorage(memory()), verb)


# --- short forms and construction


async def test_the_short_form_of_the_seed():
    storage = EvictingStorage(InMemoryStorage(evict_after_turns=None), max_entries=100)
    references = [await storage.store(f"key_{number}", b"x") for number in range(250)]
    assert len(await keys(storage)) == 100
    assert await storage.retrieve(references[-1]) == (b"x", "text/plain")


async def test_policies_come_as_arguments_as_a_list_and_in_short():
    clock = FakeClock()
    storage = EvictingStorage(
        memory(), TurnsToLive(turns=2), policies=[TimeToLive(seconds=10)], max_entries=2, clock=clock
    )
    first = await storage.store("first", b"")
    clock.advance(11)
    await storage.store("second", b"")
    with pytest.raises(EvictedError, match="more than 10 seconds"):
        await storage.retrieve(first)
    for _ in range(3):
        storage.advance_turn()
    assert await keys(storage) == []


async def test_what_cannot_delete_is_refused_when_built():
    class Forever:
        async def store(self, key, content, content_type="text/plain"): ...

        async def retrieve(self, reference): ...

    for unable in (Forever(), ScopedStorage(Forever(), "session"), EvictingStorageLike(Forever())):
        with pytest.raises(InvalidTypeError, match="needs a storage that can delete, and Forever has no `async delete"):
            EvictingStorage(unable, max_entries=1)


class EvictingStorageLike(Minimal):
    def __init__(self, inner):
        self.inner = inner


async def test_without_policies_only_what_is_deleted_leaves():
    storage = EvictingStorage(memory())
    references = [await storage.store("key", b"x") for _ in range(10)]
    for _ in range(100):
        storage.advance_turn()
    await storage.delete(references[0])
    with pytest.raises(EvictedError, match="because it was deleted"):
        await storage.retrieve(references[0])
    assert len(await keys(storage)) == 9


# --- age, capacity, turns


async def test_time_to_live_counts_from_storing_or_from_use():
    clock = FakeClock()
    stored, used = (
        EvictingStorage(memory(), TimeToLive(seconds=10, since=since), clock=clock) for since in ("stored", "use")
    )
    in_stored, in_used = await stored.store("a", b"1"), await used.store("a", b"1")
    clock.advance(8)
    await stored.retrieve(in_stored)
    await used.retrieve_range(in_used, 0, 1)
    clock.advance(8)
    with pytest.raises(EvictedError):
        await stored.retrieve(in_stored)
    assert await used.retrieve(in_used) == (b"1", "text/plain")
    clock.advance(11)
    with pytest.raises(EvictedError, match="it was last used more than 10 seconds before"):
        await used.retrieve(in_used)


async def test_expired_content_is_gone_without_anybody_storing_or_listing():
    clock = FakeClock()
    inner = memory()
    storage = EvictingStorage(inner, ttl=10, clock=clock)
    reference = await storage.store("a", b"1")
    clock.advance(11)
    storage.advance_turn()
    with pytest.raises(NotFoundError):
        await inner.retrieve(reference)


async def test_a_time_to_live_may_be_a_timedelta():
    clock = FakeClock()
    storage = EvictingStorage(memory(), ttl=timedelta(minutes=1), clock=clock)
    await storage.store("a", b"")
    clock.advance(59)
    assert await keys(storage) == ["a"]
    clock.advance(2)
    assert await keys(storage) == []


async def test_the_least_recently_used_leave_first():
    storage = EvictingStorage(memory(), max_entries=3)
    a, b, c = [await storage.store(key, b"x") for key in "abc"]
    await storage.retrieve(a)
    await storage.retrieve_range(b, 0, 1)
    await storage.store("d", b"x")
    assert await keys(storage) == ["a", "b", "d"]
    with pytest.raises(EvictedError) as caught:
        await storage.retrieve(c)
    assert caught.value.because == "it was the least recently used of more than 3 entries"


async def test_inspecting_and_listing_are_no_use():
    storage = EvictingStorage(memory(), max_entries=2)
    a = await storage.store("a", b"x")
    await storage.store("b", b"x")
    assert (await storage.inspect(a)).key == "a"
    await keys(storage)
    await storage.store("c", b"x")
    assert await keys(storage) == ["b", "c"]


async def test_bytes_are_bounded_and_what_is_larger_than_the_bound_is_refused():
    storage = EvictingStorage(memory(), max_bytes=100)
    await storage.store("a", b"x" * 60)
    await storage.store("b", b"x" * 40)
    with pytest.raises(TooLargeError, match=r"cannot store 'c': it would be 101 bytes, but the limit is 100 bytes"):
        await storage.store("c", b"x" * 101)
    assert await keys(storage) == ["a", "b"]
    await storage.store("d", b"x" * 100)
    assert await keys(storage) == ["d"]
    assert issubclass(TooLargeError, OSError)


async def test_turns_to_live_count_turns_without_use():
    storage = EvictingStorage(memory(), turns=2)
    a, b = await storage.store("a", b"1"), await storage.store("b", b"2")
    storage.advance_turn()
    storage.advance_turn()
    await storage.retrieve(a)
    storage.advance_turn()
    with pytest.raises(EvictedError, match="nobody stored or read it for more than 2 turns"):
        await storage.retrieve(b)
    assert await storage.retrieve(a) == (b"1", "text/plain")


async def test_the_turns_of_an_inner_storage_count_here_and_spare_what_is_visible():
    storage = EvictingStorage(InMemoryStorage(evict_after_turns=1), max_entries=10)
    shown, other = await storage.store("shown", b"1"), await storage.store("other", b"2")
    storage.set_live([shown])
    for _ in range(5):
        storage.advance_turn()
    with pytest.raises(
        EvictedError, match="nobody stored or read it for more than 1 turns; it was 'other', text/plain"
    ):
        await storage.retrieve(other)
    assert await storage.retrieve(shown) == (b"1", "text/plain")


async def test_saying_the_same_turn_again_changes_nothing():
    storage = EvictingStorage(EvictingStorage(memory(), turns=3), max_entries=10)
    reference = await storage.store("a", b"1")
    for _ in range(20):
        storage.advance_turn(to=1)
    assert await storage.retrieve(reference) == (b"1", "text/plain")
    with pytest.raises(ValueError, match="to must be the number of a turn, at most 1,000,000,000,000, got"):
        storage.advance_turn(to=10**16)


async def test_what_is_visible_is_kept_by_the_inner_storage_too():
    clock = FakeClock()
    storage = EvictingStorage(EvictingStorage(memory(), ttl=5, clock=clock), max_entries=10)
    reference = await storage.store("a", b"1")
    storage.set_live([reference])
    clock.advance(100)
    assert await storage.retrieve(reference) == (b"1", "text/plain")
    with pytest.raises(TypeError, match="references must be a collection of references, got one string"):
        storage.set_live(reference)


async def test_one_agent_for_each_storage_that_counts_turns():
    storage, shared = EvictingStorage(memory(), turns=2), EvictingStorage(memory(), max_entries=5)
    first, second = object(), object()
    for owner in (first, first):
        storage.bind(owner)
    with pytest.raises(SharedStorageError, match="give each agent its own"):
        storage.bind(second)
    for owner in (first, second):
        shared.bind(owner)


# --- live references


async def test_what_is_visible_in_the_conversation_is_not_evicted_by_age_or_turns():
    clock = FakeClock()
    storage = EvictingStorage(memory(), ttl=10, turns=2, clock=clock)
    a, b = await storage.store("a", b"1"), await storage.store("b", b"2")
    storage.set_live([a])
    clock.advance(100)
    for _ in range(10):
        storage.advance_turn()
    assert await keys(storage) == ["a"]
    with pytest.raises(EvictedError):
        await storage.retrieve(b)
    storage.set_live([])
    with pytest.raises(EvictedError):
        await storage.retrieve(a)


async def test_a_capacity_takes_what_is_visible_last_and_says_so(caplog):
    storage = EvictingStorage(memory(), max_entries=2)
    a, b = await storage.store("a", b"1"), await storage.store("b", b"2")
    storage.set_live([a])
    await storage.store("c", b"3")
    assert await keys(storage) == ["a", "c"]
    assert caplog.records == []
    await storage.store("d", b"4")
    assert await keys(storage) == ["c", "d"]
    with pytest.raises(EvictedError, match="although it was still visible in the conversation"):
        await storage.retrieve(a)
    assert "evicted what is still visible in the conversation" in caplog.text
    assert b != a


async def test_what_was_stored_since_counts_as_visible_until_told_otherwise():
    clock = FakeClock()
    storage = EvictingStorage(memory(), ttl=10, clock=clock)
    storage.set_live([])
    fresh = await storage.store("fresh", b"1")
    clock.advance(11)
    assert await storage.retrieve(fresh) == (b"1", "text/plain")
    storage.set_live([])
    with pytest.raises(EvictedError):
        await storage.retrieve(fresh)


async def test_unknown_live_references_are_fine_and_count_once_they_are_stored(tmp_path):
    clock = FakeClock()
    files = FileStorage(tmp_path, clock=clock)
    reference = await files.store("a", b"1")
    clock.advance(100)
    storage = EvictingStorage(files, ttl=10)
    storage.set_live([reference, "nothing", ""])
    assert await storage.retrieve(reference) == (b"1", "text/plain")
    await storage.aclose()


# --- chains


async def test_a_chain_leaves_together_and_is_as_fresh_as_its_freshest_member():
    clock = FakeClock()
    storage = EvictingStorage(memory(), Chains(), TimeToLive(seconds=10, since="use"), clock=clock)
    parent = await storage.store("parent", b"1")
    await storage.store("other", b"2")
    clock.advance(8)
    child = await storage.store("child", b"3", parent=parent)
    clock.advance(8)
    assert await keys(storage) == ["child", "parent"]
    await storage.retrieve(parent)
    clock.advance(8)
    assert await keys(storage) == ["child", "parent"]
    clock.advance(11)
    assert await keys(storage) == []
    with pytest.raises(EvictedError):
        await storage.retrieve(child)


async def test_parallel_calls_of_one_message_are_a_chain():
    storage = EvictingStorage(memory(), max_entries=3, chains=True)
    message = new_chain()

    async def call(name):
        with in_chain(message):
            return await storage.store(name, b"x")

    await asyncio.gather(call("a"), call("b"))
    await storage.store("c", b"x")
    await storage.store("d", b"x")
    assert await keys(storage) == ["c", "d"]


async def test_a_call_that_names_an_earlier_reference_joins_its_chain(tmp_path):
    storage = EvictingStorage(FileStorage(tmp_path / "with blanks"), max_entries=3, chains=True)
    first = await storage.store("first", b"x")
    arguments = {"command": ["grep", {"-e": f"error {first}."}], "limit": 10}
    with in_chain(new_chain(), arguments=arguments):
        await storage.store("second", b"x")
    with in_chain(arguments="nothing known is named here: 1_1_first.txt"):
        await storage.store("third", b"x")
    await storage.store("fourth", b"x")
    assert await keys(storage) == ["fourth", "third"]
    await storage.aclose()


async def test_a_nested_agent_s_calls_join_the_call_that_runs_it():
    storage = EvictingStorage(memory(), max_entries=4, chains=True)

    async def nested_agent():
        with in_chain(new_chain()):
            await storage.store("inner_1", b"x")
        with in_chain(new_chain()):
            await asyncio.create_task(storage.store("inner_2", b"x"))

    with in_chain(new_chain()):
        await asyncio.create_task(nested_agent())
        await storage.store("outer", b"x")
    await storage.store("later", b"x")
    assert await keys(storage) == ["inner_1", "inner_2", "later", "outer"]
    await storage.store("much later", b"x")
    assert await keys(storage) == ["later", "much later"]


async def test_chains_that_an_entry_ties_together_are_one():
    storage = EvictingStorage(memory(), max_entries=5, chains=True)
    a, b = await storage.store("a", b"x"), await storage.store("b", b"x")
    with in_chain(arguments=[a, b]):
        await storage.store("both", b"x")
    await storage.store("c", b"x")
    await storage.store("d", b"x")
    await storage.retrieve(a)
    await storage.store("e", b"x")
    assert await keys(storage) == ["a", "b", "both", "d", "e"]


async def test_one_visible_member_keeps_the_whole_chain():
    clock = FakeClock()
    storage = EvictingStorage(memory(), ttl=10, chains=True, clock=clock)
    a = await storage.store("a", b"x")
    b = await storage.store("b", b"x", parent=a)
    storage.set_live([b])
    clock.advance(100)
    assert await keys(storage) == ["a", "b"]
    storage.set_live([])
    assert await keys(storage) == []


async def test_a_chain_larger_than_the_capacity_is_refused_and_stays_whole():
    storage = EvictingStorage(memory(), max_entries=3, max_bytes=100, chains=True)
    await storage.store("other", b"x")
    a = await storage.store("a", b"x" * 40)
    b = await storage.store("b", b"x" * 40, parent=a)
    with pytest.raises(
        TooLargeError, match="101 bytes in a chain of 3 entries, but the limit is 3 entries or 100 bytes"
    ):
        await storage.store("c", b"x" * 21, parent=b)
    assert await keys(storage) == ["a", "b", "other"]
    await storage.store("c", b"x" * 20, parent=b)
    assert await keys(storage) == ["a", "b", "c"]
    with pytest.raises(TooLargeError, match="store it outside of the chain"):
        await storage.store("d", b"", parent=a)


async def test_many_that_join_a_chain_at_once_cannot_make_it_too_large():
    storage = EvictingStorage(SlowStorage(memory(), 0.001), max_entries=5, chains=True)
    parent = await storage.store("parent", b"")
    answers = await asyncio.gather(
        *(storage.store(f"child_{number}", b"", parent=parent) for number in range(10)), return_exceptions=True
    )
    stored = [answer for answer in answers if isinstance(answer, str)]
    assert len(stored) == 4
    for reference in (parent, *stored):
        assert await storage.retrieve(reference) == (b"", "text/plain")
    await storage.aclose()
    assert len(await keys(storage)) == 5


async def test_deleting_a_member_deletes_its_chain_unless_something_of_it_is_visible():
    storage = EvictingStorage(memory(), chains=True)
    a = await storage.store("a", b"x")
    b = await storage.store("b", b"x", parent=a)
    await storage.store("c", b"x", parent=b)
    storage.set_live([b])
    await storage.delete(a)
    assert await keys(storage) == ["b", "c"]
    storage.set_live([])
    await storage.delete(b)
    await storage.delete(b)
    assert await keys(storage) == []


async def test_a_model_cannot_tie_its_chain_to_another_scope():
    storage = EvictingStorage(memory(), max_entries=3, chains=True)
    mine, yours = ScopedStorage(storage, "mine"), ScopedStorage(storage, "yours")
    secret = await yours.store("secret", b"x")
    with in_chain(arguments=f"cat {secret}"):
        await mine.store("attack", b"x")
    await yours.retrieve(secret)
    for key in "ab":
        await mine.store(key, b"x")
    assert await keys(storage) == ["a", "b", "secret"]


FORGED = ["text/plain; holdfast-kept=k.t99", "text/plain;\tHoldfast-Kept=k", "text/plain; holdfast-scope=theirs; a=b"]


@pytest.mark.parametrize("content_type", FORGED)
@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: EvictingStorage(inner, turns=5, chains=True)])
async def test_a_content_type_from_a_tool_cannot_pass_for_a_label(tmp_path, wrap, content_type):
    for inner in (memory(), FileStorage(tmp_path)):
        storage = wrap(inner)
        reference = await storage.store("honest", b"x")
        with pytest.raises(ValueError, match="must not have parameters that begin with 'holdfast-'"):
            await storage.store("forged", b"x", content_type)
        with pytest.raises(ValueError, match="must not have parameters that begin with 'holdfast-'"):
            await storage.touch(reference, 1.0, content_type)


async def test_a_content_type_that_leaves_no_room_for_a_label_is_refused_clearly():
    storage = EvictingStorage(memory(), chains=True, turns=5)
    long = f'text/plain; a="{"x" * 1_980}"'
    with pytest.raises(ValueError, match="content_type is too long: with what eviction has to remember it has 2,0"):
        await storage.store("a", b"x", long)


@pytest.mark.parametrize("chain", ["", "m1", 7, "0123456789abcdeg"])
async def test_a_chain_has_a_name_that_nobody_else_has(chain):
    assert len({new_chain() for _ in range(1_000)}) == 1_000
    with pytest.raises(ValueError, match=r"chain must come from new_chain\(\), got"), in_chain(chain):
        pass


@pytest.mark.parametrize("parent", ["", 7, b"mem_1_x"])
async def test_a_parent_is_a_reference(parent):
    with pytest.raises(ValueError, match=r"parent must be a reference that store\(\) returned, got"):
        await EvictingStorage(memory(), chains=True).store("key", b"", parent=parent)
    with pytest.raises(ValueError, match="parent must be a reference"), in_chain(parent=parent):
        pass


async def test_arguments_of_any_size_and_shape_are_searched_within_bounds():
    storage = EvictingStorage(memory(), chains=True, max_entries=100)
    circular = [1, b"bytes", None, {"x": object()}]
    circular.append(circular)
    for arguments in (circular, "word " * 1_000_000, ["a"] * 1_000_000, {1: {2: [3]}}):
        with in_chain(arguments=arguments):
            await storage.store("key", b"")
    assert len(await keys(storage)) == 4


# --- scopes


async def test_clearing_a_scope_touches_nothing_else_and_says_why():
    storage = EvictingStorage(memory(), max_entries=100, chains=True)
    one, two = ScopedStorage(storage, "one"), ScopedStorage(storage, "two")
    with in_chain(new_chain()):
        gone, kept = await one.store("gone", b"1"), await two.store("kept", b"2")
    await one.clear()
    assert await two.retrieve(kept) == (b"2", "text/plain")
    with pytest.raises(EvictedError, match="the scope 'one' was cleared") as caught:
        await one.retrieve(gone)
    assert caught.value.content_type == "text/plain"
    with pytest.raises(NotFoundError, match="it was not stored in the scope 'two'") as refused:
        await two.retrieve(gone)
    assert "gone since" not in str(refused.value)
    assert not isinstance(refused.value, EvictedError)


# --- tombstones


async def test_the_story_of_what_left():
    clock = FakeClock(1_000_000_000.0)
    storage = EvictingStorage(memory(), ttl=60, clock=clock)
    reference = await storage.store("tooluse_grep_1", b"x" * 51_234, "application/json")
    clock.advance(3_600)
    with pytest.raises(EvictedError) as caught:
        await storage.retrieve(reference)
    error = caught.value
    assert (error.key, error.content_type, error.size) == ("tooluse_grep_1", "application/json", 51_234)
    assert (error.stored_at, error.evicted_at) == (1_000_000_000.0, 1_000_003_600.0)
    assert isinstance(error, KeyError)
    assert error.reason == (
        "stored 2001-09-09 01:46:40 UTC, gone since 2001-09-09 02:46:40 UTC because it was stored more than 60 seconds "
        "before; it was 'tooluse_grep_1', application/json, 51,234 bytes"
    )


async def test_tombstones_are_bounded():
    storage = EvictingStorage(memory(), max_entries=1, tombstones=3)
    references = [await storage.store("key", b"x") for _ in range(10)]
    for reference in references[:6]:
        with pytest.raises(NotFoundError) as caught:
            await storage.retrieve(reference)
        assert not isinstance(caught.value, EvictedError)
    for reference in references[6:9]:
        with pytest.raises(EvictedError):
            await storage.retrieve(reference)


async def test_a_listener_hears_of_every_eviction_and_cannot_break_a_store(caplog):
    heard = []

    def listen(eviction):
        heard.append((eviction.key, eviction.because))
        raise RuntimeError("a listener's mistake")

    storage = EvictingStorage(memory(), max_entries=1, on_evict=listen)
    await storage.store("a", b"")
    reference = await storage.store("b", b"")
    await storage.delete(reference)
    assert heard == [("a", "it was the least recently used of more than 1 entries"), ("b", "it was deleted")]
    assert "on_evict failed" in caplog.text


# --- in the background


async def test_evicting_never_delays_a_store():
    class StuckDeletes(Minimal):
        async def delete(self, reference):
            await asyncio.Event().wait()

    storage = EvictingStorage(StuckDeletes(), max_entries=2)
    stores = [storage.store(f"key_{number}", b"x") for number in range(100)]
    await asyncio.wait_for(asyncio.gather(*stores), timeout=10)
    assert len(await keys(storage)) == 2


async def test_a_deletion_that_fails_is_tried_again(caplog):
    inner = memory()
    storage = EvictingStorage(FailingDeletes(inner, 3), max_entries=1, retry_delays=(0, 0, 0, 0))
    a = await storage.store("a", b"1")
    await storage.store("b", b"2")
    await storage.aclose()
    assert await keys(inner) == ["b"]
    assert f"cannot delete evicted {a}: injected fault" in caplog.text


async def test_a_deletion_that_keeps_failing_is_raised_by_aclose_and_tried_by_the_next_sweep():
    inner = memory()
    failing = FailingDeletes(inner, 4)
    storage = EvictingStorage(failing, max_entries=1, retry_delays=(0,))
    await storage.store("a", b"1")
    await storage.store("b", b"2")
    with pytest.raises(StorageError, match="1 evicted contents could not be deleted, the first of them mem_"):
        await storage.aclose()
    await storage.sweep()
    assert await keys(inner) == ["b"]


async def test_a_store_that_fails_evicts_nothing():
    inner = memory()
    flaky = FlakyStorage(inner, fail_on=())
    storage = EvictingStorage(flaky, max_entries=2)
    for key in "ab":
        await storage.store(key, b"")
    await keys(storage)
    flaky._fail_on = {flaky.calls + 1}
    with pytest.raises(StorageAccessError):
        await storage.store("c", b"")
    assert await keys(inner) == ["a", "b"]


async def test_a_deletion_that_fails_when_asked_for_raises_and_keeps_the_entry():
    inner = memory()
    storage = EvictingStorage(FailingDeletes(inner, 1), max_entries=5)
    a = await storage.store("a", b"1")
    await storage.store("b", b"2")
    with pytest.raises(StorageAccessError):
        await storage.delete(a)
    assert await storage.retrieve(a) == (b"1", "text/plain")


def test_turns_may_pass_outside_of_an_event_loop(tmp_path):
    storage = EvictingStorage(FileStorage(tmp_path), turns=1)
    asyncio.run(storage.store("a", b"1"))
    for _ in range(3):
        storage.advance_turn()
    asyncio.run(storage.aclose())
    assert list(tmp_path.iterdir()) == []


def test_a_loop_that_ends_too_soon_is_no_reason_to_complain(tmp_path, caplog):
    class Slow(FileStorage):
        seconds = 60

        async def delete(self, reference):
            await asyncio.sleep(self.seconds)
            await super().delete(reference)

    storage = EvictingStorage(slow := Slow(tmp_path), max_entries=1)
    loop = asyncio.new_event_loop()
    for key in "abc":
        loop.run_until_complete(storage.store(key, b"x"))
    loop.run_until_complete(asyncio.sleep(0.1))
    loop.close()
    del loop
    slow.seconds = 0
    asyncio.run(storage.aclose())
    gc.collect()
    assert caplog.records == []
    assert len([path for path in tmp_path.iterdir() if not path.name.startswith(".")]) == 1


def test_one_storage_serves_threads_with_loops_of_their_own(tmp_path):
    storage = EvictingStorage(FileStorage(tmp_path), max_entries=20)

    async def work():
        for number in range(50):
            reference = await storage.store(f"key_{number}", b"x")
            # The other threads may have stored twenty since.
            with suppress(EvictedError):
                await storage.retrieve(reference)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(storage.aclose())
    assert len([path for path in tmp_path.iterdir() if not path.name.startswith(".")]) == 20


async def test_the_rules_hold_with_capacity_and_everything(caplog):
    policies = [
        LeastRecentlyUsed(max_entries=7, max_bytes=500),
        TimeToLive(seconds=1e6),
        TurnsToLive(turns=50),
        Chains(),
    ]
    storage = EvictingStorage(memory(), policies=policies)
    for number in range(300):
        await storage.store(f"key_{number}", b"x" * (number % 90))
        entries = [entry async for entry in storage.entries()]
        assert len(entries) <= 7
        assert sum(entry.size for entry in entries) <= 500
    assert caplog.records == []


# --- users' mistakes, and backends that behave oddly


class Oddly(Minimal):
    """Returns something from delete, and complains about what is not there."""

    async def delete(self, reference):
        return self.held.pop(reference) is not None


async def test_a_backend_s_delete_may_return_something_and_complain_about_nothing():
    inner = Oddly()
    storage = EvictingStorage(inner, max_entries=2, retry_delays=())
    references = [await storage.store("key", b"x") for _ in range(2)]
    await storage.delete(references[0])
    await storage.delete(references[0])
    inner.held.clear()
    for _ in range(3):
        await storage.store("key", b"x")
    await storage.aclose()
    assert len(inner.held) == len(await keys(storage)) == 2


async def test_what_cannot_be_deleted_is_counted_once(caplog):
    storage = EvictingStorage(FailingDeletes(memory(), 10**9), max_entries=1, retry_delays=())
    for key in "abc":
        await storage.store(key, b"")
    for _ in range(3):
        with pytest.raises(StorageError, match=r"^2 evicted contents could not be deleted"):
            await storage.aclose()


async def test_a_storage_in_a_tight_loop_stays_bounded():
    for inner in (
        ScopedStorage(memory(), "session"),
        EvictingStorage(memory(), ttl=99),
        Minimal(),
        FailingDeletes(memory(), 0),
    ):
        storage = EvictingStorage(inner, max_entries=10)
        for _ in range(5_000):
            await storage.store("key", b"x")
        held = len(inner.held) if isinstance(inner, Minimal) else len(await keys(inner))
        assert held <= 10 + 1_100
        await storage.aclose()


@pytest.mark.extended
async def test_bookkeeping_is_bounded_however_long_it_goes_on():
    storage = EvictingStorage(memory(), max_entries=10, ttl=3_600, turns=5, chains=True)
    anchor = await storage.store("anchor", b"")
    storage.set_live([anchor])

    async def live_on(times):
        for number in range(times):
            reference = await storage.store("k" * 100_000, b"", parent=anchor if number % 3 == 0 else None)
            await storage.evict([reference], "the test says so")
            await storage.retrieve(anchor)
            storage.advance_turn()
            storage.set_live([anchor])
            with in_chain(new_chain()):
                await storage.store("chained", b"x")

    await live_on(3_000)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    await live_on(6_000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 6_000_000


async def test_a_chain_whose_deletion_fails_or_is_cancelled_is_deleted_in_the_end():
    inner = memory()
    failing = FailingDeletes(inner, 1)
    storage = EvictingStorage(failing, chains=True, retry_delays=(0,))
    a = await storage.store("a", b"x")
    await storage.store("b", b"x", parent=a)
    with pytest.raises(StorageAccessError):
        await storage.delete(a)
    await storage.aclose()
    assert await keys(inner) == []
    c = await storage.store("c", b"x")
    await storage.store("d", b"x", parent=c)
    deleting = asyncio.create_task(storage.delete(c))
    await asyncio.sleep(0)
    deleting.cancel()
    await asyncio.wait([deleting])
    await storage.aclose()
    assert await keys(inner) in ([], ["c", "d"])


async def test_a_chain_that_cannot_be_marked_is_deleted_all_the_same(tmp_path, caplog):
    class Full(FileStorage):
        async def touch(self, reference, used_at, content_type=None):
            raise StorageFullError("no space left")

    async with EvictingStorage(Full(tmp_path), chains=True, max_entries=2) as storage:
        a = await storage.store("a", b"x")
        await storage.store("b", b"x", parent=a)
        await storage.store("c", b"x")
    assert await keys(FileStorage(tmp_path)) == ["c"]
    assert "so it is deleted without: no space left" in caplog.text


async def test_cancelled_stores_are_bounded_too(tmp_path):
    storage = EvictingStorage(FileStorage(tmp_path), max_entries=10)
    for number in range(100):
        task = asyncio.create_task(storage.store("key", b"x"))
        await asyncio.sleep(0.0005 * (number % 4))
        task.cancel()
        await asyncio.wait([task])
    await storage.aclose()
    await storage.sweep()
    assert len(await keys(FileStorage(tmp_path))) <= 10


async def test_a_listing_that_never_succeeds_does_not_stop_eviction():
    class Unlistable(Minimal):
        listings = 0

        async def entries(self):
            self.listings += 1
            raise StorageAccessError("ListBucket is not allowed")
            yield

    inner = Unlistable()
    storage = EvictingStorage(inner, max_entries=10)
    for _ in range(200):
        await storage.store("key", b"x")
    await storage.aclose()
    assert len(inner.held) == 10
    assert inner.listings < 5


async def test_what_expired_while_visible_goes_when_what_kept_it_goes():
    clock = FakeClock()
    storage = EvictingStorage(memory(), ttl=10, chains=True, clock=clock)
    a = await storage.store("a", b"x")
    b = await storage.store("b", b"x", parent=a)
    storage.set_live([a])
    clock.advance(100)
    assert await keys(storage) == ["a", "b"]
    await storage.evict([a], "the test says so")
    with pytest.raises(EvictedError):
        await storage.retrieve(b)


async def test_while_a_long_listing_runs_what_is_there_can_be_inspected_and_deleted(tmp_path):
    class Slow(FileStorage):
        async def entries(self):
            await asyncio.sleep(1.5)
            async for entry in super().entries():
                yield entry

    old = await FileStorage(tmp_path).store("old", b"1")
    storage = EvictingStorage(Slow(tmp_path), max_entries=5)
    assert (await storage.inspect(old)).key == "old"
    await ScopedStorage(storage, "session").delete(old)
    await storage.delete(old)
    with pytest.raises(NotFoundError):
        await FileStorage(tmp_path).retrieve(old)
    assert await keys(storage) == []


def test_loops_that_stopped_without_being_closed_hold_nothing_up(tmp_path):
    storage = EvictingStorage(FileStorage(tmp_path), max_entries=5)
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()

    async def store_some():
        for _ in range(10):
            await storage.store("key", b"x")

    first.run_until_complete(store_some())
    second.run_until_complete(asyncio.wait_for(store_some(), 20))
    second.run_until_complete(asyncio.wait_for(storage.aclose(), 20))
    assert len([path for path in tmp_path.iterdir() if not path.name.startswith(".")]) == 5
    for loop in (first, second):
        loop.run_until_complete(loop.shutdown_asyncgens())
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def test_a_store_that_a_listing_saw_first_is_acknowledged_and_kept():
    class Seen(Minimal):
        async def store(self, key, content, content_type="text/plain"):
            reference = await super().store(key, content, content_type)
            if key == "last":
                await keys(storage)
            return reference

        async def entries(self):
            for reference, (content, content_type) in list(self.held.items()):
                yield Entry(reference, "key", content_type, len(content), 1.0, 1.0)

    storage = EvictingStorage(Seen(), max_entries=4, chains=True)
    parent = await storage.store("first", b"x")
    for _ in range(2):
        await storage.store("more", b"x", parent=parent)
    last = await storage.store("last", b"x", parent=parent)
    assert await storage.retrieve(last) == (b"x", "text/plain")
    await storage.aclose()


NAMED = [
    "{}",
    "ref={}",
    "--ref={}",
    "**{}**",
    "{}#L3",
    "{}:10-20",
    "{}?lines=3",
    "({}).",
    "«{}»",
    "{}。",
    "{}/",
    "`{}`",
]


@pytest.mark.parametrize("form", NAMED)
async def test_references_are_found_in_arguments_however_they_are_written(tmp_path, form):
    storage = EvictingStorage(FileStorage(tmp_path), max_entries=3, chains=True)
    for argue in (
        lambda text: {"command": ["cat", text]},
        lambda text: json.dumps({"command": f"cat\n{text}\n"}),
        lambda text: {text: None},
        lambda text: text.replace(".txt", ""),
    ):
        first = await storage.store("first", b"x")
        with in_chain(arguments=argue(form.format(first))):
            await storage.store("second", b"x")
        await storage.delete(first)
        assert await keys(storage) == []
    await storage.aclose()


async def test_deleting_in_a_scope_touches_no_other_scope():
    storage = EvictingStorage(memory(), chains=True)
    outer, inner = ScopedStorage(storage, "outer"), ScopedStorage(storage, "inner")
    with in_chain(new_chain()):
        precious, own = await outer.store("precious", b"x"), await inner.store("own", b"x")
    await inner.delete(own)
    assert await outer.retrieve(precious) == (b"x", "text/plain")


class Returning:
    """Drops entries in whatever form it is told to."""

    def __init__(self, form):
        self.form = form

    def expired(self, entries, now):
        return self.form(entry for entry in itertools.islice(entries.by_use(), 2) if entry.size > 5)


def endless(entries):
    entries = list(entries)
    return itertools.cycle(entries) if entries else ()


@pytest.mark.parametrize("form", [list, tuple, set, iter, endless, lambda found: [entry.reference for entry in found]])
async def test_a_policy_may_return_any_collection_of_entries_or_references(form, caplog):
    storage = EvictingStorage(memory(), Returning(form), max_entries=10)
    references = [await storage.store("key", b"x" * (number % 8)) for number in range(200)]
    assert await storage.retrieve(references[-2]) is not None
    assert len(await keys(storage)) <= 10
    assert caplog.records == []


async def test_what_expires_all_at_once_leaves_in_pieces_and_is_never_served():
    clock = FakeClock()
    evicted = []
    storage = EvictingStorage(memory(), ttl=10, clock=clock, on_evict=evicted.append)
    references = [await storage.store("key", b"") for _ in range(5_000)]
    clock.advance(11)
    await storage.store("key", b"")
    assert len(evicted) < 3_000
    with pytest.raises(EvictedError):
        await storage.retrieve(references[-1])
    assert len(evicted) == 5_000
