"""What a conversation shows, and what its archive names, outlives age and turns, however storages are shared."""

from __future__ import annotations

import copy
import gc
import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import ContextManager, EvictingStorage, FileStorage, InMemoryStorage, ScopedStorage
from holdfast.errors import EvictedError, InvalidTypeError, SharedStorageError
from holdfast.ledger import EvictionRecord
from holdfast.testing import FakeClock

HOUR = 3_600
LOG = "\n".join(f"line {number}: all is well" for number in range(3_000))


class Loop:
    """A loop of somebody's own, in which every message of the user has a word that no other has."""

    def __init__(self, storage: Any, messages: list[Any] | None = None, **options: Any) -> None:
        options = {"strategy": "auto", "window": 6_000, **options}
        self.manager = ContextManager(dialect="openai", offload_storage=storage, **options)
        self.messages = [{"role": "user", "content": "start"}] if messages is None else messages
        self.conversation = self.manager.converse(self.messages)

    async def turn(self, text: str = "Go on.") -> None:
        async def model(sent: list[Any]) -> dict[str, Any]:
            return {"message": {"role": "assistant", "content": "ok"}}

        self.messages.append((await self.conversation.call_model(model))["message"])
        self.messages.append({"role": "user", "content": text})

    async def until_reduced(self) -> Loop:
        number = 0
        while not self.manager.ledger.of("reduction"):
            await self.turn(f"Item rare{number}x. " + f"Some more of {number}. " * 60)
            number += 1
        return self

    async def tool(self, identifier: str = "c1") -> None:
        call = {"id": identifier, "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.messages.append(await self.conversation.call_tool("read_log", identifier, {}, lambda name, given: LOG))

    async def finds(self, word: str = "rare1x") -> bool:
        return bool((await self.manager.search_context(word)).hits)

    @property
    def saved(self) -> tuple[Any, list[Any]]:
        return json.loads(json.dumps(self.manager.get_state())), copy.deepcopy(self.messages)


def aging(clock: FakeClock) -> EvictingStorage:
    return EvictingStorage(InMemoryStorage(evict_after_turns=None, clock=clock), ttl=HOUR, clock=clock)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def on_disk(tmp_path, clock) -> Callable[[], EvictingStorage]:
    return lambda: EvictingStorage(FileStorage(tmp_path, clock=clock), ttl=HOUR, clock=clock)


async def saved_for_a_night(storage: EvictingStorage, clock: FakeClock) -> tuple[Any, list[Any]]:
    before = await Loop(storage).until_reduced()
    saved = before.saved
    await before.manager.aclose()
    await storage.aclose()
    clock.advance(12 * HOUR)
    return saved


# After a restart


async def test_after_a_restart_a_search_before_the_first_model_call_costs_nothing(on_disk, clock):
    state, messages = await saved_for_a_night(on_disk(), clock)
    again = Loop(on_disk(), messages)
    again.manager.restore(state)
    assert await again.finds()
    await again.manager.undo()
    assert again.manager.ledger.of(EvictionRecord) == ()


async def test_a_loop_that_resumes_with_its_pending_tool_call_keeps_its_archive(on_disk, clock):
    state, messages = await saved_for_a_night(on_disk(), clock)
    storage = on_disk()
    again = Loop(storage, messages)
    again.manager.restore(state)
    await again.tool()
    await storage.sweep()
    await again.turn()
    assert await again.finds()


async def test_a_state_may_be_restored_before_there_is_a_conversation(on_disk, clock):
    state, messages = await saved_for_a_night(on_disk(), clock)
    again = Loop.__new__(Loop)
    again.manager = ContextManager("auto", dialect="openai", window=6_000, offload_storage=on_disk())
    again.manager.restore(state)
    assert await again.finds()
    again.manager.converse(messages)
    assert await again.finds()


async def test_restoring_into_a_storage_that_stayed_open_takes_nothing(clock):
    """The earlier manager is gone, and the new one has not said all when it gets its messages."""
    storage = aging(clock)
    state, messages = await saved_for_a_night(storage, clock)
    again = Loop(storage, messages)
    again.manager.restore(state)
    assert await again.finds()


async def test_messages_alone_keep_what_they_show_from_the_beginning(on_disk, clock):
    _, messages = await saved_for_a_night(on_disk(), clock)
    again = Loop(on_disk(), messages)
    assert await again.finds()


async def test_what_only_an_archive_names_in_its_state_is_kept_too(on_disk, clock):
    state, messages = await saved_for_a_night(on_disk(), clock)
    state["offloader"] = {"references": []}
    again = Loop(on_disk(), [wire for wire in messages if not wire.get("metadata")])
    again.manager.restore(state)
    assert await again.finds()


async def test_without_an_archive_what_was_in_view_is_kept_after_a_restart(on_disk, clock):
    storage, options = on_disk(), {"strategy": None, "offloader": True, "window": None}
    before = Loop(storage, **options)
    await before.tool()
    await before.turn()
    state, _ = before.saved
    await storage.aclose()
    clock.advance(2 * HOUR)
    again = Loop(on_disk(), [], **options)
    again.manager.restore(state)
    assert await again.finds("line")


# Scopes


async def test_a_scope_of_a_storage_that_evicts_says_what_is_visible(clock):
    loop = await Loop(ScopedStorage(aging(clock), "a")).until_reduced()
    clock.advance(2 * HOUR)
    await loop.turn()
    assert await loop.finds()
    assert loop.manager.ledger.of(EvictionRecord) == ()


async def test_scopes_say_so_each_for_itself(clock):
    shared = aging(clock)
    one, other = ScopedStorage(ScopedStorage(shared, "tenant"), "one"), ScopedStorage(shared, "other")
    first, second = await one.store("first", b"1"), await other.store("second", b"2")
    one.set_live([first])
    other.set_live([second])
    clock.advance(2 * HOUR)
    one.set_live([])
    with pytest.raises(EvictedError):
        await one.retrieve(first)
    assert await other.retrieve(second) == (b"2", "text/plain")


async def test_a_scope_is_silent_where_it_would_speak_for_all(clock):
    class OfOneConversation(InMemoryStorage):
        told = 0

        def set_live(self, references):
            self.told += 1

    inner = OfOneConversation()
    ScopedStorage(inner, "one").set_live(["a"])
    assert inner.told == 0
    with pytest.raises(TypeError, match="references must be a collection of references, got one string"):
        ScopedStorage(inner, "one").set_live("a")


# Several conversations


async def test_managers_that_share_a_storage_leave_each_others_archives_alone(clock):
    storage = aging(clock)
    loop, other = Loop(storage), Loop(storage)
    await loop.until_reduced()
    clock.advance(2 * HOUR)
    await other.turn()
    assert await loop.finds()
    await loop.manager.undo()


async def test_what_left_after_the_last_model_call_is_kept_while_others_speak(clock):
    storage = aging(clock)
    loop, other = Loop(storage), Loop(storage)
    await loop.turn()
    await loop.tool()
    clock.advance(2 * HOUR)
    await other.turn()
    await loop.turn()
    assert await loop.finds("line")


@pytest.mark.parametrize("closes", [True, False])
async def test_a_conversation_that_ended_keeps_nothing_once_another_goes_on(closes, clock):
    storage = aging(clock)
    loop, other = await Loop(storage).until_reduced(), Loop(storage)
    if closes:
        await loop.manager.aclose()
    else:
        del loop
        gc.collect()
    clock.advance(2 * HOUR)
    await other.turn()
    assert [entry async for entry in storage.entries()] == []


async def test_the_last_manager_of_a_storage_is_not_held_by_it(clock):
    storage = aging(clock)
    other, loop = Loop(storage), await Loop(storage).until_reduced()
    del loop
    gc.collect()
    clock.advance(2 * HOUR)
    await other.turn()
    assert [entry async for entry in storage.entries()] == []


async def test_closing_a_manager_and_its_storage_loses_nothing_that_a_session_goes_on_with(on_disk, clock):
    storage = on_disk()
    before = await Loop(storage).until_reduced()
    clock.advance(2 * HOUR)
    state, messages = before.saved
    await before.manager.aclose()
    await storage.sweep()
    await storage.aclose()
    again = Loop(on_disk(), messages)
    again.manager.restore(state)
    assert await again.finds()


async def test_a_manager_that_goes_on_after_it_was_closed_keeps_its_archive(clock):
    storage = aging(clock)
    loop, other = await Loop(storage).until_reduced(), Loop(storage)
    await loop.manager.aclose()
    await loop.turn()
    clock.advance(2 * HOUR)
    await other.turn()
    assert await loop.finds()


@pytest.mark.parametrize(
    "storage", [InMemoryStorage(), EvictingStorage(InMemoryStorage(evict_after_turns=None), turns=2)]
)
async def test_a_storage_that_counts_turns_refuses_a_second_manager(storage):
    await Loop(storage).turn()
    with pytest.raises(SharedStorageError, match="by the turns of another agent"):
        Loop(storage)


async def test_a_storage_of_somebody_else_is_told_as_ever(clock):
    class OfOneConversation(InMemoryStorage):
        live = frozenset()

        def set_live(self, references):
            self.live = frozenset(references)

    storage = OfOneConversation(evict_after_turns=None)
    loop = await Loop(storage).until_reduced()
    await loop.turn()
    assert storage.live == {entry.reference async for entry in storage.entries()}


async def test_an_inner_storage_that_knows_of_one_conversation_is_told_of_all():
    class OfOneConversation(InMemoryStorage):
        live = frozenset()

        def set_live(self, references):
            self.live = frozenset(references)

    inner, owner = OfOneConversation(evict_after_turns=None), FakeClock()
    storage = EvictingStorage(inner, max_entries=10)
    storage.set_live(["a", "b"])
    storage.set_live(["b", "c"], owner=owner)
    assert inner.live == {"a", "b", "c"}
    storage.set_live([])
    assert inner.live == {"b", "c"}


async def test_a_storage_that_cannot_spare_does_not_stop_the_agent(caplog):
    class Stuck(InMemoryStorage):
        def set_live(self, references, *, owner=None):
            raise RuntimeError("no")

    await Loop(Stuck()).turn()
    assert "Stuck could not be told what is visible" in caplog.text


# Owners


async def test_each_owner_speaks_for_itself_and_without_a_name_there_is_one_more(clock):
    storage = aging(clock)
    references = [await storage.store(key, b"x") for key in "abcd"]
    one, other = FakeClock(), FakeClock()
    storage.set_live(references[:2])
    storage.set_live(references[1:3], owner=one)
    storage.set_live(references[2:3], owner=other)
    clock.advance(2 * HOUR)
    assert [entry.key async for entry in storage.entries()] == ["a", "b", "c"]
    storage.set_live([])
    assert [entry.key async for entry in storage.entries()] == ["b", "c"]
    storage.set_live([], owner=one)
    assert [entry.key async for entry in storage.entries()] == ["c"]
    del other
    storage.set_live([])
    assert [entry.key async for entry in storage.entries()] == []


async def test_in_memory_too_each_owner_speaks_for_itself():
    storage = InMemoryStorage(evict_after_turns=1)
    a, b = await storage.store("a", b"x"), await storage.store("b", b"x")
    one, other = FakeClock(), FakeClock()
    storage.set_live([a, b], owner=one)
    storage.set_live([b], owner=other)
    storage.set_live([], owner=one)
    for _ in range(3):
        storage.advance_turn()
    assert [entry.key async for entry in storage.entries()] == ["b"]


@pytest.mark.parametrize("storage", [InMemoryStorage(), aging(FakeClock()), ScopedStorage(InMemoryStorage(), "a")])
def test_an_owner_is_an_object_that_can_end(storage):
    with pytest.raises(InvalidTypeError, match="a str cannot be held weakly"):
        storage.set_live([], owner="me")
