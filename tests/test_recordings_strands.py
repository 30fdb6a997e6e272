"""Sessions of Strands are read as the messages that were added, whatever became of the history since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.recordings import Recording, Unreadable, read_recordings, size_of
from holdfast.testing import Call, ScriptedModel, converse_problems

strands = pytest.importorskip("strands")

from strands.hooks import MessageAddedEvent  # noqa: E402
from strands.session import FileSessionManager, SnapshotSessionManager  # noqa: E402
from strands.storage import LocalFileStorage  # noqa: E402

from holdfast.adapters.strands import ContextManager  # noqa: E402

pytestmark = pytest.mark.strands

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


@strands.tool
def read_log(name: str) -> str:
    """Read a log."""
    return "\n".join(f"{name} line {number}: all is well" for number in range(60))


def run(
    session: Any, *, agent_id: str = "default", calls: int = 12, plugins: Any = (), window: int | None = None
) -> list[Any]:
    """Let an agent work, and return the messages as they were added."""
    model = ScriptedModel([Call("read_log", {"name": f"day-{day}"}) for day in range(calls)], window=window)
    added: list[Any] = []
    agent = strands.Agent(
        model=model,
        tools=[read_log],
        system_prompt="Be brief.",
        session_manager=session,
        plugins=list(plugins),
        agent_id=agent_id,
        callback_handler=None,
    )
    agent.hooks.add_callback(MessageAddedEvent, lambda event: added.append(event.message))
    image = {"image": {"format": "png", "source": {"bytes": PICTURE}}}
    agent([{"text": "Look at the logs."}, image])
    return [{"role": message["role"], "content": message["content"]} for message in added]


def read(*paths: Path, **options: Any) -> list[Recording | Unreadable]:
    return list(read_recordings(paths, **options))


def agent_folder(tmp_path: Path, session: str = "talk", agent: str = "default") -> Path:
    return tmp_path / f"session_{session}" / "agents" / f"agent_{agent}"


@pytest.mark.parametrize("given", ["", "session_talk", "session_talk/agents/agent_default", "{agent}/messages"])
def test_a_session_is_read_from_any_folder_above(given, tmp_path):
    added = run(FileSessionManager("talk", storage_dir=str(tmp_path)))
    agent = agent_folder(tmp_path)
    (found,) = read(tmp_path / given.format(agent=agent))
    assert found == Recording(str(agent), "strands", "converse", tuple(added))
    assert found.messages[0]["content"][1]["image"]["source"]["bytes"] == PICTURE
    assert len(found.messages) == 26
    assert converse_problems(list(found.messages[:-1])) == []


def test_each_agent_of_each_session_is_a_recording(tmp_path):
    for session, agent in (("b", "x"), ("a", "y"), ("a", "x")):
        run(FileSessionManager(session, storage_dir=str(tmp_path)), agent_id=agent, calls=1)
    expected = [str(agent_folder(tmp_path, *names)) for names in (("a", "x"), ("a", "y"), ("b", "x"))]
    counts: list[int] = []
    assert [found.name for found in read(tmp_path, on_read=counts.append)] == expected
    assert sum(counts) == size_of([tmp_path]) > 0


def test_a_history_that_was_reduced_is_read_as_it_was(tmp_path):
    session = FileSessionManager("talk", storage_dir=str(tmp_path / "sessions"))
    added = run(session, calls=60, plugins=[ContextManager("auto")], window=12_000)
    state = json.loads((agent_folder(tmp_path / "sessions") / "agent.json").read_text())
    assert state["conversation_manager_state"]["tail"] > 60
    (found,) = read(tmp_path / "sessions")
    assert found.messages == tuple(added)
    assert len(found.messages) == 122


def test_a_redacted_message_is_read_as_what_replaced_it(tmp_path):
    session = FileSessionManager("talk", storage_dir=str(tmp_path))
    run(session, calls=1)
    path = agent_folder(tmp_path) / "messages" / "message_3.json"
    stored = json.loads(path.read_text())
    stored["redact_message"] = {"role": "assistant", "content": [{"text": "(withheld)"}]}
    path.write_text(json.dumps(stored))
    (found,) = read(tmp_path)
    assert found.messages[3]["content"] == [{"text": "(withheld)"}]


def test_a_damaged_message_costs_itself_and_the_result_of_its_call(tmp_path):
    added = run(FileSessionManager("talk", storage_dir=str(tmp_path)), calls=2)
    messages = agent_folder(tmp_path) / "messages"
    (messages / "message_1.json").write_text('{\n "message": {')
    damaged, orphan, found = read(tmp_path)
    assert str(damaged) == f"{messages}/message_1.json:2: not JSON: " + damaged.reason.partition(": ")[2]
    assert str(orphan) == f"{messages}/message_2.json: a result without the call before it is left out"
    assert found.messages == (added[0], *added[3:])


def test_links_in_a_log_are_not_followed(tmp_path):
    run(FileSessionManager("talk", storage_dir=str(tmp_path / "a")), calls=1)
    message = agent_folder(tmp_path / "a") / "messages" / "message_3.json"
    message.rename(tmp_path / "elsewhere.json")
    message.symlink_to(tmp_path / "elsewhere.json")
    (found,) = read(tmp_path / "a")
    assert len(found.messages) == 3


def test_a_snapshot_is_read_with_its_system_prompt(tmp_path):
    session = SnapshotSessionManager(
        "talk", storage=LocalFileStorage(str(tmp_path)), snapshot_trigger=lambda agent_data, **_: True
    )
    added = run(session, calls=3)
    written = sorted(path.name for path in tmp_path.rglob("*.json"))
    assert len(written) == 2
    (found,) = read(tmp_path)
    assert (found.format, found.dialect, found.system_prompt) == ("strands", "converse", [{"text": "Be brief."}])
    assert found.messages == tuple(added)
    (earlier,) = read(next(tmp_path.rglob("immutable_history")), format="strands")
    assert earlier.messages == found.messages


def test_a_log_is_read_as_nothing_else(tmp_path):
    run(FileSessionManager("talk", storage_dir=str(tmp_path)), calls=1)
    (told,) = read(tmp_path, format="openai")
    assert str(told) == f"{agent_folder(tmp_path)}: it holds a session of Strands, which --format openai does not read"
    (found,) = read(tmp_path, format="strands")
    assert found.format == "strands"


def test_one_message_of_a_log_is_no_conversation(tmp_path):
    run(FileSessionManager("talk", storage_dir=str(tmp_path)), calls=1)
    path = agent_folder(tmp_path) / "messages" / "message_0.json"
    assert [str(found) for found in read(path)] == [f"{path}: no answer of a model in it"]
