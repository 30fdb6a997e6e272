"""A session of Claude Code is read as the conversation that the model met, whole and legal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.recordings import Recording, Unreadable, read_recordings
from holdfast.testing import anthropic_problems

Line = dict[str, Any]


class Session:
    """Writes entries as Claude Code does: each after the last, unless told otherwise."""

    def __init__(self, **common: Any) -> None:
        self.lines: list[Any] = []
        self.common = {"sessionId": "s-1", "isSidechain": False, "cwd": "/home", "version": "2.1", **common}
        self.last: str | None = None

    def put(self, kind: str, *, after: Any = ..., **more: Any) -> str:
        uuid = f"u-{len(self.lines) + 1}"
        before = self.last if after is ... else after
        self.lines.append({"parentUuid": before, "type": kind, "uuid": uuid, **self.common, **more})
        self.last = uuid
        return uuid

    def user(self, content: Any, **more: Any) -> str:
        return self.put("user", message={"role": "user", "content": content}, **more)

    def result(self, id: str, text: str = "found", **more: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        return self.user([block], toolUseResult={"stdout": text * 100}, **more)

    def says(self, answer: str, *blocks: Line, model: str = "claude-1", **more: Any) -> str:
        for block in blocks:
            message = {"id": answer, "type": "message", "role": "assistant", "model": model, "content": [block]}
            last = self.put("assistant", message={**message, "usage": {"output_tokens": 1}}, requestId="r", **more)
            more.pop("after", None)
        return last

    def compact(self) -> None:
        before = self.last
        self.put("system", after=None, subtype="compact_boundary", logicalParentUuid=before, content="compacted")
        self.user("A summary.", isCompactSummary=True, isVisibleInTranscriptOnly=True)


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def call(id: str) -> Line:
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"path": id}}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[Recording | Unreadable]]:
    def read(lines: Session | Iterable[Any], **options: Any) -> list[Recording | Unreadable]:
        rows = lines.lines if isinstance(lines, Session) else lines
        path = tmp_path / "session.jsonl"
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
        return [_short(found, tmp_path) for found in read_recordings([path], **options)]

    return read


def _short(found: Any, folder: Path) -> Any:
    if isinstance(found, Unreadable):
        return str(found).removeprefix(f"{folder}/")
    return found


def said(recording: Recording) -> list[Any]:
    """The roles, and of each block its text, its call, or the call it answers."""
    return [(message["role"][0], _words(message["content"])) for message in recording.messages]


def _words(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block.get("text") or block.get("id") or block.get("tool_use_id") or block["type"] for block in content]


def plain() -> Session:
    session = Session()
    session.lines.append({"type": "summary", "summary": "Old title", "leafUuid": "elsewhere"})
    session.lines.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False})
    session.user("Read a and b.")
    session.says(
        "a-1", {"type": "thinking", "thinking": "Hm.", "signature": "x"}, text("I will."), call("t-1"), call("t-2")
    )
    session.result("t-1")
    session.result("t-2")
    session.says("a-2", text("Done."))
    return session


PLAIN = [
    ("u", ["Read a and b."]),
    ("a", ["thinking", "I will.", "t-1", "t-2"]),
    ("u", ["t-1", "t-2"]),
    ("a", ["Done."]),
]


def test_the_parts_of_an_answer_are_one_message(read):
    (found,) = read(plain())
    assert said(found) == PLAIN
    assert (found.format, found.dialect, found.model) == ("claude-code", "anthropic", "claude-1")
    assert found.name.endswith("/session.jsonl")
    assert all(set(message) == {"role", "content"} for message in found.messages)
    assert anthropic_problems(list(found.messages)) == []
    assert found == read(plain(), format="claude-code")[0]


def test_what_a_user_said_while_the_agent_was_at_work_is_read(read):
    session = Session()
    session.user("Go.")
    session.says("a-1", call("t-1"))
    session.result("t-1")
    session.put("attachment", attachment={"type": "queued_command", "prompt": "And order 4411."})
    session.put("attachment", attachment={"type": "todo_reminder", "content": []})
    session.says("a-2", text("Done."))
    (found,) = read(session)
    assert said(found)[2] == ("u", ["t-1", "And order 4411."])


def test_entries_that_were_written_again_cut_nothing_off(read):
    session = plain()
    (found,) = read([*session.lines, *session.lines[2:4]])
    assert said(found) == PLAIN


def test_results_that_come_between_the_parts_begin_the_next_message(read):
    session = Session()
    session.user("Go.")
    session.says("a-1", call("t-1"))
    session.result("t-1")
    session.says("a-1", call("t-2"))
    session.user("And hurry.")
    session.result("t-2")
    session.says("a-2", text("Done."))
    (found,) = read(session)
    assert said(found) == [("u", ["Go."]), ("a", ["t-1", "t-2"]), ("u", ["t-1", "t-2", "And hurry."]), ("a", ["Done."])]


def test_results_that_stand_on_branches_of_their_own_are_found(read):
    session = Session()
    session.user("Go.")
    first = session.says("a-1", call("t-1"))
    second = session.says("a-1", call("t-2"))
    third = session.says("a-1", call("t-3"), after=first)
    session.put("progress", after=third, data={"type": "hook_progress"})
    session.result("t-3", after=third)
    session.result("t-1", after=first)
    session.result("t-2", after=second)
    session.says("a-2", text("Done."))
    (found,) = read(session)
    assert said(found)[1:3] == [("a", ["t-1", "t-2", "t-3"]), ("u", ["t-1", "t-2", "t-3"])]


def test_of_an_edited_prompt_the_last_branch_is_read(read):
    session = Session()
    session.user("Hello.")
    fork = session.says("a-1", text("Hello!"))
    session.user("Do this.")
    session.says("a-2", call("t-1"))
    session.result("t-1")
    session.user("Do that.", after=fork)
    session.says("a-3", text("Done."))
    session.put("system", subtype="turn_duration", durationMs=1)
    session.lines.append({"type": "last-prompt", "lastPrompt": "Do that.", "sessionId": "s-1"})
    (found,) = read(session)
    assert said(found) == [("u", ["Hello."]), ("a", ["Hello!"]), ("u", ["Do that."]), ("a", ["Done."])]


@pytest.mark.parametrize("pointer", ["as written", "lost", "none"])
def test_the_history_before_a_compaction_goes_on_without_its_summary(pointer, read):
    session = plain()
    for words in ("More.", "And more."):
        session.compact()
        if pointer == "lost":
            session.lines[-2]["logicalParentUuid"] = "never written"
        elif pointer == "none":
            del session.lines[-2]["logicalParentUuid"]
        session.user(words)
        session.says(words, text("Done."))
    (found,) = read(session)
    assert said(found) == [*PLAIN, ("u", ["More."]), ("a", ["Done."]), ("u", ["And more."]), ("a", ["Done."])]


def test_an_entry_after_one_that_was_never_written_goes_on_from_the_one_before(read):
    session = plain()
    session.user("More.", after="never written")
    session.says("a-3", text("Done."))
    (found,) = read(session)
    assert said(found) == [*PLAIN, ("u", ["More."]), ("a", ["Done."])]


def test_what_no_model_met_is_left_out(read):
    session = plain()
    session.user("Caveat: a command was run.", isMeta=True)
    session.says("e-1", text("API Error: overloaded"), model="<synthetic>", isApiErrorMessage=True)
    session.put("attachment", attachment={"type": "file"})
    session.user("Again.")
    session.says("a-3", text("  "), text("Done."))
    (found,) = read(session)
    assert said(found)[4:] == [("u", ["Caveat: a command was run.", "Again."]), ("a", ["Done."])]
    assert found.model == "claude-1"


def test_sub_agents_are_recordings_of_their_own(read):
    session = plain()
    for agent in ("x", "y", None, None):
        inner = Session(isSidechain=True, **({"agentId": agent} if agent else {}))
        inner.user(f"Help {agent}.")
        inner.says("b-1", text("Helped."))
        for line in inner.lines:
            line["uuid"] = f"{len(session.lines)}-{agent}-{line['uuid']}"
            line["parentUuid"] = session.lines[-1]["uuid"] if line["type"] == "assistant" else None
            session.lines.append(line)
    main, *others = read(session)
    assert said(main) == PLAIN
    assert [other.name.rpartition("/")[2] for other in others] == [
        *("session.jsonl:x", "session.jsonl:y", "session.jsonl:15", "session.jsonl:17")
    ]
    assert said(others[1]) == [("u", ["Help y."]), ("a", ["Helped."])]


def test_the_file_of_a_sub_agent_is_one_recording(read):
    session = Session(isSidechain=True, agentId="a1b2")
    session.user("Help.", after="in another file")
    session.says("b-1", text("Helped."))
    (found,) = read(session)
    assert found.name.endswith("/session.jsonl")
    assert said(found) == [("u", ["Help."]), ("a", ["Helped."])]


def test_a_call_that_was_never_answered_is_left_out_and_told(read):
    session = Session()
    session.user("Go.")
    session.says("a-1", text("I will."), call("t-1"), call("t-2"))
    session.result("t-2")
    session.says("a-2", call("t-3"))
    session.user("Stop.")
    session.result("t-9")
    session.says("a-3", text("Stopped."))
    notice, found = read(session)
    assert notice == "session.jsonl:2: 2 calls without a result and 1 result without a call left out"
    assert said(found) == [
        *(("u", ["Go."]), ("a", ["I will.", "t-2"]), ("u", ["t-2", "Stop."]), ("a", ["Stopped."])),
    ]
    assert anthropic_problems(list(found.messages)) == []


def test_no_answer_ends_with_a_thought(read):
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    session = Session()
    session.user("Go.")
    session.says("a-1", text("I will."), thought, call("t-1"))
    session.user("Stop.")
    session.says("a-2", text("Stopped."))
    session.user("Go on.")
    session.says("a-3", thought)
    _, found = read(session)
    assert said(found)[1:] == [("a", ["I will."]), ("u", ["Stop."]), ("a", ["Stopped."]), ("u", ["Go on."])]
    assert anthropic_problems(list(found.messages)) == []


def test_a_tool_of_the_provider_needs_no_result_from_the_program(read):
    search = {"type": "server_tool_use", "id": "srv-1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv-1", "content": []}
    session = plain()
    session.user("Search.")
    session.says("a-3", search, result, text("Found."))
    session.user("Thanks.")
    session.says("a-4", text("Welcome."))
    (found,) = read(session)
    assert said(found)[5] == ("a", ["srv-1", "srv-1", "Found."])
    assert anthropic_problems(list(found.messages)) == []


def test_a_call_that_stands_there_twice_is_made_once(read):
    session = plain()
    session.lines.insert(7, {**session.lines[6], "uuid": "again"})
    (found,) = read(session)
    assert said(found) == PLAIN


def test_calls_at_the_very_end_stay(read):
    session = Session()
    session.user("Go.")
    session.says("a-1", call("t-1"), call("t-2"))
    (found,) = read(session)
    assert said(found) == [("u", ["Go."]), ("a", ["t-1", "t-2"])]


def test_a_broken_line_costs_itself_only(read):
    session = plain()
    session.lines.insert(0, "{")
    session.lines[5] = json.dumps(session.lines[5])[:-9]
    *broken, found = read(session)
    assert [line.partition(": ")[0] for line in broken] == ["session.jsonl:1", "session.jsonl:6"]
    assert said(found) == [PLAIN[0], ("a", ["thinking", "t-1", "t-2"]), *PLAIN[2:]]


def test_a_session_without_an_answer_is_told(read):
    assert read([{"type": "summary", "summary": "x", "leafUuid": "y"}]) == ["session.jsonl: no answer of a model in it"]
    session = Session()
    session.user("Hello?")
    assert read(session) == ["session.jsonl: no answer of a model in it"]


def test_it_is_not_taken_for_messages_of_anthropic(read):
    told = "session.jsonl: it holds entries of a Claude Code session, which --format anthropic does not read"
    assert read(plain(), format="anthropic") == [told]


def test_the_stream_of_a_headless_run_is_read_too(read):
    rows = [
        {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Read"]},
        *({k: v for k, v in line.items() if k not in ("uuid", "parentUuid")} for line in plain().lines[2:]),
        {"type": "result", "subtype": "success", "session_id": "s", "result": "Done."},
    ]
    (found,) = read(rows)
    assert said(found)[1:] == PLAIN[1:]


@st.composite
def sessions(draw: Any) -> tuple[Session, int]:
    """Runs with parallel calls whose results come in any order, on any branch, with compactions between."""
    session, turns = Session(), draw(st.integers(1, 6))
    for turn in range(turns):
        session.user(f"Prompt {turn}.")
        calls = [f"t-{turn}-{number}" for number in range(draw(st.integers(0, 4)))]
        parts = {id: session.says(f"a-{turn}", call(id)) for id in calls}
        for id in draw(st.permutations(calls)):
            session.result(id, after=parts[id])
        session.says(f"b-{turn}", text(f"Answer {turn}."))
        if draw(st.booleans()):
            session.compact()
    return session, turns


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=sessions())
def test_any_run_comes_out_whole_and_legal(drawn, read):
    session, turns = drawn
    (found,) = read(session)
    assert anthropic_problems(list(found.messages)) == []
    words = [word for _, words in said(found) for word in words if word[0] in "PA"]
    assert words == [word for turn in range(turns) for word in (f"Prompt {turn}.", f"Answer {turn}.")]
    calls = sum(line["type"] == "assistant" and "tool_use" in json.dumps(line) for line in session.lines)
    assert sum("'tool_result'" in repr([block]) for m in found.messages for block in m["content"]) == calls


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=sessions(), data=st.data())
def test_whatever_is_lost_of_a_file_what_comes_out_is_legal(drawn, data, read):
    session, _ = drawn
    kept = data.draw(st.lists(st.sampled_from(session.lines), unique_by=id))
    for found in read([line for line in session.lines if any(line is each for each in kept)]):
        if isinstance(found, Recording):
            problems = anthropic_problems(list(found.messages))
            # A file whose first prompt is lost begins with an answer, and one may end with a call.
            assert [each for each in problems if "first" not in each and "no result directly after" not in each] == []


ENTRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system"]) | st.text(max_size=3)},
    optional={
        "uuid": st.sampled_from("abcd") | st.none(),
        "parentUuid": st.sampled_from("abcde") | st.none() | st.integers(),
        "logicalParentUuid": st.sampled_from("abcde"),
        "sessionId": st.just("s"),
        "isSidechain": st.booleans(),
        "agentId": st.sampled_from("xy") | st.none(),
        "isCompactSummary": st.booleans(),
        "subtype": st.just("compact_boundary"),
        "message": st.fixed_dictionaries(
            {"role": st.just("user")},
            optional={
                "id": st.sampled_from(["m-1", "m-2"]) | st.none() | st.lists(st.none()),
                "model": st.text(max_size=2) | st.none(),
                "content": st.text(max_size=3)
                | st.none()
                | st.lists(
                    st.none()
                    | st.sampled_from([text("a"), text(""), call("t-1"), call("t-2")])
                    | st.just({"type": "tool_result", "tool_use_id": "t-1", "content": "x"})
                    | st.just({"type": "tool_result", "tool_use_id": ["t-1"]})
                    | st.just({"type": "tool_use", "id": {}})
                    | st.just({"type": ["tool_use"]}),
                    max_size=4,
                ),
            },
        ),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ENTRIES, max_size=12))
def test_any_entries_give_recordings_or_reasons(rows, read):
    assert all(isinstance(found, (Recording, str)) for found in read(rows, format="claude-code"))
