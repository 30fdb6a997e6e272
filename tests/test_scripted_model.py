"""The scripted strands model, in real strands agents."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import estimate_input_tokens
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.overflow import figures_in, is_context_overflow
from holdfast.testing.histories import random_history, without_metadata
from holdfast.testing.providers import converse_problems

strands = pytest.importorskip("strands")

from pydantic import BaseModel  # noqa: E402
from strands.agent.conversation_manager import NullConversationManager, SlidingWindowConversationManager  # noqa: E402
from strands.types.exceptions import ContextWindowOverflowException  # noqa: E402

from holdfast.testing import Call, IllegalRequestError, Request, ScriptedModel  # noqa: E402

pytestmark = pytest.mark.strands

SPEC = {"name": "echo", "description": "Repeats.", "inputSchema": {"json": {"type": "object"}}}


class City(BaseModel):
    """A city."""

    name: str
    people: int


@strands.tool
def echo(text: str, times: int = 1) -> str:
    """Repeat a text.

    Args:
        text: The text.
        times: How often.
    """
    return text * times


def agent_of(model: ScriptedModel, **options: Any) -> Any:
    options = {"conversation_manager": NullConversationManager(), "tools": [echo], **options}
    return strands.Agent(model=model, callback_handler=None, **options)


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": block} if isinstance(block, str) else block for block in blocks]}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {**user(*blocks), "role": "assistant"}


def use(tool_use_id: str) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": tool_use_id, "name": "echo", "input": {"text": "a"}}}


def result(tool_use_id: str, text: str = "a") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": tool_use_id, "status": "success", "content": [{"text": text}]}}


def thought(text: str) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": text}}}


async def asked(model: ScriptedModel, messages: list[Any], tool_specs: Any = (SPEC,)) -> list[Any]:
    """Call the model as strands does, with a copy of the messages."""
    return [event async for event in model.stream(copy.deepcopy(messages), list(tool_specs), "Be brief.")]


def text_of(events: list[Any]) -> str:
    return "".join(
        event["contentBlockDelta"]["delta"].get("text", "") for event in events if "contentBlockDelta" in event
    )


async def test_the_script_is_answered_step_by_step_and_then_it_is_done() -> None:
    agent = agent_of(ScriptedModel(["one", "two"]))
    assert [str(await agent.invoke_async("go on")).strip() for _ in range(4)] == ["one", "two", "done.", "done."]


async def test_calls_run_tools_and_their_ids_count_up() -> None:
    model = ScriptedModel([["I look.", Call("echo", {"text": "a"}), Call("echo", {"text": "b"})], Call("echo"), "end"])
    agent = agent_of(model)
    answer = await agent.invoke_async("go")
    assert str(answer).strip() == "end"
    uses = [block["toolUse"] for message in agent.messages for block in message["content"] if "toolUse" in block]
    assert [(each["toolUseId"], each["input"]) for each in uses] == [
        ("call-1", {"text": "a"}),
        ("call-2", {"text": "b"}),
        ("call-3", {}),
    ]
    assert agent.messages[1]["content"][0] == {"text": "I look."}
    assert model.requests[1].latest_text.split() == ["a", "b"]
    assert (model.calls, model.overflows, model.violations) == (3, 0, [])


@pytest.mark.parametrize("ids", [["same", "other"], lambda: "same"], ids=["iterable", "function"])
async def test_ids_may_repeat_from_turn_to_turn(ids: Any) -> None:
    model = ScriptedModel([Call("echo", {"text": "a"})] * 3 + [Call("echo", {"text": "b"}, id="own")], ids=ids)
    agent = agent_of(model)
    await agent.invoke_async("go")
    uses = [
        block["toolUse"]["toolUseId"]
        for message in agent.messages
        for block in message["content"]
        if "toolUse" in block
    ]
    assert uses[0] == uses[2] == "same"
    assert uses[3] == "own"


async def test_a_step_may_depend_on_the_request() -> None:
    async def later(request: Request) -> Any:
        await asyncio.sleep(0)
        return lambda request: (
            f"{request.number}: {request.latest_text} {[spec['name'] for spec in request.tool_specs]}"
        )

    agent = agent_of(ScriptedModel([lambda request: Call("echo", {"text": request.latest_text.upper()}), later]))
    assert str(await agent.invoke_async("hello")).strip() == "2: HELLO ['echo']"


async def test_one_function_may_answer_every_request() -> None:
    async def answer(request: Request) -> Any:
        return f"{len(request.messages)} after {request.system_prompt}"

    agent = agent_of(ScriptedModel(answer), system_prompt="Count.")
    assert [str(await agent.invoke_async("go")).strip() for _ in range(2)] == ["1 after Count.", "3 after Count."]


async def test_a_generator_is_read_one_step_at_a_time() -> None:
    taken = []

    def script() -> Any:
        for number in range(2_000):
            taken.append(number)
            yield f"answer {number}"

    agent = agent_of(ScriptedModel(script()))
    await agent.invoke_async("go")
    await agent.invoke_async("go")
    assert taken == [0, 1]


async def test_an_exception_is_raised_and_the_next_request_goes_on() -> None:
    model = ScriptedModel([ConnectionError("gone"), "back"])
    with pytest.raises(ConnectionError, match="gone"):
        await asked(model, [user("hi")])
    assert text_of(await asked(model, [user("hi")])) == "back"


async def test_whole_messages_are_streamed_as_they_are() -> None:
    cited = {"citations": [{"title": "t", "location": {"web": {"url": "u"}}}], "content": [{"text": "as said"}]}
    message = assistant(
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s1"}}},
        {"reasoningContent": {"redactedContent": b"\x00hidden"}},
        thought("unsigned"),
        "Ünï💡",
        {"citationsContent": cited},
        {"toolUse": {"toolUseId": "t1", "name": "echo", "input": {"text": "x", "deep": [{"é": 1.5, "n": None}]}}},
    )
    agent = agent_of(ScriptedModel([copy.deepcopy(message), ["end", "and end"]], validate=False))
    await agent.invoke_async("go")
    assert {key: agent.messages[1][key] for key in ("role", "content")} == message
    assert [block["text"] for block in agent.messages[3]["content"]] == ["end", "and end"]


async def test_broken_json_can_be_given_as_the_input_of_a_call() -> None:
    model = ScriptedModel([Call("echo", '{"text": "a')])
    events = await asked(model, [user("hi")])
    assert [e["contentBlockDelta"]["delta"]["toolUse"]["input"] for e in events if "contentBlockDelta" in e] == [
        '{"text": "a'
    ]


async def test_a_request_above_the_window_overflows_and_takes_no_step() -> None:
    model = ScriptedModel(["fits"], window=500)
    with pytest.raises(ContextWindowOverflowException) as caught:
        await asked(model, [user("many words " * 1_000)])
    assert is_context_overflow(caught.value)
    assert figures_in(caught.value) == (model.requests[-1].tokens, 500)
    assert text_of(await asked(model, [user("few words")])) == "fits"
    assert (model.calls, model.overflows) == (2, 1)


async def test_an_overflow_may_name_no_figures() -> None:
    model = ScriptedModel(window=10, names_figures=False)
    with pytest.raises(ContextWindowOverflowException, match=r"^Input is too long for requested model\.$") as caught:
        await asked(model, [user("many words " * 100)])
    assert figures_in(caught.value) == (None, None)


async def test_an_agent_that_reduces_and_tries_again_gets_the_same_step() -> None:
    model = ScriptedModel([f"answer {number}" for number in range(9)], window=600)
    agent = agent_of(model, conversation_manager=SlidingWindowConversationManager(window_size=40), tools=[])
    answers = [str(await agent.invoke_async(f"{number} " + "word " * 100)).strip() for number in range(9)]
    assert answers == [f"answer {number}" for number in range(9)]
    assert model.overflows >= 1
    assert model.calls == 9 + model.overflows


async def test_usage_is_what_was_counted() -> None:
    model = ScriptedModel(["some words"])
    usage = (await asked(model, [user("hi")]))[-1]["metadata"]["usage"]
    assert usage["inputTokens"] == model.requests[0].tokens == estimate_input_tokens([user("hi")], "Be brief.", [SPEC])
    assert usage["outputTokens"] == estimate_input_tokens([assistant("some words")])
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]


async def test_strands_sees_the_usage() -> None:
    agent = agent_of(ScriptedModel(["hello"], count=lambda messages, system_prompt, tool_specs: 1_234))
    answer = await agent.invoke_async("go")
    assert answer.metrics.accumulated_usage["inputTokens"] == 1_234


async def test_a_provider_may_count_more_than_is_estimated() -> None:
    def hundred_each(messages: list[Any], system_prompt: Any, tool_specs: list[Any]) -> int:
        return 100 * len(messages)

    model = ScriptedModel(window=449, count=hundred_each, usage_factor=1.5)
    assert (await asked(model, [user("hi")]))[-1]["metadata"]["usage"]["inputTokens"] == 150
    with pytest.raises(ContextWindowOverflowException, match="450 tokens > 449"):
        await asked(model, [user("a"), assistant("b"), user("c")])


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([assistant("hi"), user("hi")], "the first message must be the user's"),
        ([user("hi"), assistant(use("a")), user("no")], "the tool call 'a' has no result directly after"),
        ([user("hi"), assistant("no"), user(result("a"))], "the result of 'a' answers no tool call"),
        ([user("hi"), user("hi")], "roles must alternate"),
        ([], "at least one message"),
    ],
)
async def test_an_illegal_request_is_refused_in_words_and_takes_no_step(messages: list[Any], says: str) -> None:
    model = ScriptedModel(["legal"])
    with pytest.raises(IllegalRequestError, match=says) as caught:
        await asked(model, messages)
    assert model.violations == [str(caught.value)]
    assert text_of(await asked(model, [user("hi")])) == "legal"


async def test_only_the_first_problems_are_named_and_the_rest_is_counted() -> None:
    model = ScriptedModel()
    with pytest.raises(IllegalRequestError, match=r"^request 1: message 1: roles .* And \d+ more\.$") as caught:
        await asked(model, [user(" ") for _ in range(9)])
    assert len(caught.value.problems) > 9


async def test_the_user_of_an_agent_hears_of_an_illegal_request() -> None:
    agent = agent_of(ScriptedModel(), messages=[user("hi"), assistant("yes"), assistant("yes")])
    with pytest.raises(IllegalRequestError, match="request 1: message 2: roles must alternate"):
        await agent.invoke_async("go")


async def test_tool_blocks_need_a_tool_config() -> None:
    history = [user("hi"), assistant(use("a")), user(result("a"))]
    model = ScriptedModel()
    with pytest.raises(IllegalRequestError, match="message 1: toolUse and toolResult blocks need a toolConfig"):
        await asked(model, history, ())
    await asked(model, history)
    await asked(model, [user("hi")], ())


async def test_without_validation_anything_goes() -> None:
    model = ScriptedModel(["hm"], validate=False)
    assert text_of(await asked(model, [assistant(use("a"))], ())) == "hm"
    assert model.violations == []


async def test_reasoning_is_signed_for_what_precedes_it() -> None:
    model = ScriptedModel(
        [[thought("hm"), Call("echo", {"text": "a"})], [thought("so"), "end"]], checks_signatures=True
    )
    agent = agent_of(model)
    await agent.invoke_async("go")
    await agent.invoke_async("more")
    assert model.violations == []
    agent.messages[0] = user("went")
    with pytest.raises(IllegalRequestError, match="message 1: its reasoning was signed for other messages"):
        await agent.invoke_async("more")


async def test_reasoning_that_was_dropped_is_not_missed() -> None:
    model = ScriptedModel([[thought("hm"), "one"]] * 2, checks_signatures=True)
    agent = agent_of(model)
    await agent.invoke_async("go")
    agent.messages[:] = [user("went"), assistant("one")]
    await agent.invoke_async("more")
    assert model.violations == []


async def test_a_model_tells_its_window_and_its_longest_answer() -> None:
    model = ScriptedModel(window=32_000, max_tokens=4_000, model_id="m")
    assert model.context_window_limit == 32_000
    assert model.config == model.get_config() == {"model_id": "m", "max_tokens": 4_000, "context_window_limit": 32_000}
    model.update_config(max_tokens=1)
    assert model.config["max_tokens"] == 1
    assert model.stateful is False


async def test_a_model_may_keep_its_window_to_itself() -> None:
    model = ScriptedModel(window=5, tells_window=False)
    assert model.context_window_limit is None
    with pytest.raises(ContextWindowOverflowException):
        await asked(model, [user("many words " * 100)])


@pytest.mark.parametrize(
    "step", [{"name": "Oslo", "people": 7}, City(name="Oslo", people=7), lambda request: City(name="Oslo", people=7)]
)
async def test_structured_output_comes_from_a_step(step: Any) -> None:
    model = ScriptedModel([step])
    events = [event async for event in model.structured_output(City, [user("which?")], "Be brief.")]
    assert events == [{"output": City(name="Oslo", people=7)}]
    assert model.requests[0].tool_specs[0]["name"] == "City"


async def test_strands_asks_for_structured_output_by_a_tool() -> None:
    agent = agent_of(ScriptedModel([Call("City", {"name": "Oslo", "people": 7})]))
    answer = await agent.invoke_async("which?", structured_output_model=City)
    assert answer.structured_output == City(name="Oslo", people=7)


async def test_a_step_that_is_no_structured_output_is_named() -> None:
    with pytest.raises(InvalidTypeError, match="a step must be a City or a dict of its values, got 'Oslo'"):
        [event async for event in ScriptedModel(["Oslo"]).structured_output(City, [user("which?")])]


async def test_a_cancelled_request_takes_no_step() -> None:
    model = ScriptedModel(["late"], delay=0.2)
    task = asyncio.create_task(asked(model, [user("hi")]))
    while not model.calls:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert text_of(await asked(model, [user("hi")])) == "late"


async def test_only_the_latest_requests_are_kept() -> None:
    model = ScriptedModel(keep=2)
    for _ in range(5):
        await asked(model, [user("hi")])
    assert [request.number for request in model.requests] == [4, 5]
    assert model.calls == 5


async def test_agents_may_share_a_model() -> None:
    async def answer(request: Request) -> Any:
        await asyncio.sleep(0)
        asks = request.messages[0]["content"][0]["text"]
        return Call("echo", {"text": asks}) if len(request.messages) < 20 else request.latest_text

    model = ScriptedModel(answer, window=5_000)
    agents = [agent_of(model) for _ in range(10)]
    answers = await asyncio.gather(*(agent.invoke_async(f"agent {n}") for n, agent in enumerate(agents)))
    assert [str(answer).strip() for answer in answers] == [f"agent {n}" for n in range(10)]
    assert model.violations == []


@pytest.mark.parametrize("step", [None, 7, {"role": "user", "content": []}, ValueError, [{"image": {}}]])
async def test_what_is_no_step_is_named(step: Any) -> None:
    with pytest.raises(InvalidTypeError, match="a step must be text, a Call, a list of these"):
        await asked(ScriptedModel([step]), [user("hi")])


async def test_a_message_that_no_model_streams_is_named() -> None:
    with pytest.raises(InvalidValueError, match="no model streams a block like"):
        await asked(ScriptedModel([assistant({"image": {}})]), [user("hi")])


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"script": "one"}, InvalidTypeError, "script must be an iterable of steps, or a function, got str"),
        ({"script": Call("echo")}, InvalidTypeError, "script must be an iterable of steps, or a function, got Call"),
        ({"window": 0}, InvalidValueError, "window must be a positive integer, got 0"),
        ({"max_tokens": -1}, InvalidValueError, "max_tokens must be a positive integer, got -1"),
        ({"keep": 0}, InvalidValueError, "keep must be a positive integer, got 0"),
        ({"delay": -1}, InvalidValueError, "delay must be 0 or more seconds, got -1"),
        ({"usage_factor": 0}, InvalidValueError, "usage_factor must be above 0, got 0"),
        ({"ids": "same"}, InvalidValueError, "ids must be a list of at least one id, or a function, got 'same'"),
        ({"ids": []}, InvalidValueError, "ids must be a list of at least one id"),
    ],
)
def test_wrong_options_are_refused_when_the_model_is_made(options: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        ScriptedModel(**options)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_whatever_becomes_of_a_history_it_is_counted_and_judged_as_if_it_were_new(seed: int) -> None:
    dice, model = Random(seed), ScriptedModel()
    history = without_metadata(random_history(dice, "converse", max_turns=8))
    for sent in [*what_becomes_of(history, dice), history]:
        expected = converse_problems(sent)
        assert asyncio.run(problems_of(model, sent)) == expected
        assert model.requests[-1].tokens == estimate_input_tokens(sent, "Be brief.", [SPEC])
    assert len(model.violations) < model.calls


def what_becomes_of(history: list[Any], dice: Random) -> Iterator[list[Any]]:
    for length in sorted(dice.choices(range(1, len(history) + 1), k=4)):
        yield from (history[:length], broken(history[:length], dice), history[:length])


async def problems_of(model: ScriptedModel, sent: list[Any]) -> list[str]:
    try:
        await asked(model, sent)
    except IllegalRequestError as error:
        return list(error.problems)
    return []


def broken(messages: list[Any], dice: Random) -> list[Any]:
    """Some messages left out, or one of them changed."""
    at = dice.randrange(len(messages))
    changed = {**messages[at], "content": [{"text": dice.choice(["other", " "])}]}
    return dice.choice(
        [messages[at:], messages[:at] + messages[at + 1 :], [*messages[:at], changed, *messages[at + 1 :]]]
    )


async def test_a_long_run_costs_what_is_new() -> None:
    model = ScriptedModel(window=10_000_000, keep=1)
    history: list[Any] = [user("go")]
    started = time.monotonic()
    for number in range(200):
        await asked(model, history)
        history += [assistant(use(f"c{number}")), user(result(f"c{number}", f"{number} some words " * 800))]
    assert model.requests[-1].tokens > 300_000
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import holdfast.testing; print('strands' in sys.modules)", "False"),
        ("from holdfast.testing import ScriptedModel; print('strands' in sys.modules)", "True"),
        (
            "sys.modules['strands'] = None\nfrom holdfast.testing import Call, ScriptedModel\n"
            "try: ScriptedModel([Call('echo')])\nexcept ImportError as error: print(error)",
            "strands is not installed; run: pip install 'holdfast[strands]'",
        ),
    ],
    ids=["not needed", "needed", "missing"],
)
def test_strands_is_loaded_when_it_is_needed_and_missed_in_words(script: str, says: str) -> None:
    command = [sys.executable, "-c", f"import sys\n{script}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == says
