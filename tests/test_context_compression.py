"""ContextCompression: a conversation that stays inside its window, on the events of a hand-written loop."""

from __future__ import annotations

import asyncio
import json
import logging
from types import SimpleNamespace

import pytest

from holdfast.compression import ContextCompression, Plan, Protection, Summarize, Truncate, set_pins
from holdfast.defaults import WINDOW
from holdfast.errors import ContextOverflowError, HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.hooks import AfterInvocation, AfterModelCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.tokens import Calibration

ANTHROPIC = "prompt is too long: 208310 tokens > 200000 maximum"
OPENAI = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. "
    "Please reduce the length of the messages."
)
BEDROCK = "An error occurred (ValidationException): Input is too long for requested model."


class ContextWindowOverflowException(Exception):  # noqa: N818 - strands' own name
    pass


class BadRequestError(Exception):
    def __init__(self, message, code=None):
        super().__init__(message)
        self.code = code


OVERFLOWS = [
    pytest.param(BadRequestError(ANTHROPIC), id="anthropic"),
    pytest.param(BadRequestError("Error code: 400", "context_length_exceeded"), id="openai by code"),
    pytest.param(BadRequestError(OPENAI), id="openai by words"),
    pytest.param(RuntimeError(BEDROCK), id="bedrock"),
    pytest.param(ContextWindowOverflowException("?"), id="strands"),
    pytest.param(ContextOverflowError("too much", 10, 5), id="holdfast"),
]


def said(number, length=96):
    """A message of *length* + 4 tokens, as characters are counted here; the user says the even ones."""
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"{number} ".ljust(length, "x")}


def dialogue(count, length=96):
    return [said(number, length) for number in range(count)]


def size(messages):
    return sum(4 + len(message["content"]) for message in messages)


class Agent:
    """A hand-written loop around a model that fails as told, and otherwise answers."""

    def __init__(self, plugin, messages=(), *, failures=(), usage=None, **described):
        self.conversation = Conversation(list(messages), **described)
        self.registry = HookRegistry()
        plugin.register_hooks(self.registry)
        self.failures, self.usage = list(failures), usage
        self.sent, self.retries = [], []

    @property
    def messages(self):
        return self.conversation.messages

    async def call(self):
        """Call the model, again as long as a plugin asks for it; raise what it fails with in the end."""
        while True:
            await self.registry.invoke(BeforeModelCall(self.conversation))
            self.sent.append(list(self.messages))
            error = self.failures.pop(0) if self.failures else None
            usage = self.usage if error is None else None
            event = await self.registry.invoke(AfterModelCall(self.conversation, usage=usage, error=error))
            if error is None:
                return
            self.retries.append(event.retry)
            if not event.retry:
                raise error

    async def ask(self, text):
        self.messages.append({"role": "user", "content": text})
        await self.call()
        self.messages.append({"role": "assistant", "content": "done"})
        await self.registry.invoke(AfterInvocation(self.conversation))


def plugin(*args, **options):
    return ContextCompression(*args, **{"window": 1_000, "count_text": len} | options)


# --- before a model call


async def test_history_is_reduced_at_the_threshold_down_to_the_low_water_mark():
    agent = Agent(plugin(), dialogue(7))
    assert size(agent.messages) == 700
    await agent.call()
    assert size(agent.messages) <= 500
    assert agent.messages[-1] == said(6)


async def test_nothing_happens_below_the_threshold():
    agent = Agent(plugin(), [*dialogue(6), said(6, length=95)])
    before = list(agent.messages)
    await agent.call()
    assert len(agent.messages) == len(before)
    assert all(now is then for now, then in zip(agent.messages, before, strict=True))


async def test_system_prompt_tools_and_the_answer_count_too():
    def compression():
        return plugin(low_water=0.1)

    plain = Agent(compression(), dialogue(5))
    prompted = Agent(compression(), dialogue(5), system_prompt="p" * 200)
    tooled = Agent(compression(), dialogue(5), tool_specs=[{"name": "t" * 200}])
    roomy = Agent(compression(), dialogue(5), reserved=600)
    for agent in (plain, prompted, tooled, roomy):
        await agent.call()
    assert len(plain.messages) == 5
    assert all(len(agent.messages) < 5 for agent in (prompted, tooled, roomy))


@pytest.mark.parametrize("share", [0.000001, 0.3, 0.7, 1, 1.0])
async def test_any_share_above_0_and_up_to_1_is_a_threshold(share):
    agent = Agent(plugin(proactive=share), dialogue(11))
    await agent.call()
    assert len(agent.messages) < 11


@pytest.mark.parametrize("share", [0, 0.0, -0.1, 1.01, 70, float("nan"), float("inf"), 10**400])
def test_any_other_share_is_refused_when_built(share):
    with pytest.raises(InvalidValueError, match="proactive must be above 0 and up to 1, got"):
        plugin(proactive=share)


@pytest.mark.parametrize("share", ["0.7", None, [0.7], {"compression_threshold": 0.7}])
def test_a_threshold_that_is_no_number_is_refused_when_built(share):
    with pytest.raises(InvalidTypeError, match="proactive must be a number above 0 and up to 1, got"):
        plugin(proactive=share)


async def test_false_never_reduces_before_a_call():
    agent = Agent(plugin(proactive=False), dialogue(101))
    await agent.call()
    assert len(agent.sent[0]) == 101


async def test_what_frees_next_to_nothing_does_not_break_the_cache():
    messages = [said(0, length=9), said(1, length=9), *dialogue(7)[2:]]
    agent = Agent(plugin(Truncate(protect_last=5), proactive=0.5), messages)
    await agent.call()
    assert agent.messages == messages


async def test_a_summarizer_is_not_asked_again_and_again_for_next_to_nothing():
    asked = []

    async def summarizer(request):
        asked.append(request)
        return "short"

    messages = [said(0, length=9), said(1, length=9), *(said(number, 136) for number in range(2, 7))]
    agent = Agent(plugin(Summarize(summarizer=summarizer, protect_last=5), proactive=0.5), messages)
    for _ in range(10):
        await agent.call()
    assert len(asked) <= 1
    agent.messages.extend([said(7), said(8)])
    await agent.call()
    assert 1 <= len(asked) <= 2
    assert len(agent.messages) < 9


async def test_what_is_unpinned_may_leave_at_once():
    messages = dialogue(9)
    set_pins(messages, range(8))
    agent = Agent(plugin(), messages)
    await agent.call()
    assert len(agent.messages) == 9
    set_pins(agent.messages, range(8), pinned=False)
    await agent.call()
    assert len(agent.messages) < 9


class Failing:
    """A compressor that cannot."""

    window_size = 3

    def plan(self, history, budget):
        raise OSError("the disk is gone")

    def plan_window(self, history, *, down_to=None):
        raise OSError("the disk is gone")


class FailingLater(Failing):
    async def plan(self, history, budget):
        raise OSError("the disk is gone")


@pytest.mark.parametrize("compressor", [Failing(), FailingLater()])
async def test_a_compressor_that_raises_is_reported_and_the_call_proceeds(compressor, caplog):
    agent = Agent(plugin(compressor), dialogue(9))
    await agent.call()
    assert len(agent.sent) == 1
    assert len(agent.messages) == 9
    assert "the model call goes on without" in caplog.text
    assert "the disk is gone" in caplog.text


async def test_a_tokenizer_that_raises_is_reported_and_the_call_proceeds(caplog):
    def broken(text):
        raise OSError("the vocabulary is gone")

    agent = Agent(plugin(count_text=broken), dialogue(9))
    await agent.call()
    assert len(agent.sent) == 1
    assert "the vocabulary is gone" in caplog.text


async def test_what_cannot_fit_is_reported_and_reduced_as_far_as_it_goes(caplog):
    agent = Agent(plugin(Truncate(protect_last=9)), dialogue(15, length=196))
    await agent.call()
    assert "the next model call may not fit: the context does not fit" in caplog.text
    assert 9 <= len(agent.messages) < 15


async def test_reductions_are_told_and_a_listener_that_fails_stops_nothing(caplog):
    told = []

    def listen(plan):
        told.append(plan)
        raise OSError("nobody listens")

    agent = Agent(plugin(on_reduction=listen), dialogue(9), failures=[BadRequestError(BEDROCK)])
    await agent.call()
    assert len(agent.sent) == 2
    assert [type(plan) for plan in told] == [Plan, Plan]
    assert "nobody listens" in caplog.text


# --- after an overflow


@pytest.mark.parametrize("error", OVERFLOWS)
async def test_after_an_overflow_each_attempt_is_strictly_smaller_and_three_are_the_most(error):
    agent = Agent(plugin(window=None, proactive=False), dialogue(201), failures=[error] * 9, window=10**6)
    with pytest.raises(type(error)):
        await agent.call()
    sizes = [size(messages) for messages in agent.sent]
    assert len(sizes) == 4
    assert sizes == sorted(set(sizes), reverse=True)
    assert agent.retries == [True, True, True, False]
    assert agent.messages[-1] == said(200)


@pytest.mark.parametrize("error", OVERFLOWS)
async def test_one_overflow_costs_one_retry(error):
    agent = Agent(plugin(proactive=False, window=None), dialogue(21), failures=[error])
    await agent.call()
    assert agent.retries == [True]
    assert size(agent.sent[1]) < size(agent.sent[0])


async def test_an_overflow_that_a_framework_wrapped_is_still_one():
    wrapped = RuntimeError("the event loop failed")
    wrapped.__cause__ = BadRequestError(ANTHROPIC)
    agent = Agent(plugin(window=None), dialogue(5), failures=[wrapped])
    await agent.call()
    assert agent.retries == [True]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("connection reset"),
        RuntimeError("ThrottlingException: Too many tokens, please wait before trying again."),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
    ],
)
async def test_other_errors_change_nothing(error):
    agent = Agent(plugin(proactive=False), dialogue(21), failures=[error])
    with pytest.raises(type(error)):
        await agent.call()
    assert agent.retries == [False]
    assert len(agent.messages) == 21


async def test_a_cancellation_while_an_overflow_is_handled_is_no_overflow():
    cancelled = asyncio.CancelledError()
    cancelled.__context__ = BadRequestError(ANTHROPIC)
    agent = Agent(plugin(proactive=False), dialogue(21), failures=[cancelled])
    with pytest.raises(asyncio.CancelledError):
        await agent.call()
    assert len(agent.messages) == 21


async def test_when_nothing_can_leave_no_retry_is_asked_for(caplog):
    messages = dialogue(3)
    agent = Agent(plugin(Truncate(protect_first=3), proactive=False), messages, failures=[BadRequestError(BEDROCK)])
    with pytest.raises(BadRequestError):
        await agent.call()
    assert agent.retries == [False]
    assert agent.messages == messages
    assert "after a context overflow, nothing more can leave" in caplog.text


@pytest.mark.parametrize("compressor", [Failing(), FailingLater()])
async def test_after_an_overflow_a_compressor_that_raises_hides_nothing(compressor, caplog):
    agent = Agent(plugin(compressor, proactive=False), dialogue(9), failures=[BadRequestError(BEDROCK)])
    with pytest.raises(BadRequestError, match="Input is too long"):
        await agent.call()
    assert len(agent.messages) == 9
    assert "the disk is gone" in caplog.text


@pytest.mark.parametrize("ends_well", [True, False])
async def test_every_call_has_three_retries_of_its_own(ends_well):
    agent = Agent(plugin(window=10**6), dialogue(999), failures=[RuntimeError(BEDROCK)] * 4)
    with pytest.raises(RuntimeError):
        await agent.call()
    if ends_well:
        await agent.registry.invoke(AfterInvocation(agent.conversation))
    agent.messages[:] = dialogue(999)
    agent.failures, agent.retries = [RuntimeError(BEDROCK)] * 3, []
    await agent.call()
    assert agent.retries == [True] * 3


async def test_another_plugins_wish_to_retry_is_left_alone():
    compression = plugin()
    conversation = Conversation(dialogue(3))
    event = AfterModelCall(conversation, error=RuntimeError("connection reset"), retry=True)
    await compression.after_model_call(event)
    assert event.retry is True


async def test_tool_results_are_shortened_before_messages_leave():
    result = {"role": "tool", "tool_call_id": "a", "content": "r" * 5_000}
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [said(0), {"role": "assistant", "content": None, "tool_calls": [call]}, result, said(1), said(2)]
    agent = Agent(plugin(window=2_000), messages)
    await agent.call()
    assert len(agent.messages) == 5
    assert agent.messages[2]["content"].startswith("[Extract of 5,000 characters")
    assert result["content"] == "r" * 5_000


# --- after an invocation


async def test_after_an_invocation_at_most_so_many_messages_stay():
    agent = Agent(plugin(Truncate(window_size=6), window=10**6))
    for number in range(20):
        await agent.ask(f"question {number}")
        assert len(agent.messages) <= 6
    assert agent.messages[-2:] == [
        {"role": "user", "content": "question 19"},
        {"role": "assistant", "content": "done"},
    ]
    assert agent.messages[0]["role"] == "user"


async def test_the_window_is_applied_in_steps_so_that_most_invocations_only_append():
    agent = Agent(plugin(Truncate(window_size=40), window=10**6))
    rewrites = 0
    for number in range(200):
        before = list(agent.messages)
        await agent.ask(f"question {number}")
        rewrites += agent.messages[: len(before)] != before
    assert rewrites <= 40


async def test_with_a_window_of_0_only_what_is_protected_stays():
    agent = Agent(plugin(Truncate(window_size=0, protect_first=1), window=10**6))
    await agent.ask("the task")
    await agent.ask("more " * 50)
    assert agent.messages[0] == {"role": "user", "content": "the task"}
    assert len(agent.messages) <= 2


async def test_a_summary_has_no_window_of_messages_unless_asked_for():
    agent = Agent(plugin("summarize", window=10**6), dialogue(100))
    await agent.ask("more")
    assert len(agent.messages) == 102


async def test_a_window_that_cannot_be_applied_is_reported(caplog):
    agent = Agent(plugin(Failing(), window=10**6), dialogue(9))
    await agent.ask("more")
    assert "the window could not be applied" in caplog.text


# --- configuration


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (True, Truncate()),
        ("truncate", Truncate()),
        ("summarize", Summarize()),
        ({}, Truncate()),
        ({"method": "truncate", "window_size": 30}, Truncate(window_size=30)),
        ({"protect_first": 2}, Truncate(protect_first=2)),
        ({"method": "summarize", "summary_ratio": 0.5}, Summarize(summary_ratio=0.5)),
        (Truncate(window_size=7), Truncate(window_size=7)),
        (Summarize(protect_last=3), Summarize(protect_last=3)),
    ],
)
def test_every_form_of_the_configuration(config, expected):
    assert ContextCompression(config).compressor == expected


def test_the_defaults_are_the_seeds():
    compression = ContextCompression()
    assert compression.compressor.window_size == 40
    assert compression.compressor.protection == Protection(first=0, last=0)
    assert compression.window.trigger == 0.7
    assert Summarize().summary_ratio == 0.3
    assert Summarize().protection.last == 10


def test_an_instance_is_taken_as_it_is():
    compressor = Failing()
    assert ContextCompression(compressor).compressor is compressor


def test_a_mapping_is_not_changed():
    config = {"method": "summarize", "summary_ratio": 0.5}
    ContextCompression(config)
    assert config == {"method": "summarize", "summary_ratio": 0.5}


FORMS = r"compression must be True, 'truncate', 'summarize', a mapping of options, Truncate\(…\) or Summarize\(…\), got"
METHODS = "compression method must be one of 'truncate', 'summarize', got"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (False, FORMS),
        (None, FORMS),
        (0.7, FORMS),
        (1, FORMS),
        (["truncate"], FORMS),
        (Truncate, FORMS),
        (Summarize, FORMS),
        ("auto", METHODS),
        ("Truncate", METHODS),
        ("", METHODS),
        ({"method": "drop"}, METHODS),
        ({"method": None}, METHODS),
        ({"method": ["truncate"]}, METHODS),
        ({"windowsize": 3}, "unknown compression option 'windowsize': truncate takes 'protect', 'protect_first'"),
        ({"summary_ratio": 0.5}, "unknown compression option 'summary_ratio': truncate takes .*'window_size'"),
        (
            {"method": "truncate", "summarizer": len},
            "unknown compression option 'summarizer': truncate takes .*'window_size'",
        ),
        (
            {"method": "summarize", "ratio": 0.5},
            "unknown compression option 'ratio': summarize takes .*'summary_ratio'",
        ),
        ({1: 2}, "unknown compression option 1"),
        ({"window_size": -1}, "window_size must be 0 or more, got -1"),
        ({"window_size": True}, "window_size must be a number of messages, got bool"),
        ({"window_size": "40"}, "window_size must be a number of messages, got str"),
        ({"protect_first": -1}, "protect_first must be 0 or more, got -1; to protect both ends, set both"),
        ({"protect_last": 1.5}, "protect_last must be a number of messages, got float"),
        ({"method": "summarize", "summary_ratio": 0.09}, "summary_ratio must be from 0.1 to 0.8, got 0.09"),
        ({"method": "summarize", "summary_ratio": 0.81}, "summary_ratio must be from 0.1 to 0.8, got 0.81"),
        ({"method": "summarize", "summary_ratio": "0.3"}, "summary_ratio must be from 0.1 to 0.8, got '0.3'"),
        ({"method": "summarize", "summarizer": 3}, "summarizer must be an async callable or a model with a stream"),
        ({"method": "summarize", "summarization_system_prompt": 3}, "summarization_system_prompt must be a string"),
        ({"method": "summarize", "timeout": 0}, "timeout must be a number of seconds above 0, got 0"),
        ({"method": "summarize", "timeout": None}, "timeout must be a number of seconds above 0, got None"),
        (
            {"method": "summarize", "protect_last": 3, "preserve_recent_messages": 4},
            "protect_last and preserve_recent_messages mean the same; give one of them",
        ),
    ],
)
def test_a_wrong_configuration_says_what_is_allowed(config, message):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        ContextCompression(config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"window": "128k"}, "window must be a number of tokens, got str"),
        ({"window": True}, "window must be a number of tokens, got bool"),
        ({"low_water": 0}, "low_water must be above 0 and up to 1, got 0"),
        ({"dialect": "gemini"}, "dialect must be one of 'converse', 'anthropic', 'openai', got 'gemini'"),
        ({"dialect": ["openai"]}, "dialect must be one of"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(options, message):
    with pytest.raises(HoldfastError, match=message):
        ContextCompression(**options)


# --- one conversation, changed in place


async def test_a_second_conversation_is_refused():
    compression = plugin()
    await Agent(compression, dialogue(3)).call()
    with pytest.raises(InvalidValueError, match="belongs to another conversation; make one for each conversation"):
        await Agent(compression, dialogue(3)).call()


async def test_the_list_is_the_same_and_so_is_every_message_that_was_not_changed():
    agent = Agent(plugin(), dialogue(9))
    messages, before = agent.messages, list(agent.messages)
    await agent.call()
    assert agent.conversation.messages is messages
    assert len(messages) < 9
    assert all(any(message is old for old in before) for message in messages if "metadata" not in message)
    assert messages[-1] is before[-1]
    assert before == dialogue(9)


async def test_messages_that_come_while_a_summary_is_made_are_kept():
    late = [{"role": "user", "content": "wait"}, {"role": "user", "content": "one more thing"}]

    async def slow(request):
        agent.messages.append(late[0])
        await asyncio.sleep(0)
        agent.messages.append(late[1])
        return "what was said"

    agent = Agent(plugin(Summarize(summarizer=slow, protect_last=2)), dialogue(9))
    await agent.call()
    assert "what was said" in agent.messages[0]["content"]
    assert [message is given for message, given in zip(agent.messages[-2:], late, strict=True)] == [True, True]
    assert said(8) in agent.messages


async def test_a_history_that_was_cleared_while_a_summary_was_made_stays_clear(caplog):
    async def slow(request):
        agent.messages[:] = [{"role": "user", "content": "start over"}]
        return "what was said"

    agent = Agent(plugin(Summarize(summarizer=slow, protect_last=2)), dialogue(9))
    await agent.call()
    assert agent.messages == [{"role": "user", "content": "start over"}]
    assert agent.conversation.messages is agent.messages
    assert "somebody else changed it meanwhile" in caplog.text


async def test_a_message_taken_out_while_a_summary_was_made_does_not_come_back():
    async def slow(request):
        del agent.messages[-2]
        return "what was said"

    agent = Agent(plugin(Summarize(summarizer=slow, protect_last=4)), dialogue(9))
    await agent.call()
    assert said(7) not in agent.messages
    assert said(8) in agent.messages


async def test_a_summarizer_may_use_the_very_same_agent():
    calls = 0

    async def ask_the_agent(request):
        nonlocal calls
        calls += 1
        await agent.registry.invoke(BeforeModelCall(agent.conversation))
        event = AfterModelCall(agent.conversation, error=BadRequestError(BEDROCK))
        await agent.registry.invoke(event)
        await agent.registry.invoke(AfterInvocation(agent.conversation))
        assert not event.retry
        return "what was said"

    agent = Agent(plugin(Summarize(summarizer=ask_the_agent, protect_last=2, window_size=3)), dialogue(9))
    await agent.call()
    assert calls == 1
    assert "what was said" in agent.messages[0]["content"]


async def test_two_calls_at_once_reduce_once():
    ready = asyncio.Event()
    requests = []

    async def slow(request):
        requests.append(request)
        await ready.wait()
        return "what was said"

    agent = Agent(plugin(Summarize(summarizer=slow, protect_last=2)), dialogue(9))
    first = asyncio.create_task(agent.call())
    await asyncio.sleep(0)
    await agent.call()
    ready.set()
    await first
    assert len(requests) == 1
    assert sum("<summary>" in message["content"] for message in agent.messages) == 1


class Abort(BaseException):
    """Neither an error nor a cancellation, such as some frameworks raise to leave a loop."""


async def test_what_is_no_error_passes_through_and_the_next_call_works():
    async def abort(request):
        raise Abort

    agent = Agent(plugin(Summarize(summarizer=abort, protect_last=2)), dialogue(9))
    with pytest.raises(Abort):
        await agent.call()
    assert agent.messages == dialogue(9)
    with pytest.raises(Abort):
        await agent.call()


async def test_a_call_can_be_cancelled_while_a_summary_is_made():
    stopped = asyncio.Event()

    async def endless(request):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    agent = Agent(plugin(Summarize(summarizer=endless, protect_last=2)), dialogue(9))
    call = asyncio.create_task(agent.call())
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(stopped.wait(), 5)
    assert agent.messages == dialogue(9)


# --- what providers report


class Usage(SimpleNamespace):
    pass


REPORTS = [
    {"prompt_tokens": 1_000, "completion_tokens": 7},
    {"input_tokens": 200, "cache_read_input_tokens": 700, "cache_creation_input_tokens": 100, "output_tokens": 7},
    {"inputTokens": 200, "cacheReadInputTokens": 700, "cacheWriteInputTokens": 100, "outputTokens": 7},
]


@pytest.mark.parametrize("report", REPORTS, ids=["openai", "anthropic", "converse"])
@pytest.mark.parametrize("kind", [dict, Usage])
async def test_usage_calibrates_the_estimate(report, kind):
    compression = plugin(window=10**6)
    agent = Agent(compression, dialogue(5), usage=kind(**report), model="m")
    await agent.call()
    assert compression.get_state()["calibration"] == {"m": 2.0}
    assert compression.window.meter.request(agent.conversation) == 1_000


async def test_what_is_known_is_not_estimated_and_what_is_new_is():
    compression = plugin(window=10**6)
    agent = Agent(compression, dialogue(5), usage={"prompt_tokens": 1_000}, model="m")
    await agent.call()
    agent.messages.extend([said(5), said(6, length=46)])
    await agent.registry.invoke(BeforeModelCall(agent.conversation))
    assert compression.window.meter.request(agent.conversation) == 1_000 + 2 * (100 + 50)


async def test_a_model_that_counts_twice_as_much_is_reduced_twice_as_early():
    agent = Agent(plugin(window=1_500), dialogue(5), usage={"prompt_tokens": 1_000})
    await agent.call()
    assert len(agent.messages) == 5
    agent.messages.extend([said(5), said(6)])
    await agent.call()
    assert len(agent.messages) < 7


async def test_a_calibration_belongs_to_a_model():
    compression = plugin(window=10**6)
    agent = Agent(compression, dialogue(5), usage={"prompt_tokens": 1_000}, model="counts twice")
    await agent.call()
    agent.conversation.model, agent.usage = "counts the same", {"prompt_tokens": 500}
    await agent.call()
    assert compression.get_state()["calibration"] == {"counts twice": 2.0, "counts the same": 1.0}


async def test_state_survives_json():
    compression = plugin()
    agent = Agent(compression, dialogue(9), usage={"prompt_tokens": 700}, system_prompt="s", model="m")
    await agent.call()
    saved = json.loads(json.dumps(compression.get_state()))
    restored = plugin()
    restored.restore(saved)
    assert restored.get_state() == compression.get_state() == saved
    assert restored.removed_message_count == compression.removed_message_count > 0
    assert restored.window.meter.calibration.ratio("m") > 1


@pytest.mark.parametrize(
    "state",
    [
        {},
        None,
        [],
        {"removed_message_count": -1},
        {"removed_message_count": True},
        {"removed_message_count": 3, "calibration": [1]},
    ],
)
def test_a_state_that_is_none_is_refused_and_changes_nothing(state):
    compression = plugin()
    with pytest.raises(HoldfastError, match="state"):
        compression.restore(state)
    assert compression.removed_message_count == 0


@pytest.mark.parametrize(
    "usage", [None, {}, 5, "many", {"prompt_tokens": None}, {"input_tokens": -3}, Usage(), {"prompt_tokens": True}]
)
async def test_a_provider_that_never_reports_is_no_problem(usage):
    compression = plugin()
    agent = Agent(compression, usage=usage)
    for number in range(40):
        await agent.ask(f"question {number} ".ljust(96))
    assert compression.get_state()["calibration"] == {}
    assert size(agent.messages) < 1_000


async def test_a_report_on_a_call_that_nobody_announced_teaches_nothing():
    compression = plugin(window=10**6)
    agent = Agent(compression, dialogue(5), system_prompt="short")
    await agent.registry.invoke(AfterModelCall(agent.conversation, usage={"prompt_tokens": 1_000}))
    assert compression.get_state()["calibration"] == {}


async def test_a_calibration_may_be_shared():
    shared = Calibration()
    await Agent(plugin(calibration=shared), dialogue(5), usage={"prompt_tokens": 1_000}, model="m").call()
    other = plugin(calibration=shared)
    await Agent(other, dialogue(5), model="m").call()
    assert other.get_state()["calibration"] == {"m": 2.0}


# --- a window that nobody named


async def test_an_unknown_window_is_said_once_and_assumed(caplog):
    compression = plugin(window=None)
    agent = Agent(compression, dialogue(5))
    for _ in range(5):
        await agent.call()
    assert caplog.text.count("nobody said how many tokens the model takes") == 1
    assert compression.window.budget(agent.conversation).window == WINDOW


@pytest.mark.parametrize("described", [{"window": 5_000}, {}])
async def test_a_known_window_is_no_reason_to_warn(described, caplog):
    agent = Agent(plugin(window=None if described else 5_000), dialogue(5), **described)
    await agent.call()
    assert caplog.text == ""


async def test_the_conversations_window_goes_before_the_plugins():
    agent = Agent(plugin(window=10**6), dialogue(9), window=1_000)
    await agent.call()
    assert len(agent.messages) < 9


async def test_a_window_that_was_thought_larger_than_it_is_is_learnt_for_that_model():
    error = BadRequestError("prompt is too long: 3000 tokens > 2000 maximum")
    compression = plugin()
    agent = Agent(compression, dialogue(30), failures=[error], window=200_000, model="small")
    await agent.call()
    assert size(agent.sent[1]) <= 2_000
    assert compression.window.budget(agent.conversation).window <= 2_000
    agent.conversation.model = "large"
    assert compression.window.budget(agent.conversation).window > 100_000


async def test_a_window_that_was_named_smaller_than_the_models_stays():
    error = BadRequestError("prompt is too long: 3000 tokens > 2000 maximum")
    agent = Agent(plugin(proactive=False), dialogue(30), failures=[error])
    await agent.call()
    assert size(agent.sent[1]) <= 1_000


async def test_where_no_figures_are_named_a_little_smaller_is_worth_a_retry():
    agent = Agent(plugin(Truncate(protect_last=8), window=10**6), dialogue(10), failures=[BadRequestError(BEDROCK)])
    await agent.call()
    assert agent.retries == [True]
    assert size(agent.sent[1]) < size(agent.sent[0])


async def test_an_unknown_window_is_learnt_from_an_overflow(caplog):
    error = BadRequestError("prompt is too long: 3000 tokens > 2000 maximum")
    agent = Agent(plugin(window=None), dialogue(30), failures=[error])
    await agent.call()
    assert size(agent.sent[1]) <= 2_000
    agent.messages.extend(dialogue(30))
    caplog.clear()
    with caplog.at_level(logging.INFO):
        await agent.call()
    assert size(agent.sent[2]) <= 1_400
    assert "truncated to stay within the window" in caplog.text


# --- hostile histories


HOSTILE = [
    None,
    7,
    "text",
    [],
    {},
    {"role": None, "content": None},
    {"role": "user", "content": None},
    {"role": "user", "content": []},
    {"role": "user", "content": [None, 3, "text", {}, {"type": None}, {"type": ["text"]}, {"text": 3}]},
    {"role": "assistant", "content": None, "tool_calls": [None, {}, {"id": 3, "function": None}]},
    {"role": "tool", "tool_call_id": None, "content": None},
    {"role": "user", "content": "half a pair: \ud83d", "metadata": "none"},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"json": {"raw": b"\xff"}}]}}]},
    {"role": "user", "content": [{"toolResult": None}, {"toolUse": []}, {"image": 3}, {"reasoningContent": 3}]},
    {"role": "robot", "content": "beep"},
]


@pytest.mark.parametrize("config", ["truncate", "summarize"])
async def test_whatever_is_in_the_history_nothing_breaks(config, caplog):
    agent = Agent(plugin(config), tool_specs=[None, 3, {1: {2, 3}}, object()], system_prompt=[{"text": b"bytes"}])
    for round_number in range(20):
        agent.messages.extend(HOSTILE)
        agent.failures = [BadRequestError(BEDROCK)]
        await agent.ask(f"{round_number} ".ljust(200, "x"))
    assert "Traceback" not in caplog.text
    assert len(agent.messages) < 20 * len(HOSTILE)


async def test_an_empty_history_is_no_problem():
    agent = Agent(plugin(), failures=[BadRequestError(BEDROCK)])
    with pytest.raises(BadRequestError):
        await agent.call()
    assert agent.messages == []


# --- what the loop is told


async def test_when_nothing_more_can_leave_the_error_to_raise_says_what_is_left():
    refused = BadRequestError(BEDROCK)
    conversation = Conversation([said(0, 5_000)], window=1_000)
    event = AfterModelCall(conversation, error=refused)
    await plugin().after_model_call(event)
    assert not event.retry
    assert isinstance(event.error, ContextOverflowError)
    assert event.error.__cause__ is refused
    assert "the largest part left is messages 0 to 0" in str(event.error)


async def test_how_full_the_window_is_can_be_asked():
    conversation = Conversation(dialogue(5), window=1_000)
    assert plugin().used(conversation) == size(conversation.messages) / 1_000


async def test_where_the_prompt_alone_is_too_much_the_history_stays_whole(caplog):
    conversation = Conversation(dialogue(9), system_prompt="x" * 5_000, window=1_000)
    await plugin().before_model_call(BeforeModelCall(conversation))
    assert len(conversation.messages) == 9
    assert "may not fit" in caplog.text


async def test_a_prompt_that_nobody_told_of_is_not_taken_for_a_way_of_counting():
    compression = plugin(window=128_000)
    conversation = Conversation([said(0, 20)], model="m")
    await compression.before_model_call(BeforeModelCall(conversation))
    await compression.after_model_call(AfterModelCall(conversation, usage={"prompt_tokens": 4_000}))
    conversation.messages += [said(1, 30_000), said(2, 10)]
    assert compression.used(conversation) == pytest.approx(34_018 / 128_000, rel=0.01)


@pytest.mark.parametrize("reported", [1, 10**12])
async def test_an_absurd_report_changes_nothing(reported):
    compression = plugin()
    conversation = Conversation(dialogue(5))
    await compression.before_model_call(BeforeModelCall(conversation))
    before = compression.used(conversation)
    await compression.after_model_call(AfterModelCall(conversation, usage={"prompt_tokens": reported}))
    assert compression.used(conversation) == before


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"messages": ()}, InvalidTypeError, "messages must be a list"),
        ({"window": "3000"}, InvalidValueError, "window must be a number of tokens"),
        ({"window": 10, "reserved": 10}, InvalidValueError, "reserved must be below the window"),
    ],
)
def test_a_conversation_that_makes_no_sense_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        Conversation(**{"messages": []} | options)


@pytest.mark.parametrize("options", [{"count_text": "words"}, {"on_reduction": 5}])
def test_what_cannot_be_called_is_refused(options):
    with pytest.raises(InvalidTypeError, match="must be callable"):
        ContextCompression(**options)


def test_a_low_water_mark_above_the_trigger_is_refused():
    with pytest.raises(InvalidValueError, match="low_water must be at most the trigger"):
        ContextCompression(proactive=0.5, low_water=0.9)


@pytest.mark.parametrize("proactive", [0.3, 0.5, 0.9])
async def test_reductions_are_rare_wherever_the_trigger_is(proactive):
    plans = []
    compression = plugin(proactive=proactive, window=10_000, on_reduction=plans.append)
    conversation = Conversation([])
    for number in range(300):
        conversation.messages.append(said(number, 96))
        await compression.before_model_call(BeforeModelCall(conversation))
    assert 0 < len(plans) < 40
