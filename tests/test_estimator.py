"""The estimate of a message: nothing that is sent goes uncounted, and no media are counted as text."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.dialects import Anthropic, Converse, Dialect, OpenAI, dialect_named
from holdfast.messages import Message, Text
from holdfast.testing.dialects import hostile_values
from holdfast.testing.histories import histories
from holdfast.tokens import TokenEstimator, estimate_input_tokens

DIALECTS: list[Dialect] = [Converse(), Anthropic(), OpenAI()]
LONG = "Grüße aus dem Norden, wo es regnet. " * 1_000
SOUND = Random(7).randbytes(1_000_000)
SOUND_TEXT = base64.b64encode(SOUND).decode()
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1_000).to_bytes(4, "big") * 2 + Random(7).randbytes(100_000)
PNG_TEXT = base64.b64encode(PNG).decode()
by_estimate = TokenEstimator()
by_length = TokenEstimator(len)


def of_user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def count(dialect: Dialect, wire: Any) -> int:
    return by_estimate.message(dialect.read(wire))


# What was not counted once

TEXTS: dict[str, tuple[Dialect, Any]] = {
    "converse document of text": (Converse(), of_user({"document": {"name": "r", "source": {"text": LONG}}})),
    "converse document of text that is called a PDF": (
        Converse(),
        of_user({"document": {"format": "pdf", "name": "r", "source": {"text": LONG}}}),
    ),
    "converse document of blocks": (
        Converse(),
        of_user({"document": {"name": "r", "source": {"content": [{"text": LONG}]}}}),
    ),
    "converse document in a result": (
        Converse(),
        of_user({"toolResult": {"toolUseId": "1", "content": [{"document": {"source": {"text": LONG}}}]}}),
    ),
    "converse text": (Converse(), {"role": "user", "content": LONG}),
    "converse result as text": (Converse(), of_user({"toolResult": {"toolUseId": "1", "content": LONG}})),
    "anthropic document of content": (
        Anthropic(),
        of_user({"type": "document", "source": {"type": "content", "content": LONG}}),
    ),
    "anthropic document of blocks": (
        Anthropic(),
        of_user({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": LONG}]}}),
    ),
    "openai file that is no base64": (OpenAI(), of_user({"type": "file", "file": {"file_data": LONG}})),
    "openai function call": (
        OpenAI(),
        {"role": "assistant", "content": None, "function_call": {"name": "write", "arguments": LONG}},
    ),
    "openai refusal": (OpenAI(), {"role": "assistant", "content": None, "refusal": LONG}),
    "litellm thinking": (
        OpenAI(),
        {"role": "assistant", "content": "", "thinking_blocks": [{"type": "thinking", "thinking": LONG}]},
    ),
    "openrouter reasoning": (
        OpenAI(),
        {"role": "assistant", "content": "", "reasoning_details": [{"type": "reasoning.text", "text": LONG}]},
    ),
    "responses call": (OpenAI(), {"type": "function_call", "call_id": "1", "name": "write", "arguments": LONG}),
    "responses result": (OpenAI(), {"type": "function_call_output", "call_id": "1", "output": LONG}),
    "gemini parts": (OpenAI(), {"role": "user", "parts": [{"text": LONG}]}),
}


@pytest.mark.parametrize(("dialect", "wire"), TEXTS.values(), ids=list(TEXTS))
def test_all_text_counts_wherever_it_stands(dialect, wire):
    text = by_estimate.text(LONG)
    assert 0.95 * text <= count(dialect, wire) <= 1.1 * text + 50


def test_base64_of_a_file_counts_with_and_without_a_head():
    pdf = base64.b64encode(b"%PDF-1.4" + b"<< /Type /Page >>" * 30).decode()
    bare, headed = (
        count(OpenAI(), of_user({"type": "file", "file": {"filename": "r.pdf", "file_data": data}}))
        for data in (pdf, f"data:application/pdf;base64,{pdf}")
    )
    assert bare == headed > 30_000


def test_a_file_elsewhere_counts_as_before():
    uploaded = count(OpenAI(), of_user({"type": "file", "file": {"file_id": "file-1"}}))
    assert uploaded == count(OpenAI(), of_user({"type": "file", "file": {"file_data": "https://x.example/r.pdf"}}))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_no_model_is_shown_is_free(dialect):
    wire = {"role": "assistant", "content": "hi"}
    private = {"metadata": {"custom": {"mine": LONG}}, "tracking_id": LONG}
    small = {"id": "msg_1", "name": "alice", "type": "message", "status": "completed", "refusal": None, "audio": None}
    answered = {"model": "claude", "usage": {"input_tokens": 7}, "stop_reason": "end_turn", "stop_sequence": None}
    assert count(dialect, wire) == count(dialect, wire | private | small | answered)


def test_a_message_without_more_is_counted_without_a_look_at_its_values():
    class Touchy(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("looked at")

    wire = Touchy(role="user", content="hi", metadata={})
    assert by_estimate.message(Message("user", (Text("hi"),), wire=wire)) == by_estimate.message(
        Message("user", (Text("hi"),))
    )


# Media that hide

HIDDEN: dict[str, tuple[Dialect, Any]] = {
    "openai sound": (OpenAI(), of_user({"type": "input_audio", "input_audio": {"data": SOUND_TEXT, "format": "wav"}})),
    "openai sound in an answer": (
        OpenAI(),
        {"role": "assistant", "content": "", "audio": {"id": "1", "data": SOUND_TEXT, "transcript": "hi"}},
    ),
    "anthropic unknown": (Anthropic(), of_user({"type": "hologram", "source": {"data": SOUND_TEXT}})),
    "openai unknown": (OpenAI(), of_user({"type": "hologram", "data": SOUND_TEXT})),
    "a list of unknowns": (OpenAI(), of_user({"type": "holograms", "of": [{"data": SOUND_TEXT}]})),
    "data URL": (OpenAI(), of_user({"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{SOUND_TEXT}"}})),
    "converse film": (Converse(), of_user({"video": {"format": "mp4", "source": {"bytes": SOUND}}})),
    "converse film as text": (Converse(), of_user({"video": {"format": "mp4", "source": {"bytes": SOUND_TEXT}}})),
}


@pytest.mark.parametrize(("dialect", "wire"), HIDDEN.values(), ids=list(HIDDEN))
def test_sound_and_film_count_by_their_bytes(dialect, wire):
    assert 2_000 <= count(dialect, wire) <= 2_100


def test_a_little_sound_is_little():
    wire = of_user({"type": "input_audio", "input_audio": {"data": SOUND_TEXT[:4_000], "format": "wav"}})
    assert count(OpenAI(), wire) < 50


@pytest.mark.parametrize(
    "block",
    [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG_TEXT}"},
        {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"},
    ],
)
def test_an_image_in_an_unknown_block_counts_as_an_image(block):
    shown = count(OpenAI(), of_user({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_TEXT}"}}))
    assert shown <= count(OpenAI(), of_user(block)) <= shown + 50


def test_an_image_in_an_anthropic_document_counts_as_an_image():
    source = {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}
    image = {"type": "image", "source": source}
    shown = count(Anthropic(), of_user(image))
    document = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "so"}, image]}}
    assert shown < count(Anthropic(), of_user(document)) <= shown + 100


TOLD_AS_TEXT: dict[str, tuple[Dialect, Any]] = {
    "a call's input": (
        Anthropic(),
        of_user({"type": "tool_use", "id": "1", "name": "write", "input": {"data": SOUND_TEXT}}),
    ),
    "a result's JSON": (
        Converse(),
        of_user({"toolResult": {"toolUseId": "1", "content": [{"json": {"data": SOUND_TEXT}}]}}),
    ),
    "text": (OpenAI(), of_user({"type": "text", "text": SOUND_TEXT})),
    "encrypted reasoning": (
        OpenAI(),
        {
            "role": "assistant",
            "content": "",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": SOUND_TEXT}],
        },
    ),
    "redacted thinking": (Anthropic(), of_user({"type": "redacted_thinking", "data": SOUND_TEXT})),
    "another name": (OpenAI(), of_user({"type": "hologram", "note": SOUND_TEXT})),
}


@pytest.mark.parametrize(("dialect", "wire"), TOLD_AS_TEXT.values(), ids=list(TOLD_AS_TEXT))
def test_base64_that_the_model_is_told_as_text_counts_as_text(dialect, wire):
    assert count(dialect, wire) > 0.9 * by_estimate.text(SOUND_TEXT)


def test_prose_under_a_name_for_media_is_prose():
    prose = "and so it was said once more " * 1_000
    assert count(OpenAI(), of_user({"type": "note", "data": prose})) > 0.9 * by_estimate.text(prose)


# The same before and after


def counts_the_same(dialect: Dialect, message: Message) -> bool:
    return by_length.message(message) == sum(map(by_length.message, map(dialect.read, dialect.write(message))))


@pytest.mark.parametrize("name", ["converse", "anthropic", "openai"])
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_a_message_counts_the_same_after_it_was_written(name, data):
    dialect = dialect_named(name)
    more = st.dictionaries(st.sampled_from(["refusal", "function_call", "x_key", "audio"]), st.text() | st.none())
    for wire in data.draw(histories(name, legal=False, pins=True, max_turns=5)):
        message = dialect.read(wire | data.draw(more))
        assert counts_the_same(dialect, message)
        assert counts_the_same(dialect, message.with_pin(not message.pinned))
        shortened = tuple(result.with_content((Text("short"),)) for result in message.tool_results)
        assert not shortened or counts_the_same(dialect, message.with_blocks(shortened))


@pytest.mark.parametrize(("dialect", "wire"), [*TEXTS.values(), *HIDDEN.values(), *TOLD_AS_TEXT.values()])
def test_odd_messages_count_the_same_after_they_were_written(dialect, wire):
    message = dialect.read(wire)
    assert counts_the_same(dialect, message)
    assert counts_the_same(dialect, message.with_pin(True))


class Model:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None or not exclude_none}


OBJECTS: dict[str, tuple[Dialect, Any, Any]] = {
    "a refusal": (
        OpenAI(),
        Model(role="assistant", content=None, refusal=LONG, audio=None),
        {"role": "assistant", "refusal": LONG},
    ),
    "an unknown block": (
        Anthropic(),
        {"role": "assistant", "content": [Model(type="server_tool_use", id="1", name=None, input={"q": LONG})]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "1", "input": {"q": LONG}}]},
    ),
    "in an input": (
        Converse(),
        of_user({"toolUse": {"toolUseId": "1", "name": "a", "input": {"q": Model(text=LONG, of=None)}}}),
        of_user({"toolUse": {"toolUseId": "1", "name": "a", "input": {"q": {"text": LONG}}}}),
    ),
}


@pytest.mark.parametrize(("dialect", "wire", "same"), OBJECTS.values(), ids=list(OBJECTS))
def test_objects_count_like_what_they_dump(dialect, wire, same):
    assert count(dialect, wire) == count(dialect, same) > by_estimate.text(LONG)
    assert counts_the_same(dialect, dialect.read(wire).with_pin(True))


@given(hostile_values())
def test_anything_has_an_estimate(value):
    for dialect in DIALECTS:
        assert by_estimate.message(dialect.read(value)) >= 4
        assert by_estimate.message(dialect.read({"role": "user", "content": "hi", "x_key": value})) >= 4
    assert estimate_input_tokens([value]) >= 4


def test_what_holds_itself_or_is_too_deep_has_an_estimate():
    around: dict[str, Any] = {"type": "hologram"}
    around["data"] = around
    deep = json.loads("[" * 900 + "]" * 900)
    for value in (around, [deep] * 2, {"data": [[deep]]}):
        assert count(OpenAI(), of_user(value)) >= 4
        assert count(OpenAI(), {"role": "user", "content": "hi", "x_key": value}) >= 4
