"""The entries of one conversation of Claude Code, made the turns that Anthropic was sent.

An answer stands in a file in parts, one block each, and results come between them as their tools finish. Here each
answer is one message, and its results, in the order of its calls, begin the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from holdfast.recordings.claude_entries import Entry
from holdfast.recordings.conversations import check_usable
from holdfast.recordings.values import Recording, quoted

__all__ = ["Losses", "recording_of_entries"]

_SYNTHETIC = "<synthetic>"


@dataclass
class Losses:
    """What was left out because Anthropic would refuse it, and the line of the first."""

    results: int = 0
    calls: int = 0
    line: int | None = None

    def add(self, line: int | None, *, results: int = 0, calls: int = 0) -> None:
        """Count more."""
        self.line = self.line or line
        self.results += results
        self.calls += calls

    def __str__(self) -> str:
        counts = ((self.calls, "call", "without a result"), (self.results, "result", "without a call"))
        parts = [f"{count} {what}{'s' * (count > 1)} {lacking}" for count, what, lacking in counts if count]
        return f"{' and '.join(parts)} left out" if parts else ""


@dataclass
class _Turn:
    """What one side said: all of an answer, or a prompt, without results."""

    role: str
    line: int | None
    blocks: list[Any] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        """The ids of the tools that the program has to run; a provider's own tools answer in the same message."""
        return [block["id"] for block in self.blocks if _is(block, "tool_use") and isinstance(block.get("id"), str)]


def recording_of_entries(name: str, entries: Iterable[Entry]) -> tuple[Recording, Losses]:
    """Make a recording. Raises an UnusableError if there is no conversation in it."""
    held, losses = list(entries), Losses()
    turns, results = _parted(held, losses)
    messages = list(_merged(_legal(turns, results, losses)))
    check_usable(messages)
    models = [entry.message["model"] for entry in held if entry.message and isinstance(entry.message.get("model"), str)]
    model = next((quoted(model, 100) for model in reversed(models) if model != _SYNTHETIC), "")
    return Recording(name, "claude-code", "anthropic", tuple(messages), model=model), losses


_Results = dict[str, tuple["int | None", Any]]


def _parted(entries: Iterable[Entry], losses: Losses) -> tuple[list[_Turn], _Results]:
    """Return the turns in order, each answer whole, and the results by the ids of their calls."""
    turns: list[_Turn] = []
    answers: dict[str, _Turn] = {}
    results: _Results = {}
    for entry in entries:
        if entry.message is None:
            continue
        blocks = [block for block in _blocks(entry.message["content"]) if not _put(block, entry, results, losses)]
        turn = answers.get(entry.answer or "")
        if turn is None and blocks:
            turns.append(turn := _Turn(entry.message["role"], entry.line))
            answers.update({entry.answer: turn} if entry.answer else {})
        if turn is not None:
            turn.blocks += blocks
    return turns, results


def _put(block: dict[str, Any], entry: Entry, results: _Results, losses: Losses) -> bool:
    """Put a result aside, and say whether it was one."""
    if not _is(block, "tool_result"):
        return False
    if isinstance(id := block.get("tool_use_id"), str):
        results.setdefault(id, (entry.line, block))
    else:
        losses.add(entry.line, results=1)
    return True


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return a content as blocks, without texts that are blank, which Anthropic refuses."""
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [block for block in given if isinstance(block, dict) and not _is_blank(block)]


def _is_blank(block: dict[str, Any]) -> bool:
    return _is(block, "text") and not str(block.get("text") or "").strip()


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _legal(turns: list[_Turn], results: _Results, losses: Losses) -> Iterator[_Turn]:
    """Yield each answer with its results after it. Calls without any go, but for those at the very end."""
    for turn in turns:
        ids = list(dict.fromkeys(turn.calls))
        found = {id: results.pop(id)[1] for id in ids if id in results}
        if len(found) == len(ids) or (not found and turn is turns[-1]):
            kept = ids
        else:
            kept = list(found)
            losses.add(turn.line, calls=len(ids) - len(found))
        turn.blocks = list(_with_calls(turn.blocks, set(kept)))
        while turn.blocks and str(turn.blocks[-1].get("type")).endswith("thinking"):
            # Anthropic refuses what ends so: an answer that broke off, or whose call was left out.
            turn.blocks.pop()
        if turn.blocks:
            yield turn
        if found:
            yield _Turn("user", turn.line, list(found.values()))
    for line, _ in results.values():
        losses.add(line, results=1)


def _with_calls(blocks: Iterable[dict[str, Any]], ids: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the blocks of an answer, of its calls only those with the given ids, and each once."""
    for block in blocks:
        if not _is(block, "tool_use"):
            yield block
        elif isinstance(id := block.get("id"), str) and id in ids:
            ids.remove(id)
            yield block


def _merged(turns: Iterable[_Turn]) -> Iterator[dict[str, Any]]:
    """Yield one message for neighbours of one role; what is one text is written as a text."""
    for role, run in groupby(turns, key=attrgetter("role")):
        blocks = [block for turn in run for block in turn.blocks]
        is_text = role == "user" and len(blocks) == 1 and _is_plain(blocks[0])
        yield {"role": role, "content": blocks[0]["text"] if is_text else blocks}


def _is_plain(block: dict[str, Any]) -> bool:
    return _is(block, "text") and set(block) == {"type", "text"} and isinstance(block["text"], str)
