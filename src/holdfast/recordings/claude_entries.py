"""The entries of a Claude Code session file, and which of them are one conversation.

A file is a tree: each entry names the one before it. An edited prompt begins a branch, parallel calls of tools begin
short ones, a compaction begins a new root, and some entries name one that was never written. A conversation is the
branch of the last entry, with the history before each compaction, all of each answer, and the results of all its calls.
Sub-agents' entries are conversations of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.recordings.json_values import Placed
from holdfast.recordings.pairs import calls_in, results_in
from holdfast.recordings.values import quoted

__all__ = ["Entry", "conversations_among", "entry_of"]

_SPOKEN = ("user", "assistant")
# Shown to people only: a summary that a compaction made, and errors in place of answers.
_NOT_SENT = ("isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_MAIN, _UNNAMED = "", "a sub-agent"


@dataclass(frozen=True)
class Entry:
    """One entry: where it stands, what it comes after, and its message in Anthropic's form if a model met it.

    *track* is "" for the main conversation, and tells sub-agents apart. *before* is None for a root; *follows* says
    that it comes after the entry before it in the file, whatever that is.
    """

    number: int
    line: int | None
    uuid: str
    before: str | None
    follows: bool
    track: str
    message: dict[str, Any] | None

    @property
    def answer(self) -> str | None:
        """The id of the model's answer of which this is a part; None if it is of the user, or has none."""
        id = self.message.get("id") if self.message and self.message["role"] == "assistant" else None
        return id if isinstance(id, str) else None

    @property
    def blocks(self) -> list[Any]:
        """The blocks of the message's content; a text is none."""
        content = self.message["content"] if self.message else ()
        return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def entry_of(number: int, placed: Placed) -> Entry | None:
    """Return the entry that a value is; None if it is not in the tree: a title, a snapshot of files, a queue."""
    given = placed.value
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        return None
    uuid, message = given.get("uuid"), _message_in(given)
    if not isinstance(uuid, str) and message is None:
        return None
    before = given.get("parentUuid") or given.get("logicalParentUuid")
    follows = "parentUuid" not in given or given.get("subtype") == "compact_boundary" or "isCompactSummary" in given
    return Entry(
        number,
        placed.line,
        uuid if isinstance(uuid, str) else f"number {number}",
        before if isinstance(before, str) else None,
        follows,
        _track_of(given),
        message,
    )


def conversations_among(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Yield each conversation and what to call it: "" for the main one, which comes first."""
    tracks: dict[str, list[Entry]] = {_MAIN: []}
    for entry in entries:
        tracks.setdefault(entry.track, []).append(entry)
    for track, members in tracks.items():
        if track != _UNNAMED:
            yield track, _branch(members)
        else:
            yield from _unnamed(members)


def _message_in(given: dict[str, Any]) -> dict[str, Any] | None:
    if given["type"] == "attachment":
        return _queued_in(given.get("attachment"))
    message = given.get("message")
    if given["type"] not in _SPOKEN or not isinstance(message, dict) or any(given.get(flag) for flag in _NOT_SENT):
        return None
    content = message.get("content")
    if not isinstance(content, (str, list)):
        return None
    kept = {name: message[name] for name in ("id", "model") if name in message}
    return {**kept, "role": given["type"], "content": content}


def _queued_in(attachment: Any) -> dict[str, Any] | None:
    """Return what a user said while the agent was at work, which it was told with the next results."""
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return None
    prompt = attachment.get("prompt")
    return {"role": "user", "content": prompt} if isinstance(prompt, (str, list)) else None


def _track_of(given: dict[str, Any]) -> str:
    if isinstance(caller := given.get("parent_tool_use_id"), str):
        return quoted(caller)
    if given.get("isSidechain") is not True:
        return _MAIN
    agent = given.get("agentId")
    return quoted(agent) if isinstance(agent, str) and agent else _UNNAMED


def _unnamed(members: list[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Yield sub-agents that have no name by the roots of their trees, in the order of these."""
    before = _before(members, bridged=False)
    roots: dict[str, str] = {}
    trees: dict[str, list[Entry]] = {}
    for entry in members:
        parent = before[entry.uuid]
        root = roots[entry.uuid] = roots.get(parent, entry.uuid) if parent else entry.uuid
        trees.setdefault(root, []).append(entry)
    for tree in trees.values():
        yield str(tree[0].line or tree[0].number), _branch(tree)


def _before(members: list[Entry], *, bridged: bool = True) -> dict[str, str | None]:
    """Return for each entry the one it comes after. If that was never written, *bridged* takes the one before it."""
    known = {entry.uuid for entry in members}
    before: dict[str, str | None] = {}
    latest = None
    for entry in members:
        if entry.uuid in before:
            continue
        is_lost = bridged if entry.before is not None else entry.follows
        before[entry.uuid] = entry.before if entry.before in known else latest if is_lost else None
        latest = entry.uuid
    return before


def _branch(members: list[Entry]) -> list[Entry]:
    """Return the entries of the branch that the last message is on, in the order of the file."""
    before = _before(members)
    first = {entry.uuid: entry for entry in reversed(members)}
    at = next((entry.uuid for entry in reversed(members) if entry.message and first[entry.uuid] is entry), None)
    on_it: set[str] = set()
    while at is not None and at not in on_it:
        on_it.add(at)
        at = before.get(at)
    return _with_parallels(members, on_it)


def _with_parallels(members: list[Entry], on_it: set[str]) -> list[Entry]:
    """Return the entries of a branch with the rest of its answers, and with results that were written beside it."""
    answers = {entry.answer for entry in members if entry.uuid in on_it} - {None}
    said = [entry for entry in members if entry.uuid in on_it or entry.answer in answers]
    called = {id for entry in said for id in calls_in("anthropic", {"content": entry.blocks})}
    chosen = {entry.uuid for entry in said}
    unique: dict[str, Entry] = {}
    for entry in members:
        if entry.uuid in chosen or not called.isdisjoint(results_in("anthropic", {"content": entry.blocks})):
            unique.setdefault(entry.uuid, entry)
    return [entry for entry in unique.values() if entry.message]
