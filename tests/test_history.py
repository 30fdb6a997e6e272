"""A conversation read once: what a turn costs, which edits by others are noticed, and that the figures stay right."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cuts import Cuts, answers, legal_cuts
from holdfast.dialects import Converse, OpenAI, dialect_named
from holdfast.history import History, Unit
from holdfast.messages import Message, Reasoning, Text, ToolResult, ToolUse
from holdfast.testing.histories import histories, random_history
from holdfast.tokens import TokenEstimator

LOOKED_AT_AGAIN = 16 + 8


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"text": text}]}


def chat(length: int) -> list[Any]:
    return [said("assistant" if at % 2 else "user", f"message {at}") for at in range(length)]


def call(tool_use_id: str, **arguments: Any) -> dict[str, Any]:
    use = {"toolUseId": tool_use_id, "name": "search", "input": arguments}
    return {"role": "assistant", "content": [{"toolUse": use}]}


def answer(tool_use_id: str, text: str = "found") -> dict[str, Any]:
    result = {"toolUseId": tool_use_id, "status": "success", "content": [{"text": text}]}
    return {"role": "user", "content": [{"toolResult": result}]}


class CountingConverse(Converse):
    def __init__(self) -> None:
        self.reads = 0

    def read(self, wire: Any) -> Message:
        self.reads += 1
        return super().read(wire)


class CountingEstimator(TokenEstimator):
    def __init__(self) -> None:
        super().__init__(len)
        self.messages = 0

    def message(self, message: Message) -> int:
        self.messages += 1
        return super().message(message)


def history_of(wires: list[Any], **options: Any) -> History:
    history = History(**options)
    history.read(wires)
    return history


def is_right(history: History, wires: list[Any]) -> bool:
    """Whether all that a history tells is what one tells that never read anything else."""
    messages = [history.dialect.read(wire) for wire in wires]
    fresh = History.of(messages, history.estimator)
    tells = (fresh.messages, fresh.total, fresh.kept, fresh.large_results, list(fresh.units()))
    told = (history.messages, history.total, history.kept, history.large_results, list(history.units()))
    same_sums = all(history.tokens(at, at + 1) == fresh.tokens(at, at + 1) for at in range(len(wires)))
    return tells == told and same_sums and history.bound_reasoning_after(0) == fresh.bound_reasoning_after(0)


# What a turn costs


@pytest.mark.parametrize("length", [100, 2_000])
def test_a_turn_costs_its_new_messages(length):
    dialect, estimator = CountingConverse(), CountingEstimator()
    wires = chat(length)
    history = history_of(wires, dialect=dialect, estimator=estimator)
    for _ in range(5):
        dialect.reads = estimator.messages = 0
        wires += chat(2)
        history.read(wires)
        assert estimator.messages == 2
        assert dialect.reads <= 2 + LOOKED_AT_AGAIN
    assert is_right(history, wires)


def test_a_turn_without_news_estimates_nothing():
    estimator = CountingEstimator()
    wires = chat(100)
    history = history_of(wires, dialect=Converse(), estimator=estimator)
    estimator.messages = 0
    history.read(wires)
    assert estimator.messages == 0


def test_what_is_known_is_not_estimated_again_when_others_leave():
    estimator = CountingEstimator()
    wires = chat(1_000)
    history = history_of(wires, dialect=Converse(), estimator=estimator)
    estimator.messages = 0
    wires[:600] = [said("user", "what was before has left")]
    history.read(wires)
    assert estimator.messages == 1
    assert is_right(history, wires)


@pytest.mark.parametrize("change", [lambda wires: wires.append(answer("1")), lambda wires: wires.pop(0)])
def test_a_copy_stays_as_it_is_and_can_go_on_by_itself(change):
    wires = [*chat(30), call("1"), said("assistant", "I wait.")]
    history = history_of(wires)
    copied, before = history.copy(), wires.copy()
    change(wires)
    history.read(wires)
    assert is_right(copied, before)
    assert is_right(history, wires)
    copied.read(wires)
    assert is_right(copied, wires)
    assert copied.revision == history.revision


# Edits by others

EDITS: dict[str, Callable[[list[Any]], object]] = {
    "appended": lambda wires: wires.append(said("user", "more")),
    "inserted at the start": lambda wires: wires.insert(0, said("user", "before")),
    "inserted": lambda wires: wires.insert(50, said("user", "between")),
    "removed from the start": lambda wires: wires.pop(0),
    "removed": lambda wires: wires.pop(50),
    "removed at the end": lambda wires: wires.pop(),
    "all removed": lambda wires: wires.clear(),
    "replaced": lambda wires: wires.__setitem__(50, said("user", "another")),
    "replaced at the end": lambda wires: wires.__setitem__(-1, said("user", "another")),
    "replaced and appended": lambda wires: wires.__setitem__(slice(60, 61), [said("user", "a"), said("user", "b")]),
    "reversed": lambda wires: wires.reverse(),
    "two exchanged": lambda wires: wires.__setitem__(slice(10, 12), [wires[11], wires[10]]),
    "doubled": lambda wires: wires.insert(10, wires[10]),
    "rebuilt from JSON": lambda wires: wires.__setitem__(slice(None), json.loads(json.dumps(wires))),
    "the latest changed in place": lambda wires: wires[-1]["content"].append({"text": "more"}),
    "a recent one changed in place": lambda wires: wires[-8]["content"][0].update(text="another"),
    "a recent one pinned in place": lambda wires: wires[-3].update(metadata={"custom": {"pinned": True}}),
    "a recent call changed in place": lambda wires: wires[-2]["content"][0]["toolUse"]["input"].update(query="x" * 99),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_edits_by_others_are_noticed_at_once(edit):
    wires = [*chat(96), said("user", "look"), said("user", "it up"), call("1", query="holdfast"), answer("1")]
    history = history_of(wires)
    edit(wires)
    history.read(wires)
    assert is_right(history, wires)


@pytest.mark.parametrize("at", [0, 1, 31, 32, 50, 99])
@pytest.mark.parametrize("turns_before", [0, 1, 3, 4, 7])
def test_a_change_in_place_is_noticed_within_a_few_turns(at, turns_before):
    wires = [*chat(98), call("1", query="holdfast"), answer("1")]
    history = history_of(wires)
    for _ in range(turns_before):
        history.read(wires)
    wires[at]["content"].append({"text": "changed in place"})
    for _ in range(len(wires) // 16 + 1):
        history.read(wires)
    assert is_right(history, wires)


def test_a_change_in_place_is_noticed_while_the_history_grows():
    wires = chat(200)
    history = history_of(wires)
    wires[150]["content"].append({"text": "changed in place"})
    for _ in range(200 // 16 + 1):
        wires += chat(2)
        history.read(wires)
    assert is_right(history, wires)


CHANGES_IN_PLACE: dict[str, Callable[[Any], object]] = {
    "text": lambda wire: wire["content"].append({"text": "changed"}),
    "a call's input": lambda wire: wire["content"][0]["toolUse"]["input"].update(query="x" * 99),
    "a value deep in a call": lambda wire: wire["content"][0]["toolUse"]["input"]["deep"][0].update(a="x" * 99),
    "a pin beside another note": lambda wire: wire["metadata"]["custom"].update(pinned=True),
}


@pytest.mark.parametrize("change", CHANGES_IN_PLACE.values(), ids=list(CHANGES_IN_PLACE))
def test_a_change_in_place_is_noticed_by_verifying(change):
    looked_up = call("1", query="holdfast", deep=[{"a": 1}]) | {"metadata": {"custom": {"mine": 1}}}
    wires = [*chat(100), looked_up, answer("1"), *chat(100)]
    history = history_of(wires)
    change(looked_up)
    history.verify(wires)
    assert is_right(history, wires)


def test_json_in_a_result_that_changes_in_place_is_noticed_by_verifying():
    value = {"rows": [1]}
    result = {"toolUseId": "1", "content": [{"json": value}]}
    wires = [*chat(50), call("1"), {"role": "user", "content": [{"toolResult": result}]}, *chat(50)]
    history = history_of(wires)
    value["rows"] *= 500
    history.verify(wires)
    assert is_right(history, wires)
    assert history.large_results == [51]


def test_an_equal_copy_is_what_goes_back_after_verifying():
    wires = chat(50)
    history = history_of(wires)
    wires[10] = deepcopy(wires[10])
    history.verify(wires)
    assert all(written is wire for written, wire in zip(history.written(history.messages), wires, strict=True))


def test_keys_that_others_put_on_a_block_survive_an_edit():
    wires = [said("user", "hi"), *chat(20)]
    history = history_of(wires, dialect=Converse())
    wires[0]["content"][0] = {"text": "hi", "x_key": 1}
    history.verify(wires)
    [pinned] = history.written([history.messages[0].with_pin(True)])
    assert pinned["content"] == [{"text": "hi", "x_key": 1}]


def test_a_rewrite_by_others_is_a_new_revision_and_an_addition_is_none():
    wires = chat(10)
    history = history_of(wires)
    before = history.revision
    wires += chat(2)
    history.read(wires)
    assert history.revision == before
    del wires[0]
    history.read(wires)
    assert history.revision > before


def test_any_sequence_is_read():
    wires = chat(5)
    history = history_of(wires)
    history.read(tuple(wires))
    assert history.revision == history_of(wires).revision
    assert is_right(history, wires)


# Values that are too long to be looked at in every turn


class Watched(list[Any]):
    """A list that counts how often it is written out."""

    written = 0

    def __repr__(self) -> str:
        self.written += 1
        return super().__repr__()


def test_long_values_are_not_written_out_in_every_turn():
    short, long = Watched(["x"]), Watched(["x y "] * 100_000)
    wires = [call("1", rows=short), answer("1"), call("2", rows=long), answer("2")]
    history = history_of(wires)
    short.written = long.written = 0
    for _ in range(5):
        history.read(wires)
    history.verify(wires)
    assert (short.written > 0, long.written) == (True, 0)


def test_of_long_values_a_replaced_one_is_still_noticed_and_so_is_text_beside_them():
    changes: list[Callable[[Any], object]] = [
        lambda wire: wire["content"][0]["toolUse"].update(input={"rows": []}),
        lambda wire: wire["content"].append({"text": "more"}),
        lambda wire: wire["content"][0]["toolUse"].update(name="another"),
    ]
    for change in changes:
        wires = [call("1", rows=["x y "] * 100_000), answer("1")]
        history = history_of(wires)
        change(wires[0])
        history.read(wires)
        assert is_right(history, wires)


@pytest.mark.parametrize("before", [{}, {"function_call": {"name": "a", "arguments": "{}"}}], ids=["put", "changed"])
def test_what_stands_beside_the_content_is_noticed_when_it_changes_in_place(before):
    wires: list[Any] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, **deepcopy(before)}]
    history = history_of(wires, dialect=OpenAI())
    wires[1].setdefault("function_call", {})["arguments"] = "x y " * 100
    total = history.total
    history.read(wires)
    assert is_right(history, wires)
    assert history.total > total + 50


# Objects of a provider's SDK


class Model:
    """As pydantic's models are: attributes, and a dump."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        return {name: _dumped(value) for name, value in vars(self).items() if value is not None or not exclude_none}


def _dumped(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_dumped, value))
    return value.model_dump(exclude_none=True) if isinstance(value, Model) else value


def openai_objects() -> list[Any]:
    function = Model(name="search", arguments='{"q": 1}')
    calls = [Model(id="1", type="function", function=function)]
    return [
        {"role": "user", "content": "hi"},
        Model(role="assistant", content=None, refusal=None, tool_calls=calls),
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ]


def anthropic_objects() -> list[Any]:
    blocks = [
        Model(type="thinking", thinking="hm", signature="s"),
        Model(type="text", text="let me look", citations=None),
        Model(type="tool_use", id="1", name="search", input={"q": {"deep": [1]}}),
        Model(type="server_tool_use", id="2", input={"q": 1}),
    ]
    result = {"type": "tool_result", "tool_use_id": "1", "content": [Model(type="text", text="found")]}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result]},
    ]


OBJECTS = {"openai": openai_objects, "anthropic": anthropic_objects}


@pytest.mark.parametrize("name", list(OBJECTS))
def test_pairs_of_objects_are_matched_and_go_back_as_they_came(name):
    wires = OBJECTS[name]()
    history = history_of(wires)
    assert history.dialect.name == name
    assert list(history.units()) == [Unit(0, 1), Unit(1, 3)]
    assert all(written is wire for written, wire in zip(history.written(history.messages), wires, strict=True))
    revision = history.revision
    history.read(wires)
    history.verify(wires)
    assert history.revision == revision


CHANGES_OF_OBJECTS: dict[str, tuple[str, Callable[[list[Any]], object]]] = {
    "content": ("openai", lambda wires: setattr(wires[1], "content", "let me look")),
    "arguments": ("openai", lambda wires: setattr(wires[1].tool_calls[0].function, "arguments", "x y " * 99)),
    "a refusal": ("openai", lambda wires: setattr(wires[1], "refusal", "no " * 99)),
    "text": ("anthropic", lambda wires: setattr(wires[1]["content"][1], "text", "x y " * 99)),
    "an input": ("anthropic", lambda wires: wires[1]["content"][2].input.update(q="x y " * 99)),
    "a value deep in an input": ("anthropic", lambda wires: wires[1]["content"][2].input["q"]["deep"].append("x" * 99)),
    "an unknown block": ("anthropic", lambda wires: wires[1]["content"][3].input.update(q="x y " * 99)),
    "a result": ("anthropic", lambda wires: setattr(wires[2]["content"][0]["content"][0], "text", "x y " * 99)),
}


@pytest.mark.parametrize(("name", "change"), CHANGES_OF_OBJECTS.values(), ids=list(CHANGES_OF_OBJECTS))
def test_objects_that_change_in_place_are_noticed(name, change):
    wires = OBJECTS[name]()
    history = history_of(wires)
    total = history.total
    change(wires)
    history.read(wires)
    assert history.total > total
    assert is_right(history, wires)


# Which dialect


def test_a_dialect_that_shows_late_is_noticed():
    wires: list[Any] = [{"role": "user", "content": "hi"}]
    history = history_of(wires)
    assert history.dialect.name == "openai"
    wires.append({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "search", "input": {}}]})
    history.read(wires)
    assert history.dialect.name == "anthropic"
    assert [use.id for use in history.messages[1].tool_uses] == ["1"]
    assert is_right(history, wires)


def test_a_dialect_that_shows_in_a_list_made_anew_is_noticed():
    history = history_of([{"role": "user", "content": "hi"}])
    wires = [said("user", "hello"), call("1"), answer("1")]
    history.read(wires)
    assert history.dialect.name == "converse"
    assert is_right(history, wires)


def test_a_dialect_that_was_given_is_not_doubted():
    history = history_of([said("user", "hi")], dialect=OpenAI())
    assert history.dialect.name == "openai"


# What compressors ask


def test_units_and_the_like():
    wires = [
        said("user", "hi") | {"metadata": {"custom": {"pinned": True}}},
        call("1"),
        answer("1", "x y " * 1_000),
        {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}]},
        said("user", "x y " * 1_000),
        call("2"),
        answer("2"),
    ]
    history = history_of(wires)
    assert list(history.units()) == [Unit(0, 1), Unit(1, 3), Unit(3, 4), Unit(4, 5), Unit(5, 7)]
    assert [history.unit_at(index) for index in (0, 1, 2, 6)] == [Unit(0, 1), Unit(1, 3), Unit(1, 3), Unit(5, 7)]
    assert history.kept == [0]
    assert history.large_results == [2]
    assert history.bound_reasoning_after(0) == [3]
    assert history.bound_reasoning_after(3) == [3]
    assert history.bound_reasoning_after(4) == []
    assert history.total == sum(history.tokens(at, at + 1) for at in range(7)) == history.tokens(0, 7)
    assert len(history) == 7


def test_system_messages_are_kept():
    history = history_of([{"role": "user", "content": "hi"}, {"role": "developer", "content": "be kind"}])
    assert history.kept == [1]


def test_an_empty_history():
    history = History()
    history.read([])
    history.verify([])
    assert (len(history), history.total, list(history.units()), history.messages) == (0, 0, [], [])


def test_a_history_of_messages_that_are_read_already():
    reasoning = Message("assistant", (Reasoning("hm", bound=True), ToolUse("1", "search")))
    history = History.of([Message.of_text("user", "hi"), reasoning, Message("user", (ToolResult("1"),))])
    assert list(history.units()) == [Unit(0, 1), Unit(1, 3)]
    assert history.bound_reasoning_after(0) == [1]
    history.read(wires := [said("user", "something else"), None])
    assert is_right(history, wires)


def test_what_was_read_is_written_as_the_very_same_objects():
    for name in ("converse", "anthropic", "openai"):
        wires = random_history(Random(7), name)  # type: ignore[arg-type]
        history = history_of(wires, dialect=dialect_named(name))
        assert all(written is wire for written, wire in zip(history.written(history.messages), wires, strict=True))


def test_new_messages_are_written_beside_old_ones():
    history = history_of([said("user", "hi")])
    written = history.written([Message("assistant", (Text("ho"),)), *history.messages])
    assert written == [said("assistant", "ho"), said("user", "hi")]


# Whatever happens

slow_draws = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


class Others:
    """Everybody but holdfast, at work on the same list."""

    def __init__(self, wires: list[Any], chance: Random) -> None:
        self.wires = wires
        self._chance = chance

    def change_something(self) -> None:
        ways = (
            self.append,
            self.append,
            self.insert,
            self.remove,
            self.replace,
            self.shuffle,
            self.rebuild,
            self.mutate,
        )
        self._chance.choice(ways)()

    def append(self) -> None:
        self.wires += self._some(2)

    def insert(self) -> None:
        at = self._place()
        self.wires[at:at] = self._some(1)

    def remove(self) -> None:
        at = self._place()
        del self.wires[at : at + self._chance.randrange(4)]

    def replace(self) -> None:
        at = self._place()
        self.wires[at : at + 1] = self._some(1)

    def shuffle(self) -> None:
        self._chance.shuffle(self.wires)

    def rebuild(self) -> None:
        self.wires[:] = deepcopy(self.wires)

    def mutate(self) -> None:
        for wire in self.wires[-3:]:
            wire["content"] = [*wire["content"], {"text": "changed in place"}]

    def _some(self, most: int) -> list[Any]:
        return [said("user", "x " * self._chance.randrange(900)) for _ in range(self._chance.randrange(most + 1))]

    def _place(self) -> int:
        return self._chance.randrange(len(self.wires) + 1)


@slow_draws
@given(histories("converse", pins=True, max_turns=8), st.integers(0, 2**32), st.integers(1, 12))
def test_after_any_edits_the_figures_are_those_of_a_fresh_count(wires, seed, edits):
    chance = Random(seed)
    others, history = Others(wires, chance), History(Converse())
    for _ in range(edits):
        others.change_something()
        (history.verify if chance.random() < 0.3 else history.read)(wires)
        assert is_right(history, wires)


@slow_draws
@pytest.mark.parametrize("name", ["converse", "anthropic", "openai"])
@given(data=st.data())
def test_units_are_what_stands_between_cuts(name, data):
    history = history_of(data.draw(histories(name, legal=False, max_turns=8)), dialect=dialect_named(name))
    starts = Cuts(history.messages).indices
    assert list(history.units()) == [Unit(*ends) for ends in pairwise([*starts, len(history)])]
    legal = [unit.start for unit in history.units() if not answers(history.messages[unit.start])]
    assert legal == legal_cuts(history.messages, kept_before=True)
    assert all(index in range(*history.unit_at(index)) for index in range(len(history)))
    assert {history.unit_at(index) for index in range(len(history))} == set(history.units())
