"""The generated histories: legal where they have to be, broken where they may be, and varied."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidValueError
from holdfast.testing.histories import Dialect, histories, random_history, without_metadata
from holdfast.testing.providers import (
    anthropic_problems,
    converse_problems,
    openai_problems,
    prefix_signature,
    signed_reasoning_problems,
)

pytestmark = pytest.mark.extended

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
PROBLEMS_OF = {"converse": converse_problems, "anthropic": anthropic_problems, "openai": openai_problems}
SEEDS = range(2_000)

slow_draws = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40, deadline=None)
shrinking = settings(phases=[Phase.generate, Phase.shrink], max_examples=100, deadline=None, database=None)
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@each_dialect
def test_legal_histories_have_no_problems(dialect: Dialect) -> None:
    for seed in SEEDS:
        assert PROBLEMS_OF[dialect](random_history(Random(seed), dialect)) == [], seed


@each_dialect
@slow_draws
@given(data=st.data())
def test_legal_histories_of_hypothesis_have_no_problems(dialect: Dialect, data: st.DataObject) -> None:
    assert PROBLEMS_OF[dialect](data.draw(histories(dialect))) == []


@each_dialect
@slow_draws
@given(data=st.data())
def test_pinned_and_signed_histories_are_legal_without_their_metadata(dialect: Dialect, data: st.DataObject) -> None:
    messages = without_metadata(data.draw(histories(dialect, pins=True, signed_reasoning=True, max_turns=8)))
    assert PROBLEMS_OF[dialect](messages) == []
    assert signed_reasoning_problems(messages, prefix_signature) == []


@each_dialect
@slow_draws
@given(data=st.data())
def test_broken_histories_never_raise(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, legal=False))
    before = deepcopy(messages)
    PROBLEMS_OF[dialect](messages)
    signed_reasoning_problems(messages, prefix_signature)
    assert messages == before


@each_dialect
def test_the_same_seed_gives_the_same_history(dialect: Dialect) -> None:
    for seed in range(50):
        first, second = (random_history(Random(seed), dialect, legal=False, pins=True) for _ in range(2))
        assert first == second


@each_dialect
def test_no_two_places_of_a_history_share_what_can_be_changed(dialect: Dialect) -> None:
    for seed in range(300):
        for legal in (True, False):
            seen = [id(part) for part in containers(random_history(Random(seed), dialect, legal=legal))]
            assert len(seen) == len(set(seen)), seed


@each_dialect
def test_max_turns_bounds_the_answers_of_the_model(dialect: Dialect) -> None:
    for seed in range(200):
        messages = random_history(Random(seed), dialect, max_turns=3)
        assert sum(message["role"] == "assistant" for message in messages) <= 3


@each_dialect
def test_a_history_shrinks_to_one_short_message(dialect: Dialect) -> None:
    (message,) = find(histories(dialect), lambda messages: True, settings=shrinking)
    assert message["role"] == "user"
    assert len(json.dumps(message)) < 80


@each_dialect
def test_a_result_shrinks_to_one_call(dialect: Dialect) -> None:
    def has_result(messages: list[Any]) -> bool:
        return bool(features(dialect, messages)["result"])

    found = [find(histories(dialect), has_result, settings=shrinking, random=Random(seed)) for seed in range(3)]
    shortest = min(found, key=len)
    assert features(dialect, shortest)["call"] == 1
    assert len(shortest) == 3


@pytest.mark.parametrize("make", [lambda *a, **k: random_history(Random(1), *a, **k), histories])
def test_options_are_checked(make: Any) -> None:
    with pytest.raises(InvalidValueError, match="dialect must be one of converse, anthropic, openai, got 'gemini'"):
        make("gemini")
    with pytest.raises(InvalidValueError, match="max_turns must be at least 0, got -1"):
        make("openai", max_turns=-1)


def test_metadata_is_left_out_of_copies() -> None:
    messages = [{"role": "user", "content": [], "metadata": {"custom": {"pinned": True}}}]
    assert without_metadata(messages) == [{"role": "user", "content": []}]
    assert "metadata" in messages[0]


EVERYWHERE = {
    *("call", "parallel calls", "result", "error result", "several blocks in a result", "empty result"),
    *("image", "document", "huge text", "ASCII", "CJK", "emoji", "combining", "control characters", "long line"),
    *("text beside calls", "calls without text", "ends with text", "ends with results", "single message"),
    *("autonomous loop", "plain chat", "more than 30 messages"),
}
FEATURES: dict[Dialect, set[str]] = {
    "converse": EVERYWHERE
    | {"json result", "repeated ids", "cache", "signed reasoning", "unsigned reasoning", "redacted reasoning"}
    | {"image in a result", "document in a result", "text beside results"},
    "anthropic": EVERYWHERE
    | {"cache", "signed reasoning", "redacted reasoning", "text as content", "doubled role", "result without content"}
    | {"image in a result", "document in a result", "text beside results"},
    "openai": EVERYWHERE
    | {"repeated ids", "system", "developer", "instruction in the middle", "text as content", "text parts", "refusal"},
}


@each_dialect
def test_the_fast_generator_shows_every_feature(dialect: Dialect) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen.update({name for name, times in features(dialect, random_history(Random(seed), dialect)).items() if times})
    rare = {name: seen[name] for name in FEATURES[dialect] if seen[name] < 10}
    assert not rare


BROKEN: dict[Dialect, tuple[str, ...]] = {
    "converse": (
        *("first message", "last message", "roles must alternate", "its role must be", "content is empty"),
        *("is blank", "no result directly after", "answers no tool call", "have the id", "has 2 results"),
        *("Unknown parameter", "Invalid type", "Missing required", "surrogate"),
    ),
    "anthropic": (
        *("first message", "ends with whitespace", "its role must be", "content is empty", "is blank"),
        *("no result directly after", "answers no tool call", "have the id", "has 2 results", "must come before"),
        *("unknown type", "unknown key", "lacks", "cannot have", "surrogate"),
    ),
    "openai": (
        *("its role must be", "empty list", "no result directly after", "answers no tool call", "have the id"),
        *("has 2 results", "cannot have the type", "unknown key", "lacks", "surrogate", "needs content"),
    ),
}


@each_dialect
def test_broken_histories_break_every_rule_and_some_are_legal(dialect: Dialect) -> None:
    problems = [PROBLEMS_OF[dialect](random_history(Random(seed), dialect, legal=False)) for seed in SEEDS]
    said = "\n".join(problem for found in problems for problem in found)
    assert [words for words in BROKEN[dialect] if words not in said] == []
    assert 0.1 < sum(not found for found in problems) / len(problems) < 0.5


@each_dialect
def test_pins_are_on_some_messages_of_some_histories(dialect: Dialect) -> None:
    pinned = [
        message.get("metadata") == {"custom": {"pinned": True}}
        for seed in range(200)
        for message in random_history(Random(seed), dialect, pins=True)
    ]
    assert 0.1 < sum(pinned) / len(pinned) < 0.2


def test_signatures_are_those_of_the_prefix_if_asked_for() -> None:
    for dialect in ("converse", "anthropic"):
        bound = [random_history(Random(seed), dialect, signed_reasoning=True) for seed in range(100)]
        loose = [random_history(Random(seed), dialect) for seed in range(100)]
        assert not any(signed_reasoning_problems(messages, prefix_signature) for messages in bound)
        assert any(signed_reasoning_problems(messages, prefix_signature) for messages in loose)


def test_images_are_real_ones() -> None:
    found = {
        block["image"]["source"]["bytes"]
        for seed in range(100)
        for message in random_history(Random(seed), "converse")
        for block in message["content"]
        if "image" in block
    }
    assert found
    assert all(image.startswith(b"\x89PNG\r\n\x1a\n") and image.endswith(b"IEND\xaeB`\x82") for image in found)


# What is in a history, read from the wire and not from the grammar.


def features(dialect: Dialect, messages: list[Any]) -> Counter[str]:
    seen = Counter(FEATURES_OF[dialect](messages))
    roles = [message["role"] for message in messages if message["role"] not in ("system", "developer")]
    seen.update(text_features(texts(messages)))
    seen["single message"] = len(messages) == 1
    seen["more than 30 messages"] = len(messages) > 30
    seen["plain chat"] = not seen["call"] and len(roles) > 5
    asked = seen["user text"]
    seen["autonomous loop"] = seen["call"] > 5 and asked == 1
    seen["doubled role"] = any(a == b for a, b in pairwise(roles))
    return seen


def converse_features(messages: list[Any]) -> Iterator[str]:
    uses = []
    for message in messages:
        kinds = Counter(kind for block in message["content"] for kind in block)
        yield from kinds_of_turn(message["role"], kinds["toolUse"], kinds["toolResult"], kinds["text"])
        yield from (kind for kind in ("image", "document") if kinds[kind])
        if kinds["cachePoint"]:
            yield "cache"
        for block in message["content"]:
            uses += [block["toolUse"]["toolUseId"]] if "toolUse" in block else []
            if result := block.get("toolResult"):
                yield from result_features(result["content"], error=result.get("status") == "error")
            if reasoning := block.get("reasoningContent"):
                yield reasoning_kind("redactedContent" in reasoning, "signature" in reasoning.get("reasoningText", {}))
    yield from repeated(uses)
    yield "ends with results" if any("toolResult" in block for block in messages[-1]["content"]) else "ends with text"


def anthropic_features(messages: list[Any]) -> Iterator[str]:
    uses = []
    for message in messages:
        if isinstance(message["content"], str):
            yield "text as content"
        blocks = [{"type": "text"}] if isinstance(message["content"], str) else message["content"]
        kinds = Counter(block["type"] for block in blocks)
        yield from kinds_of_turn(message["role"], kinds["tool_use"], kinds["tool_result"], kinds["text"])
        yield from (kind for kind in ("image", "document") if kinds[kind])
        for block in blocks:
            if "cache_control" in block:
                yield "cache"
            uses += [block["id"]] if block["type"] == "tool_use" else []
            if block["type"] == "tool_result":
                yield from [] if "content" in block else ["result without content"]
                yield from result_features(block.get("content", []), error=block.get("is_error", False))
            if block["type"] in ("thinking", "redacted_thinking"):
                yield reasoning_kind(block["type"] == "redacted_thinking", "signature" in block)
    yield from repeated(uses)
    last = messages[-1]["content"]
    has_results = isinstance(last, list) and any(block["type"] == "tool_result" for block in last)
    yield "ends with results" if has_results else "ends with text"


def openai_features(messages: list[Any]) -> Iterator[str]:
    uses = []
    for place, message in enumerate(messages):
        content = message.get("content")
        calls = message.get("tool_calls", ())
        uses += [call["id"] for call in calls]
        is_result = message["role"] == "tool"
        yield from kinds_of_turn(message["role"], len(calls), is_result, bool(content))
        if message["role"] in ("system", "developer"):
            yield message["role"]
            yield from ["instruction in the middle"] if place else []
        if is_result:
            yield from result_features(content, error=str(content).startswith("Error: "))
        elif isinstance(content, list):
            yield "text parts"
            yield from (
                {"image_url": "image", "file": "document"}[part["type"]] for part in content if part["type"] != "text"
            )
        elif isinstance(content, str):
            yield "text as content"
        if message.get("refusal"):
            yield "refusal"
    yield from repeated(uses)
    yield "ends with results" if messages[-1]["role"] == "tool" else "ends with text"


FEATURES_OF = {"converse": converse_features, "anthropic": anthropic_features, "openai": openai_features}


def kinds_of_turn(role: str, calls: int, results: int, texts: int) -> Iterator[str]:
    yield from ["call"] * calls
    yield from ["result"] * results
    if calls > 1:
        yield "parallel calls"
    if calls:
        yield "text beside calls" if texts else "calls without text"
    if results and texts and role == "user":
        yield "text beside results"
    if texts and role == "user":
        yield "user text"


def result_features(content: Any, *, error: bool) -> Iterator[str]:
    kinds = [block.get("type") or next(iter(block)) for block in content] if isinstance(content, list) else []
    if error:
        yield "error result"
    if len(kinds) > 1:
        yield "several blocks in a result"
    if content in ("", [], [{"text": ""}]):
        yield "empty result"
    yield from (f"{kind} in a result" for kind in kinds if kind in ("image", "document"))
    if "json" in kinds:
        yield "json result"


def reasoning_kind(redacted: bool, signed: bool) -> str:
    return "redacted reasoning" if redacted else "signed reasoning" if signed else "unsigned reasoning"


def repeated(ids: list[str]) -> list[str]:
    return ["repeated ids"] if len(set(ids)) < len(ids) else []


def text_features(texts: Iterator[str]) -> set[str]:
    seen = set()
    for text in texts:
        seen |= {"huge text"} if len(text) > 4_990 else set()
        seen |= {"long line"} if len(text) > 1_000 and "\n" not in text else set()
        seen |= {"ASCII"} if text.isascii() else {name for mark, name in SCRIPT_MARKS.items() if mark in text}
    return seen


SCRIPT_MARKS = {"我": "CJK", "👩": "emoji", "\u0301": "combining", "\u202e": "control characters"}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and not looks_like_base64(value):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(part)


def looks_like_base64(text: str) -> bool:
    return text.startswith(("data:", base64.b64encode(b"\x89PNG").decode()[:5]))


def containers(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from containers(part)
