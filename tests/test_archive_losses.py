"""What could not be stored when the model took no more: it is said, and said for good."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_archive import Loop, restarted, text_of

from holdfast import ContextManager, InMemoryStorage
from holdfast.errors import NotFoundError
from holdfast.hooks import AfterModelCall
from holdfast.ledger import FailureRecord
from holdfast.testing.fakes import FlakyStorage

ROWS = "\n".join(f"row {number} value-{number * 7919}" for number in range(1_200))


class Chat:
    """A loop in which one large result is shortened while the storage is down."""

    def __init__(self) -> None:
        self.faults: list[int] = []
        storage = FlakyStorage(InMemoryStorage(evict_after_turns=None), self.faults)
        self.manager = ContextManager(
            compression={"method": "truncate"}, dialect="openai", window=6_000, offload_storage=storage
        )
        self.messages: list[Any] = [{"role": "user", "content": "the task"}]
        self.conversation = self.manager.converse(self.messages)

    async def go_on_until(self, reductions: int) -> None:
        while len(self.manager.ledger.of("reduction")) < reductions:
            self.messages += [
                {"role": "assistant", "content": "an answer " + "x " * 100},
                {"role": "user", "content": "more"},
            ]
            await self.conversation.call_model(lambda sent: {})

    async def lose_a_part(self) -> None:
        function = {"name": "dump", "arguments": "{}"}
        call = {"id": "t1", "type": "function", "function": function}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.messages.append({"role": "tool", "tool_call_id": "t1", "content": ROWS})
        refusals = iter([RuntimeError("prompt is too long: 6100 tokens > 6000 maximum")])

        def refuses_once(sent: list[Any]) -> dict[str, Any]:
            for refusal in refusals:
                raise refusal
            return {}

        self.faults += range(1, 10_000)
        await self.conversation.call_model(refuses_once)
        self.faults.clear()


async def test_a_shortened_message_says_that_the_rest_is_lost():
    chat = Chat()
    await chat.go_on_until(1)
    await chat.lose_a_part()
    assert "; the rest could not be stored and is lost]" in chat.messages[-1]["content"]
    failure = chat.manager.ledger.last(FailureRecord)
    *_, (number, last) = chat.manager.get_state()["archive"]["left"]["lost"]
    assert number == last
    assert "and is lost, as the model took no more: " in failure.what
    assert failure.what.endswith(f", {number})")


async def test_what_a_shortening_lost_is_not_forgotten_when_the_rest_leaves():
    chat = Chat()
    await chat.go_on_until(1)
    await chat.lose_a_part()
    *_, [number, _] = chat.manager.get_state()["archive"]["left"]["lost"]
    await chat.go_on_until(5)
    reference = chat.manager.archive.undoable[-1]
    said = next(each["content"] for each in chat.messages if f"{reference} , but" in str(each["content"]))
    assert f", {number}, which could not be stored" in said
    rest = "only this was left by then; the rest could not be stored, and is lost"
    for asked in (reference, f"{reference}#{number}"):
        content, _ = await chat.manager.retrieve(asked)
        assert b"row 0 value-0" in content
        assert rest in content.decode()


async def test_later_markers_still_say_what_was_lost():
    faults: list[int] = []
    loop = Loop(offload_storage=FlakyStorage(InMemoryStorage(evict_after_turns=None), faults))
    await loop.go_on(18)
    kept = loop.marker["metadata"]["custom"]["left"]["ranges"][0][1]
    faults += range(1, 10_000)
    error = RuntimeError("prompt is too long")
    assert (await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))).retry
    lost = loop.marker["metadata"]["custom"]["left"]["lost"]
    assert lost[0][0] == kept + 1
    assert f"{lost[0][0]}–{lost[0][1]} could not be stored, and are lost" in text_of(loop.marker)
    faults.clear()
    loop = await restarted(loop)
    await loop.go_on(12)
    said, reference = text_of(loop.marker), loop.manager.archive.undoable[-1]
    assert f"kept as {reference} , but {lost[0][0]}–{lost[0][1]}, which could not be stored" in said
    with pytest.raises(NotFoundError, match="could not be stored when it left, and is lost"):
        await loop.manager.retrieve(f"{reference}#{lost[0][0]}")
    assert (await loop.manager.retrieve(f"{reference}#{kept}"))[0]


async def test_what_a_shortening_lost_is_said_too():
    loop = Loop(offload_storage=FlakyStorage(InMemoryStorage(), range(1, 10_000)))
    await loop.go_on(4)
    await loop.turn([{"text": "big " * 4_000}])
    number = len(loop.messages)
    event = AfterModelCall(loop.conversation, error=RuntimeError("prompt is too long"))
    assert (await loop.hooks.invoke(event)).retry
    assert len(json.dumps(loop.messages[-1])) < 8_000
    assert any(first <= number <= last for first, last in loop.marker["metadata"]["custom"]["left"]["lost"])
