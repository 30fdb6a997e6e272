"""A conversation goes on after a restart as if there had been none, whatever keeps its session."""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import json
import random
import re
import shutil
import subprocess
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import FileStorage
from holdfast.batches import BATCH_TYPE
from holdfast.compression import set_pins
from holdfast.errors import InvalidValueError
from holdfast.testing import Call, ScriptedModel

strands = pytest.importorskip("strands")

import strands_session_process as process  # noqa: E402
from strands.hooks import MessageAddedEvent  # noqa: E402
from strands.session import (  # noqa: E402
    FileSessionManager,
    RepositorySessionManager,
    S3SessionManager,
    SnapshotSessionManager,
)
from strands.session.session_repository import SessionRepository  # noqa: E402
from strands.storage import LocalFileStorage  # noqa: E402
from strands.types.exceptions import SessionException  # noqa: E402
from strands.types.session import Session, SessionAgent, SessionMessage  # noqa: E402
from strands_session_process import as_bytes, lines, read  # noqa: E402

from holdfast.adapters.strands import (  # noqa: E402
    ContextManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)

pytestmark = pytest.mark.strands

WINDOW = 8_000
KINDS = ["file", "s3", "snapshot-invocation", "snapshot-message"]


class NamedByContent:
    """A storage whose references are the same in every run."""

    def __init__(self, inner: Any, names: dict[str, str]) -> None:
        self._inner = inner
        self._names = names

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        # What a batch holds of an answer says how long that took.
        told = content if content_type != BATCH_TYPE else f"batch {len(self._names)}".encode()
        name = f"kept-{hashlib.sha256(told).hexdigest()[:16]}"
        self._names[name] = await self._inner.store(key, content, content_type)
        return name

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        return await self._inner.retrieve(self._names[reference])


@dataclass
class Place:
    """Where a session and what was offloaded are kept."""

    session: Callable[[], Any]
    storage: Callable[[], Any]


def named_by_content(place: Place) -> Place:
    names: dict[str, str] = {}
    return Place(place.session, lambda: NamedByContent(place.storage(), names))


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def place_of(kind, request, tmp_path) -> Callable[[str], Place]:
    """Makes places of one kind, of which those with another name know nothing."""
    if kind == "s3":
        return s3_places(*map(request.getfixturevalue, ("open_s3", "s3_server", "bucket", "boto_session")))

    def make(name: str) -> Place:
        directory = tmp_path / name
        return Place(partial(process.session_in, directory, kind), partial(FileStorage, directory / "artifacts"))

    return make


def s3_places(open_s3: Any, server: Any, bucket: str, boto_session: Any) -> Callable[[str], Place]:
    opened = partial(
        S3SessionManager, "talk", bucket=bucket, boto_session=boto_session, endpoint_url=server.endpoint_url
    )
    unique = uuid.uuid4().hex
    return lambda name: Place(partial(opened, prefix=f"{unique}-{name}"), open_s3)


@pytest.fixture
def place(place_of) -> Place:
    return place_of("only")


only_files = pytest.mark.parametrize("kind", ["file"])


@dataclass
class Talk:
    """A scripted conversation, with a new agent and a new manager at every `start`, as a new process has them."""

    place: Place
    steps: Iterable[Any] = ()
    options: dict[str, Any] = field(default_factory=dict)
    window: int = WINDOW
    usage_factor: float = 1.0

    def __post_init__(self) -> None:
        self._steps = iter(self.steps)
        self.seen: list[list[Any]] = []
        self.plans: list[Any] = []
        self.model = ScriptedModel(self._answer, window=self.window, usage_factor=self.usage_factor)
        self.agent: Any = None

    def _answer(self, request: Any) -> Any:
        self.seen.append(as_bytes(request.messages))
        return next(self._steps, "done.")

    def start(self, **options: Any) -> None:
        """Make the agent anew."""
        if "conversation_manager" not in options:
            options = {"plugins": [self._manager()], **options}
        given = {"model": self.model, "tools": [read], "session_manager": self.place.session(), **options}
        self.agent = strands.Agent(callback_handler=None, **given)

    def _manager(self) -> ContextManager:
        compression = {"on_reduction": self.plans.append, **self.options}
        return ContextManager("auto", compression=compression, offload_storage=self.place.storage())

    async def ask(self, prompt: Any) -> list[Any]:
        """Ask, and return what the model saw first."""
        at = len(self.seen)
        await self.agent.invoke_async(prompt)
        assert self.model.violations == []
        return self.seen[at]

    @property
    def history(self) -> str:
        """What the model would see now."""
        return as_bytes(self.agent.messages)


def with_prompt(history: str, prompt: str) -> str:
    """Return what a model sees of a history when the user says something more: those of one role in turn as one."""
    sent: list[Any] = []
    for role, content in [*json.loads(history), ["user", [{"text": prompt}]]]:
        if sent and sent[-1][0] == role:
            sent[-1][1] += content
        else:
            sent.append([role, content])
    return json.dumps(sent)


def long_conversation() -> tuple[list[str], list[Any]]:
    """Return what a user says, and what a model does about it: with many small results, and some large ones."""
    steps: list[Any] = []
    for number, calls in enumerate((1, 6, 1, 2, 5)):
        for call in range(calls):
            size = 10_000 if call == 0 else 2_500
            steps.append([f"Step {call}.", Call("read", {"number": 10 * number + call, "size": size})])
        steps.append(f"So much about {number}: " + "and so on, " * 40)
    return [f"Question {number}: what do you make of it?" for number in range(5)], steps


async def summarizer(request: Any) -> str:
    """Say the same of the same messages."""
    return "In short: " + hashlib.sha256(request.prompt.encode()).hexdigest()


COMPRESSIONS = {"truncate": {}, "summarize": {"method": "summarize", "summarizer": summarizer}}


@pytest.mark.parametrize("method", COMPRESSIONS)
async def test_a_conversation_restarted_after_every_answer_is_the_same_as_one_that_never_was(
    method, place_of, monkeypatch
):
    monkeypatch.setattr("holdfast.manager.now", lambda: 1_000_000_000.0)
    prompts, steps = long_conversation()
    places = [place_of(name) for name in ("runs-on", "stopped")]
    straight, stopped = (Talk(named_by_content(place), steps, COMPRESSIONS[method]) for place in places)
    straight.start()
    for prompt in prompts:
        await straight.ask(prompt)
        before = stopped.history if stopped.agent else "[]"
        stopped.start()
        assert stopped.history == before
        await stopped.ask(prompt)
    assert stopped.seen == straight.seen
    assert [str(plan) for plan in stopped.plans] == [str(plan) for plan in straight.plans]
    assert len(straight.plans) > 2


async def first_request_after_restart(talk: Talk, prompt: str = "And now?") -> str:
    """Start the agent anew and ask something; it must find the history that was there."""
    before = talk.history
    talk.start()
    assert talk.history == before
    reductions = len(talk.plans)
    seen = await talk.ask(prompt)
    assert len(talk.plans) == reductions
    assert seen == with_prompt(before, prompt)
    return seen


async def reduced_talk(place: Place, *steps: Any, **options: Any) -> Talk:
    """Return a conversation of which much left already."""
    calls = [Call("read", {"number": number, "size": 2_500}) for number in range(14)]
    talk = Talk(place, [*calls, "I know it all.", *steps], **options)
    talk.start()
    await talk.ask("Read everything.")
    assert talk.plans
    return talk


@pytest.mark.parametrize("kind", ["file", "snapshot-message", "snapshot-invocation"])
async def test_a_process_killed_while_the_model_thinks_is_followed_by_one_that_sends_the_same(kind, place, tmp_path):
    here = tmp_path / "only"
    here.mkdir()
    killed = await asyncio.to_thread(run_until_killed, kind, here)
    assert killed == -9
    seen = {name: json.loads((here / f"{name}.json").read_text()) for name in ("seen", "after_first")}
    talk = Talk(place)
    talk.start()
    if kind == "snapshot-invocation":
        assert json.loads(await talk.ask("Go on.")) == [*seen["after_first"], ["user", [{"text": "Go on."}]]]
    else:
        assert json.loads(await talk.ask(None)) == seen["seen"]
    assert not talk.plans


def run_until_killed(kind: str, directory: Path) -> int:
    command = [sys.executable, process.__file__, kind, str(directory)]
    return subprocess.run(command, timeout=60, check=False).returncode


async def test_pins_hold_and_references_lead_to_what_left(place):
    large, other = lines(77, 10_000), lines(78, 10_000)
    wanted, needle = large.splitlines()[250], other.splitlines()[211]
    calls = [Call("read", {"number": number, "size": 2_500}) for number in range(7)]
    talk = Talk(
        place,
        [
            "Hello.",
            Call("pin_message", {"containing": "Never forget: blue."}),
            Call("read", {"number": 77, "size": 10_000}),
            Call("read", {"number": 78, "size": 10_000}),
            "Noted.",
            *calls,
            "Read.",
            lambda request: Call("retrieve_offloaded_content", {"reference": reference, "pattern": re.escape(wanted)}),
            Call("search_context", {"query": needle}),
            "Found.",
            *calls,
            *calls,
            "Done.",
        ],
    )
    talk.start()
    await talk.ask("Hello.")
    await talk.ask("Never forget: blue.")
    reference = re.search(r"Offloaded as (\S+) :", talk.history)[1]
    talk.start()
    await talk.ask("Read a lot.")
    assert talk.plans
    await first_request_after_restart(talk, "What was in there?")
    assert wanted in talk.seen[-2]
    assert needle in talk.seen[-1]
    talk.start()
    await talk.ask("Read much more.")
    assert "Never forget: blue." in talk.seen[-1]
    assert "What was in there?" not in talk.seen[-1]


async def test_pins_set_by_hand_cost_no_second_copy_of_what_is_pinned(place, kind):
    talk = Talk(place, [Call("read", {"number": 1, "size": 2_500}), "Read."])
    talk.start()
    await talk.ask("Read something.")
    set_pins(talk.agent.messages, [0, 2])
    talk.agent._session_manager.sync_agent(talk.agent)
    state = talk.agent.conversation_manager.get_state()
    assert len(json.dumps(state)) < 2_000
    await first_request_after_restart(talk)
    assert [bool(message.get("metadata", {}).get("custom")) for message in talk.agent.messages[:4]] == [1, 0, 1, 0]


async def test_counts_go_on(place):
    talk = await reduced_talk(place)
    before = talk.agent.conversation_manager._manager.compression.removed_message_count
    assert before
    talk.start()
    assert talk.agent.conversation_manager._manager.compression.removed_message_count == before


@only_files
async def test_a_model_that_counts_less_is_not_taken_for_full_after_a_restart(place):
    calls = [Call("read", {"number": number, "size": 2_500}) for number in range(12)]
    talk = Talk(place, [*calls, "Read.", "Well."], window=14_000, usage_factor=0.6)
    talk.start()
    await talk.ask("Read some.")
    assert not talk.plans
    await first_request_after_restart(talk)


@only_files
async def test_images_in_what_is_kept_survive(place):
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    image = {"image": {"format": "png", "source": {"bytes": png}}}
    calls = [Call("read", {"number": number, "size": 2_500}) for number in range(6)]
    talk = Talk(place, [*calls, "Read.", "Well."])
    talk.start()
    await talk.ask([image, {"text": "What is this? Read all about it."}])
    assert talk.plans
    set_pins(talk.agent.messages, [0])
    talk.agent._session_manager.sync_agent(talk.agent)
    await first_request_after_restart(talk)
    assert talk.agent.messages[0]["content"][0]["image"]["source"]["bytes"] == png


@only_files
async def test_a_last_message_changed_after_it_was_written_down_stays_changed(place):
    talk = Talk(place, [Call("read", {"number": 1, "size": 100}), "A secret."])
    talk.start()
    await talk.ask("Tell me.")
    talk.agent.messages[-1] = {"role": "assistant", "content": [{"text": "[redacted]"}]}
    talk.agent._session_manager.sync_agent(talk.agent)
    assert "A secret." not in await first_request_after_restart(talk)
    assert "A secret." not in await first_request_after_restart(talk)


@only_files
async def test_a_last_message_changed_before_others_were_added_stays_changed(place):
    talk = Talk(place, ["A secret.", "One.", "Two."])
    talk.start()
    await talk.ask("Tell me.")
    talk.agent.messages[-1] = {"role": "assistant", "content": [{"text": "[redacted]"}]}
    await talk.ask("More.")
    await talk.ask("More.")
    assert "A secret." not in await first_request_after_restart(talk)


@only_files
async def test_messages_that_nobody_announced_are_kept_too(place):
    talk = await reduced_talk(place, "Two.", "Three.")
    talk.agent.messages += [
        {"role": "user", "content": [{"text": "Said elsewhere."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "x", "name": "read", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "x", "content": [{"text": "It is 42."}]}}]},
        {"role": "assistant", "content": [{"text": "Answered elsewhere."}]},
    ]
    talk.agent._session_manager.sync_agent(talk.agent)
    assert "It is 42." in await first_request_after_restart(talk)
    talk.agent.messages[-1:] = []
    talk.agent._session_manager.sync_agent(talk.agent)
    talk.agent.messages.append({"role": "assistant", "content": [{"text": "Another end."}]})
    await talk.ask("Now?")
    assert "Another end." in await first_request_after_restart(talk)


@only_files
async def test_a_result_that_nobody_announced_is_kept_behind_one_from_the_log(place):
    talk = await reduced_talk(place, Call("read", {"number": 1, "size": 100}), "Well.")
    await talk.ask("Read once more.")
    result, said = talk.agent.messages[-2:]
    talk.agent.messages[-2:] = [result, said, {"role": "user", "content": [{"text": "By hand."}]}]
    del talk.agent.messages[-2]
    talk.agent._session_manager.sync_agent(talk.agent)
    before = talk.history
    talk.start()
    assert talk.history == before


@only_files
async def test_an_emptied_history_stays_empty_and_its_log_is_not_written_over(place):
    talk = await reduced_talk(place)
    talk.agent.messages.clear()
    talk.agent._session_manager.sync_agent(talk.agent)
    logged = len(log_of(talk))
    await first_request_after_restart(talk, "Let us begin anew.")
    assert [record.message_id for record in log_of(talk)] == list(range(logged + 2))


def log_of(talk: Talk) -> list[Any]:
    session = talk.agent._session_manager
    return session.session_repository.list_messages(session.session_id, talk.agent.agent_id)


async def test_messages_that_an_agent_began_with_are_there_once(place, kind):
    talk = Talk(place)
    given = [{"role": "user", "content": [{"text": "Hello."}]}, {"role": "assistant", "content": [{"text": "Hi."}]}]
    talk.start(messages=list(given))
    if kind.startswith("snapshot"):
        talk.agent._session_manager.sync_agent(talk.agent)
    talk.start()
    talk.start()
    assert talk.history == as_bytes(given)
    await first_request_after_restart(talk)


async def test_a_session_that_was_never_reduced_goes_on(place):
    talk = Talk(place, ["One.", "Two.", "Three."])
    talk.start()
    await talk.ask("Count.")
    await first_request_after_restart(talk)
    assert talk.agent.conversation_manager.get_state()["compression"]["removed_message_count"] == 0


async def test_restarts_in_a_row_change_nothing(place):
    talk = await reduced_talk(place)
    before = talk.history
    for _ in range(3):
        talk.start()
        assert talk.history == before
    await first_request_after_restart(talk)


@only_files
async def test_a_process_that_ends_within_a_tool_leaves_a_history_to_go_on_with(place, tmp_path):
    talk = await reduced_talk(place, Call("stop"), "It went on.")

    @strands.tool
    def stop() -> str:
        """Leave a copy of what a process that is killed now would leave."""
        shutil.copytree(tmp_path / "only", tmp_path / "copy")
        return "ok"

    talk.agent.tool_registry.process_tools([stop])
    await talk.ask("Stop.")
    killed = Place(partial(process.session_in, tmp_path / "copy", "file"), talk.place.storage)
    later = Talk(killed)
    later.start(tools=[read, stop])
    assert "toolUse" in later.agent.messages[-1]["content"][0]
    left = json.loads(later.history)
    assert left == json.loads(talk.history)[: len(left)]
    await later.ask("What happened?")
    assert "toolResult" in later.agent.messages[-3]["content"][0]
    await first_request_after_restart(later)


@only_files
@pytest.mark.parametrize("theirs", ["SlidingWindow", "Summarizing"])
async def test_a_session_begun_with_a_manager_of_strands_goes_on(place, theirs):
    from strands.agent import conversation_manager as strands_managers

    talk = Talk(place, [f"Answer {number}." for number in range(12)], window=100_000)
    manager = getattr(strands_managers, f"{theirs}ConversationManager")()
    talk.start(conversation_manager=manager)
    for number in range(8):
        await talk.ask(f"Question {number}.")
    if theirs == "SlidingWindow":
        manager.window_size = 6
        manager.apply_management(talk.agent)
    else:
        manager.preserve_recent_messages = 4
        await asyncio.to_thread(manager.reduce_context, talk.agent)
    talk.agent._session_manager.sync_agent(talk.agent)
    assert manager.removed_message_count
    await first_request_after_restart(talk)
    await first_request_after_restart(talk)


@only_files
async def test_a_call_in_the_log_that_was_never_answered_is_answered_as_strands_does(place):
    talk = await reduced_talk(place)
    call = {"toolUse": {"toolUseId": "lost", "name": "read", "input": {}}}
    await talk.agent._append_messages(
        {"role": "user", "content": [{"text": "Read."}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"text": "Are you still there?"}]},
        {"role": "assistant", "content": [{"text": "Yes."}]},
    )
    talk.start()
    await talk.ask("Go on.")
    assert '"toolResult": {"toolUseId": "lost", "status": "error"' in talk.seen[-1]


@only_files
async def test_a_result_whose_call_was_rewritten_stays_as_it_is(place):
    talk = Talk(place)
    talk.start()
    use = {"toolUse": {"toolUseId": "one", "name": "read", "input": {"number": 1, "size": 10}}}
    result = {"toolResult": {"toolUseId": "one", "status": "success", "content": [{"text": "It says so."}]}}
    await talk.agent._append_messages(
        {"role": "user", "content": [{"text": "Read."}]},
        {"role": "assistant", "content": [{"text": "At length."}, use]},
        {"role": "user", "content": [result, {"text": "Mind this."}]},
        {"role": "assistant", "content": [{"text": "I do."}]},
    )
    talk.agent.messages[:2] = [
        {"role": "user", "content": [{"text": "In short: read."}]},
        {"role": "assistant", "content": [use]},
    ]
    talk.agent._session_manager.sync_agent(talk.agent)
    await first_request_after_restart(talk)


async def test_without_a_session_nothing_is_held_of_what_left():
    class Said(dict):
        """A message that one can look for."""

    agent = strands.Agent(model=ScriptedModel(), plugins=[ContextManager(compression=True)], callback_handler=None)
    said = Said(role="user", content=[{"text": "Hello."}])
    await agent._append_messages(said)
    agent.messages.clear()
    left = weakref.ref(said)
    del said
    gc.collect()
    assert left() is None


MANAGERS = {
    "sliding": lambda: SlidingWindowConversationManager(window_size=6, protect_first=1),
    "summarizing": lambda: SummarizingConversationManager(
        proactive_compression=True, summarizer=summarizer, preserve_recent_messages=4
    ),
}


@only_files
@pytest.mark.parametrize("manager", MANAGERS)
async def test_our_conversation_managers_give_the_same_history_back(place, manager):
    calls = [Call("read", {"number": number, "size": 2_500}) for number in range(6)]
    talk = Talk(place, [*calls, "Read.", "One.", *calls, "Two."])
    removed = 0
    for prompt in ("Read all.", "And now?", "Read again.", "And now?"):
        talk.start(conversation_manager=MANAGERS[manager]())
        assert talk.agent.conversation_manager.removed_message_count == removed
        await talk.ask(prompt)
        before, removed = talk.history, talk.agent.conversation_manager.removed_message_count
        talk.start(conversation_manager=MANAGERS[manager]())
        assert talk.history == before
    assert removed


DAMAGES = {
    "head that is no list": {"head": 5},
    "head of other things": {"head": [{"role": "user"}]},
    "a number that is none": {"head": [{"role": "user", "logged": "a"}]},
    "a number that is not there": {"head": [{"role": "user", "logged": 500}]},
    "numbers that are none": {"head": [{"logged": [2, "a"]}]},
    "numbers that are not there": {"head": [{"logged": [500, 600]}]},
    "an offset that is none": {"removed_message_count": -1},
    "an offset behind the end": {"removed_message_count": 10_000},
    "a tail that is none": {"tail": "x"},
    "a tail behind the end": {"tail": 10_000},
    "no summary": {"summary_message": "short"},
    "no state of compression": {"compression": 5},
    "no count": {"compression": {"removed_message_count": "many"}},
    "no references": {"offloader": 5},
}


@only_files
async def test_a_damaged_session_says_what_is_damaged(place, tmp_path, subtests):
    talk = await reduced_talk(place)
    [path] = (tmp_path / "only" / "sessions").rglob("agent.json")
    agent = json.loads(path.read_text())
    for damage, state in DAMAGES.items():
        path.write_text(json.dumps(agent | {"conversation_manager_state": agent["conversation_manager_state"] | state}))
        with subtests.test(damage), pytest.raises(InvalidValueError, match=r"the session is damaged: .*; restore it"):
            talk.start()


@only_files
async def test_a_session_without_any_state_begins_with_its_whole_log(place, tmp_path):
    talk = await reduced_talk(place)
    [path] = (tmp_path / "only" / "sessions").rglob("agent.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"conversation_manager_state": {}}))
    talk.start()
    assert len(talk.agent.messages) == len(log_of(talk))


@only_files
async def test_a_session_file_that_is_no_json_is_refused_by_strands(place, tmp_path):
    talk = await reduced_talk(place)
    [path] = (tmp_path / "only" / "sessions").rglob("agent.json")
    path.write_text("{")
    with pytest.raises(SessionException, match="Invalid JSON"):
        talk.start()


@only_files
async def test_a_snapshot_loaded_into_a_running_agent_is_its_history_from_then_on(place):
    talk = await reduced_talk(place, "Two.", "Three.")
    snapshot = talk.agent.take_snapshot(preset="session")
    at_that_time = talk.history
    await talk.ask("More.")
    talk.agent.load_snapshot(snapshot)
    assert talk.history == at_that_time
    await talk.ask("Again.")
    await first_request_after_restart(talk)


@dataclass
class Written:
    """Counts the bytes that are written, wherever that is."""

    size: int = 0

    def session(self, directory: Path, kind: str) -> Any:
        """Open a session whose writes count."""
        if kind == "file":
            return CountedFiles(self, directory)
        return SnapshotSessionManager("talk", storage=CountedSnapshots(self, directory), save_latest_on="invocation")


class CountedFiles(FileSessionManager):
    def __init__(self, written: Written, directory: Path) -> None:
        self._written = written
        super().__init__("talk", storage_dir=str(directory))

    def _write_file(self, path: str, data: dict[str, Any]) -> None:
        super()._write_file(path, data)
        self._written.size += Path(path).stat().st_size


class CountedSnapshots(LocalFileStorage):
    def __init__(self, written: Written, directory: Path) -> None:
        self._written = written
        super().__init__(str(directory))

    async def write(self, key: str, data: bytes) -> None:
        self._written.size += len(data)
        await super().write(key, data)


class CountedStorage(FileStorage):
    def __init__(self, written: Written, directory: Path) -> None:
        self._written = written
        super().__init__(directory)

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        self._written.size += len(content)
        return await super().store(key, content, content_type)


AMPLIFICATIONS = [
    ("file", "auto", 1, 200_000),
    ("file", "auto", 25, 32_000),
    ("snapshot-invocation", "auto", 1, 200_000),
    ("file", "compression", 25, 128_000),
]


@strands.tool
def fetch(number: int) -> str:
    """Return 50 KB of prose, of which previews show as much as they may."""
    chance = random.Random(number)
    words = ("harbour", "of", "report", "unseen", "it", "weather", "compares", "thirteen", "north", "a")
    return "\n".join(" ".join(chance.choices(words, k=12)) for _ in range(800))[:50_000]


@pytest.mark.extended
@pytest.mark.parametrize(("kind", "parts", "turns_at_once", "window"), AMPLIFICATIONS)
def test_a_hundred_results_of_50_kb_write_less_than_three_times_as_much(kind, parts, turns_at_once, window, tmp_path):
    written = Written()
    steps: list[Any] = [Call("fetch", {"number": number}) for number in range(100)]
    for end in range(100, 0, -turns_at_once):
        steps.insert(end, "I have read it.")
    manager = ContextManager(compression=True)
    if parts == "auto":
        manager = ContextManager("auto", offload_storage=CountedStorage(written, tmp_path / "artifacts"))
    agent = strands.Agent(
        model=ScriptedModel(steps, window=window, keep=1, validate=False),
        tools=[fetch],
        plugins=[manager],
        session_manager=written.session(tmp_path / "session", kind),
        callback_handler=None,
    )
    for number in range(100 // turns_at_once):
        agent(f"Read part {number}.")
    times_as_much = written.size / 5_000_000
    print(f"{kind}, {parts}, {turns_at_once} at once, window {window:,}: {times_as_much:.2f} times as much")
    assert 0.9 < times_as_much < 3


class InMemory(SessionRepository):
    """A session's log and state, as JSON, in which nothing that is written is shared with who wrote it."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._agent = ""
        self._log: list[str] = []

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        self._session = session
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        return self._session

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        self._agent = json.dumps(session_agent.to_dict())

    update_agent = create_agent

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        return SessionAgent.from_dict(json.loads(self._agent)) if self._agent else None

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        assert session_message.message_id == len(self._log), "the log is written over"
        self._log.append(json.dumps(session_message.to_dict()))

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        found = self._log[message_id : message_id + 1]
        return SessionMessage.from_dict(json.loads(found[0])) if found else None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        self._log[session_message.message_id] = json.dumps(session_message.to_dict())

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        return [SessionMessage.from_dict(json.loads(each)) for each in self._log[offset:][:limit]]


CHANGES = st.one_of(
    st.tuples(st.just("say"), st.integers(1, 4)),
    st.tuples(st.just("call"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["drop", "shorten", "pin", "unpin", "summarize"]), st.integers(0, 30)),
    st.tuples(st.sampled_from(["replace the last", "add to the last", "add unannounced"]), st.just(0)),
    st.tuples(st.sampled_from(["save", "restart", "clear"]), st.just(0)),
)


class Rewritten:
    """An agent whose history is changed in all the ways that there are."""

    def __init__(self) -> None:
        self._repository = InMemory()
        self._number = 0
        self.start()

    def start(self) -> None:
        self.agent = strands.Agent(
            model=ScriptedModel(),
            plugins=[ContextManager(compression=True)],
            session_manager=RepositorySessionManager("talk", self._repository),
            callback_handler=None,
        )

    def restart(self) -> None:
        self.save()
        before = self.agent.messages
        self.start()
        assert as_bytes(self.agent.messages) == as_bytes(before)
        assert [message.get("metadata") for message in self.agent.messages] == [m.get("metadata") for m in before]

    def save(self) -> None:
        self.agent._session_manager.sync_agent(self.agent)

    def change(self, how: str, number: int) -> None:
        messages = self.agent.messages
        if how == "say":
            self._add(*(self._text("user" if turn % 2 == 0 else "assistant") for turn in range(number)))
        elif how == "call":
            for turn in range(number):
                self._add(*self._call(*([{"text": "Mind this."}] if turn == 1 else [])))
        elif how in ("save", "restart"):
            getattr(self, how)()
        elif how == "clear":
            messages.clear()
        elif how == "add unannounced":
            messages.append(self._text("user"))
        elif messages:
            self._rewrite(how, self._pair_at(number % len(messages)))

    def _rewrite(self, how: str, pair: slice) -> None:
        messages = self.agent.messages
        if how == "drop":
            del messages[pair]
        elif how == "summarize":
            messages[: pair.stop] = [self._text("user")]
        elif how in ("pin", "unpin"):
            set_pins(messages, [pair.start], pinned=how == "pin")
        elif how == "add to the last":
            self._add_to_the_last()
        elif how == "shorten":
            messages[pair] = [self._shortened(message) for message in messages[pair]]
        elif not is_of_a_tool(messages[-1]):
            messages[-1] = self._text(messages[-1]["role"])

    def _add_to_the_last(self) -> None:
        """Say more in the message that was written down already, as strands does when an agent is told to go on."""
        last = {**self.agent.messages[-1]}
        last["content"] = [*last["content"], *self._text("user")["content"]]
        self.agent.messages[-1] = last
        asyncio.run(self.agent.hooks.invoke_callbacks_async(MessageAddedEvent(agent=self.agent, message=last)))

    def _pair_at(self, index: int) -> slice:
        messages = self.agent.messages
        if "toolResult" in messages[index]["content"][0]:
            return slice(index - 1, index + 1)
        return slice(index, index + (2 if "toolUse" in messages[index]["content"][0] else 1))

    def _shortened(self, message: Any) -> Any:
        return {**message, "content": [*message["content"], {"text": f"[{len(message['content'])} cut]"}]}

    def _add(self, *messages: Any) -> None:
        asyncio.run(self.agent._append_messages(*messages))

    def _text(self, role: str) -> Any:
        self._number += 1
        return {"role": role, "content": [{"text": f"Text {self._number}."}]}

    def _call(self, *beside: Any) -> list[Any]:
        self._number += 1
        use = {"toolUseId": f"call-{self._number}", "name": "read", "input": {}}
        result = {"toolUseId": f"call-{self._number}", "status": "success", "content": [{"text": "Read."}]}
        return [
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}, *beside]},
        ]


def is_of_a_tool(message: Any) -> bool:
    return any("toolUse" in block or "toolResult" in block for block in message["content"])


@settings(max_examples=40, deadline=None)
@given(st.lists(CHANGES, max_size=25))
def test_whatever_became_of_a_history_is_what_a_restart_finds(changes):
    rewritten = Rewritten()
    for how, number in changes:
        rewritten.change(how, number)
    rewritten.restart()
    rewritten.change("say", 2)
    rewritten.restart()
