"""Agents as tools, swarms and graphs: a manager for each, one storage for all, and nobody reads what another stored."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

strands = pytest.importorskip("strands")

from strands import Agent, tool  # noqa: E402
from strands.hooks import BeforeToolCallEvent  # noqa: E402
from strands.multiagent import GraphBuilder, Swarm  # noqa: E402

from holdfast import FileStorage, InMemoryStorage, ScopedStorage  # noqa: E402
from holdfast.adapters.strands import ContextManager  # noqa: E402
from holdfast.testing import Call, Request, ScriptedModel  # noqa: E402

pytestmark = pytest.mark.strands

REFERENCE = re.compile(r"Offloaded as (\S+) :")


@tool
def read_log(name: str) -> str:
    """Read a log."""
    return "\n".join(f"{name} line {number}: secret-{name}-{number}" for number in range(2_000))


@pytest.fixture(params=["files", "memory"])
def shared(request, tmp_path) -> Any:
    return FileStorage(tmp_path) if request.param == "files" else InMemoryStorage()


def agent(name: str, script: Any, shared: Any, tools: Any = (read_log,), **options: Any) -> Agent:
    manager = ContextManager("auto", offload_storage=ScopedStorage(shared, name))
    model = ScriptedModel(script, window=16_000)
    described = {"name": name, "agent_id": name, "description": f"the {name}", "callback_handler": None}
    return Agent(model=model, tools=list(tools), plugins=[manager], **described, **options)


def shown(request: Request) -> list[str]:
    return REFERENCE.findall(str(request.messages))


def read_back(line: int) -> Any:
    """A step that reads one line of the latest reference in view."""
    return lambda request: Call(
        "retrieve_offloaded_content", {"reference": shown(request)[-1], "line_range": [line, line]}
    )


def answer_of(agent: Agent) -> str:
    return agent.messages[-1]["content"][0]["text"]


def check(*agents: Agent) -> None:
    for each in agents:
        assert each.model.violations == []
        assert each.model.overflows == 0


async def test_an_agent_is_a_tool_of_another_and_each_reads_its_own(shared):
    said = lambda request: f"It says {re.findall(r'secret-[a-z]+-[0-9]+', request.latest_text)[0]}."  # noqa: E731
    researcher = agent("researcher", [Call("read_log", {"name": "build"}), read_back(8), said], shared)
    ask = Call("researcher", {"input": "What does line 8 say?"})
    writer = agent("writer", [ask, "It was answered."], shared, [researcher.as_tool()])
    await writer.invoke_async("Report on line 8.")
    assert answer_of(researcher) == "It says secret-build-7."
    assert "It says secret-build-7." in writer.model.requests[-1].latest_text
    check(researcher, writer)


async def test_what_a_sub_agent_says_at_length_is_offloaded_in_the_parent(shared):
    talker = agent("talker", ["word " * 20_000], shared, [])
    parent = agent("parent", [Call("talker", {"input": "Speak."}), "Enough."], shared, [talker.as_tool()])
    await parent.invoke_async("Let it speak.")
    assert len(shown(parent.model.requests[-1])) == 1
    assert parent.model.requests[-1].tokens < 4_000
    check(talker, parent)


@pytest.mark.parametrize("preserve_context", [True, False])
async def test_a_sub_agent_is_called_again_and_again(shared, preserve_context):
    script = [step for n in range(4) for step in (Call("read_log", {"name": f"log-{n}"}), f"Read {n}.")]
    reader = agent("reader", script, shared)
    calls = [Call("reader", {"input": f"Read log {n}."}) for n in range(4)]
    parent = agent("parent", [*calls, "All read."], shared, [reader.as_tool(preserve_context=preserve_context)])
    await parent.invoke_async("Read four logs.")
    assert answer_of(reader) == "Read 3."
    assert len(reader.messages) == (16 if preserve_context else 4)
    check(reader, parent)


async def test_a_reference_of_another_agent_is_not_to_be_read(shared):
    one = agent("one", [Call("read_log", {"name": "one"}), "Read."], shared)
    await one.invoke_async("Read the log.")
    [reference] = set(shown(one.model.requests[-1]))
    other = agent("other", [Call("retrieve_offloaded_content", {"reference": reference}), "Tried."], shared)
    await other.invoke_async(f"Read {reference}.")
    answer = other.model.requests[-1].latest_text
    assert "secret-one" not in answer
    assert "it was not stored in the scope 'other'" in answer


async def test_a_search_finds_only_what_is_ones_own(shared):
    one = agent("one", [Call("read_log", {"name": "one"}), "Read."], shared)
    other = agent("other", [Call("search_context", {"query": "secret-one-7"}), "Searched."], shared)
    await one.invoke_async("Read the log.")
    await other.invoke_async("Search.")
    assert "line 7:" not in other.model.requests[-1].latest_text


async def test_a_swarm_hands_over(shared):
    hand_over = Call("handoff_to_agent", {"agent_name": "second", "message": "Your turn."})
    first = agent("first", [Call("read_log", {"name": "first"}), hand_over, "Over."], shared)
    second = agent("second", [Call("read_log", {"name": "second"}), read_back(3), "Done."], shared)
    result = await Swarm([first, second]).invoke_async("Read both logs.")
    assert result.status.value == "completed"
    assert "secret-second-2" in second.model.requests[-1].latest_text
    assert not any("secret-first" in str(request.messages) for request in second.model.requests)
    check(first, second)


async def test_a_graph_runs_twice(shared):
    script = [step for n in range(2) for step in (Call("read_log", {"name": "log"}), read_back(5), f"Run {n}.")]
    nodes = {name: agent(name, list(script), shared) for name in ("left", "right", "end")}
    builder = GraphBuilder()
    for name, node in nodes.items():
        builder.add_node(node, name)
    builder.add_edge("left", "end")
    builder.add_edge("right", "end")
    builder.set_entry_point("left")
    builder.set_entry_point("right")
    builder.set_max_node_executions(10)
    graph = builder.build()
    for number in range(2):
        result = await graph.invoke_async("Read the logs.")
        assert result.status.value == "completed"
        assert {answer_of(node) for node in nodes.values()} == {f"Run {number}."}
    assert all("secret-log-4" in node.model.requests[-1].latest_text for node in nodes.values())
    check(*nodes.values())


async def test_several_agents_work_at_the_same_time_in_one_loop(shared):
    def script(name: str) -> list[Any]:
        return [step for n in range(3) for step in (Call("read_log", {"name": f"{name}-{n}"}), read_back(2))]

    agents = [agent(f"agent-{number}", script(f"log-{number}"), shared) for number in range(8)]
    await asyncio.gather(*(each.invoke_async("Read.") for each in agents))
    for number, each in enumerate(agents):
        seen = str([request.messages for request in each.model.requests])
        assert f"secret-log-{number}-2-1" in seen
        assert set(re.findall(r"secret-log-(\d)-", seen)) == {str(number)}
    check(*agents)


def searching(words: str) -> Call:
    return Call("search_context", {"query": words, "limit": 20})


async def test_a_swarm_that_runs_again_has_forgotten_the_last_run(shared):
    scripts = [
        [Call("read_log", {"name": user}), read_back(7), searching(f"secret {asked}"), "Done."]
        for user, asked in (("alice", "alice"), ("bob", "alice"), ("carol", "bob"))
    ]
    node = agent("node", [step for script in scripts for step in script], shared)
    swarm = Swarm([node])
    for user in ("alice", "bob", "carol"):
        await swarm.invoke_async(f"I am {user}.")
        said = str([request.messages for request in list(node.model.requests)[-4:]])
        assert f"secret-{user}-6" in said
        assert set(re.findall(r"secret-([a-z]+)-", said)) == {user}
    check(node)


async def test_a_node_that_is_visited_again_starts_over(shared):
    script = [step for n in range(4) for step in (Call("read_log", {"name": f"visit{n}"}), searching("secret"), "Ok.")]
    node = agent("node", script, shared)
    builder = GraphBuilder().reset_on_revisit().set_max_node_executions(4)
    builder.add_node(node, "node")
    builder.add_edge("node", "node", condition=lambda state: len(state.execution_order) < 4)
    builder.set_entry_point("node")
    await builder.build().invoke_async("Read the log.")
    assert [len(request.messages) for request in node.model.requests] == [1, 3, 5] * 4
    assert set(re.findall(r"secret-(visit\d)", node.model.requests[-1].latest_text)) == {"visit3"}
    check(node)


async def test_sub_agents_that_are_asked_at_the_same_time_do_not_meet(shared):
    def script(name: str) -> list[Any]:
        return [Call("read_log", {"name": name}), read_back(4), searching("secret"), f"{name} is done."] * 2

    names = [f"sub-{letter}" for letter in "abcde"]
    readers = [agent(name, script(name), shared) for name in names]
    asking = [Call(name, {"input": "Read your log."}) for name in names]
    tools = [reader.as_tool() for reader in readers]
    parent = agent("parent", [asking, "Once.", asking, "Twice."], shared, tools)
    for _ in range(2):
        await parent.invoke_async("Ask all of them.")
    for name, reader in zip(names, readers, strict=True):
        assert f"{name} is done." in parent.model.requests[-1].latest_text
        seen = str([request.messages for request in reader.model.requests])
        assert set(re.findall(r"secret-(sub-[a-z])-", seen)) == {name}
    check(parent, *readers)


async def test_a_sub_agent_that_keeps_its_context_stays_within_its_window(shared):
    talker = agent("talker", lambda request: "So it is. " * 300, shared, [])
    calls = [Call("talker", {"input": f"Question {n}?"}) for n in range(40)]
    parent = agent("parent", calls, shared, [talker.as_tool(preserve_context=True)])
    await parent.invoke_async("Ask forty questions.")
    seen = str(talker.model.requests[-1].messages)
    assert [number for number in range(40) if f"Question {number}?" in seen][:2] != [0, 1]
    assert "Question 0?" in seen
    assert "Question 39?" in seen
    check(talker, parent)


async def test_what_a_delegate_says_reaches_the_user_whole(shared):
    delegate = agent("delegate", ["word " * 20_000], shared, [])
    asking = [Call("delegate", {"input": "Speak."})]
    parent = agent("parent", asking, shared, [delegate.as_tool(delegate=True)])
    assert str(await parent.invoke_async("Let it speak.")).strip() == ("word " * 20_000).strip()
    check(delegate, parent)


@pytest.mark.parametrize("preserve_context", [True, False])
async def test_a_sub_agent_that_waited_for_a_human_goes_on_where_it_was(shared, preserve_context):
    def ask(event: Any) -> None:
        if event.tool_use["input"].get("name") == "risky" and event.interrupt("allowed?", reason="risk") != "yes":
            event.cancel_tool = "not allowed"

    reading = [Call("read_log", {"name": "harmless"}), Call("read_log", {"name": "risky"})]
    careful = agent("careful", [*reading, searching("secret harmless"), read_back(3), "Done."], shared)
    careful.add_hook(ask, BeforeToolCallEvent)
    asking = [Call("careful", {"input": "Read both."}), "Fine."]
    parent = agent("parent", asking, shared, [careful.as_tool(preserve_context=preserve_context)])
    [interrupt] = (await parent.invoke_async("Have them read.")).interrupts
    await parent.invoke_async([{"interruptResponse": {"interruptId": interrupt.id, "response": "yes"}}])
    assert answer_of(parent) == "Fine."
    assert len(set(shown(careful.model.requests[-1]))) == 2
    assert "secret-harmless" in careful.model.requests[-2].latest_text
    assert "secret-risky-2" in careful.model.requests[-1].latest_text
    check(careful, parent)
