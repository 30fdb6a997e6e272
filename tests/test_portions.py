"""A storage that refuses some of what leaves is given the rest, in few calls; one that is down is soon left alone."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import ContextManager, InMemoryStorage
from holdfast.compression.rationing import Rationing
from holdfast.errors import StorageAccessError, TooLargeError
from holdfast.ledger import ReductionRecord

MARKER = 100


@dataclass
class Store:
    """Takes things of so many *sizes*, up to *most* at once, and none of the *refused*; counts how often it is asked.

    Before the first of them left, less than a marker gains nothing.
    """

    sizes: list[int]
    refused: frozenset[int] = frozenset()
    most: float = math.inf
    is_to_blame: bool = True
    asked: int = 1
    stored: list[list[int]] = field(default_factory=list)

    def gains(self, portion: list[int]) -> bool:
        return bool(self.stored) or sum(self.sizes[each] for each in portion) > MARKER

    def takes(self, portion: list[int]) -> bool:
        return self.refused.isdisjoint(portion) and sum(self.sizes[each] for each in portion) <= self.most

    def ration(self) -> set[int]:
        """Return what is stored in the end."""
        rationing = Rationing(len(self.sizes))
        for _ in range(10 * len(self.sizes) + 10):
            portion = rationing.portion
            if not portion:
                return {each for portion in self.stored for each in portion}
            if not self.gains(portion):
                rationing.wait()
                continue
            self.asked += 1
            if self.takes(portion):
                self.stored.append(portion)
                rationing.store()
            else:
                rationing.refuse(is_to_blame=self.is_to_blame)
        raise AssertionError("it does not end")


def refused_among(sizes: list[int]) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(0, len(sizes) - 1), max_size=len(sizes))


SIZES = st.lists(st.integers(1, 400), min_size=2, max_size=120)


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_everything_is_stored_that_the_storage_takes_by_itself(data):
    sizes = data.draw(SIZES)
    most = data.draw(st.one_of(st.just(math.inf), st.integers(1, 4_000)))
    store = Store(sizes, data.draw(refused_among(sizes)), most)
    stored = store.ration()
    assert len(stored) == sum(map(len, store.stored))
    left = [each for each in range(len(sizes)) if each not in stored and store.takes([each])]
    assert not left or not store.stored
    assert not any(store.gains([each]) for each in left)


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_few_calls_are_enough(data):
    sizes = data.draw(SIZES)
    most = data.draw(st.one_of(st.just(math.inf), st.integers(400, 4_000)))
    refused = data.draw(refused_among(sizes))
    store = Store(sizes, refused, most)
    store.ration()
    # Two portions that are neighbours are together too large, apart from those beside one that is to blame.
    portions = 2 * sum(sizes) / most
    assert store.asked <= 2 + 4 * portions + (len(refused) + 2) * 3 * math.log2(2 * len(sizes))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_an_error_that_says_nothing_is_not_taken_for_the_end_if_others_are_taken(data):
    sizes = data.draw(st.lists(st.integers(MARKER + 1, 400), min_size=2, max_size=120))
    refused = data.draw(st.frozensets(st.integers(0, len(sizes) - 1), max_size=2))
    store = Store(sizes, refused, is_to_blame=False)
    assert store.ration() == set(range(len(sizes))) - refused


@settings(max_examples=100, deadline=None)
@given(SIZES)
def test_a_storage_that_is_down_is_asked_four_times(sizes):
    store = Store(sizes, frozenset(range(len(sizes))), is_to_blame=False)
    store.ration()
    assert store.asked <= 4


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(MARKER + 1, 400), min_size=2, max_size=120), st.integers(1, 60))
def test_a_storage_that_goes_down_meanwhile_is_soon_left_alone(sizes, works):
    class Dying(Store):
        def takes(self, portion: list[int]) -> bool:
            return super().takes(portion) and len(self.stored) < works

    store = Dying(sizes, most=1_000, is_to_blame=False)
    store.ration()
    if len(store.stored) == works:
        assert store.asked <= 2 + 3 * works + 2 * math.log2(len(sizes)) + 4


OVERFLOW = RuntimeError("prompt is too long")


class Chat:
    """A conversation in which the user says much, word0 and so on among it, and the model "ok"."""

    def __init__(self, storage: Any, **options: Any) -> None:
        compression = {"method": "truncate", "protect_last": 2, **options.pop("compression", {})}
        self.storage = storage
        self.manager = ContextManager(
            compression=compression, dialect="openai", window=6_000, offload_storage=storage, **options
        )
        self.messages: list[Any] = [{"role": "user", "content": "Let us begin."}]
        self.conversation = self.manager.converse(self.messages)
        self.errors: list[Exception] = []
        self.turns = 0

    async def model(self, sent: Any) -> Any:
        if self.errors:
            raise self.errors.pop()
        return {"message": {"role": "assistant", "content": "ok"}}

    async def turn(self, **said: Any) -> None:
        self.messages.append((await self.conversation.call_model(self.model))["message"])
        content = f"word{self.turns} " + "lorem ipsum dolor " * 20
        self.messages.append({"role": "user", "content": content, **said})
        self.turns += 1

    async def go_on(self, turns: int) -> None:
        for _ in range(turns):
            await self.turn()

    async def overflow(self) -> None:
        self.errors.append(OVERFLOW)
        await self.turn()

    @property
    def lost(self) -> list[Any]:
        notes = [wire.get("metadata", {}).get("custom", {}) for wire in self.messages]
        return [each for note in notes for each in note.get("left", {}).get("lost", [])]

    @property
    def reductions(self) -> tuple[Any, ...]:
        return self.manager.ledger.of(ReductionRecord)

    async def finds_all(self, *words: str) -> bool:
        shown = json.dumps([wire["content"] for wire in self.messages])
        return all([word in shown or (await self.manager.search_context(word)).hits for word in words])


class Memory(InMemoryStorage):
    """Memory that counts how often it is asked, and refuses what is larger than so many bytes."""

    def __init__(self, most: float = math.inf, error: type[Exception] = StorageAccessError) -> None:
        super().__init__(evict_after_turns=None)
        self.most, self.error, self.asked = most, error, 0

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        self.asked += 1
        if len(content) > self.most:
            raise self.error("item too large")
        return await super().store(key, content, content_type)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("instance is not bound to a session")


IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 80_000}}]
HOLDS_ITSELF: list[Any] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)
REFUSED = {
    "too large": (TooLargeError, {"content": IMAGE}),
    "too large in the words of others": (OSError, {"content": IMAGE}),
    "unspeakable": (OSError, {"metadata": {"row": Unspeakable()}}),
    "endless": (OSError, {"metadata": {"row": HOLDS_ITSELF}}),
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("before", [0, 1, 5])
async def test_one_message_that_is_refused_costs_no_other(why, before):
    error, refused = REFUSED[why]
    chat = Chat(Memory(50_000, error))
    await chat.go_on(before)
    await chat.turn(**refused)
    number = len(chat.messages)
    await chat.go_on(60)
    await chat.overflow()
    assert len(chat.messages) < 60
    assert all(each == [number, number] for each in chat.lost)
    assert await chat.finds_all("word7", "word20", "word50")


@pytest.mark.parametrize("why", REFUSED)
async def test_behind_one_message_that_is_refused_others_leave_together(why):
    error, refused = REFUSED[why]
    chat = Chat(Memory(50_000, error))
    await chat.go_on(2)
    await chat.turn(**refused)
    await chat.go_on(60)
    assert sum(each.messages for each in chat.reductions) > 40
    assert len(chat.reductions) <= 12
    assert chat.storage.asked <= 30


async def test_a_message_that_was_refused_before_is_not_taken_for_a_storage_that_is_down():
    chat = Chat(Memory(50_000, OSError))
    await chat.turn(content=IMAGE)
    await chat.go_on(150)
    asked = chat.storage.asked
    assert len(chat.messages) < 100
    await chat.overflow()
    assert chat.storage.asked <= asked + 6
    assert chat.lost in ([], [[3, 3]])
    assert await chat.finds_all("word7", "word70", "word140")


async def test_a_summary_stands_for_what_left_although_one_message_was_refused():
    chat = Chat(Memory(50_000, OSError), compression={"method": "summarize"})
    await chat.turn(content=IMAGE)
    await chat.go_on(40)
    assert chat.reductions
    assert json.dumps(chat.messages).count("</summary>") == 1
    assert json.dumps(chat.messages).count("kept as ") == 1


def shortened_later() -> list[Any]:
    """A call whose result is too long to stay as it is."""
    function = {"name": "look", "arguments": "{}"}
    call = {"id": "t1", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "zebrafish4711 " + "lorem ipsum dolor " * 2_000},
    ]


async def test_of_a_message_that_was_shortened_before_nothing_is_lost():
    chat = Chat(Memory())
    chat.messages += shortened_later()
    await chat.turn()
    [shortened] = chat.reductions
    assert shortened.rewritten
    chat.storage.most = 0
    await chat.go_on(60)
    await chat.overflow()
    numbers = {number for first, last in chat.lost for number in range(first, last + 1)}
    assert 4 in numbers
    assert 3 not in numbers
    [hit, *_] = (await chat.manager.search_context("zebrafish4711")).hits
    assert (await chat.manager.retrieve(hit.reference))[0].startswith(b"zebrafish4711")


class Hanging(Memory):
    """Memory that does not answer while it hangs."""

    hangs = True

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        if self.hangs:
            self.asked += 1
            await asyncio.Event().wait()
        return await super().store(key, content, content_type)


def hanging(timeout: float = 0.02) -> Chat:
    return Chat(Hanging(), offloader={"store_timeout": timeout})


async def test_a_storage_that_does_not_answer_seldom_holds_up_a_model_call():
    chat = hanging()
    asked = [0]
    for _ in range(120):
        await chat.turn()
        asked.append(chat.storage.asked)
    assert max(now - before for before, now in pairwise(asked)) == 1
    assert 2 <= asked[-1] <= 6
    assert len(chat.messages) == 241
    await chat.manager.aclose()


async def test_a_storage_that_answers_again_is_used_again():
    chat = hanging()
    await chat.go_on(60)
    chat.storage.hangs = False
    await chat.go_on(60)
    assert chat.reductions
    assert await chat.finds_all("word1", "word30", "word110")


async def test_after_an_overflow_a_storage_that_did_not_answer_is_asked_in_any_case():
    chat = hanging()
    await chat.go_on(60)
    chat.storage.hangs = False
    await chat.overflow()
    assert chat.reductions
    assert not chat.lost
    assert await chat.finds_all("word1", "word30")


async def test_after_an_overflow_a_storage_that_never_answers_is_waited_for_once_if_it_did_not_before():
    chat = hanging()
    await chat.go_on(60)
    asked = chat.storage.asked
    assert asked > 1
    await chat.overflow()
    assert chat.storage.asked == asked + 1
    assert chat.lost
    await chat.manager.aclose()


class Slow(Memory):
    """Memory that is in time only with little."""

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        if len(content) > self.most:
            await asyncio.Event().wait()
        return await super().store(key, content, content_type)


async def test_after_an_overflow_what_takes_too_long_at_once_is_stored_in_portions():
    chat = Chat(Slow(10_000), compression={"proactive": False}, offloader={"store_timeout": 0.02})
    await chat.go_on(70)
    await chat.overflow()
    assert len(chat.reductions) > 1
    assert not chat.lost
    assert await chat.finds_all("word1", "word30")


async def test_closing_waits_no_longer_than_one_answer_may_take():
    chat = hanging(0.2)
    while not chat.storage.asked:
        await chat.turn()
    started = asyncio.get_running_loop().time()
    await chat.manager.aclose()
    assert asyncio.get_running_loop().time() - started < 1
