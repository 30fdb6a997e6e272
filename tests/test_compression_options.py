"""What protects messages from leaving, and what the options of compression mean."""

from __future__ import annotations

import inspect
import typing

import pytest

import holdfast.compression
from holdfast.budget import Budget
from holdfast.compression import (
    SUMMARY_PROMPT,
    ContextCompression,
    Protection,
    Summarize,
    Truncate,
    apply,
    legal_cuts,
    survives_compression,
)
from holdfast.conversation import SummarizingConversationManager
from holdfast.errors import InvalidValueError
from holdfast.history import History
from holdfast.messages import Message, Text, ToolResult, ToolUse
from holdfast.tokens import TokenEstimator, estimate_input_tokens


def user(text):
    return Message.of_text("user", text)


def assistant(text):
    return Message.of_text("assistant", text)


def call(*ids):
    return Message("assistant", tuple(ToolUse(id, "read", {}) for id in ids))


def result(*ids):
    return Message("user", tuple(ToolResult(id, (Text(f"result of {id}"),)) for id in ids))


def survivors(messages, protection):
    return [at for at in range(len(messages)) if survives_compression(messages, at, protection)]


def truncated(messages, compressor, limit=100):
    plan = compressor.plan(History.of(messages, TokenEstimator(len)), Budget(window=limit))
    return apply(plan, messages)


def test_a_result_is_protected_by_the_id_of_its_call():
    messages = [user("task"), call("a"), result("a"), assistant("so"), user("go on")]
    assert survivors(messages, Protection(first=2)) == [0, 1, 2, 4]
    messages.insert(2, user("are you there?"))
    assert survivors(messages, Protection(first=2)) == [0, 1, 2, 3, 5]


def test_a_result_is_not_protected_by_a_neighbour_that_did_not_call_for_it():
    messages = [user("task"), assistant("no call"), result("other"), assistant("so"), user("go on")]
    assert survivors(messages, Protection(first=2)) == [0, 1, 4]


def test_a_result_of_another_call_is_not_taken_for_the_pair():
    messages = [user("task"), call("a"), result("b"), result("a"), assistant("so"), user("go on")]
    assert {1, 3} <= set(survivors(messages, Protection(first=2)))


def test_a_call_outside_is_kept_for_a_result_inside_of_the_protected_range():
    messages = [user("task"), call("a"), result("a"), assistant("so")]
    assert survivors(messages, Protection(last=2, current_request=False)) == [1, 2, 3]


def test_what_is_kept_after_a_cut_never_begins_with_a_tools_result():
    messages = [user("task"), call("a"), result("a"), user("more"), call("b", "c"), result("b", "c"), assistant("so")]
    assert legal_cuts(messages) == [0, 3]
    assert legal_cuts(messages, kept_before=True) == [0, 1, 3, 4, 6]


def test_first_and_last_can_be_protected_at_once():
    messages = [user(f"{at} ".ljust(30, "x")) if at % 2 == 0 else assistant("y" * 30) for at in range(9)]
    left = truncated(messages, Truncate(protect_first=1, protect_last=2), limit=300)
    assert left[0] is messages[0]
    assert left[-2:] == messages[-2:]
    assert len(left) < 9


def test_negative_numbers_do_not_mean_the_other_end():
    with pytest.raises(InvalidValueError, match="protect_first must be 0 or more, got -2; to protect both ends, set"):
        Truncate(protect_first=-2)


@pytest.mark.parametrize("compressor", [Truncate, Summarize])
def test_protection_can_be_given_as_one_object(compressor):
    protection = Protection(first=1, last=2)
    assert compressor(protect=protection).protection == protection
    assert compressor(protect_first=1, protect_last=2).protection == protection
    assert ContextCompression({"protect": {"first": 1, "last": 2}}).compressor.protection == protection
    with pytest.raises(InvalidValueError, match="give either protect, or protect_last"):
        compressor(protect=protection, protect_last=2)


def test_the_names_of_both_ends_are_aligned_and_the_older_name_still_works():
    assert {"protect_first", "protect_last"} <= set(inspect.signature(Truncate).parameters)
    assert {"protect_first", "protect_last"} <= set(inspect.signature(Summarize).parameters)
    assert Summarize(preserve_recent_messages=3).protection == Summarize(protect_last=3).protection
    with pytest.raises(InvalidValueError, match="protect_last and preserve_recent_messages mean the same"):
        Summarize(protect_last=3, preserve_recent_messages=4)


@pytest.mark.parametrize("documented", [Summarize, SummarizingConversationManager])
def test_it_is_said_what_the_ratio_is_a_ratio_of(documented):
    text = " ".join(inspect.getdoc(documented).split())
    assert "share of the messages that may leave" in text


async def test_the_ratio_is_what_it_says():
    """Of twenty messages, ten may leave: a ratio of 0.3 replaces three of them at least, and 0.8 eight."""

    def leaving(ratio):
        messages = [user("x" * 96) if at % 2 == 0 else assistant("y" * 96) for at in range(20)]
        history = History.of(messages, TokenEstimator(len))
        budget = Budget(window=2_100, low_water=0.94, trigger=1.0)
        return Summarize(summary_ratio=ratio, protect_last=10).plan_extractive(history, budget).removed

    assert 3 <= leaving(0.3) < leaving(0.8)
    assert leaving(0.8) >= 8


@pytest.mark.parametrize("name", ["Truncate", "Summarize", "Protection", "Compressor", "ContextCompression", "Plan"])
def test_the_types_of_the_options_are_exposed(name):
    assert name in holdfast.compression.__all__
    assert inspect.isclass(getattr(holdfast.compression, name))


def test_instances_are_taken_where_names_are():
    for given in (Truncate(window_size=60), Summarize(summary_ratio=0.5)):
        assert ContextCompression(given).compressor is given


def test_an_estimate_counts_the_system_prompt_and_the_tools():
    messages = [{"role": "user", "content": "hello"}]
    prompt, tools = "You are a helpful assistant. " * 20, [{"name": "read", "description": "Reads a file. " * 20}]
    alone = estimate_input_tokens(messages)
    assert estimate_input_tokens(messages, prompt) > alone + 50
    assert estimate_input_tokens(messages, tool_specs=tools) > alone + 50
    assert estimate_input_tokens(messages, prompt, tools) == (
        estimate_input_tokens(messages, prompt) + estimate_input_tokens(messages, tool_specs=tools) - alone
    )
    assert estimate_input_tokens(messages, system_prompt=None, tool_specs=None) == alone


def test_the_prompt_for_summaries_is_public_asks_for_bullet_points_and_can_be_replaced():
    assert Summarize().summarization_system_prompt == SUMMARY_PROMPT
    assert "bullet points" in SUMMARY_PROMPT
    assert Summarize(summarization_system_prompt="Be brief.").summarization_system_prompt == "Be brief."


async def test_the_prompt_for_summaries_is_what_a_summarizer_is_asked_with():
    asked = []

    async def summarizer(request):
        asked.append(request.system_prompt)
        return "short"

    messages = [user("x" * 96) if at % 2 == 0 else assistant("y" * 96) for at in range(20)]
    compressor = Summarize(summarizer=summarizer, summarization_system_prompt="Be brief.", protect_last=2)
    await compressor.plan(History.of(messages, TokenEstimator(len)), Budget(window=2_000))
    assert asked == ["Be brief."]


def test_the_predicate_says_in_its_name_what_it_decides():
    assert survives_compression.__name__ == "survives_compression"
    assert typing.get_type_hints(survives_compression)["return"] is bool
    messages = [user("task"), assistant("so"), user("go on")]
    assert survives_compression(messages, 0, Protection(first=1)) is True
    assert survives_compression(messages, 1, Protection(first=1)) is False
    assert survives_compression(messages, -1, Protection()) is True
    with pytest.raises(IndexError):
        survives_compression(messages, 3, Protection())


@pytest.mark.parametrize("at", [1, 2])
def test_what_is_protected_includes_its_pair(at):
    messages = [user("task"), call("a", "b"), result("a", "b"), assistant("so"), user("go on")]
    assert survivors(messages, Protection(first=at + 1)) == [0, 1, 2, 4]
    pinned = [message.with_pin(index == at) for index, message in enumerate(messages)]
    assert survivors(pinned, Protection()) == [1, 2, 4]
