"""The archive in a real agent: restarts, undo, and beside Strands' own offloader."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

strands = pytest.importorskip("strands", reason="install the extra strands")

from strands import Agent, tool  # noqa: E402
from strands.session import FileSessionManager  # noqa: E402
from strands.vended_plugins.context_offloader import ContextOffloader as StrandsOffloader  # noqa: E402
from strands.vended_plugins.context_offloader import InMemoryStorage as StrandsStorage  # noqa: E402

from holdfast import FileStorage  # noqa: E402
from holdfast.adapters.strands import ContextManager  # noqa: E402
from holdfast.ledger import OffloadRecord, ReductionRecord  # noqa: E402
from holdfast.testing import Call, ScriptedModel  # noqa: E402


@tool
def read(number: int) -> str:
    """Say something of a number."""
    return f"word{number} " + "lorem ipsum " * 100


def agent_in(directory: Path, steps: list[Any], **options: Any) -> tuple[Agent, ContextManager]:
    """An agent with a small window, whose session and contents are in *directory*."""
    manager = ContextManager("auto", offload_storage=FileStorage(directory / "artifacts"), **options)
    agent = Agent(
        model=ScriptedModel(steps, window=8_000),
        tools=[read],
        plugins=[manager],
        session_manager=FileSessionManager("one", storage_dir=str(directory / "session")),
        callback_handler=None,
    )
    return agent, manager


def reading(count: int) -> list[Any]:
    return [*(Call("read", {"number": number}) for number in range(count)), "Read."]


def without_metadata(messages: list[Any]) -> list[Any]:
    return [{"role": message["role"], "content": message["content"]} for message in messages]


async def test_after_a_restart_all_is_there_to_look_at_and_to_undo(tmp_path):
    agent, manager = agent_in(tmp_path, reading(40))
    await agent.invoke_async("Read everything.")
    reductions = manager.ledger.of(ReductionRecord)
    assert len(reductions) > 1
    before = copy.deepcopy(agent.messages)
    again, restored = agent_in(tmp_path, ["Hello again."])
    assert without_metadata(again.messages) == without_metadata(before)
    assert restored.ledger.of(ReductionRecord) == reductions
    assert restored.preview().tokens > 500
    assert len(restored.report().items) > len(before)
    hit = (await restored.search_context("word3")).hits[0]
    assert (await restored.retrieve(hit.reference))[0].startswith(b"word3 ")
    restored._own_conversation().window = 1_000_000
    await restored.undo(to=reductions[0])
    said = json.dumps(again.messages)
    assert all(f"word{number} " in said for number in range(40))
    assert len(again.messages) == 82
    assert "kept as" not in said


async def test_what_was_undone_is_what_the_session_goes_on_with(tmp_path):
    agent, manager = agent_in(tmp_path, [*reading(30), "Fine."])
    await agent.invoke_async("Read everything.")
    agent.model.window = manager._own_conversation().window = 1_000_000
    agent.model.update_config(context_window_limit=1_000_000)
    while manager.archive.undoable:
        await manager.undo()
    assert len(agent.messages) == 62
    at_once, _ = agent_in(tmp_path, [])
    assert without_metadata(at_once.messages) == without_metadata(agent.messages)
    await agent.invoke_async("And now?")
    assert len(agent.messages) == 64
    again, _ = agent_in(tmp_path, [])
    assert without_metadata(again.messages) == without_metadata(agent.messages)


@pytest.mark.parametrize("first", ["offloader", "manager"])
async def test_beside_the_offloader_of_strands_its_tool_keeps_its_name(first):
    manager = ContextManager(compression=True)
    offloader = StrandsOffloader(storage=StrandsStorage())
    plugins = [offloader, manager] if first == "offloader" else [manager, offloader]
    model = ScriptedModel([*reading(40), "Done."], window=8_000)
    agent = Agent(model=model, tools=[read], plugins=plugins, callback_handler=None)
    await agent.invoke_async("Read everything.")
    assert "search_context" in agent.tool_names
    [marker] = [text for text in map(json.dumps, agent.messages) if "kept as" in text]
    assert "search_context finds what was in them" in marker
    assert "retrieve_offloaded_content" not in marker
    assert not manager.ledger.of(OffloadRecord)
