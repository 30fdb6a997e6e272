"""Whatever a provider's message says, in whichever of its fields, is found and opened after it left."""

from __future__ import annotations

import copy
import json
import re
from base64 import b64encode
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import ContextManager, InMemoryStorage
from holdfast.batches import Batch, Entry, leaves_of, part_of, transcript
from holdfast.batches.encoding import decoded, encoded
from holdfast.hooks import BeforeModelCall, HookRegistry

_RARE = re.compile(r"rare\d+word")
Word = Callable[[], str]


def base64_of(text: str) -> str:
    return b64encode(text.encode()).decode()


def openai_messages(word: Word) -> list[Any]:
    def user(*parts: Any) -> dict[str, Any]:
        return {"role": "user", "content": list(parts)}

    pdf = f"data:application/pdf;base64,{base64_of('all of it')}"
    called = {"name": "look", "arguments": json.dumps({"q": f"a\n{word()}"})}
    return [
        user(
            {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": f"https://a.b/{word()}.png"}}
        ),
        user({"type": "file", "file": {"file_id": word(), "filename": f"{word()}.pdf"}}),
        user({"type": "file", "file": {"file_data": pdf, "filename": f"{word()}.pdf"}}),
        user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav", "note": word()}}),
        {"role": "user", "name": word(), "content": f"hello {word()}"},
        {"role": "assistant", "content": None, "refusal": f"I cannot help with {word()}"},
        {"role": "assistant", "content": None, "function_call": called},
        {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": f"{word()} was said"}},
        {
            "role": "assistant",
            "content": f"see {word()}",
            "annotations": [
                {"type": "url_citation", "url_citation": {"url": f"https://{word()}.example", "title": "t"}}
            ],
        },
        {"role": "assistant", "content": {"odd": word()}},
        {
            "role": "assistant",
            "content": "see",
            "annotations": [{"url_citation": {"content": word(), "status": word()}}],
        },
        {"role": "assistant", "content": None, "error": {"detail": word(), "id": word()}},
        user({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64_of('all')}", "note": word()}}),
    ]


def anthropic_messages(word: Word) -> list[Any]:
    def document(source: dict[str, Any], **others: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "document", "source": source, **others}]}

    cited = [
        {"type": "char_location", "cited_text": f"{word()} cited", "document_title": word(), "start_char_index": 3}
    ]
    parts = [{"type": "text", "text": f"{word()} one"}, {"type": "text", "text": f"{word()} two"}]
    found = {"type": "search_result", "source": f"https://{word()}", "title": word(), "content": parts}
    return [
        {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": f"https://a.b/{word()}"}}]},
        document({"type": "file", "file_id": word()}, title=word()),
        document({"type": "text", "media_type": "text/plain", "data": f"{word()} data"}, title=word(), context=word()),
        document({"type": "base64", "media_type": "application/pdf", "data": base64_of("all of it")}, title=word()),
        document({"type": "content", "content": parts}, context=word()),
        {"role": "assistant", "content": [{"type": "text", "text": f"yes {word()}", "citations": cited}]},
        {"role": "user", "content": [found]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": f"hm {word()}", "signature": "s" * 40}]},
    ]


def converse_messages(word: Word) -> list[Any]:
    def user(**block: Any) -> dict[str, Any]:
        return {"role": "user", "content": [{"text": f"x {word()}"}, block]}

    def document(source: dict[str, Any], **others: str) -> dict[str, Any]:
        return user(document={"format": "txt", "name": word(), "source": source, **others})

    at = {"s3Location": {"uri": f"s3://bucket/{word()}", "bucketOwner": word()}}
    cited = {"content": [{"text": word()}], "citations": [{"title": word(), "sourceContent": [{"text": word()}]}]}
    return [
        user(image={"format": "png", "source": at}),
        user(video={"format": "mp4", "source": at}),
        document(at),
        document({"bytes": b"all of it"}, context=word()),
        document({"text": f"{word()} text"}),
        document({"content": [{"text": f"{word()} one"}, {"text": f"{word()} two"}]}),
        {"role": "assistant", "content": [{"citationsContent": cited}]},
    ]


MAKERS = {"openai": openai_messages, "anthropic": anthropic_messages, "converse": converse_messages}


def text_of(dialect: str, text: str) -> Any:
    return {"openai": text, "anthropic": [{"type": "text", "text": text}], "converse": [{"text": text}]}[dialect]


def words() -> Word:
    numbers = count(1_000)
    return lambda: f"rare{next(numbers)}word"


def conversation_of(dialect: str, dice: Random) -> list[Any]:
    """A conversation with odd messages in any order, and so much after them that they leave."""

    def spoken(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": text_of(dialect, text)}

    odd = MAKERS[dialect](words())
    after = [spoken(role, "lorem ipsum " * 60) for _ in range(8) for role in ("user", "assistant")]
    messages = [spoken("user", "start")]
    for wire in [*dice.sample(odd, len(odd)), *after, spoken("user", "end")]:
        if wire["role"] == messages[-1]["role"]:
            messages.append(spoken("assistant" if wire["role"] == "user" else "user", "go on"))
        messages.append(wire)
    return messages


@settings(max_examples=15, deadline=None)
@given(dialect=st.sampled_from(sorted(MAKERS)), seed=st.integers(0, 10_000))
async def test_every_word_of_a_message_that_left_is_found_and_opened(dialect, seed):
    messages = conversation_of(dialect, Random(seed))
    said = copy.deepcopy(messages)
    storage = InMemoryStorage(evict_after_turns=None)
    manager = ContextManager(
        compression="truncate", offload_storage=storage, dialect=dialect, window=2_000, reserved=10
    )
    hooks = HookRegistry()
    manager.register_hooks(hooks)
    await hooks.invoke(BeforeModelCall(manager.converse(messages).conversation))
    left = set(_RARE.findall(repr(said))) - set(_RARE.findall(repr(messages)))
    assert len(left) >= 8
    for word in left:
        hits = (await manager.search_context(word, 5)).hits
        opened = [(await manager.retrieve(hit.reference))[0].decode() for hit in hits]
        assert any(word in content for content in opened), word
    await manager.aclose()


@pytest.mark.parametrize("dialect", sorted(MAKERS))
def test_each_word_stands_in_one_part_and_in_the_transcript(dialect):
    for wire in MAKERS[dialect](words()):
        entry = Entry(encoded(wire), 7)
        batch = Batch(dialect=dialect, entries=(entry,), removals=())
        parts = [
            part_of("R", batch, f"7.{place}")[0].decode() for place in range(1, len(leaves_of(entry, dialect)) + 1)
        ]
        for word in set(_RARE.findall(repr(wire))):
            assert [part.count(word) for part in parts if word in part] == [1], (wire, parts)
            assert word in transcript([("R", batch)]).decode()


@pytest.mark.parametrize("content", [None, []])
def test_a_message_that_says_nothing_opens_as_what_it_is(content):
    batch = Batch(dialect="openai", entries=(Entry({"role": "assistant", "content": content}, 7),), removals=())
    assert json.loads(part_of("R", batch, "7")[0]) == {"role": "assistant", "content": content}


@pytest.mark.parametrize(
    ("dialect", "wire"),
    [
        ("openai", {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "done"}),
        ("openai", {"role": "user", "content": [{"type": "text", "text": "done"}], "metadata": {"custom": {"a": "b"}}}),
        ("anthropic", {"role": "user", "content": [{"type": "text", "text": "done", "cache_control": {"type": "x"}}]}),
        ("converse", {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "done"}]}}]}),
    ],
)
def test_a_message_with_one_text_opens_as_that_text(dialect, wire):
    batch = Batch(dialect=dialect, entries=(Entry(encoded(wire), 7, tools={"c1": "bash"}),), removals=())
    assert part_of("R", batch, "7") == (b"done", "text/plain")
    assert b"[message 7, " in transcript([("R", batch)])


def test_what_only_the_provider_can_read_is_kept_and_not_shown():
    wire = {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "sealed" * 20}]}
    batch = Batch(dialect="anthropic", entries=(Entry(wire, 7),), removals=())
    assert json.loads(part_of("R", batch, "7")[0]) == wire["content"][0]
    assert b"sealed" not in transcript([("R", batch)])


@pytest.mark.parametrize("dialect", sorted(MAKERS))
def test_a_block_that_looks_like_the_name_of_a_part_is_kept_as_what_it_is(dialect):
    block = {"$piece": ["nowhere", 0, None], "type": "note", "said": "rare1word"}
    wire = {"role": "user", "content": [{"type": "text", "text": "look"}, block]}
    batch = Batch(dialect=dialect, entries=(Entry(encoded(wire), 7),), removals=())
    opened, _ = part_of("R", batch, "7.2")
    assert decoded(json.loads(opened)) == block
    assert b"rare1word" in transcript([("R", batch)])


@pytest.mark.parametrize("dialect", sorted(MAKERS))
def test_of_a_part_that_is_stored_elsewhere_it_is_said_where(dialect):
    wire = {"role": "user", "content": [{"$piece": ["R1", 0, 0]}, {"type": "note", "said": "rare1word"}]}
    batch = Batch(dialect=dialect, entries=(Entry(wire, 7),), removals=())
    assert part_of("R", batch, "7.1")[0] == b"[This is stored in R1.]"
    assert b"[stored in R1]" in transcript([("R", batch)])
