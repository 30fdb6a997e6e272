"""The conversation managers: their names and what they do, for anything with a list of messages."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import time
from types import SimpleNamespace

import pytest

from holdfast.compression import SUMMARY_PROMPT, set_pins
from holdfast.conversation import (
    ConversationManager,
    NullConversationManager,
    ProactiveCompressionConfig,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.hooks import AfterModelCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.testing.providers import anthropic_problems, converse_problems, openai_problems
from holdfast.tokens import estimate_input_tokens

OVERFLOW = "Input is too long for requested model."
WORDS = "the quick brown fox jumps over the lazy dog and tells nobody about it "


class Converse:
    problems = staticmethod(converse_problems)

    @staticmethod
    def say(role, text):
        return {"role": role, "content": [{"text": text}]}

    @staticmethod
    def call(number):
        return {"role": "assistant", "content": [{"toolUse": {"toolUseId": number, "name": "read", "input": {}}}]}

    @staticmethod
    def result(number, text):
        content = {"toolUseId": number, "status": "success", "content": [{"text": text}]}
        return {"role": "user", "content": [{"toolResult": content}]}


class Anthropic:
    problems = staticmethod(anthropic_problems)

    @staticmethod
    def say(role, text):
        return {"role": role, "content": [{"type": "text", "text": text}]}

    @staticmethod
    def call(number):
        return {"role": "assistant", "content": [{"type": "tool_use", "id": number, "name": "read", "input": {}}]}

    @staticmethod
    def result(number, text):
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": number, "content": text}]}


class OpenAI:
    problems = staticmethod(openai_problems)

    @staticmethod
    def say(role, text):
        return {"role": role, "content": text}

    @staticmethod
    def call(number):
        function = {"name": "read", "arguments": "{}"}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": number, "type": "function", "function": function}],
        }

    @staticmethod
    def result(number, text):
        return {"role": "tool", "tool_call_id": number, "content": text}


DIALECTS = [Converse, Anthropic, OpenAI]
every_dialect = pytest.mark.parametrize("wire", DIALECTS)


def turns(wire, count, length=200):
    """Four messages for each turn, and what the user asks last."""
    for number in range(count):
        yield wire.say("user", f"question {number} " + (WORDS * 20)[:length])
        yield wire.call(f"call-{number}")
        yield wire.result(f"call-{number}", f"result {number} " + (WORDS * 20)[:length])
        yield wire.say("assistant", f"answer {number} " + (WORDS * 20)[:length])
    yield wire.say("user", "the latest question")


def agent_with(messages, **described):
    return SimpleNamespace(messages=list(messages), **described)


def agent_at(share, wire=OpenAI, count=20, **described):
    """An agent whose history takes that share of its window."""
    messages = list(turns(wire, count))
    return agent_with(messages, window=round(estimate_input_tokens(messages) / share), **described)


def text_of(message):
    return json.dumps(message, ensure_ascii=False)


def sent(messages):
    return [{key: value for key, value in message.items() if key != "metadata"} for message in messages]


def summaries(messages):
    return [message for message in messages if "<summary>" in text_of(message)]


def summarizing(summarizer=None, **options):
    return SummarizingConversationManager(**{"preserve_recent_messages": 4, "summarizer": summarizer} | options)


async def in_few_words(request):
    return "what was said, in few words"


MANAGERS = [
    pytest.param(SlidingWindowConversationManager, id="sliding window"),
    pytest.param(lambda **options: summarizing(**options), id="summarizing, extractive"),
    pytest.param(lambda **options: summarizing(in_few_words, **options), id="summarizing, with a model"),
]
every_manager = pytest.mark.parametrize("make", MANAGERS)


# --- names, arguments, defaults


def test_the_four_managers_are_one_family():
    for manager in (SlidingWindowConversationManager, SummarizingConversationManager, NullConversationManager):
        assert issubclass(manager, ConversationManager)
    with pytest.raises(TypeError, match="abstract"):
        ConversationManager()


def test_the_defaults_are_the_seeds():
    window, summary = SlidingWindowConversationManager(), SummarizingConversationManager()
    assert (window.window_size, window.should_truncate_results, window.per_turn) == (40, True, False)
    assert (summary.summary_ratio, summary.preserve_recent_messages) == (0.3, 10)
    assert window.removed_message_count == summary.removed_message_count == 0


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("register_hooks", ["self", "registry", "kwargs"]),
        ("restore_from_session", ["self", "state"]),
        ("get_state", ["self"]),
        ("apply_management", ["self", "agent", "kwargs"]),
        ("reduce_context", ["self", "agent", "e", "kwargs"]),
    ],
)
@pytest.mark.parametrize(
    "manager",
    [
        ConversationManager,
        SlidingWindowConversationManager,
        SummarizingConversationManager,
        NullConversationManager,
    ],
)
def test_every_method_has_the_seeds_arguments(manager, method, parameters):
    assert list(inspect.signature(getattr(manager, method)).parameters) == parameters


def test_further_keyword_arguments_are_taken():
    agent = agent_with(turns(OpenAI, 2))
    before = list(agent.messages)
    for manager in (SlidingWindowConversationManager(), SummarizingConversationManager(), NullConversationManager()):
        manager.apply_management(agent, invocation=3)
        manager.reduce_context(agent, invocation=3)
        manager.register_hooks(HookRegistry(), source="session")
    assert agent.messages == before


def test_arguments_come_by_position_as_they_always_did():
    window = SlidingWindowConversationManager(30, False)
    assert (window.window_size, window.should_truncate_results) == (30, False)
    summary = SummarizingConversationManager(0.5, 7)
    assert (summary.summary_ratio, summary.preserve_recent_messages) == (0.5, 7)


@pytest.mark.parametrize(
    ("given", "threshold"),
    [
        (None, None),
        (False, None),
        (True, 0.7),
        ({"compression_threshold": 0.8}, 0.8),
        ({"compression_threshold": 1}, 1.0),
        (ProactiveCompressionConfig(compression_threshold=0.01), 0.01),
        ({}, 0.7),
    ],
)
def test_every_form_of_proactive_compression(given, threshold):
    for manager in (SlidingWindowConversationManager, SummarizingConversationManager, NullConversationManager):
        assert manager(proactive_compression=given).window.trigger == threshold


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, float("nan"), 70])
def test_a_threshold_out_of_range_is_a_value_error(threshold):
    with pytest.raises(ValueError, match="compression_threshold must be above 0 and up to 1, got"):
        SlidingWindowConversationManager(proactive_compression={"compression_threshold": threshold})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.7, r"proactive_compression must be True, False, None or \{'compression_threshold': share\}, got float"),
        ("auto", "proactive_compression must be True, False, None or"),
        (
            {"threshold": 0.7},
            "unknown option of proactive_compression: 'threshold'; allowed is 'compression_threshold'",
        ),
        ({"compression_threshold": "0.7"}, "compression_threshold must be a number above 0 and up to 1, got str"),
        ({"compression_threshold": None}, "compression_threshold must be a number above 0 and up to 1, got NoneType"),
        ({"compression_threshold": True}, "compression_threshold must be a number above 0 and up to 1, got bool"),
    ],
)
def test_any_other_proactive_compression_is_refused(given, message):
    with pytest.raises(HoldfastError, match=message):
        NullConversationManager(proactive_compression=given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_size": -1}, "window_size must be 0 or more, got -1"),
        ({"window_size": "40"}, "window_size must be a number of messages, got str"),
        ({"window_size": True}, "window_size must be a number of messages, got bool"),
        ({"per_turn": 0}, "per_turn must be True, False or at least 1, got 0"),
        ({"per_turn": -3}, "per_turn must be True, False or at least 1, got -3"),
        ({"per_turn": "always"}, "per_turn must be True, False or a number of model calls, got str"),
        ({"per_turn": 1.5}, "per_turn must be True, False or a number of model calls, got float"),
        ({"per_turn": None}, "per_turn must be True, False or a number of model calls, got NoneType"),
        ({"protect_first": -1}, "protect_first must be 0 or more, got -1"),
        ({"protect_last": "all"}, "protect_last must be a number of messages, got str"),
    ],
)
def test_wrong_options_of_the_sliding_window(options, message):
    with pytest.raises(HoldfastError, match=message):
        SlidingWindowConversationManager(**options)


@pytest.mark.parametrize("ratio", [0, 0.09, 0.81, 1, -0.3, True, "0.3", None, float("nan")])
def test_a_ratio_outside_of_a_tenth_to_eight_tenths_is_refused(ratio):
    with pytest.raises(InvalidValueError, match=r"summary_ratio must be from 0.1 to 0.8, got"):
        SummarizingConversationManager(summary_ratio=ratio)


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.8])
def test_the_bounds_of_the_ratio_are_allowed(ratio):
    assert SummarizingConversationManager(summary_ratio=ratio).summary_ratio == ratio


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preserve_recent_messages": -1}, "must be 0 or more, got -1"),
        ({"preserve_recent_messages": "10"}, "must be a number of messages, got str"),
        ({"summarizer": "gpt"}, "summarizer must be an async callable or a model with a stream method, got str"),
        ({"summarization_system_prompt": 3}, "summarization_system_prompt must be a string"),
        ({"timeout": -1}, "timeout must be a number of seconds above 0, got -1"),
    ],
)
def test_wrong_options_of_the_summarizing_manager(options, message):
    with pytest.raises(HoldfastError, match=message):
        SummarizingConversationManager(**options)


@pytest.mark.parametrize("agent", [None, 3, [], {}, SimpleNamespace(), SimpleNamespace(messages=("a",))])
def test_what_has_no_list_of_messages_is_no_agent(agent):
    with pytest.raises(InvalidTypeError, match=r"an agent must have a list of messages, which .* has not"):
        SlidingWindowConversationManager().apply_management(agent)


# --- after the agent answered


@every_dialect
def test_the_sliding_window_leaves_at_most_its_size_and_what_is_left_is_legal(wire):
    agent = agent_with(turns(wire, 30))
    messages, before = agent.messages, list(agent.messages)
    manager = SlidingWindowConversationManager(window_size=11)
    manager.apply_management(agent)
    assert agent.messages is messages
    assert len(messages) <= 11
    assert wire.problems(sent(messages)) == []
    assert all(any(message is old for old in before) for message in messages if "metadata" not in message)
    assert messages[-1] is before[-1]
    bridges = sum("metadata" in message for message in messages)
    assert manager.removed_message_count == len(before) - (len(messages) - bridges)


def test_within_the_window_nothing_changes():
    agent = agent_with(turns(OpenAI, 9))
    before = list(agent.messages)
    SlidingWindowConversationManager().apply_management(agent)
    assert len(before) == 37
    assert all(now is then for now, then in zip(agent.messages, before, strict=True))


@pytest.mark.parametrize("size", [1, 2, 3, 40, 10**30])
def test_any_size_of_window_will_do(size):
    agent = agent_with(turns(Converse, 30))
    SlidingWindowConversationManager(window_size=size).apply_management(agent)
    assert len(agent.messages) <= size
    assert converse_problems(sent(agent.messages)) == []


def test_a_window_of_0_leaves_nothing_once_the_agent_answered():
    agent = agent_with([*turns(Converse, 3), Converse.say("assistant", "the latest answer")])
    manager = SlidingWindowConversationManager(window_size=0)
    manager.apply_management(agent)
    assert agent.messages == []
    assert manager.removed_message_count == 14


def test_a_window_of_0_leaves_what_has_to_be_answered():
    agent = agent_with(turns(Converse, 3))
    SlidingWindowConversationManager(window_size=0).apply_management(agent)
    assert agent.messages[-1] == Converse.say("user", "the latest question")


@every_dialect
def test_protected_messages_stay_whatever_the_window(wire):
    agent = agent_with(turns(wire, 30))
    before = list(agent.messages)
    set_pins(agent.messages, [41])
    manager = SlidingWindowConversationManager(window_size=12, protect_first=2, protect_last=3)
    manager.apply_management(agent)
    assert agent.messages[:3] == before[:3], "the second message is a call, so its result stays too"
    assert agent.messages[-3:] == before[-3:]
    assert before[42] in agent.messages
    assert sent([message for message in agent.messages if "metadata" in message])[0] == before[41]
    assert wire.problems(sent(agent.messages)) == []


@pytest.mark.parametrize("manager", [NullConversationManager(), SummarizingConversationManager()])
def test_the_others_do_nothing_then(manager):
    agent = agent_with(turns(OpenAI, 30))
    manager.apply_management(agent)
    assert len(agent.messages) == 121


def test_an_empty_history_is_no_problem():
    for manager in (SlidingWindowConversationManager(0), SummarizingConversationManager()):
        agent = agent_with([])
        manager.apply_management(agent)
        manager.reduce_context(agent)
        assert agent.messages == []


# --- reducing


@every_manager
@every_dialect
def test_after_an_overflow_the_history_fits_is_legal_and_keeps_the_question(make, wire):
    agent = agent_at(1.3, wire)
    question = agent.messages[-1]
    manager = make()
    manager.reduce_context(agent, RuntimeError(OVERFLOW))
    assert estimate_input_tokens(agent.messages) <= agent.window
    assert wire.problems(sent(agent.messages)) == []
    assert agent.messages[-1] is question
    assert manager.removed_message_count > 0


@every_manager
def test_after_an_overflow_that_nobody_expected_the_history_is_strictly_smaller_each_time(make):
    agent, manager = agent_at(0.1), make()
    for _ in range(3):
        before = estimate_input_tokens(agent.messages)
        manager.reduce_context(agent, RuntimeError(OVERFLOW))
        assert estimate_input_tokens(agent.messages) < before


@every_manager
@pytest.mark.parametrize("messages", [[], [OpenAI.say("user", "hi")], [None], [{"role": "user", "content": None}]])
def test_when_nothing_can_leave_that_very_error_is_raised(make, messages):
    agent, error = agent_with(messages), RuntimeError(OVERFLOW)
    with pytest.raises(RuntimeError) as raised:
        make().reduce_context(agent, error)
    assert raised.value is error
    assert agent.messages == messages


def test_when_all_is_pinned_that_very_error_is_raised_and_says_why():
    agent, error = agent_at(1.3, count=3), RuntimeError(OVERFLOW)
    set_pins(agent.messages, range(len(agent.messages)))
    before = list(agent.messages)
    with pytest.raises(RuntimeError) as raised:
        SlidingWindowConversationManager().reduce_context(agent, error)
    assert raised.value is error
    assert "Protect or pin fewer messages" in str(raised.value.__cause__)
    assert agent.messages == before


def test_the_null_manager_raises_what_it_is_given_and_nothing_else():
    agent, error = agent_at(2.0), RuntimeError(OVERFLOW)
    NullConversationManager().reduce_context(agent)
    with pytest.raises(RuntimeError) as raised:
        NullConversationManager().reduce_context(agent, e=error)
    assert raised.value is error
    assert len(agent.messages) == 81


@every_manager
def test_without_an_error_a_history_with_room_to_spare_stays_as_it_is(make):
    agent = agent_at(0.2, count=5)
    before = list(agent.messages)
    make().reduce_context(agent)
    assert agent.messages == before


@every_manager
def test_without_an_error_what_cannot_fit_is_no_error(make, caplog):
    agent = agent_at(20.0, count=4)
    set_pins(agent.messages, range(len(agent.messages)))
    make().reduce_context(agent)
    assert len(agent.messages) == 17
    assert "the history cannot be reduced enough" in caplog.text


def test_large_results_are_shortened_first_unless_that_is_unwanted():
    def messages():
        return [
            *turns(Converse, 1),
            Converse.say("assistant", "let me see"),
            Converse.say("user", "do"),
            Converse.call("big"),
            Converse.result("big", WORDS * 500),
            Converse.say("assistant", "seen"),
            *turns(Converse, 1),
        ]

    window = estimate_input_tokens(messages()) // 2
    shortened, dropped = agent_with(messages(), window=window), agent_with(messages(), window=window)
    SlidingWindowConversationManager().reduce_context(shortened, RuntimeError(OVERFLOW))
    SlidingWindowConversationManager(should_truncate_results=False).reduce_context(dropped, RuntimeError(OVERFLOW))
    assert len(shortened.messages) == len(messages())
    assert "[Extract of " in text_of(shortened.messages)
    assert len(dropped.messages) < len(messages())
    assert "[Extract of " not in text_of(dropped.messages)


@every_manager
def test_the_agents_prompt_and_tools_and_models_window_are_seen(make):
    tool_registry = SimpleNamespace(get_all_tool_specs=lambda: [{"name": "t", "description": WORDS * 100}])
    model = SimpleNamespace(context_window_limit=4_000, config={"model_id": "m"})
    agent = agent_with(turns(OpenAI, 12), system_prompt=WORDS * 50, tool_registry=tool_registry, model=model)
    manager = make()
    manager.reduce_context(agent, RuntimeError(OVERFLOW))
    specs = tool_registry.get_all_tool_specs()
    assert estimate_input_tokens(agent.messages, agent.system_prompt, specs) <= 4_000


# --- on the events of an agent


async def test_before_a_call_the_history_is_reduced_from_the_threshold_on():
    for manager in (
        SlidingWindowConversationManager(10**6, proactive_compression=True),
        summarizing(in_few_words, proactive_compression={"compression_threshold": 0.7}),
    ):
        registry = HookRegistry()
        manager.register_hooks(registry)
        low, high = agent_at(0.65), agent_at(0.75)
        conversation = Conversation(low.messages, window=low.window)
        await registry.invoke(BeforeModelCall(conversation))
        assert len(low.messages) == 81
        conversation.messages, conversation.window = high.messages, high.window
        await registry.invoke(BeforeModelCall(conversation))
        assert len(high.messages) < 81


@pytest.mark.parametrize("proactive", [False, None])
@every_manager
async def test_without_proactive_compression_nothing_happens_before_a_call(make, proactive):
    agent, registry = agent_at(2.0), HookRegistry()
    make(proactive_compression=proactive).register_hooks(registry)
    await registry.invoke(BeforeModelCall(Conversation(agent.messages, window=agent.window)))
    assert len(agent.messages) == 81


async def test_a_managers_failure_before_a_call_is_reported_and_the_call_proceeds(caplog):
    class Failing(ConversationManager):
        def apply_management(self, agent, **kwargs):
            pass

        def reduce_context(self, agent, e=None, **kwargs):
            raise OSError("the disk is gone")

    agent, registry = agent_at(0.9), HookRegistry()
    Failing(proactive_compression=True).register_hooks(registry)
    await registry.invoke(BeforeModelCall(Conversation(agent.messages, window=agent.window)))
    assert "the disk is gone" in caplog.text


@pytest.mark.parametrize(("per_turn", "applied"), [(True, [1, 2, 3, 4]), (1, [1, 2, 3, 4]), (3, [3]), (False, [])])
async def test_per_turn_applies_the_window_before_every_or_every_so_many_calls(per_turn, applied):
    registry = HookRegistry()
    SlidingWindowConversationManager(5, per_turn=per_turn).register_hooks(registry)
    conversation, seen = Conversation([]), []
    for call in range(1, 5):
        conversation.messages.extend(turns(Converse, 2))
        await registry.invoke(BeforeModelCall(conversation))
        if len(conversation.messages) <= 5:
            seen.append(call)
        conversation.messages.append(Converse.say("assistant", "done"))
    assert seen == applied


async def test_a_summary_is_awaited_after_an_overflow_and_a_retry_asked_for_three_times_at_most():
    agent, registry, asked = agent_at(0.5, count=200), HookRegistry(), []

    async def summarizer(request):
        asked.append(request)
        return "short"

    summarizing(summarizer).register_hooks(registry)
    conversation = Conversation(agent.messages, window=agent.window)
    retries = []
    for _ in range(4):
        await registry.invoke(BeforeModelCall(conversation))
        event = await registry.invoke(AfterModelCall(conversation, error=RuntimeError(OVERFLOW)))
        retries.append(event.retry)
    assert retries == [True, True, True, False]
    assert len(asked) == 3
    assert len(summaries(agent.messages)) == 1


async def test_other_errors_are_none_of_its_business():
    agent, registry = agent_at(0.5), HookRegistry()
    summarizing(in_few_words).register_hooks(registry)
    event = AfterModelCall(Conversation(agent.messages, window=agent.window), error=RuntimeError("reset by peer"))
    assert not (await registry.invoke(event)).retry
    assert len(agent.messages) == 81


# --- summaries


def test_a_summary_stands_in_tags_where_the_messages_were():
    agent = agent_at(1.3)
    summarizing(in_few_words, protect_first=1).reduce_context(agent, RuntimeError(OVERFLOW))
    (summary,) = summaries(agent.messages)
    assert summary["role"] == "user"
    assert summary["content"] == "<summary>\nwhat was said, in few words\n</summary>"
    assert agent.messages[0]["content"].startswith("question 0")
    assert agent.messages.index(summary) <= 2


def test_a_summarizer_is_told_what_leaves_in_one_prompt():
    requests = []

    async def summarizer(request):
        requests.append((request.system_prompt, request.prompt, request.messages, request.known))
        return "short"

    agent = agent_at(1.3)
    summarizing(summarizer).reduce_context(agent, RuntimeError(OVERFLOW))
    ((system_prompt, prompt, messages, known),) = requests
    assert system_prompt == SUMMARY_PROMPT
    assert "question 0" in prompt
    assert "result 0" in prompt
    assert "the latest question" not in prompt
    assert messages[0].text.startswith("question 0")
    assert known == ""


def test_the_system_prompt_for_summaries_can_be_replaced():
    prompts = []

    async def summarizer(request):
        prompts.append(request.system_prompt)
        return "short"

    manager = summarizing(summarizer, summarization_system_prompt="Write a haiku.")
    manager.reduce_context(agent_at(1.3), RuntimeError(OVERFLOW))
    assert prompts == ["Write a haiku."]


@pytest.mark.parametrize("with_model", [True, False])
def test_an_earlier_summary_is_handed_on_as_known_and_replaced(with_model):
    knowns = []

    async def summarizer(request):
        knowns.append((request.known, "<summary>" in request.prompt, [m for m in request.messages if m.made_as]))
        return f"summary number {len(knowns)}"

    agent, manager = agent_at(1.2), summarizing(summarizer if with_model else None)
    for number in range(5):
        manager.reduce_context(agent, RuntimeError(OVERFLOW))
        assert len(summaries(agent.messages)) == 1, f"after {number}"
        agent.messages.append(OpenAI.say("assistant", "ok"))
        agent.messages.extend(turns(OpenAI, 20))
    if with_model:
        assert [known for known, _, _ in knowns] == ["", *(f"summary number {number}" for number in range(1, 5))]
        assert not any(tagged or made for _, tagged, made in knowns)


async def _raises(request):
    raise ConnectionError("the model is away")


async def _cancels_itself(request):
    raise asyncio.CancelledError


async def _answers(answer):
    return answer


async def _is_slow(request):
    await asyncio.sleep(60)
    return "too late"


async def _will_not_be_cancelled(request):
    for _ in range(20):
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue
    return "too late"


def _raises_at_once(request):
    raise ConnectionError("the model is away")


class _BadModel:
    async def stream(self, messages, tool_specs, system_prompt):
        yield "no event"


BAD_SUMMARIZERS = {
    "fails": _raises,
    "fails at once": _raises_at_once,
    "cancels itself": _cancels_itself,
    "answers nothing": lambda request: _answers(""),
    "answers blanks": lambda request: _answers(" \n\t"),
    "answers empty tags": lambda request: _answers("<summary>\n \n</summary>"),
    "answers None": lambda request: _answers(None),
    "answers bytes": lambda request: _answers(b"bytes"),
    "is slow": _is_slow,
    "will not be cancelled": _will_not_be_cancelled,
    "answers a number at once": lambda request: 7,
    "streams something else": _BadModel(),
}


@pytest.mark.parametrize("summarizer", BAD_SUMMARIZERS.values(), ids=BAD_SUMMARIZERS)
async def test_a_summarizer_that_does_not_work_costs_a_truncation_that_is_said_and_nothing_protected(
    summarizer, caplog
):
    agent = agent_at(1.3, Converse)
    before = list(agent.messages)
    set_pins(agent.messages, [20])
    manager = summarizing(summarizer, protect_first=1, timeout=0.05)
    await asyncio.wait_for(manager.reduce_context_async(agent, RuntimeError(OVERFLOW)), 5)
    assert "the summarizer failed, so the history is truncated instead" in caplog.text
    assert summaries(agent.messages) == []
    assert estimate_input_tokens(agent.messages) <= agent.window
    assert converse_problems(sent(agent.messages)) == []
    assert agent.messages[0] == before[0]
    assert agent.messages[-4:] == before[-4:]
    assert before[20] in sent(agent.messages)


def test_a_summarizer_that_fails_does_not_cost_what_an_earlier_summary_says(caplog):
    answers = iter(["the password is swordfish"])

    async def summarizer(request):
        return next(answers, "")

    agent, manager = agent_at(1.2, Converse), summarizing(summarizer)
    for _ in range(3):
        manager.reduce_context(agent, RuntimeError(OVERFLOW))
        (summary,) = summaries(agent.messages)
        assert "the password is swordfish" in text_of(summary)
        assert estimate_input_tokens(agent.messages) <= agent.window
        assert converse_problems(sent(agent.messages)) == []
        agent.messages.extend([Converse.say("assistant", "ok"), *turns(Converse, 20)])
    assert caplog.text.count("the summarizer failed, so the history is truncated instead") == 2


def test_a_summarizer_that_fails_outside_of_a_loop_falls_back_too(caplog):
    agent = agent_at(1.3)
    summarizing(_raises).reduce_context(agent, RuntimeError(OVERFLOW))
    assert "the model is away" in caplog.text
    assert estimate_input_tokens(agent.messages) <= agent.window


@pytest.mark.parametrize("answer", ["x" * 10**6, "\ud83d half a pair", "</summary>" * 3, "<summary>a</summary>b"])
async def test_whatever_a_summarizer_answers_the_history_fits(answer):
    agent = agent_at(1.3)
    await summarizing(lambda request: _answers(answer)).reduce_context_async(agent, RuntimeError(OVERFLOW))
    assert estimate_input_tokens(agent.messages) <= agent.window
    assert openai_problems(sent(agent.messages)) == []


async def test_tags_that_a_summarizer_wrote_itself_are_not_doubled():
    agent = agent_at(1.3)
    summarizer = lambda request: _answers("\n<summary>\nshort\n</summary>\n")  # noqa: E731
    await summarizing(summarizer).reduce_context_async(agent, RuntimeError(OVERFLOW))
    (summary,) = summaries(agent.messages)
    assert summary["content"] == "<summary>\nshort\n</summary>"


async def test_inside_of_a_running_loop_nothing_waits_for_a_model():
    agent, asked = agent_at(1.3), []

    async def takes_seconds(request):
        asked.append(request)
        await asyncio.sleep(30)
        return "too late"

    start = time.perf_counter()
    summarizing(takes_seconds).reduce_context(agent, RuntimeError(OVERFLOW))
    assert time.perf_counter() - start < 5
    assert asked == []
    assert len(summaries(agent.messages)) == 1
    assert estimate_input_tokens(agent.messages) <= agent.window


async def test_the_loop_goes_on_while_a_summary_is_made():
    done = asyncio.Event()

    async def waits(request):
        await done.wait()
        return "short"

    agent = agent_at(1.3)
    reducing = asyncio.create_task(summarizing(waits).reduce_context_async(agent, RuntimeError(OVERFLOW)))
    await asyncio.sleep(0)
    late = OpenAI.say("assistant", "meanwhile")
    agent.messages.append(late)
    done.set()
    await reducing
    assert agent.messages[-1] is late
    assert len(summaries(agent.messages)) == 1


async def test_a_history_reduced_by_someone_else_meanwhile_loses_nothing_more():
    agent = agent_at(1.3)
    question = agent.messages[-1]
    manager = summarizing()

    async def interrupted(request):
        manager.reduce_context(agent)
        return "a summary of what is gone already"

    manager = summarizing(interrupted)
    await manager.reduce_context_async(agent)
    assert len(summaries(agent.messages)) == 1
    assert agent.messages[-1] is question
    assert openai_problems(sent(agent.messages)) == []
    answers = [message["content"] for message in agent.messages if str(message["content"]).startswith("answer")]
    numbers = [int(answer.split()[1]) for answer in answers]
    assert numbers == sorted(set(numbers))


class Model:
    """Streams as the models of strands do."""

    def __init__(self):
        self.calls = []

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        self.calls.append((messages, tool_specs, system_prompt))
        yield {"messageStart": {"role": "assistant"}}
        for text in ("what was said, ", "in few words"):
            yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "hm"}}}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@pytest.mark.parametrize("in_loop", [True, False])
def test_a_frameworks_model_can_summarize(in_loop):
    agent, model = agent_at(1.3, Converse), Model()
    manager = summarizing(model)
    if in_loop:
        asyncio.run(manager.reduce_context_async(agent, RuntimeError(OVERFLOW)))
    else:
        manager.reduce_context(agent, RuntimeError(OVERFLOW))
    (summary,) = summaries(agent.messages)
    assert summary["content"] == [{"text": "<summary>\nwhat was said, in few words\n</summary>"}]
    ((messages, tool_specs, system_prompt),) = model.calls
    assert "question 0" in messages[0]["content"][0]["text"]
    assert tool_specs is None
    assert system_prompt == SUMMARY_PROMPT


# --- counts and state


def test_only_messages_of_the_conversation_are_counted_as_removed():
    agent, manager = agent_at(1.2), summarizing(in_few_words)
    given = len(agent.messages)
    for _ in range(4):
        manager.reduce_context(agent, RuntimeError(OVERFLOW))
        originals = [message for message in agent.messages if "metadata" not in message]
        assert manager.removed_message_count == given - len(originals)
        new = [OpenAI.say("assistant", "ok"), *turns(OpenAI, 20)]
        agent.messages.extend(new)
        given += len(new)


def test_bridges_are_not_counted_as_removed():
    manager = SlidingWindowConversationManager(window_size=4, protect_first=1)
    agent, given = agent_with([]), 0
    for _ in range(10):
        new = [*turns(Converse, 1), Converse.say("assistant", "ok")]
        agent.messages.extend(new)
        given += len(new)
        manager.apply_management(agent)
    originals = [message for message in agent.messages if "metadata" not in message]
    assert manager.removed_message_count == given - len(originals)


def test_a_session_can_be_saved_and_restored_as_json():
    agent, manager = agent_at(1.3, Converse), summarizing(in_few_words)
    set_pins(agent.messages, [8])
    manager.reduce_context(agent, RuntimeError(OVERFLOW))
    state, messages = json.loads(json.dumps([manager.get_state(), agent.messages]))

    restored = summarizing(in_few_words)
    prepended = restored.restore_from_session(state)
    assert prepended == summaries(agent.messages)
    assert restored.get_state() == manager.get_state()
    assert restored.removed_message_count == manager.removed_message_count

    again = agent_with(messages, window=agent.window)
    for _ in range(3):
        again.messages.extend([Converse.say("assistant", "ok"), *turns(Converse, 20)])
        restored.reduce_context(again, RuntimeError(OVERFLOW))
    assert any("question 2 " in text_of(message) for message in again.messages), "a pin is saved with its message"
    assert len(summaries(again.messages)) == 1


async def test_the_count_of_model_calls_survives():
    registry, manager = HookRegistry(), SlidingWindowConversationManager(2, per_turn=3)
    manager.register_hooks(registry)
    conversation = Conversation(list(turns(Converse, 2)))
    for _ in range(2):
        await registry.invoke(BeforeModelCall(conversation))
    restored = SlidingWindowConversationManager(2, per_turn=3)
    assert restored.restore_from_session(json.loads(json.dumps(manager.get_state()))) is None
    registry = HookRegistry()
    restored.register_hooks(registry)
    await registry.invoke(BeforeModelCall(conversation))
    assert len(conversation.messages) <= 2


def test_a_summary_that_was_put_before_the_messages_is_not_taken_for_the_first_of_them():
    agent, manager = agent_at(1.3), summarizing(in_few_words, protect_first=1)
    manager.reduce_context(agent, RuntimeError(OVERFLOW))
    restored = summarizing(in_few_words, protect_first=1)
    prepended = restored.restore_from_session(manager.get_state())
    again = agent_with([*prepended, *turns(OpenAI, 20)], window=agent.window)
    first = again.messages[1]
    restored.reduce_context(again, RuntimeError(OVERFLOW))
    assert len(summaries(again.messages)) == 1
    assert first in again.messages


def test_whoever_a_summary_was_put_in_the_mouth_of_a_user_says_it_first():
    summary = Converse.say("assistant", "<summary>\nall\n</summary>")
    state = {**SummarizingConversationManager().get_state(), "summary_message": summary}
    [first] = SummarizingConversationManager().restore_from_session(state)
    assert first == {**summary, "role": "user"}


def test_without_a_summary_nothing_is_to_be_prepended():
    manager = SummarizingConversationManager()
    assert manager.get_state()["summary_message"] is None
    assert SummarizingConversationManager().restore_from_session(manager.get_state()) is None


def test_a_state_that_a_strands_manager_saved_is_taken():
    manager = SlidingWindowConversationManager()
    name = "SlidingWindowConversationManager"
    manager.restore_from_session({"__name__": name, "removed_message_count": 7, "model_call_count": 3})
    assert manager.removed_message_count == 7


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        {"__name__": "NullConversationManager", "removed_message_count": 0},
        {"__name__": "SummarizingConversationManager"},
        {"__name__": "SummarizingConversationManager", "removed_message_count": "7"},
        {"__name__": "SummarizingConversationManager", "removed_message_count": 7, "summary_message": "text"},
        {"__name__": "SummarizingConversationManager", "removed_message_count": 7, "calibration": None},
    ],
)
def test_a_foreign_state_is_refused(state):
    with pytest.raises(HoldfastError):
        SummarizingConversationManager().restore_from_session(state)


def test_the_error_for_a_foreign_state_names_both():
    state = NullConversationManager().get_state()
    with pytest.raises(ValueError, match="not the state of a SlidingWindowConversationManager: 'NullConversation"):
        SlidingWindowConversationManager().restore_from_session(state)


# --- hostile histories


@every_manager
def test_whatever_is_in_the_history_nothing_breaks(make):
    odd = [
        None,
        7,
        {},
        {"role": "user", "content": None},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"json": {"raw": b"\xff"}}]}}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "b", "name": "n", "input": {"x": {1, 2}}}}]},
        {"role": "user", "content": [{"text": "half a pair: \ud83d"}]},
    ]
    agent = agent_with([*odd, *turns(Converse, 20), *odd, Converse.say("user", "well?")], window=1_000)
    manager = make(protect_first=0)
    manager.apply_management(agent)
    manager.reduce_context(agent)
    manager.reduce_context(agent, RuntimeError(OVERFLOW))
    json.dumps(manager.get_state())
    assert agent.messages[-1] == Converse.say("user", "well?")


# --- tokens and messages at once


def test_a_sliding_window_heeds_tokens_as_well_as_messages():
    manager = SlidingWindowConversationManager(window_size=40, proactive_compression=True, window=50_000)
    registry, conversation = HookRegistry(), Conversation([{"role": "user", "content": "go"}])
    manager.register_hooks(registry)
    reductions, before = 0, 0
    for number in range(60):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        conversation.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": "word " * (900 + 60 * number)}
        conversation.messages.append(result)
        asyncio.run(registry.invoke(BeforeModelCall(conversation)))
        reductions += manager.removed_message_count > before
        before = manager.removed_message_count
        assert manager.window.used(conversation) < 1
    assert 0 < reductions < 15


def test_a_sliding_window_recovers_from_an_overflow_by_itself():
    manager = SlidingWindowConversationManager(window=10_000)
    registry = HookRegistry()
    manager.register_hooks(registry)
    conversation = Conversation([{"role": ("user", "assistant")[n % 2], "content": "word " * 100} for n in range(21)])
    event = AfterModelCall(conversation, error=RuntimeError("prompt is too long: 20000 tokens > 10000 maximum"))
    asyncio.run(registry.invoke(event))
    assert event.retry
    assert len(conversation.messages) < 21


def test_a_summarizer_that_cannot_be_stopped_does_not_hold_up_a_call_that_waits(caplog):
    async def stubborn(request):
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(30)

    agent = SimpleNamespace(
        messages=[{"role": ("user", "assistant")[n % 2], "content": f"word{n} " * 100} for n in range(41)], window=2_000
    )
    manager = SummarizingConversationManager(summarizer=stubborn, preserve_recent_messages=2, timeout=0.1)
    manager.reduce_context(agent)
    assert len(agent.messages) < 41
    assert "takes too long" in caplog.text or "summarizer failed" in caplog.text
