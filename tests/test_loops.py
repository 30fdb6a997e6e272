"""A conversation in a loop without a framework."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from offloading import LOG, PNG

from holdfast import ContextCompression, ContextManager, ContextOffloader, ContextOverflowError
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import AfterModelCall
from holdfast.testing import Call, ScriptedClient

DIALECTS = ["openai", "anthropic", "converse"]
TASK = {"converse": [{"text": "The task."}]}


def begun(dialect: str, window: int = 16_000, **options):
    manager = ContextManager("auto", dialect=dialect, window=window, **options)
    messages = [{"role": "user", "content": TASK.get(dialect, "The task.")}]
    return manager.converse(messages)


def references_in(messages) -> list[str]:
    return re.findall(r"Offloaded as (\S+) :", json.dumps(messages))


def calls_in(dialect: str, reply) -> tuple[dict, list[tuple]]:
    """Return the message of a reply, and its calls as (name, id, arguments)."""
    if dialect == "openai":
        message = reply["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        return message, [(c["function"]["name"], c["id"], c["function"]["arguments"]) for c in calls]
    if dialect == "anthropic":
        message = {"role": "assistant", "content": reply["content"]}
        blocks = [block for block in reply["content"] if block["type"] == "tool_use"]
        return message, [(block["name"], block["id"], block["input"]) for block in blocks]
    message = reply["output"]["message"]
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    return message, [(use["name"], use["toolUseId"], use["input"]) for use in uses]


async def run(dialect: str, conversation, client: ScriptedClient, run_tool) -> None:
    """The loop of the documentation, for any dialect."""
    while True:
        reply = await conversation.call_model(
            lambda messages: client.create(messages=messages, tools=conversation.tool_specs)
        )
        message, calls = calls_in(dialect, reply)
        conversation.messages.append(message)
        if not calls:
            return await conversation.end()
        results = [await conversation.call_tool(*call, run_tool) for call in calls]
        if dialect == "openai":
            conversation.messages.extend(results)
        else:
            conversation.messages.append({"role": "user", "content": results})


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_loop_stays_in_its_window_and_legal(dialect):
    client = ScriptedClient(dialect, (Call("read", {"size": 300 * number}) for number in range(60)), window=16_000)
    await run(dialect, begun(dialect), client, lambda name, arguments: "word " * arguments["size"])
    assert (client.calls, client.overflows) == (61, 0)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_model_reads_back_what_left(dialect):
    def ask(request):
        [reference] = references_in(request.messages)
        return Call("retrieve_offloaded_content", {"reference": reference, "line_range": [3, 3]})

    client = ScriptedClient(dialect, [Call("read"), ask, "done."])
    conversation = begun(dialect)
    await run(dialect, conversation, client, lambda name, arguments: LOG)
    assert LOG.splitlines()[2] in json.dumps(conversation.messages[-2:])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_model_pins_a_message(dialect):
    client = ScriptedClient(dialect, [Call("pin_message", {"messages": [1]}), "done."])
    conversation = begun(dialect)
    await run(dialect, conversation, client, None)
    assert conversation.messages[0]["metadata"] == {"custom": {"pinned": True}}
    assert all("metadata" not in message for message in client.requests[-1].messages)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_a_tool_raises_is_told_to_the_model(dialect):
    def broken(name, arguments):
        raise FileNotFoundError("no such file: a.txt")

    client = ScriptedClient(dialect, [Call("read"), "done."])
    conversation = begun(dialect)
    await run(dialect, conversation, client, broken)
    assert "Error: FileNotFoundError: no such file: a.txt" in json.dumps(conversation.messages)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("nothing", ["", " \n", [], None])
async def test_a_tool_that_answers_nothing_is_legal(dialect, nothing):
    client = ScriptedClient(dialect, [Call("read"), "done."])
    await run(dialect, begun(dialect), client, lambda name, arguments: nothing)
    assert client.calls == 2


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("size", [40, 300_000])
async def test_bytes_that_are_no_text_are_kept_whole(dialect, size):
    content = b"\0\xff\x80" * (size // 3)
    manager = ContextManager("auto", dialect=dialect, window=16_000)
    conversation = manager.converse([{"role": "user", "content": TASK.get(dialect, "The task.")}])
    result = json.dumps(await conversation.call_tool("dump", "call_1", {}, lambda *_: content))
    kept = result
    for reference in set(references_in(result)):
        kept = (await manager.retrieve(reference))[0].decode()
    assert "data:application/octet-stream;base64," + base64.b64encode(content).decode() in kept


async def test_an_async_tool_is_awaited_and_a_value_becomes_json():
    async def values(name, arguments):
        return {"tool": name, **arguments}

    result = await begun("openai").call_tool("read", "c1", {"n": 1}, values)
    assert (result["role"], result["tool_call_id"], json.loads(result["content"])) == (
        "tool",
        "c1",
        {"tool": "read", "n": 1},
    )


async def test_an_image_in_an_answer_is_said_to_be_there_where_it_cannot_be_shown():
    conversation = begun("openai", offloader={"threshold": 50, "preview_tokens": 10})
    image = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}}]
    [reference] = references_in(await conversation.call_tool("shoot", "c1", {}, lambda *_: image))
    answer = await conversation.call_tool("retrieve_offloaded_content", "c2", {"reference": reference}, None)
    assert isinstance(answer["content"], str)
    assert "Images and documents cannot be shown in a tool's answer here." in answer["content"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_after_an_overflow_the_call_is_made_again_with_less(dialect):
    client = ScriptedClient(dialect, (Call("read") for _ in range(30)), window=6_000)
    # The loop thinks that there is far more room than the provider has.
    await run(dialect, begun(dialect, window=100_000), client, lambda name, arguments: "word " * 400)
    assert client.overflows > 0
    assert client.calls == 31 + client.overflows


async def test_what_cannot_fit_is_one_clear_error():
    conversation = begun("openai", window=2_000)
    conversation.messages[0]["content"] = "word " * 5_000
    client = ScriptedClient("openai", window=2_000)
    with pytest.raises(ContextOverflowError) as caught:
        await conversation.call_model(lambda messages: client.create(messages=messages))
    assert "prompt is too long" in str(caught.value.__cause__)


async def test_other_errors_come_through_as_they_are():
    async def send(messages):
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await begun("openai").call_model(send)


async def test_the_usage_is_found_wherever_it_is():
    seen = []

    class Listener:
        def register_hooks(self, registry):
            registry.add_callback(AfterModelCall, lambda event: seen.append(event.usage))

    async def send(messages):
        return type("Reply", (), {"usage": {"prompt_tokens": 11}, "meta": {"prompt_tokens": 12}})

    conversation = begun("openai", plugins=[Listener()])
    await conversation.call_model(send)
    await conversation.call_model(send, usage=lambda reply: reply.meta)
    assert seen == [{"prompt_tokens": 11}, {"prompt_tokens": 12}]


async def test_a_cancelled_call_leaves_the_messages_as_they_were():
    conversation = begun("openai")
    calling = asyncio.create_task(conversation.call_model(lambda messages: asyncio.sleep(60)))
    await asyncio.sleep(0.05)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert conversation.messages == [{"role": "user", "content": "The task."}]


async def test_results_in_parallel_share_the_room_of_one_turn():
    conversation = begun("openai")
    calls = [conversation.call_tool("read", f"c{n}", {}, lambda *_: "word " * 2_000) for n in range(12)]
    results = await asyncio.gather(*calls)
    uses = [{"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in range(12)]
    conversation.messages.extend([{"role": "assistant", "content": None, "tool_calls": uses}, *results])
    client = ScriptedClient("openai", window=16_000)
    await conversation.call_model(lambda messages: client.create(messages=messages))
    assert client.requests[0].tokens < 12_000


class Odd:
    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __repr__


class OddError(Exception):
    __str__ = Odd.__repr__


def itself() -> list:
    given: list = []
    given.append(given)
    return given


def deep() -> list:
    given: list = []
    for _ in range(5_000):
        given = [given]
    return given


ODD_RESULTS = {
    "of MCP": {"content": [{"type": "text", "text": "hi"}], "isError": False},
    "of Converse": {"toolUseId": "other", "status": "success", "content": [{"text": "hey"}]},
    "of OpenAI": {"role": "tool", "tool_call_id": "other", "content": "hey"},
    "of Anthropic": {"type": "tool_result", "tool_use_id": "other", "content": [{"type": "text", "text": "hey"}]},
    "texts": [{"type": "text", "text": "x"}],
    "a list": [1, 2],
    "a number": 0,
    "a truth": True,
    "a time": {"at": datetime(2026, 11, 16)},
    "a set": {1, 2},
    "not a number": {"n": float("nan")},
    "itself": itself(),
    "depth": deep(),
    "a key": {(1, 2): 3},
    "half a character": "\ud800x",
    "bytes": b"\x00\xff",
    "something odd": Odd(),
    "a generator": (n for n in range(3)),
    "an error": ValueError("as a value"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ODD_RESULTS)
async def test_whatever_a_tool_returns_is_a_legal_result_of_its_call(dialect, name):
    client = ScriptedClient(dialect, [Call("read"), "done."])
    conversation = begun(dialect)
    await run(dialect, conversation, client, lambda *_: ODD_RESULTS[name])
    assert client.calls == 2
    assert "other" not in str(conversation.messages)
    json.dumps(conversation.messages, allow_nan=dialect != "converse").encode()


async def test_an_error_that_cannot_be_described_is_told_too():
    def broken(name, arguments):
        raise OddError

    result = await begun("openai").call_tool("read", "c1", {}, broken)
    assert result["content"] == "Error: OddError: (it cannot be described)"


@pytest.mark.parametrize("arguments", ['{"n": 1', "[1]", "null", 3, None])
async def test_broken_arguments_are_told_to_the_model(arguments):
    result = await begun("openai").call_tool("read", "c1", arguments, lambda *_: "unreached")
    assert result["content"].startswith("Error: ")


async def test_no_arguments_are_none():
    seen = []
    await begun("openai").call_tool("read", "c1", "", lambda name, arguments: seen.append(arguments))
    assert seen == [{}]


@pytest.mark.parametrize("wrong", [None, 3, "", []])
async def test_a_call_without_an_id_is_refused(wrong):
    with pytest.raises(InvalidTypeError, match="tool_use_id must be the id of the model's call"):
        await begun("openai").call_tool("read", wrong, {}, lambda *_: "")


async def test_an_answer_is_kept_though_its_usage_cannot_be_read():
    assert await begun("openai").call_model(lambda messages: "said", usage=lambda answer: answer["usage"]) == "said"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_parts_that_were_brought_along_work_in_a_loop(dialect):
    manager = ContextManager(
        "auto",
        dialect=dialect,
        window=16_000,
        plugins=[ContextOffloader(threshold=1_000, preview_tokens=200), ContextCompression("truncate")],
    )
    conversation = manager.converse([{"role": "user", "content": TASK.get(dialect, "The task.")}])
    client = ScriptedClient(dialect, (Call("read", {"size": 300 * number}) for number in range(60)), window=16_000)
    await run(dialect, conversation, client, lambda name, arguments: "word " * arguments["size"])
    assert (client.calls, client.overflows) == (61, 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"window": "16000"}, InvalidValueError, "window must be a number of tokens"),
        ({"window": -5}, InvalidValueError, "window must be a number of tokens"),
        ({"window": 0}, InvalidValueError, "window must be a number of tokens"),
        ({"window": True}, InvalidValueError, "window must be a number of tokens"),
        ({"tool_specs": 3}, InvalidTypeError, "tool_specs must be a list"),
        ({"tool_specs": {"name": "read"}}, InvalidTypeError, "tool_specs must be a list"),
        (
            {"tool_specs": [{"type": "function", "function": {"name": "pin_message"}}]},
            InvalidValueError,
            "two tools called pin_message",
        ),
        ({"messages": ()}, InvalidTypeError, "messages must be a list"),
    ],
)
def test_what_a_loop_says_wrong_is_named(options, error, message):
    with pytest.raises(error, match=message):
        ContextManager("auto", dialect="openai").converse(**{"messages": [], **options})


def test_a_tool_without_a_proper_name_is_the_providers_to_refuse():
    specs = [{"name": ["read"]}, {"type": "web_search"}, "read"]
    conversation = ContextManager("auto", dialect="openai").converse([], tool_specs=specs)
    assert conversation.tool_specs[: len(specs)] == specs


def test_limits_that_contradict_each_other_are_refused():
    with pytest.raises(InvalidValueError, match="window is given twice"):
        ContextManager("auto", dialect="openai", window=50_000).converse([], window=9_000)
    with pytest.raises(InvalidValueError, match="reserved must be below the window"):
        ContextManager("auto", dialect="openai", reserved=200_000).converse([], model="gpt-4o")


def test_a_loop_in_the_documentation_has_twenty_lines():
    page = (Path(__file__).parent.parent / "docs" / "loops.md").read_text(encoding="utf-8")
    loops = re.findall(r"^async def answer.*?(?=^\S(?<!a))", page, re.MULTILINE | re.DOTALL)
    assert len(loops) == 3
    assert all(len(loop.strip().splitlines()) <= 20 for loop in loops)
