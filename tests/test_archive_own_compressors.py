"""Plans of somebody's own compressor are archived and undone as those of holdfast are, or refused for what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast import ContextManager
from holdfast.compression.plans import Drop, Edit, Insert, Plan, Rewrite
from holdfast.history import History
from holdfast.ledger import FailureRecord, ReductionRecord
from holdfast.messages import Message, Text, ToolResult

Edits = Callable[[Sequence[Message]], Any]


class Once:
    """A compressor that does one thing, once."""

    window_size = None

    def __init__(self, edits: Edits) -> None:
        self._edits: Edits | None = edits

    def plan(self, history: History, budget: Any) -> Any:
        if self._edits is None:
            return None
        edits, self._edits = self._edits(history.messages), None
        return Plan(tuple(edits), history.total, history.total - 200, "as asked") if isinstance(edits, list) else edits

    def plan_window(self, history: History, *, down_to: int | None = None) -> None:
        return None


async def reduced(edits: Edits) -> tuple[ContextManager, list[Any], list[Any]]:
    """A conversation after one reduction, and as it was before."""
    messages: list[Any] = [{"role": "user", "content": "start"}]
    for number in range(14):
        messages.append({"role": "assistant", "content": f"answer {number} " + "lorem ipsum " * 30})
        messages.append({"role": "user", "content": f"ask uniq{number}q " + "dolor sit amet " * 20})
    before = copy.deepcopy(messages)
    manager = ContextManager(compression=Once(edits), dialect="openai", window=3_500)

    async def model(sent: list[Any]) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": "Fine."}}

    await manager.converse(messages).call_model(model)
    return manager, messages, before


def short(message: Message, *blocks: Any) -> Message:
    return message.with_blocks((Text("short"), *blocks))


def said(text: str, made_as: str | None = None) -> Message:
    return Message.of_text("user", text, made_as=made_as)


UNDOABLE: dict[str, Callable[[Sequence[Message]], list[Edit]]] = {
    "a digest where messages leave": lambda _: [Insert(3, said("a digest")), Drop(3, 6)],
    "a note of its own where messages leave": lambda _: [Insert(3, said("a note", "note")), Drop(3, 6)],
    "a digest elsewhere": lambda _: [Insert(1, said("a digest")), Drop(3, 6)],
    "a message before one that is rewritten": lambda all: [Insert(2, said("a note")), Rewrite(2, short(all[2]))],
    "one message that becomes three": lambda all: [
        Rewrite(2, short(all[2], ToolResult("a", (Text("r"),)), ToolResult("b", (Text("s"),))))
    ],
    "several drops, one of them of nothing": lambda _: [Drop(2, 2), Drop(2, 4), Drop(4, 6), Drop(8, 10)],
    "a rewrite behind a drop": lambda all: [Drop(2, 4), Rewrite(4, short(all[4]))],
}


@pytest.mark.parametrize("edits", UNDOABLE.values(), ids=UNDOABLE.keys())
async def test_whatever_a_plan_does_is_undone(edits):
    manager, messages, before = await reduced(edits)
    assert messages != before
    assert len(manager.ledger.of(ReductionRecord)) == 1
    await manager.undo()
    assert messages == before


async def test_what_a_compressor_says_where_messages_leave_stands_there_beside_the_marker():
    _, messages, _ = await reduced(lambda all: [Insert(1, said("the budget is 4711 EUR")), Drop(1, 20)])
    contents = [message["content"] for message in messages[:3]]
    assert contents[:2] == ["start", "the budget is 4711 EUR"]
    assert contents[2].startswith("[19 earlier messages (2–20;")


REFUSED: dict[str, tuple[Edits, str]] = {
    "out of order": (lambda _: [Drop(6, 8), Drop(2, 4)], "in the order of their places"),
    "a message in two edits": (lambda _: [Drop(2, 6), Drop(4, 8)], "in the order of their places"),
    "more than there is": (lambda _: [Drop(2, 9_999)], "each of the 29 messages"),
    "no plan": (lambda _: 42, "must return a Plan or None, got int"),
}


@pytest.mark.parametrize(("edits", "why"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_plan_that_makes_no_sense_changes_nothing_and_is_told(edits, why):
    manager, messages, before = await reduced(edits)
    assert messages == before
    assert why in manager.ledger.of(FailureRecord)[0].error
