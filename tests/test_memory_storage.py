from __future__ import annotations

import asyncio
import threading

import pytest
from own_contract import OwnStorageContract

from holdfast import InMemoryStorage, NotFoundError
from holdfast.errors import SharedStorageError
from holdfast.testing import FakeClock, storage_machine


class TestContract(OwnStorageContract):
    @pytest.fixture
    def storage(self) -> InMemoryStorage:
        return InMemoryStorage()


_shared = InMemoryStorage(evict_after_turns=None)
TestAgainstADictionary = storage_machine(lambda: _shared, survives_reopening=True).TestCase


def turns(storage: InMemoryStorage, count: int) -> None:
    for _ in range(count):
        storage.advance_turn()


async def test_an_entry_lives_for_twenty_turns_without_use_by_default():
    storage = InMemoryStorage()
    reference = await storage.store("key", b"content")
    turns(storage, 20)
    assert [entry.reference async for entry in storage.entries()] == [reference]
    turns(storage, 1)
    assert [entry async for entry in storage.entries()] == []


async def test_retrieving_keeps_an_entry_alive():
    storage = InMemoryStorage(evict_after_turns=2)
    used, read_in_part, unused = [await storage.store("key", b"content") for _ in range(3)]
    for _ in range(5):
        storage.advance_turn()
        await storage.retrieve(used)
        await storage.retrieve_range(read_in_part, 0, 1)
    assert {entry.reference async for entry in storage.entries()} == {used, read_in_part}
    with pytest.raises(NotFoundError, match="by turn 3 nobody had used it for more than 2 turns"):
        await storage.retrieve(unused)


async def test_what_was_visible_grows_old_from_when_it_no_longer_is():
    storage = InMemoryStorage(evict_after_turns=2)
    shown, unseen = [await storage.store("key", b"content") for _ in range(2)]
    storage.set_live([shown, "nothing"])
    turns(storage, 10)
    assert [entry.reference async for entry in storage.entries()] == [shown]
    storage.set_live([])
    turns(storage, 2)
    assert (await storage.inspect(shown)).reference == shown
    turns(storage, 1)
    for gone in (shown, unseen):
        with pytest.raises(NotFoundError, match="nobody had used it for more than 2 turns"):
            await storage.inspect(gone)


async def test_what_is_visible_again_does_not_grow_old():
    storage = InMemoryStorage(evict_after_turns=2)
    shown, discarded = [await storage.store("key", b"content") for _ in range(2)]
    storage.set_live([shown, discarded])
    await storage.retrieve(shown)
    storage.discard(discarded)
    storage.set_live([])
    turns(storage, 2)
    storage.set_live([shown, discarded])
    turns(storage, 10)
    assert [entry.reference async for entry in storage.entries()] == [shown]


async def test_without_eviction_turns_change_nothing():
    storage = InMemoryStorage(evict_after_turns=None)
    reference = await storage.store("key", b"content")
    turns(storage, 1_000)
    assert await storage.retrieve(reference) == (b"content", "text/plain")


@pytest.mark.parametrize("turns", [0, -1, 1.5, "20", True, False])
def test_eviction_takes_positive_integers_only(turns: object):
    with pytest.raises(ValueError, match="evict_after_turns must be a positive integer"):
        InMemoryStorage(evict_after_turns=turns)


async def test_what_is_remembered_of_evicted_entries_is_bounded():
    storage = InMemoryStorage(evict_after_turns=1)
    references = [await storage.store("key", b"") for _ in range(3_000)]
    turns(storage, 2)
    with pytest.raises(NotFoundError, match="gone since"):
        await storage.retrieve(references[-1])
    with pytest.raises(NotFoundError, match="never stored here"):
        await storage.retrieve(references[0])


async def test_one_agent_at_a_time_when_turns_evict():
    storage, first, second = InMemoryStorage(), object(), object()
    storage.bind(first)
    storage.bind(first)
    with pytest.raises(SharedStorageError, match="give each agent its own"):
        storage.bind(second)


async def test_agents_may_share_what_does_not_evict():
    storage = InMemoryStorage(evict_after_turns=None)
    for _ in range(2):
        storage.bind(object())
        await storage.store("key", b"content")
    assert len([entry async for entry in storage.entries()]) == 2


async def test_an_owner_is_told_from_an_equal_one():
    storage = InMemoryStorage()
    storage.bind([])
    with pytest.raises(SharedStorageError):
        storage.bind([])


async def test_a_reference_of_another_storage_leads_nowhere():
    reference = await InMemoryStorage().store("tooluse_1", b"session one")
    other = InMemoryStorage()
    await other.store("tooluse_1", b"session two")
    with pytest.raises(NotFoundError):
        await other.retrieve(reference)


def test_clear_works_without_an_event_loop():
    storage = InMemoryStorage()
    reference = asyncio.run(storage.store("key", b"content"))
    storage.clear()
    with pytest.raises(KeyError):
        asyncio.run(storage.retrieve(reference))


async def test_times_come_from_the_clock():
    clock = FakeClock(now=100.0)
    storage = InMemoryStorage(clock=clock)
    reference = await storage.store("key", b"content")
    clock.advance(50)
    await storage.retrieve(reference)
    (entry,) = [entry async for entry in storage.entries()]
    assert (entry.stored_at, entry.last_used) == (100.0, 150.0)


def test_threads_may_use_one_storage_at_once():
    storage, references = InMemoryStorage(evict_after_turns=100), []

    async def work() -> None:
        for number in range(200):
            reference = await storage.store("key", str(number).encode())
            references.append(reference)
            assert await storage.retrieve(reference) == (str(number).encode(), "text/plain")
            if number % 50 == 0:
                storage.advance_turn()

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(references)) == 1_600
