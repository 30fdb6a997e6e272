"""The three dialects: the contract, the quirks of each, and how one is told from another."""

from __future__ import annotations

import base64
import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.dialects import Anthropic, Converse, Dialect, OpenAI, dialect_named, dialect_of
from holdfast.errors import InvalidValueError
from holdfast.messages import (
    Block,
    Document,
    Image,
    Json,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
)
from holdfast.testing import DialectContract
from holdfast.testing.dialects import hostile_values
from holdfast.testing.histories import histories

PNG, PDF = b"\x89PNG", b"%PDF-1.4"
PNG_TEXT, PDF_TEXT = base64.b64encode(PNG).decode(), base64.b64encode(PDF).decode()
PNG_URL, PDF_URL = f"data:image/png;base64,{PNG_TEXT}", f"data:application/pdf;base64,{PDF_TEXT}"
SOUND = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}


class OwnDialectContract(DialectContract):
    """The contract over histories as providers want them, and over broken ones."""

    name: Any

    @pytest.fixture
    def dialect(self) -> Dialect:
        return dialect_named(self.name)

    def histories(self) -> st.SearchStrategy[list[Any]]:
        return st.one_of(histories(self.name, max_turns=5), histories(self.name, legal=False, pins=True, max_turns=5))


class TestConverse(OwnDialectContract):
    name = "converse"


class TestAnthropic(OwnDialectContract):
    name = "anthropic"


class TestOpenAI(OwnDialectContract):
    name = "openai"


def by_name(table: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    return {"argvalues": list(table.values()), "ids": list(table)}


def read_block(dialect: Dialect, wire: Any) -> Block:
    [block] = dialect.read({"role": "user", "content": [wire]}).blocks
    return block


def edited(dialect: Dialect, wire: Any) -> Any:
    """The message after somebody appended a block to it."""
    message = dialect.read(wire)
    [written] = dialect.write(message.with_blocks((*message.blocks, Text("more"))))
    return written


# Bedrock Converse

CONVERSE_BLOCKS: dict[str, tuple[Any, Block]] = {
    "text": ({"text": "hi"}, Text("hi")),
    "empty text": ({"text": ""}, Text("")),
    "call": (
        {"toolUse": {"toolUseId": "1", "name": "search", "input": {"q": 1}}},
        ToolUse("1", "search", {"q": 1}),
    ),
    "call without id": (
        {"toolUse": {"name": "search"}},
        Opaque("toolUse", {"toolUse": {"name": "search"}}),
    ),
    "failed result": (
        {"toolResult": {"toolUseId": "1", "status": "error", "content": [{"text": "no"}]}},
        ToolResult("1", (Text("no"),), is_error=True),
    ),
    "json result": (
        {"toolResult": {"toolUseId": "1", "content": [{"json": {"rows": [1]}}]}},
        ToolResult("1", (Json({"rows": [1]}),)),
    ),
    "result in a result": (
        {"toolResult": {"toolUseId": "1", "content": [{"toolResult": {"toolUseId": "2", "content": []}}]}},
        ToolResult("1", (Opaque("toolResult", {"toolResult": {"toolUseId": "2", "content": []}}),)),
    ),
    "image": ({"image": {"format": "png", "source": {"bytes": PNG}}}, Image("image/png", PNG)),
    "image elsewhere": ({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://x"}}}}, Image("image/png")),
    "document": (
        {"document": {"format": "pdf", "name": "report", "source": {"bytes": PDF}}},
        Document("pdf", "report", PDF),
    ),
    "document of text": (
        {"document": {"format": "pdf", "name": "report", "source": {"text": "grüße"}}},
        Document("txt", "report", "grüße".encode()),
    ),
    "document of blocks": (
        {"document": {"name": "report", "source": {"content": [{"text": "one"}, {"text": "two"}]}}},
        Document("txt", "report", b"one\ntwo"),
    ),
    "document of odd blocks": (
        {"document": {"name": "report", "source": {"content": [{"text": "one"}, {"image": {}}]}}},
        Opaque("document", {"document": {"name": "report", "source": {"content": [{"text": "one"}, {"image": {}}]}}}),
    ),
    "result as text": (
        {"toolResult": {"toolUseId": "1", "content": "ok"}},
        ToolResult("1", (Text("ok"),)),
    ),
    "signed reasoning": (
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        Reasoning("hm", bound=True),
    ),
    "unsigned reasoning": ({"reasoningContent": {"reasoningText": {"text": "hm"}}}, Reasoning("hm")),
    "redacted reasoning": ({"reasoningContent": {"redactedContent": b"\0"}}, Reasoning("", bound=True)),
    "cache point": (
        {"cachePoint": {"type": "default"}},
        Opaque("cachePoint", {"cachePoint": {"type": "default"}}),
    ),
    "guarded": (
        {"guardContent": {"text": {"text": "hi"}}},
        Opaque("guardContent", {"guardContent": {"text": {"text": "hi"}}}),
    ),
    "citations": (
        {"citationsContent": {"content": [{"text": "so"}], "citations": []}},
        Opaque("citationsContent", {"citationsContent": {"content": [{"text": "so"}], "citations": []}}),
    ),
    "no block": (None, Opaque("", None)),
}


@pytest.mark.parametrize(("wire", "block"), **by_name(CONVERSE_BLOCKS))
def test_converse_reads(wire, block):
    assert read_block(Converse(), wire) == block


@pytest.mark.parametrize(("wire", "block"), **by_name(CONVERSE_BLOCKS))
def test_converse_keeps_blocks_beside_an_edit(wire, block):
    written = edited(Converse(), {"role": "user", "content": [wire]})
    assert written == {"role": "user", "content": [wire, {"text": "more"}]}
    assert written["content"][0] is wire


def test_plain_text_in_converse_is_read_and_an_edit_makes_blocks_of_it():
    wire = {"role": "user", "content": "hi"}
    message = Converse().read(wire)
    assert message == Message("user", (Text("hi"),))
    assert Converse().write(message)[0] is wire
    assert Converse().write(message.with_pin(True)) == [wire | {"metadata": {"custom": {"pinned": True}}}]
    assert edited(Converse(), wire) == {"role": "user", "content": [{"text": "hi"}, {"text": "more"}]}


# Anthropic Messages

ANTHROPIC_BLOCKS: dict[str, tuple[Any, Block]] = {
    "text": ({"type": "text", "text": "hi"}, Text("hi")),
    "cached text": ({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}, Text("hi")),
    "cited text": ({"type": "text", "text": "hi", "citations": [{"type": "char_location"}]}, Text("hi")),
    "call": ({"type": "tool_use", "id": "1", "name": "search", "input": {}}, ToolUse("1", "search", {})),
    "result as text": ({"type": "tool_result", "tool_use_id": "1", "content": "ok"}, ToolResult("1", (Text("ok"),))),
    "result as blocks": (
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "ok"}], "is_error": True},
        ToolResult("1", (Text("ok"),), is_error=True),
    ),
    "result without content": ({"type": "tool_result", "tool_use_id": "1"}, ToolResult("1")),
    "image": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}},
        Image("image/png", PNG_TEXT),
    ),
    "image elsewhere": ({"type": "image", "source": {"type": "url", "url": "https://x"}}, Image()),
    "document": (
        {"type": "document", "title": "r", "source": {"type": "base64", "media_type": "application/pdf", "data": "A"}},
        Document("application/pdf", "r", "A"),
    ),
    "document of text": (
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "grüße"}},
        Document("text/plain", "", "grüße".encode()),
    ),
    "document of content": (
        {"type": "document", "title": "r", "source": {"type": "content", "content": "grüße"}},
        Document("text/plain", "r", "grüße".encode()),
    ),
    "document of blocks": (
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": t} for t in "ab"]}},
        Document("text/plain", "", b"a\nb"),
    ),
    "document of images": (
        {"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}},
        Opaque("document", {"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}}),
    ),
    "thinking": ({"type": "thinking", "thinking": "hm", "signature": "s"}, Reasoning("hm", bound=True)),
    "redacted thinking": ({"type": "redacted_thinking", "data": "x"}, Reasoning("", bound=True)),
    **{
        kind: (
            {"type": kind, "id": "1", "tool_use_id": "1"},
            Opaque(kind, {"type": kind, "id": "1", "tool_use_id": "1"}),
        )
        for kind in ("server_tool_use", "web_search_tool_result", "mcp_tool_use", "mcp_tool_result", "hologram")
    },
}


@pytest.mark.parametrize(("wire", "block"), **by_name(ANTHROPIC_BLOCKS))
def test_anthropic_reads(wire, block):
    assert read_block(Anthropic(), wire) == block


@pytest.mark.parametrize(("wire", "block"), **by_name(ANTHROPIC_BLOCKS))
def test_anthropic_keeps_blocks_beside_an_edit(wire, block):
    written = edited(Anthropic(), {"role": "user", "content": [wire]})
    assert written == {"role": "user", "content": [wire, {"type": "text", "text": "more"}]}
    assert written["content"][0] is wire


def test_anthropic_text_stays_text():
    message = Anthropic().read({"role": "user", "content": "hi"})
    assert message == Message("user", (Text("hi"),))
    assert Anthropic().write(message.with_blocks((Text("ho"),))) == [{"role": "user", "content": "ho"}]


def test_a_shortened_anthropic_result_stays_text_if_it_was():
    wire = {"type": "tool_result", "tool_use_id": "1", "content": "long", "cache_control": {"type": "ephemeral"}}
    message = Anthropic().read({"role": "user", "content": [wire]})
    [result] = message.tool_results
    [written] = Anthropic().write(message.with_blocks((result.with_content((Text("l"),)),)))
    assert written["content"] == [wire | {"content": "l"}]


# OpenAI Chat

OPENAI_MESSAGES: dict[str, tuple[Any, Message]] = {
    "text": ({"role": "user", "content": "hi"}, Message("user", (Text("hi"),))),
    "parts": ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, Message("user", (Text("hi"),))),
    "system": ({"role": "system", "content": "be kind"}, Message("system", (Text("be kind"),))),
    "developer": ({"role": "developer", "content": "be kind"}, Message("system", (Text("be kind"),))),
    "null content": ({"role": "assistant", "content": None}, Message("assistant", ())),
    "no content": ({"role": "assistant"}, Message("assistant", ())),
    "refusal": ({"role": "assistant", "content": None, "refusal": "no"}, Message("assistant", ())),
    "refusal as a part": (
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        Message("assistant", (Opaque("refusal", {"type": "refusal", "refusal": "no"}),)),
    ),
    "calls": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}],
        },
        Message("assistant", (ToolUse("1", "search", '{"q": 1}'),)),
    ),
    "custom call": (
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "custom", "custom": {"name": "sql", "input": "x"}}]},
        Message("assistant", (ToolUse("1", "sql", "x"),)),
    ),
    "call without id": (
        {"role": "assistant", "content": "so", "tool_calls": [{"type": "function", "function": {}}]},
        Message("assistant", (Text("so"), Opaque("tool call", {"type": "function", "function": {}}))),
    ),
    "reasoning": (
        {"role": "assistant", "content": "so", "reasoning_content": "hm"},
        Message("assistant", (Text("so"), Reasoning("hm"))),
    ),
    "result": (
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        Message("user", (ToolResult("1", (Text("ok"),)),)),
    ),
    "result of no call": ({"role": "tool", "content": "ok"}, Message("user", (Text("ok"),))),
    "function": ({"role": "function", "name": "search", "content": "ok"}, Message("user", (Text("ok"),))),
    "image": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG_URL}}]},
        Message("user", (Image("image/png", PNG_TEXT),)),
    ),
    "image elsewhere": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}]},
        Message("user", (Image(),)),
    ),
    "file": (
        {
            "role": "user",
            "content": [{"type": "file", "file": {"filename": "r", "file_data": PDF_URL}}],
        },
        Message("user", (Document("application/pdf", "r", PDF_TEXT),)),
    ),
    "file without a head": (
        {"role": "user", "content": [{"type": "file", "file": {"filename": "r", "file_data": PDF_TEXT}}]},
        Message("user", (Document("", "r", PDF_TEXT),)),
    ),
    "uploaded file": (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
        Message("user", (Document(),)),
    ),
    "sound": (
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]},
        Message(
            "user", (Opaque("input_audio", {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),)
        ),
    ),
}


@pytest.mark.parametrize(("wire", "message"), **by_name(OPENAI_MESSAGES))
def test_openai_reads(wire, message):
    assert OpenAI().read(wire) == message


@pytest.mark.parametrize(("wire", "message"), **by_name(OPENAI_MESSAGES))
def test_openai_keeps_all_but_the_pin(wire, message):
    [pinned] = OpenAI().write(OpenAI().read(wire).with_pin(True))
    assert pinned == wire | {"metadata": {"custom": {"pinned": True}}}


def test_openai_calls_that_cannot_be_read_stay_among_the_calls():
    calls = [{"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}, {"type": "odd"}, None]
    written = edited(OpenAI(), {"role": "assistant", "content": "so", "tool_calls": calls})
    assert written == {"role": "assistant", "content": "so\nmore", "tool_calls": calls}


def test_openai_calls_and_reasoning_can_leave():
    call = {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    message = OpenAI().read({"role": "assistant", "content": "so", "reasoning_content": "hm", "tool_calls": [call]})
    assert OpenAI().write(message.with_blocks((Text("so"),))) == [{"role": "assistant", "content": "so"}]


def test_openai_content_that_left_leaves_empty_text():
    message = OpenAI().read({"role": "user", "content": [{"type": "text", "text": "hi"}]})
    assert OpenAI().write(message.with_blocks(())) == [{"role": "user", "content": ""}]


# New messages

CONVERSATION = (
    Message("system", (Text("be kind"),)),
    Message("user", (Text("look"), Image("image/png", PNG), Document("application/pdf", "report", PDF))),
    Message("assistant", (Text("so"), ToolUse("1", "search", {"q": "ü"}), ToolUse("2", "search", '{"q": 2}'))),
    Message(
        "user", (ToolResult("1", (Text("one"),)), ToolResult("2", (Json({"two": 2}),), is_error=True), Text("and?"))
    ),
)


def test_new_messages_in_converse():
    assert [wire for message in CONVERSATION[1:] for wire in Converse().write(message)] == [
        {
            "role": "user",
            "content": [
                {"text": "look"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
                {"document": {"format": "pdf", "name": "report", "source": {"bytes": PDF}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"text": "so"},
                {"toolUse": {"toolUseId": "1", "name": "search", "input": {"q": "ü"}}},
                {"toolUse": {"toolUseId": "2", "name": "search", "input": {"q": 2}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "1", "status": "success", "content": [{"text": "one"}]}},
                {"toolResult": {"toolUseId": "2", "status": "error", "content": [{"json": {"two": 2}}]}},
                {"text": "and?"},
            ],
        },
    ]


def test_new_messages_in_anthropic():
    assert [wire for message in CONVERSATION[1:] for wire in Anthropic().write(message)] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_TEXT},
                    "title": "report",
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "1", "name": "search", "input": {"q": "ü"}},
                {"type": "tool_use", "id": "2", "name": "search", "input": {"q": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "one"}]},
                {
                    "type": "tool_result",
                    "tool_use_id": "2",
                    "is_error": True,
                    "content": [{"type": "text", "text": '{"two": 2}'}],
                },
                {"type": "text", "text": "and?"},
            ],
        },
    ]


def test_new_messages_in_openai():
    assert [wire for message in CONVERSATION for wire in OpenAI().write(message)] == [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": PNG_URL}},
                {
                    "type": "file",
                    "file": {"filename": "report", "file_data": PDF_URL},
                },
            ],
        },
        {
            "role": "assistant",
            "content": "so",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "search", "arguments": json.dumps({"q": "ü"})}},
                {"id": "2", "type": "function", "function": {"name": "search", "arguments": '{"q": 2}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "one"},
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": '{"two": 2}'}]},
        {"role": "user", "content": "and?"},
    ]


def test_calls_without_words_have_no_content_in_openai():
    [written] = OpenAI().write(Message("assistant", (ToolUse("1", "now"),)))
    assert written["content"] is None
    assert written["tool_calls"] == [{"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]


@pytest.mark.parametrize("dialect", [Converse(), Anthropic(), OpenAI()], ids=lambda dialect: dialect.name)
def test_notes_on_a_new_message_are_written_and_not_sent(dialect):
    [written] = dialect.write(Message.of_text("user", "hi", made_as="summary"))
    assert written["metadata"] == {"custom": {"holdfast": "summary"}}
    assert dialect.read(written).made_as == "summary"
    assert dialect.sendable([written]) == dialect.write(Message.of_text("user", "hi"))


@pytest.mark.parametrize("dialect", [Converse(), Anthropic(), OpenAI()], ids=lambda dialect: dialect.name)
def test_what_a_framework_keeps_beside_a_pin_stays_when_the_pin_goes(dialect):
    metadata = {"usage": {"inputTokens": 7}, "custom": {"pinned": True, "mine": 1}}
    wire = {"role": "user", "content": [{"type": "text", "text": "hi"}], "tracking_id": "t", "metadata": metadata}
    [unpinned] = dialect.write(dialect.read(wire).with_pin(False))
    assert unpinned["metadata"] == {"usage": {"inputTokens": 7}, "custom": {"mine": 1}}
    assert metadata["custom"] == {"pinned": True, "mine": 1}
    assert dialect.sendable([unpinned]) == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


@pytest.mark.parametrize("dialect", [Converse(), Anthropic(), OpenAI()], ids=lambda dialect: dialect.name)
def test_a_mapping_that_is_no_dict_is_read_and_sent_without_its_pin(dialect):
    wire = MappingProxyType({"role": "user", "name": "alice", "content": [], "metadata": {"custom": {"pinned": True}}})
    message = dialect.read(wire)
    assert message.pinned
    assert dialect.write(message)[0] is wire
    assert dialect.write(message.with_pin(False)) == [{"role": "user", "name": "alice", "content": []}]
    assert dialect.sendable([wire]) == [{"role": "user", "name": "alice", "content": []}]


def test_a_message_read_in_one_dialect_is_written_in_another():
    wires = [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "search", "input": {"q": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "one"}]}}]},
    ]
    call, answer = map(Converse().read, wires)
    [use], [result] = call.tool_uses, answer.tool_results
    new = [
        Message("assistant", (ToolUse(use.id, use.name, use.input),)),
        Message("user", (ToolResult(result.tool_use_id, (Text("one"),)),)),
    ]
    assert [wire for message in new for wire in OpenAI().write(message)] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "one"},
    ]
    assert [Anthropic().read(wire) for message in new for wire in Anthropic().write(message)] == [call, answer]


@pytest.mark.parametrize(
    ("given_as", "written"), [('{"q": 1}', {"q": 1}), ("SELECT 1", {"input": "SELECT 1"}), (None, {}), ([1], [1])]
)
def test_an_input_that_came_as_text_is_written_as_a_value(given_as, written):
    message = Message("assistant", (ToolUse("1", "search", given_as),))
    assert Converse().write(message)[0]["content"][0]["toolUse"]["input"] == written
    assert Anthropic().write(message)[0]["content"][0]["input"] == written


# Objects of a provider's SDK


class Model:
    """As pydantic's models are: attributes, and a dump."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        return {name: dumped(value) for name, value in vars(self).items() if value is not None or not exclude_none}


def dumped(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(dumped, value))
    return value.model_dump(exclude_none=True) if isinstance(value, Model) else value


CALL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}


def call_object() -> Model:
    return Model(id="1", type="function", function=Model(name="search", arguments='{"q": 1}'))


OPENAI_OBJECTS: dict[str, tuple[Any, Any]] = {
    "a message": (
        Model(role="assistant", content=None, refusal=None, tool_calls=[call_object()]),
        {"role": "assistant", "tool_calls": [CALL]},
    ),
    "calls in a dict": (
        {"role": "assistant", "content": None, "tool_calls": [call_object()]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ),
    "a function in a call": (
        {"role": "assistant", "content": None, "tool_calls": [CALL | {"function": Model(**CALL["function"])}]},  # type: ignore[arg-type]
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ),
    "parts": (
        {"role": "user", "content": [Model(type="text", text="hi"), Model(type="hologram", of=None, at=1)]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "hologram", "at": 1}]},
    ),
    "a result": (
        Model(role="tool", tool_call_id="1", content="found"),
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ),
}


@pytest.mark.parametrize(("wire", "same"), **by_name(OPENAI_OBJECTS))
def test_openai_reads_objects_like_dicts_and_gives_them_back(wire, same):
    message = OpenAI().read(wire)
    assert message == OpenAI().read(same)
    assert OpenAI().write(message)[0] is wire


@pytest.mark.parametrize("name", ["a message", "a result"])
def test_openai_objects_become_dicts_when_pinned(name):
    wire, same = OPENAI_OBJECTS[name]
    [pinned] = OpenAI().write(OpenAI().read(wire).with_pin(True))
    assert pinned == same | {"metadata": {"custom": {"pinned": True}}}


def test_an_edited_openai_object_is_a_dict_with_its_calls():
    written = edited(OpenAI(), OPENAI_OBJECTS["a message"][0])
    assert written == {"role": "assistant", "content": "more", "tool_calls": [CALL]}
    json.dumps(written)


def test_a_shortened_openai_result_is_a_dict():
    message = OpenAI().read(Model(role="tool", tool_call_id="1", content="found", x_key=1))
    [result] = message.tool_results
    [written] = OpenAI().write(message.with_blocks((result.with_content((Text("f"),)),)))
    assert written == {"role": "tool", "tool_call_id": "1", "content": "f", "x_key": 1}


def anthropic_objects() -> list[Any]:
    return [
        Model(type="thinking", thinking="hm", signature="s"),
        Model(type="text", text="let me look", citations=None),
        Model(type="tool_use", id="1", name="search", input={"q": 1}),
        Model(type="web_search_tool_result", tool_use_id="2", content=[Model(type="web_search_result", url="x")]),
    ]


def test_anthropic_reads_objects_like_dicts_and_gives_them_back():
    wire = {"role": "assistant", "content": anthropic_objects()}
    message = Anthropic().read(wire)
    assert message == Anthropic().read({"role": "assistant", "content": dumped(wire["content"])})
    assert message.blocks[:3] == (
        Reasoning("hm", bound=True),
        Text("let me look"),
        ToolUse("1", "search", {"q": 1}),
    )
    assert Anthropic().write(message)[0] is wire


def test_an_edited_message_of_anthropic_objects_is_of_dicts():
    wire = {"role": "assistant", "content": anthropic_objects()}
    before = list(wire["content"])
    written = edited(Anthropic(), wire)
    assert written["content"] == [*dumped(before), {"type": "text", "text": "more"}]
    assert written["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert wire["content"] == before
    json.dumps(written)


def test_converse_reads_objects_like_dicts():
    wire = Model(role="user", content=[Model(toolResult=Model(toolUseId="1", content=[Model(text="found")]))])
    message = Converse().read(wire)
    assert message == Message("user", (ToolResult("1", (Text("found"),)),))
    assert Converse().write(message)[0] is wire
    assert edited(Converse(), wire)["content"] == [*dumped(wire)["content"], {"text": "more"}]


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        (OPENAI_OBJECTS["a message"][0], "openai"),
        (OPENAI_OBJECTS["a result"][0], "openai"),
        ({"role": "assistant", "content": anthropic_objects()}, "anthropic"),
        (Model(role="assistant", content=anthropic_objects()), "anthropic"),
        (Model(role="user", content=[Model(text="hi")]), "converse"),
    ],
)
def test_objects_give_the_dialect_away(wire, name):
    found = dialect_of([{"role": "user", "content": "hi"}, wire])
    assert found is not None
    assert found.name == name


class Raising:
    def model_dump(self, **options: Any) -> Any:
        raise RuntimeError("not now")


class Hiding:
    @property
    def model_dump(self) -> Any:
        raise RuntimeError("not now")


class Babbling:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def model_dump(self, **options: Any) -> Any:
        return self.answer


ODD_OBJECTS: list[Any] = [Raising(), Hiding(), Babbling("text"), Babbling(None), Babbling([1]), Raising, Model]


@pytest.mark.parametrize("odd", ODD_OBJECTS, ids=repr)
@pytest.mark.parametrize("dialect", [Converse(), Anthropic(), OpenAI()], ids=lambda dialect: dialect.name)
def test_an_object_that_cannot_be_read_is_passed_on(dialect, odd):
    assert dialect.write(dialect.read(odd)) == [odd]
    assert dialect.write(dialect.read(odd).with_pin(True)) == [odd]
    assert dialect.sendable([odd]) == [odd]
    wire = {"role": "user", "content": [odd], "tool_calls": [odd]}
    message = dialect.read(wire)
    assert all(isinstance(block, Opaque) and block.value is odd for block in message.blocks)
    assert edited(dialect, wire)["content"][0] is odd
    assert dialect_of([odd, {"role": "user", "content": [odd]}]) is None


# Which dialect it is

UNDECIDABLE: dict[str, Any] = {
    "nothing": [],
    "plain text": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
    "parts of text": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    "cached text": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}],
    "an unknown part": [{"role": "user", "content": [{"type": "hologram"}]}],
    "odd types": [{"role": "user", "content": [{"type": 7}, {"type": ["text"]}, {}, None, "text"]}],
    "no messages": [None, "hi", 7, [], {}],
    "no content": [{"role": "user", "content": []}, {"role": "user"}, {"role": 7, "content": 7}],
}
SIGNS: dict[str, tuple[Any, str]] = {
    **{
        f"converse {name}": ({"role": "user", "content": [wire]}, "converse")
        for name, (wire, _) in CONVERSE_BLOCKS.items()
        if wire
    },
    **{
        f"anthropic {name}": ({"role": "user", "content": [wire]}, "anthropic")
        for name, (wire, _) in ANTHROPIC_BLOCKS.items()
        if wire["type"] not in ("text", "hologram")
    },
    **{
        f"openai {name}": (wire, "openai")
        for name, (wire, _) in OPENAI_MESSAGES.items()
        if name not in ("text", "parts", "null content", "no content")
    },
}


@pytest.mark.parametrize("wires", UNDECIDABLE.values(), ids=list(UNDECIDABLE))
def test_the_dialect_of_plain_text_is_anybodys(wires):
    assert dialect_of(wires) is None


@pytest.mark.parametrize(("wire", "name"), **by_name(SIGNS))
def test_one_message_gives_the_dialect_away(wire, name):
    found = dialect_of([{"role": "user", "content": "hi"}, wire])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", ["converse", "anthropic", "openai"])
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_no_history_is_taken_for_another_dialect(name, data):
    found = dialect_of(data.draw(histories(name, max_turns=4)))
    assert found is None or found.name == name


@given(st.lists(hostile_values(), max_size=3))
def test_whatever_it_is_looking_for_the_dialect_never_fails(wires):
    found = dialect_of(wires)
    assert found is None or found.name in ("converse", "anthropic", "openai")


@pytest.mark.parametrize("name", ["converse", "anthropic", "openai"])
def test_a_dialect_goes_by_its_name(name):
    assert dialect_named(name).name == name


@pytest.mark.parametrize("name", ["gemini", "", "OpenAI", None, 7, ["openai"]])
def test_an_unknown_name_says_which_are_known(name):
    with pytest.raises(InvalidValueError, match="dialect must be one of 'converse', 'anthropic', 'openai', got"):
        dialect_named(name)


def test_texts_of_a_result_are_joined_without_the_empty_ones():
    result = ToolResult("t1", (Text("ok"), Text(""), Text("then"), Text("")))
    assert OpenAI().write(Message("user", (result,))) == [{"role": "tool", "tool_call_id": "t1", "content": "ok\nthen"}]


@pytest.mark.parametrize("dialect", [Converse(), Anthropic(), OpenAI()])
def test_a_pin_adds_nothing_else_to_a_message_that_holds_nothing(dialect):
    [pinned] = dialect.write(dialect.read({}).with_pin(True))
    assert pinned.keys() == {"metadata"}
