"""Messages of a provider, and what stands beside them in a file, made a recording.

A conversation that stands in a file whole is refused if a result in it answers no call before it: no provider would
have taken it, so it is not what was sent. A log of single messages may have lost some: there such a result is left out,
and told. Calls without a result stay as they are; at the end of a run that broke off they are common.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from holdfast.dialects import dialect_of
from holdfast.recordings.beside import (
    answer_in,
    dialect_beside,
    joined_prompt,
    model_in,
    name_in,
    prompts_in,
    tools_in,
)
from holdfast.recordings.packed_bytes import unpacked
from holdfast.recordings.pairs import first_orphan, without_orphans
from holdfast.recordings.shapes import body_of
from holdfast.recordings.values import FORMATS, Recording, UnusableError, quoted

__all__ = ["check_usable", "named", "recording_of", "recording_of_log", "told_left_out"]

_KEYS = {
    "openai": {
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "refusal",
        "reasoning_content",
        "function_call",
    },
    "anthropic": {"role", "content"},
    "converse": {"role", "content"},
}
_OF_PROVIDERS = FORMATS[:3]


def recording_of(name: str, value: Any, format: str | None = None) -> Recording:
    """Make a recording of a list of messages, or of an object that has them. Raises an UnusableError if it is none.

    *format* is what the messages have to be in; None takes any.
    """
    body = {"messages": value} if isinstance(value, list) else body_of(value)
    if body is None:
        raise UnusableError("there are no messages in it")
    spoken = body["messages"] + (answer_in(value) if isinstance(value, dict) and not _is_answered(body) else [])
    prompts, messages = _parted(spoken)
    dialect = _dialect(messages, format, dialect_beside(body))
    wires = [_as_sent(dialect, message) for message in messages]
    if (orphan := first_orphan(dialect, wires)) is not None:
        raise UnusableError(_told(orphan[0] + len(prompts), orphan[1]))
    check_usable(wires)
    prompt = joined_prompt([*prompts_in(body), *prompts])
    return Recording(name, format or dialect, dialect, tuple(wires), prompt, tools_in(body), model_in(body))


def recording_of_log(name: str, logged: Sequence[Any], format: str | None = None) -> tuple[Recording, list[int]]:
    """Make a recording of messages that were written down one by one.

    With it come the places, from 0, of messages from which results without a call were left out; `told_left_out` says
    so to people.
    """
    prompts, messages = _parted(logged)
    dialect = _dialect(messages, "converse" if format == "strands" else format, "openai")
    wires, places = without_orphans(dialect, [_as_sent(dialect, message) for message in messages])
    check_usable(wires)
    recording = Recording(name, format or dialect, dialect, tuple(wires), joined_prompt(prompts))
    return recording, [place + len(prompts) for place in places]


def told_left_out(places: Sequence[int]) -> str:
    """Return in words that results were left out of a log."""
    others = f", and {len(places) - 1:,} after it" if len(places) > 1 else ""
    return f"a result without the call before it is left out{others}"


def named(file: str, place: str, value: Any) -> str:
    """Return the name of one conversation of a file; where the file holds several, with what it calls itself."""
    own = name_in(value) if isinstance(value, dict) and place else ""
    return f"{file}{place}:{own}" if own else f"{file}{place}"


def check_usable(messages: Sequence[dict[str, Any]]) -> None:
    """Refuse a conversation in which no model answered, or was told anything: by a user or by a tool."""
    roles = {message["role"] for message in messages}
    if "assistant" not in roles:
        raise UnusableError("no answer of a model in it")
    if roles == {"assistant"}:
        raise UnusableError("nothing but answers of a model in it")


def _is_answered(body: dict[str, Any]) -> bool:
    """Say whether a log has the answer among the messages already, as one that was written after it came."""
    last = body["messages"][-1] if body["messages"] else None
    return isinstance(last, dict) and last.get("role") == "assistant"


def _parted(messages: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
    """Return the contents of the system messages at the beginning, and the messages after them."""
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            got = "has no role" if isinstance(message, dict) else "is no object"
            raise UnusableError(f"message {place + 1} {got}")
    prompts = [message.get("content") for message in takewhile(_is_system, messages)]
    return prompts, messages[len(prompts) :]


def _is_system(message: dict[str, Any]) -> bool:
    return message["role"] in ("system", "developer")


def _dialect(messages: Sequence[Any], wanted: str | None, otherwise: str) -> str:
    found = dialect_of(messages)
    if found is not None and wanted in _OF_PROVIDERS and found.name != wanted:
        raise UnusableError(f"its messages are of {found.name}, not of {wanted}")
    return found.name if found is not None else wanted or otherwise


def _as_sent(dialect: str, message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the provider's own keys: the same object, if it has no others."""
    keys = _KEYS[dialect]
    kept = message if keys.issuperset(message) else {name: each for name, each in message.items() if name in keys}
    if dialect == "openai":
        return _with_texts(kept)
    return unpacked(kept) if dialect == "converse" else kept


def _with_texts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose calls have their arguments as text, as OpenAI has them; some logs have objects."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not any(map(_is_parsed, calls)):
        return message
    return {**message, "tool_calls": [_with_text(call) if _is_parsed(call) else call for call in calls]}


def _is_parsed(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and isinstance(function.get("arguments"), (dict, list))


def _with_text(call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return {**call, "function": {**call["function"], "arguments": arguments}}


def _told(place: int, id: str) -> str:
    called = f"a call {quoted(id)!r} that is not before it" if id else "no call: it names none"
    return f"message {place + 1} is the result of {called}"
