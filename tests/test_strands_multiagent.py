"""Agents as tools, swarms and graphs: a manager for each, one storage for all, and nobody reads what another stored."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

strands = pytest.importorskip("strands")

from strands import Agent, tool  # noqa: E402
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
    other = agent("other", [Call("search_offloaded_content", {"query": "secret-one-7"}), "Searched."], shared)
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
        return [step for n in range(6) for step in (Call("read_log", {"name": f"{name}-{n}"}), read_back(2))]

    agents = [agent(f"agent-{number}", script(f"log-{number}"), shared) for number in range(8)]
    await asyncio.gather(*(each.invoke_async("Read.") for each in agents))
    for number, each in enumerate(agents):
        seen = str([request.messages for request in each.model.requests])
        assert f"secret-log-{number}-5-1" in seen
        assert set(re.findall(r"secret-log-(\d)-", seen)) == {str(number)}
    check(*agents)
