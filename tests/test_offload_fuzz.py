"""Contents and arguments made to hurt: no crash, no answer over the budget, no hang."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offloading import conversation, offloaded, references_of, retrieved, searched

from holdfast import ContextOffloader, InMemoryStorage
from holdfast.tokens import estimate_text

GENEROUS = 60.0
NAMES = ("pattern", "line_range", "characters", "json_path", "columns", "where", "offset", "context_lines")
ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"line_range": {"start": 1, "end": 5}},
    {"line_range": {"start": -3}},
    {"characters": {"start": 1_000, "end": 2_000_000}},
    {"pattern": "a"},
    {"pattern": ".*x.*y$", "context_lines": 100},
    {"pattern": "^"},
    {"pattern": "é", "plain_text": True, "ignore_case": True},
    {"json_path": "$..*"},
    {"json_path": "$[*]"},
    {"columns": ["a"]},
    {"where": "a == 1"},
]


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


HOSTILE = {
    "ten megabytes in one line": lambda: "abc 123 " * 1_310_720,
    "ten megabytes without a blank": lambda: "x" * 10_000_000,
    "a million short lines": lambda: "ab\n" * 1_000_000,
    "a million empty lines": lambda: "\n" * 1_000_000,
    "JSON of 10,000 levels": lambda: nested(10_000) + " " * 10_000,
    "an object of 10,000 levels": lambda: '{"a":' * 10_000 + "1" + "}" * 10_000,
    "JSON that was cut": lambda: json.dumps([{"id": n, "text": "x" * 50} for n in range(5_000)])[:-17],
    "CSV with a quote that never ends": lambda: 'a,b\n"' + "1,2\n" * 100_000,
    "CSV with quotes all over": lambda: "a,b,c\n" + '1,"x"y","z\n' * 50_000,
    "a line of commas": lambda: "," * 2_000_000,
    "control characters": lambda: "".join(map(chr, range(32))) * 3_000,
    "lone surrogates": lambda: "\ud800\udfff text \n" * 5_000,
    "tags that never close": lambda: "<html>" + "<div><p>" * 200_000,
    "a comment that never ends": lambda: "<html><!--" + "- " * 500_000,
    "markdown of fences": lambda: "# title\n" + "```\n" * 100_000,
    "a diff without an end": lambda: "diff --git a/x b/x\n@@ -1,1 +1,1 @@\n" + "+\n-\n" * 200_000,
    "base64": lambda: "QUJD" * 1_000_000,
    "right to left": lambda: "\u202e\u0645\u0631\u062d\u0628\u0627 " * 20_000,
    "emoji": lambda: "\U0001f469\u200d\U0001f4bb" * 30_000,
    "brackets": lambda: "([{" * 300_000,
    "code of one huge expression": lambda: "def f():\n    return " + "(" * 5_000 + "1" + ")" * 5_000 + " + 1" * 20_000,
}


async def within_time(answer: Any) -> Any:
    return await asyncio.wait_for(answer, GENEROUS)


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_contents_are_offloaded_and_read_within_the_budget(name):
    offloader, talk = ContextOffloader(), conversation()
    left = await within_time(offloaded(offloader, HOSTILE[name](), talk))
    assert estimate_text(left) <= 1_700
    [reference] = references_of(offloader)
    for arguments in ARGUMENTS:
        answer = await within_time(retrieved(offloader, talk, reference, **arguments))
        assert estimate_text(answer.text) <= 2_500, arguments


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["text/plain", "application/json", "text/csv", "application/x-y"]))
async def test_any_bytes_are_read_within_the_budget(content, content_type):
    storage = InMemoryStorage()
    offloader, talk = ContextOffloader(storage), conversation()
    reference = await storage.store("foreign", content * 40, content_type)
    for arguments in ARGUMENTS:
        answer = await within_time(retrieved(offloader, talk, reference, **arguments))
        assert estimate_text(answer.text) <= 2_500, arguments


async def test_text_cut_inside_a_character_is_read():
    storage = InMemoryStorage()
    offloader, talk = ContextOffloader(storage), conversation()
    reference = await storage.store("cut", "日本語\n".encode()[:-2] + b"\n" + "語".encode()[:2])
    answer = await retrieved(offloader, talk, reference)
    assert answer.text.startswith("日本")
    assert "2> " in (await retrieved(offloader, talk, reference, pattern=".", line_range=2)).text


@settings(max_examples=80, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.none() | st.text(max_size=30) | st.integers() | st.booleans() | st.lists(st.integers(), max_size=3)
            for name in NAMES
        },
    )
)
async def test_any_arguments_are_answered(arguments):
    offloader, talk = ContextOffloader(), conversation()
    await offloaded(offloader, "a,b\n" + "".join(f"{n},{n * 7}\n" for n in range(3_000)), talk)
    answer = await within_time(retrieved(offloader, talk, references_of(offloader)[0], **arguments))
    assert estimate_text(answer.text) <= 2_500


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200), st.integers(1, 50))
async def test_any_query_is_answered(query, limit):
    offloader, talk = ContextOffloader(), conversation()
    rng = random.Random(7)
    await offloaded(offloader, "\n".join(f"{n} {rng.random()} words" for n in range(1_500)), talk)
    answer = await within_time(searched(offloader, talk, query, limit=limit))
    assert estimate_text(answer.text) <= 2_500
