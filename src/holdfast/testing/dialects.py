"""The contract of a dialect, as tests. The test file of a dialect of your own is a fixture, histories, and its quirks:

class TestMyDialect(DialectContract):
    @pytest.fixture
    def dialect(self):
        return MyDialect()

    def histories(self):
        return st.lists(st.sampled_from(MESSAGES))
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.dialects import Dialect
from holdfast.messages import Block, Message, Opaque, Reasoning, Text, ToolResult

__all__ = ["DialectContract", "hostile_values"]

_many = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[
        HealthCheck.differing_executors,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


class DialectContract:
    """What every dialect promises. Subclass it and override the fixture `dialect` and the method `histories`."""

    @pytest.fixture
    def dialect(self) -> Dialect:
        """The dialect to test."""
        raise NotImplementedError("override the fixture `dialect`")

    def histories(self) -> st.SearchStrategy[list[Any]]:
        """Lists of messages as a provider would get them, or as a bug would leave them."""
        raise NotImplementedError("override the method `histories`")

    @_many
    @given(data=st.data())
    def test_what_nobody_changed_goes_back_as_the_very_same_objects(
        self, dialect: Dialect, data: st.DataObject
    ) -> None:
        wires = data.draw(self.histories())
        before = deepcopy(wires)
        written = [dialect.write(dialect.read(wire)) for wire in wires]
        assert all(len(given_back) == 1 for given_back in written)
        assert all(given_back is wire for [given_back], wire in zip(written, wires, strict=True))
        assert wires == before

    @_many
    @given(data=st.data())
    def test_reading_again_says_the_same(self, dialect: Dialect, data: st.DataObject) -> None:
        for wire in data.draw(self.histories()):
            assert dialect.read(wire) == dialect.read(deepcopy(wire))

    @_many
    @given(data=st.data())
    def test_a_new_message_says_what_it_was_made_of(self, dialect: Dialect, data: st.DataObject) -> None:
        for wire in data.draw(self.histories()):
            message = dialect.read(wire)
            written = dialect.write(_as_new(message))
            assert _gist(map(dialect.read, written)) == _gist([message])

    @_many
    @given(data=st.data())
    def test_a_pin_stands_under_metadata_and_changes_nothing_else(self, dialect: Dialect, data: st.DataObject) -> None:
        for wire in _unpinned(data.draw(self.histories())):
            before = deepcopy(wire)
            [pinned] = dialect.write(dialect.read(wire).with_pin(True))
            assert pinned["metadata"]["custom"]["pinned"] is True
            assert all(pinned[name] is value for name, value in wire.items() if name != "metadata")
            assert pinned.keys() - wire.keys() <= {"metadata"}
            assert dialect.read(pinned).pinned
            assert dialect.write(dialect.read(pinned).with_pin(False)) == [before]
            assert wire == before

    @_many
    @given(data=st.data())
    def test_what_is_private_is_not_sent(self, dialect: Dialect, data: st.DataObject) -> None:
        wires = _unpinned(data.draw(self.histories()))
        pinned = [pin for wire in wires for pin in dialect.write(dialect.read(wire).with_pin(True))]
        sent = dialect.sendable(pinned)
        assert not any("metadata" in wire or "tracking_id" in wire for wire in sent)
        assert sent == dialect.sendable(wires)

    @_many
    @given(data=st.data())
    def test_what_has_nothing_private_is_sent_as_it_is(self, dialect: Dialect, data: st.DataObject) -> None:
        wires = [wire for wire in data.draw(self.histories()) if {"metadata", "tracking_id"}.isdisjoint(wire)]
        assert all(sent is wire for sent, wire in zip(dialect.sendable(wires), wires, strict=True))

    @_many
    @given(data=st.data())
    def test_what_is_unknown_stays_when_something_else_changes(self, dialect: Dialect, data: st.DataObject) -> None:
        for wire in data.draw(self.histories()):
            wire["x_unknown"] = {"of": "a message"}
            for part in _parts([wire]):
                part["x_unknown"] = {"of": "a part"}
            if isinstance(wire.get("content"), list):
                wire["content"].append({"type": "x_unknown", "x_unknown": {}})
            message = dialect.read(wire)
            written = dialect.write(message.with_blocks((*message.blocks, Text("more"))))
            assert any(other.get("x_unknown") is wire["x_unknown"] for other in written)
            assert {id(part) for part in _parts([wire])} <= {id(part) for part in _parts(written)}
            assert _gist(map(dialect.read, written))["said"].split() == [*_gist([message])["said"].split(), "more"]

    @_many
    @given(data=st.data())
    def test_another_result_of_a_tool_changes_its_content_only(self, dialect: Dialect, data: st.DataObject) -> None:
        for wire in data.draw(self.histories()):
            message, before = dialect.read(wire), deepcopy(wire)
            for at, block in enumerate(message.blocks):
                if isinstance(block, ToolResult):
                    edited = block.with_content((Text("another result"),))
                    [written] = dialect.write(message.with_blocks(_with_block(message.blocks, at, edited)))
                    assert dialect.read(written).blocks == _with_block(message.blocks, at, edited)
                    assert len({_up_to_content(path) for path in _differences(wire, written)}) == 1
            assert wire == before

    @_many
    @given(data=st.data())
    def test_what_is_no_message_is_passed_on(self, dialect: Dialect, data: st.DataObject) -> None:
        wire = data.draw(hostile_values())
        message = dialect.read(wire)
        [given_back] = dialect.write(message)
        assert given_back is wire
        dialect.write(message.with_pin(True))
        dialect.write(message.with_blocks((*message.blocks, Text("more"))))
        assert len(dialect.sendable([wire])) == 1

    def test_what_holds_itself_is_passed_on(self, dialect: Dialect) -> None:
        for key in ("toolResult", "tool_result"):
            content: list[Any] = []
            result = {"type": key, "toolUseId": "1", "tool_use_id": "1", "content": content}
            content += [result | {key: result}]
            wire = {"role": "user", "content": content}
            [given_back] = dialect.write(dialect.read(wire))
            assert given_back is wire


_WORDS = (
    *(
        "role",
        "content",
        "type",
        "text",
        "id",
        "name",
        "input",
        "metadata",
        "custom",
        "pinned",
        "tool_calls",
        "function",
    ),
    *("toolUse", "toolResult", "toolUseId", "status", "json", "image", "document", "source", "bytes", "format"),
    *("reasoningContent", "reasoningText", "redactedContent", "signature", "cachePoint", "tool_use", "tool_result"),
    *("tool_use_id", "is_error", "thinking", "redacted_thinking", "media_type", "data", "title", "tool_call_id"),
    *("arguments", "image_url", "url", "file", "file_data", "filename", "refusal", "reasoning_content"),
    *("user", "assistant", "system", "developer", "tool", "error", "base64", "data:image/png;base64,AA=="),
)


def hostile_values() -> st.SearchStrategy[Any]:
    """Values in which the words of all providers stand in the wrong places, and of the wrong types."""
    words = st.sampled_from(_WORDS)
    leaves = st.one_of(st.none(), words, st.text(max_size=5), st.integers(), st.binary(max_size=5), st.booleans())
    numbers = st.sampled_from([math.nan, math.inf, -0.0])
    values = st.recursive(
        st.one_of(leaves, numbers),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=5), st.tuples(inner), _blocks(inner)
        ),
        max_leaves=30,
    )
    contents = st.one_of(values, st.lists(values, max_size=4))
    roles = st.one_of(st.sampled_from(["user", "assistant", "tool", "system"]), values)
    messages = st.fixed_dictionaries(
        {}, optional={"role": roles, "content": contents, "tool_calls": contents, "metadata": values}
    )
    return st.one_of(values, messages)


def _blocks(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Something that looks like a block, up to a point."""
    kinds = st.sampled_from(["text", "tool_use", "tool_result", "image", "document", "thinking", "image_url", "file"])
    return st.fixed_dictionaries(
        {"type": kinds},
        optional=dict.fromkeys(("id", "tool_use_id", "text", "content", "source", "input", "image_url"), inner),
    )


def _as_new(message: Message) -> Message:
    """The message as if holdfast had made it."""
    return Message(message.role, tuple(map(_as_new_block, message.blocks)), message.notes)


def _as_new_block(block: Block) -> Block:
    if isinstance(block, ToolResult):
        return replace(block, content=tuple(map(_as_new_block, block.content)), wire=None)
    return replace(block, wire=None)


def _gist(messages: Iterable[Message]) -> dict[str, Any]:
    """What has to be the same however it is written. Reasoning is left out: only its provider can make it."""
    read = list(messages)
    blocks = [block for message in read for block in message.blocks if not isinstance(block, Reasoning)]
    return {
        "roles": {message.role for message in read},
        "calls": [(use.id, use.name, use.input or {}) for message in read for use in message.tool_uses],
        "answers": [(result.tool_use_id, result.is_error) for message in read for result in message.tool_results],
        "said": "\n".join(_texts(blocks)),
        "unknown": [block.value for block in blocks if isinstance(block, Opaque)],
    }


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield what is said in the blocks; results first, as some providers have them in messages of their own."""
    for block in sorted(blocks, key=lambda block: not isinstance(block, ToolResult)):
        if isinstance(block, ToolResult):
            yield from _texts(block.content)
        elif isinstance(block, Text) and block.text:
            yield block.text


def _unpinned(wires: list[Any]) -> list[Any]:
    return [{name: value for name, value in wire.items() if name != "metadata"} for wire in wires]


def _parts(wires: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield what the lists in messages hold: blocks, parts and calls."""
    for wire in wires:
        lists = [value for value in wire.values() if isinstance(value, list)]
        yield from (part for parts in lists for part in parts if isinstance(part, dict))


def _with_block(blocks: tuple[Block, ...], at: int, block: Block) -> tuple[Block, ...]:
    return (*blocks[:at], block, *blocks[at + 1 :])


def _differences(before: Any, after: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where two values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        missing = object()
        for name in before | after:
            yield from _differences(before.get(name, missing), after.get(name, missing), (*path, name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, (*path, at))
    elif before is not after and before != after:
        yield path


def _up_to_content(path: tuple[Any, ...]) -> tuple[Any, ...]:
    return path[: len(path) - path[::-1].index("content")]
