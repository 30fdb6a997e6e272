"""Small recorded conversations, made for the tests of replays."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from recorded import as_anthropic, as_converse

from holdfast.recordings import Recording
from holdfast.replay import Outcome, Policy, Replay, policies_from

__all__ = [
    "FILLER",
    "Message",
    "answered",
    "called",
    "chat",
    "in_dialect",
    "outcome_of",
    "recording",
    "under",
]

Message = dict[str, Any]

FILLER = "all is well here, and nothing is to be done. "


def called(number: int, tool: str, **given: Any) -> Message:
    """What a model answers when it calls a tool."""
    function = {"name": tool, "arguments": json.dumps(given)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]}


def answered(number: int, text: str) -> Message:
    """What that tool answered."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def chat(results: Iterable[str], *, first: str = "Please look around.", last: Message | None = None) -> list[Message]:
    """An OpenAI chat: a task, one call for each result, and *last* or a text at the end."""
    messages: list[Message] = [{"role": "user", "content": first}]
    for number, result in enumerate(results):
        messages += [called(number, "look", page=number), answered(number, result)]
    return [*messages, last or {"role": "assistant", "content": "Done."}]


def recording(messages: Iterable[Any], *, dialect: str = "openai", name: str = "run", **beside: Any) -> Recording:
    return Recording(name, dialect, dialect, tuple(messages), **beside)


def in_dialect(messages: list[Message], dialect: str) -> Recording:
    """An OpenAI chat, recorded in another form; without an answer at the end."""
    wires = {"openai": lambda: messages[:-1], "anthropic": lambda: as_anthropic(messages)}
    return recording(wires.get(dialect, lambda: as_converse(messages))(), dialect=dialect)


def under(*policies: str | Policy, window: int = 16_000, **options: Any) -> Replay:
    """A replay under these policies."""
    given = [policies_from([each])[0] if isinstance(each, str) else each for each in policies]
    return Replay(policies=tuple(given), window=window, **options)


def outcome_of(messages: Iterable[Any], policy: str | Policy, *, window: int = 16_000, **beside: Any) -> Outcome:
    """What becomes of an OpenAI chat under one policy."""
    [outcome] = under(policy, window=window).one(recording(messages, **beside)).outcomes
    return outcome
