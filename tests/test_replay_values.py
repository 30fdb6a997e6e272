"""Values that an agent used again: which they are, when they are asked about, and where they are found."""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import data_folder, needs_recorded_runs, recorded_runs
from replaying import FILLER, Message, called, chat, outcome_of

from holdfast.dialects import dialect_named
from holdfast.replay import Policy
from holdfast.replay.values import LONG_AGO, MASK, Use, holds, uses_in, values_in

BARE = {"compression": {"method": "truncate", "shorten_results": False}, "archive": False}


def uses(messages: list[Message]) -> tuple[Use, ...]:
    return uses_in([dialect_named("openai").read(message) for message in messages])


def seen_then_used(shown: str, used: Any, *, between: int = 6, tool: str = "send") -> list[Message]:
    """A chat in which the first result shows something, and the last call uses something."""
    return chat([shown, *[FILLER] * between], last=called(99, tool, value=used))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("see https://example.org/a/b?c=1.", ["https://example.org/a/b?c=1"]),
        ("open /home/me/project/src/app.py now", ["src/app.py"]),
        ("open ./src/app.py now", ["src/app.py"]),
        ("order ORD-4411, please", ["ORD-4411"]),
        ("commit 3f9a1c7e04", ["3f9a1c7e04"]),
        ("id 123e4567-e89b-12d3-a456-426614174000.", ["123e4567-e89b-12d3-a456-426614174000"]),
        ("it costs 1299 or 12.50", ["1299", "12.50"]),
        ("call get_user_by_id or getUserById", ["get_user_by_id", "getUserById"]),
        ("django.ContextManager", ["ContextManager"]),
        ("see config.yaml and setup_2.py", ["setup_2.py"]),
        ("mail me@example4711.org", ["me@example4711.org"]),
        ("twice ORD-4411 and ORD-4411", ["ORD-4411"]),
        (r"in JSON\nORD-4411\tget_user", ["ORD-4411", "get_user"]),
    ],
)
def test_what_cannot_be_guessed_is_a_value(text, values):
    assert list(values_in(text)) == values


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just plain words.",
        "Chapter 12, page 7",
        "step3 and line12",
        "and/or",
        "...",
        "~~~",
        "it's 3.5",
        "HTTP",
        "§§",
    ],
)
def test_what_can_be_said_in_other_words_is_none(text):
    assert values_in(text) == ()


@given(value=st.from_regex(r"[0-9]{4,8}", fullmatch=True), before=st.text("xyzé_", max_size=3), after=st.text("xyzé_"))
def test_a_value_is_never_found_inside_a_longer_word(value, before, after):
    assert holds(f"so {before}{value}{after} there", value) == (not before and not after)


@given(text=st.text(st.sampled_from("ab1_-./~@ :\\n,\n"), max_size=60))
def test_every_value_of_a_text_stands_in_it(text):
    assert [value for value in values_in(text) if not holds(text, value)] == []


def test_a_value_behind_an_escaped_line_break_is_found():
    assert holds(json.dumps({"code": "first\nget_user()\tORD-4411"}), "get_user")
    assert holds(r"\tORD-4411", "ORD-4411")
    assert not holds("nORD-4411", "ORD-4411")


def seconds_for(text: str) -> float:
    """The least of several, as anything else may run beside it."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        values_in(text)
        took.append(time.perf_counter() - began)
    return min(took)


@pytest.mark.parametrize(
    "unit", [".", "~", "a~", "a..", "-", "/", "a/", "/.", "http://", "a.a@", "1", "_", "\\n", "é/"]
)
def test_hostile_texts_take_linear_time(unit):
    # The square of eight would be 64.
    assert seconds_for(unit * 40_000) < 24 * seconds_for(unit * 5_000)


def test_a_value_that_was_seen_long_ago_is_asked_about():
    [use] = uses(seen_then_used("the order is ORD-4411", "ORD-4411"))
    assert (use.value, use.last, use.at) == ("ORD-4411", 2, 15)


def test_the_words_to_look_for_it_with_do_not_hold_it():
    messages = seen_then_used("the order is ORD-4411", "order ORD-4411, or ORD-4411 again")
    messages[-1]["content"] = "Now I refund ORD-4411."
    [use] = uses(messages)
    assert "ORD-4411" not in use.query
    assert f"Now I refund {MASK}. send order {MASK}, or {MASK} again" in use.query


def test_a_value_that_was_seen_just_now_is_not():
    recent = LONG_AGO // 2 - 2
    assert uses(seen_then_used("the order is ORD-4411", "ORD-4411", between=recent)) == ()
    assert len(uses(seen_then_used("the order is ORD-4411", "ORD-4411", between=recent + 2))) == 1


def test_a_value_that_the_agent_made_up_is_not():
    messages = chat([FILLER] * 14, last=called(99, "send", value="ORD-4411"))
    messages[1] = called(0, "look", page="ORD-4411")
    assert uses(messages) == ()


def test_what_the_user_said_is_a_source_too():
    messages = chat([FILLER] * 7, first="Please refund ORD-4411.", last=called(99, "send", value="ORD-4411"))
    assert [use.last for use in uses(messages)] == [0]


def test_names_of_arguments_are_no_values():
    messages = chat(["order_number get_user", *[FILLER] * 6])
    assert uses([*messages[:-1], called(99, "send", order_number=1, deeper={"get_user": [True, None]})]) == ()


def test_numbers_and_what_is_nested_are_values():
    messages = chat(["it is 471147 for ORD-4411", *[FILLER] * 6])
    found = uses([*messages[:-1], called(99, "send", deeper={"list": [471147, {"a": "ORD-4411"}]})])
    assert [use.value for use in found] == ["471147", "ORD-4411"]


def test_what_the_tools_of_holdfast_are_called_with_is_not_asked_about():
    assert uses(seen_then_used("see mem_4711_x", "mem_4711_x", tool="retrieve_offloaded_content")) == ()


def test_of_a_call_with_very_many_values_some_from_all_over_it_are_taken():
    names = [f"ORD-{number}" for number in range(1_000, 1_100)]
    found = [use.value for use in uses(seen_then_used(" ".join(names), " ".join(names)))]
    assert 2 <= len(found) <= 8
    assert found == sorted(found)
    assert (found[0], found[-1] > "ORD-1080") == ("ORD-1000", True)


def test_arguments_that_are_no_json_are_text():
    messages = seen_then_used("the order is ORD-4411", "")
    messages[-1]["tool_calls"][0]["function"]["arguments"] = "{broken ORD-4411"
    assert [use.value for use in uses(messages)] == ["ORD-4411"]


# Where values are


def long_chat(*, last: Message | None = None) -> list[Message]:
    """More than a window of 8,000 tokens; the order is named in the second result only, among many other names."""
    results = [
        f"note {number}: {' '.join(f'entry_{number}_{entry}' for entry in range(12))} {FILLER * 20}"
        for number in range(70)
    ]
    results[1] = f"the order of the lighthouse keeper is ORD-4411. {FILLER * 20}"
    final = last or called(99, "refund", keeper="the lighthouse keeper", order="ORD-4411")
    return chat(results, last=final)


@pytest.mark.parametrize(
    ("config", "where"),
    [
        (None, "kept"),
        ({"strategy": "auto"}, "lookup"),
        ({"compression": "truncate"}, "lookup"),
        (BARE, "lost"),
        ({**BARE, "offloader": True}, "lost"),
        ({"strategy": "auto", "offloader": {"include_retrieval_tool": False}}, "lost"),
        ({"strategy": "auto", "protect_first": 5}, "kept"),
    ],
)
def test_a_value_that_left_is_kept_found_or_lost(config, where):
    counts = outcome_of(long_chat(), Policy("it", config), window=8_000).counts
    assert {name: getattr(counts, name) for name in ("kept", "lookup", "lost")} == {
        "kept": 0,
        "lookup": 0,
        "lost": 0,
        where: 1,
    }


def rows_of(prefix: str) -> str:
    """A large result that is the same all over."""
    return "\n".join(f"{number * 7919 % 100_003:06d} {prefix}{number:05d}" for number in range(4_000))


@pytest.mark.parametrize(("value", "lookup", "further"), [("zq00200", 1, 0), ("zq02000", 0, 1)])
def test_a_value_on_a_page_behind_a_reference_in_view_is_one_look_up_away_and_on_no_page_further_off(
    value, lookup, further
):
    # No words lead to it: a search finds nothing, and the reference is all there is.
    messages = chat([rows_of("zq"), *[FILLER] * 6], last=called(99, "send", value=value))
    messages[-1]["content"] = ""
    counts = outcome_of(messages, "auto").counts
    assert (counts.offloaded, counts.lookup, counts.lost, counts.further) == (1, lookup, further, further)


def test_a_value_is_not_looked_for_by_others_that_were_seen_as_long_ago():
    [use, other] = uses(
        [*chat(["ORD-4411 USR-7731", *[FILLER] * 6]), called(99, "send", order="ORD-4411", to="USR-7731")]
    )
    assert {use.value, other.value} == {"ORD-4411", "USR-7731"}
    assert not any(value in query for value in ("ORD-4411", "USR-7731") for query in (use.query, other.query))


def test_a_look_up_is_one_more_request_behind_the_one_that_lacked_the_value():
    outcome = outcome_of(long_chat(), "auto", window=8_000)
    assert outcome.counts.lookup_cached == outcome.requests[-1].tokens
    assert 0 < outcome.counts.lookup_fresh <= 2_500


def test_looking_for_values_changes_nothing_of_the_conversation():
    without = long_chat(last={"role": "assistant", "content": "Done."})
    looked, not_looked = (outcome_of(messages, "auto", window=8_000) for messages in (long_chat(), without))
    assert looked.counts.lookup == 1
    assert looked.requests == not_looked.requests


def test_what_a_bounded_storage_forgot_is_lost():
    bounded = {"strategy": "auto", "offload_storage": {"kind": "file", "evict": {"max_entries": 1}}}
    results = [rows_of("zq"), rows_of("yp"), *[FILLER] * 6]
    messages = chat(results, last=called(99, "send", value="zq00200"))
    assert outcome_of(messages, "auto").counts.lookup == 1
    assert outcome_of(messages, Policy("bounded", bounded)).counts.lost == 1


def test_a_run_that_ends_early_loses_all_that_it_never_reached():
    huge = {"role": "user", "content": "hear: " + "word " * 40_000}
    messages = [*chat(["ORD-4411", *[FILLER] * 6]), huge, called(99, "send", value="ORD-4411")]
    outcome = outcome_of(messages, "truncate", window=8_000)
    assert (outcome.counts.failed, outcome.counts.lost, outcome.counts.values) == (1, 1, 1)
    assert [event.kind for event in outcome.events][-1] == "failure"
    assert outcome.failure


@needs_recorded_runs
@pytest.mark.extended
def test_most_of_what_was_measured_to_be_used_again_is_found():
    folder = data_folder()
    assert folder is not None
    with gzip.open(folder / "swe.probes.jsonl.gz", "rt", encoding="utf-8") as lines:
        probes = [json.loads(line) for line in lines]
    asked = {run.id: defaultdict[int, set[str]](set) for run in recorded_runs("swe")}
    for run in recorded_runs("swe"):
        for use in uses(run.messages):
            asked[run.id][use.at].add(use.value)
    found = [any(same(probe["value"], value) for value in asked[probe["trace"]][probe["at"]]) for probe in probes]
    assert sum(found) / len(found) > 0.8


def same(probed: str, value: str) -> bool:
    """Of a path, the last two parts are a value."""
    return holds(probed, value) or holds(value, probed)


@pytest.mark.parametrize(
    "text",
    [
        "src/./parser_x.py",
        "src/../parser_x.py",
        "a/.../b_c",
        "https://example.org/" + "x1" * 200,
        "a" * 150 + "/" + "b_" * 80,
    ],
)
def test_what_could_not_be_found_again_is_no_value(text):
    assert all(holds(text, value) for value in values_in(text))


@given(st.text(st.sampled_from("ab1_./:-~@ \\n"), max_size=60))
def test_every_value_is_found_again_where_it_was_found(text):
    assert all(holds(text, value) for value in values_in(text))
