"""Where a history may be cut: the named properties one by one, then all of them by a definition without shortcuts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cuts import Cuts, answers, legal_cuts, opens_a_turn
from holdfast.dialects import dialect_named
from holdfast.messages import Message, Reasoning, Text, ToolResult, ToolUse
from holdfast.testing.histories import random_history


def user(text: str = "hi") -> Message:
    return Message.of_text("user", text)


def says(text: str = "ok") -> Message:
    return Message.of_text("assistant", text)


def calls(*ids: str) -> Message:
    return Message("assistant", tuple(ToolUse(id, "search") for id in ids))


def results(*ids: str) -> Message:
    return Message("user", tuple(ToolResult(id, (Text("found"),)) for id in ids))


# Where it may be cut if nothing is kept before, and where if something is.
TABLE: dict[str, tuple[list[Message], list[int], list[int]]] = {
    "nothing": ([], [], []),
    "a chat": ([user(), says(), user(), says()], [0, 2], [0, 1, 2, 3]),
    "a call and its result": ([user(), calls("1"), results("1"), says(), user()], [0, 4], [0, 1, 3, 4]),
    "a batch of parallel calls": ([user(), calls("1", "2", "3"), results("1", "2", "3"), user()], [0, 3], [0, 1, 3]),
    "each result a message of its own": (
        [user(), calls("1", "2"), results("1"), results("2"), says(), user()],
        [0, 5],
        [0, 1, 4, 5],
    ),
    "results in another order": ([user(), calls("1", "2"), results("2"), results("1"), user()], [0, 4], [0, 1, 4]),
    "a result far from its call": (
        [user(), calls("1"), user("wait"), says(), user(), results("1"), user()],
        [0, 6],
        [0, 1, 6],
    ),
    "half a batch at once, half later": (
        [user(), calls("1", "2"), results("1"), user("and?"), says(), results("2"), user()],
        [0, 6],
        [0, 1, 6],
    ),
    "ids repeated from turn to turn": (
        [user(), calls("1"), results("1"), user(), calls("1"), results("1"), user()],
        [0, 3, 6],
        [0, 1, 3, 4, 6],
    ),
    "calls that cross": (
        [user(), calls("1"), calls("2"), results("1"), results("2"), user()],
        [0, 5],
        [0, 1, 5],
    ),
    "a call without a result": ([user(), calls("1"), user(), says()], [0, 2], [0, 1, 2, 3]),
    "a call without a result, made again": (
        [user(), calls("1"), user(), calls("1"), results("1"), user()],
        [0, 2, 5],
        [0, 1, 2, 3, 5],
    ),
    "a result without a call": ([user(), says(), results("1"), user()], [0, 3], [0, 1, 3]),
    "a result before its call": ([user(), results("1"), calls("1"), user()], [0, 3], [0, 2, 3]),
    "a result twice": ([user(), calls("1"), results("1"), user(), results("1"), user()], [0, 3, 5], [0, 1, 3, 5]),
    "begins with a result": ([results("1"), says(), user()], [2], [1, 2]),
    "begins with the model": ([says(), user(), says()], [1], [0, 1, 2]),
    "a system prompt": ([Message.of_text("system", "be kind"), user(), says()], [1], [0, 1, 2]),
    "words beside a result": (
        [user(), calls("1"), Message("user", (ToolResult("1"), Text("and?"))), says(), user()],
        [0, 4],
        [0, 1, 3, 4],
    ),
    "reasoning": (
        [user(), Message("assistant", (Reasoning("hm", bound=True), ToolUse("1", "search"))), results("1"), user()],
        [0, 3],
        [0, 1, 3],
    ),
}


@pytest.mark.parametrize(("messages", "opening", "between"), TABLE.values(), ids=list(TABLE))
def test_where_it_may_be_cut(messages, opening, between):
    assert legal_cuts(messages) == opening
    assert legal_cuts(messages, kept_before=True) == between


def test_who_opens_a_turn():
    assert opens_a_turn(user())
    assert not opens_a_turn(says())
    assert not opens_a_turn(results("1"))
    assert not opens_a_turn(Message.of_text("system", "be kind"))
    assert answers(Message("user", (Text("and"), ToolResult("1"))))
    assert not answers(calls("1"))


@pytest.mark.parametrize(
    ("messages", "starts"),
    [
        pytest.param([user(), says(), results("1"), user()], [0, 1, 2, 3], id="of no call"),
        pytest.param([user(), results("1"), results("2"), user()], [0, 1, 2, 3], id="two of no call"),
        pytest.param([results("1"), says()], [0, 1], id="at the start"),
        pytest.param([user(), results("1"), calls("1"), user()], [0, 1, 2, 3], id="before its call"),
        pytest.param([user(), calls("1"), results("1"), results("1"), user()], [0, 1, 3, 4], id="twice"),
        pytest.param([user(), calls("1"), results("9"), results("1"), user()], [0, 1, 4], id="inside of a pair"),
        pytest.param([user(), calls("1"), results("1", "9"), user()], [0, 1, 3], id="beside one that is matched"),
    ],
)
def test_a_result_without_its_call_is_a_unit_of_its_own_and_no_place_to_cut(messages, starts):
    assert Cuts(messages).indices == starts
    assert legal_cuts(messages, kept_before=True) == [at for at in starts if not answers(messages[at])]


def starts_by_definition(messages: Sequence[Message]) -> list[int]:
    """Every index at which no call is parted from its result."""
    pairs = [(called, answered) for answered in range(len(messages)) for called in calls_of(messages, answered)]
    return [at for at in range(len(messages)) if not any(called < at <= answered for called, answered in pairs)]


def cuts_by_definition(messages: Sequence[Message]) -> list[int]:
    """Every index at which no result stands and no call is parted from its result."""
    return [at for at in starts_by_definition(messages) if not answers(messages[at])]


def calls_of(messages: Sequence[Message], answered: int) -> list[int]:
    """Where the calls are that a message answers: of each id the latest before, unless another result was there."""
    found = []
    blocks = [(at, block) for at, message in enumerate(messages[: answered + 1]) for block in message.blocks]
    for place, (at, block) in enumerate(blocks):
        if at == answered and isinstance(block, ToolResult):
            same_id = [
                (before, other)
                for before, other in blocks[:place]
                if getattr(other, "id", getattr(other, "tool_use_id", None)) == block.tool_use_id
            ]
            if same_id and isinstance(same_id[-1][1], ToolUse):
                found.append(same_id[-1][0])
    return found


blocks = st.one_of(
    st.builds(Text, st.just("hi")),
    st.builds(ToolUse, st.sampled_from("abc"), st.just("search")),
    st.builds(ToolResult, st.sampled_from("abc")),
)
messages_of_any_kind = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=3).map(tuple)), max_size=12
)


@given(messages_of_any_kind)
def test_cuts_are_those_of_the_definition(messages):
    assert legal_cuts(messages, kept_before=True) == cuts_by_definition(messages)
    assert legal_cuts(messages) == [at for at in cuts_by_definition(messages) if opens_a_turn(messages[at])]


@given(messages_of_any_kind)
def test_every_message_added_keeps_them_up(messages):
    cuts = Cuts()
    for count, message in enumerate(messages, start=1):
        cuts.add(message)
        assert cuts.indices == Cuts(messages[:count]).indices == starts_by_definition(messages[:count])


@pytest.mark.parametrize("name", ["converse", "anthropic", "openai"])
def test_real_looking_histories_are_cut_by_the_definition(name):
    dialect = dialect_named(name)
    for seed in range(200):
        messages = [dialect.read(wire) for wire in random_history(Random(seed), name, legal=seed % 2 == 0)]
        assert legal_cuts(messages, kept_before=True) == cuts_by_definition(messages), seed


@pytest.mark.parametrize("name", ["converse", "anthropic", "openai"])
def test_a_legal_history_may_be_cut_before_every_turn(name):
    dialect = dialect_named(name)
    for seed in range(200):
        messages = [dialect.read(wire) for wire in random_history(Random(seed), name)]
        assert legal_cuts(messages) == [at for at, message in enumerate(messages) if opens_a_turn(message)], seed
