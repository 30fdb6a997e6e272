"""What all dialects need to read and write a provider's objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.messages import NO_NOTES, Message, Opaque

__all__ = [
    "MAPPING",
    "Wire",
    "as_dict",
    "as_mapping",
    "as_value",
    "joined_text",
    "no_message",
    "notes_in",
    "role_in",
    "sendable",
    "string_in",
    "unchanged",
    "unread_in",
    "with_notes",
]

Wire = dict[str, Any]

MAPPING: Final = (dict, Mapping)
"""For isinstance: nearly all are dicts, which are told at once, and any other mapping at some length."""

_FOR_NO_PROVIDER = ("metadata", "tracking_id")
_NO_MESSAGE = "no message"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
# Of a message's own names: what dialects read, what is too small to count, and what only answers carry.
_READ: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "reasoning_content", *_FOR_NO_PROVIDER})
_SMALL: Final = frozenset({"id", "name", "type", "status", "cache_control"})
_OF_ANSWERS: Final = frozenset({"model", "usage", "stop_reason", "stop_sequence"})
_NOT_COUNTED: Final = _READ | _SMALL | _OF_ANSWERS


def no_message(wire: Any) -> Message:
    """Return what stands for something among the messages that is none."""
    return Message("user", (Opaque(_NO_MESSAGE, wire, wire),), wire=wire)


def unchanged(message: Message) -> list[Any] | None:
    """Return what goes back as it came: what nobody changed, and what was no message to begin with."""
    if message.wire is not None and not message.edited:
        return [message.wire]
    match message.blocks:
        case (Opaque(kind, value),) if kind == _NO_MESSAGE:
            return [value]
    return None


def as_mapping(wire: Any) -> Mapping[str, Any] | None:
    """Return a message or block as a mapping: itself, or what a provider's SDK object dumps. None if it is neither."""
    if isinstance(wire, MAPPING):
        return wire
    try:
        dump = getattr(wire, "model_dump", None)
        dumped = dump(exclude_none=True) if callable(dump) else None
    except Exception:
        # Whatever such an object does when asked, it is passed on as it is.
        return None
    return dumped if isinstance(dumped, dict) else None


def as_dict(wire: Any) -> Wire | None:
    """Return a block as a dict: itself, or a copy of another mapping, or what an SDK object dumps. None for others."""
    if isinstance(wire, dict):
        return wire
    given = as_mapping(wire)
    return None if given is None else dict(given)


def unread_in(wire: Any) -> Mapping[str, Any]:
    """Return what a message holds beside all that dialects read: a refusal, say, or a call of the older kind."""
    given = None if wire is None else as_mapping(wire)
    if given is None or given.keys() <= _NOT_COUNTED:
        return _NOTHING
    return {name: value for name, value in given.items() if name not in _NOT_COUNTED and value is not None}


def joined_text(content: Any) -> str | None:
    """Return the text of a string, or of a list of blocks with text. None if there is anything else."""
    if isinstance(content, str):
        return content
    blocks = [as_mapping(block) or {} for block in content] if isinstance(content, list) else [{}]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n".join(texts) if len(texts) == len(blocks) else None


def notes_in(wire: Any) -> Mapping[str, Any]:
    """Return what was noted on a message, under ``metadata.custom``. It is a copy: others may note more in theirs."""
    if not isinstance(wire, MAPPING) or (metadata := wire.get("metadata")) is None:
        return NO_NOTES
    custom = metadata.get("custom") if isinstance(metadata, MAPPING) else None
    return dict(custom) if isinstance(custom, MAPPING) else NO_NOTES


def role_in(wire: Any) -> str:
    """Return the role as the provider's message has it."""
    return string_in(wire, "role") if isinstance(wire, MAPPING) else ""


def string_in(wire: Mapping[str, Any], name: str) -> str:
    """Return the string of that name, and an empty one for anything else."""
    value = wire.get(name)
    return value if isinstance(value, str) else ""


def with_notes(wire: Wire, notes: Mapping[str, Any]) -> Wire:
    """Return *wire* with these notes under ``metadata.custom``, and nothing there if there are none."""
    if notes == notes_in(wire):
        return wire
    given = wire.get("metadata")
    metadata = {name: value for name, value in given.items() if name != "custom"} if isinstance(given, MAPPING) else {}
    if notes:
        metadata["custom"] = dict(notes)
    others = {name: value for name, value in wire.items() if name != "metadata"}
    return others | {"metadata": metadata} if metadata else others


def sendable(wires: Iterable[Any]) -> list[Any]:
    """Return the messages without what no provider may see."""
    return [_without_private(wire) for wire in wires]


def _without_private(wire: Any) -> Any:
    if not isinstance(wire, MAPPING) or not any(name in wire for name in _FOR_NO_PROVIDER):
        return wire
    return {name: value for name, value in wire.items() if name not in _FOR_NO_PROVIDER}


def as_value(value: Any) -> Any:
    """Return a tool's input as a JSON value, where another provider sent its text."""
    if not isinstance(value, str):
        return {} if value is None else value
    try:
        return json.loads(value)
    except ValueError:
        return {"input": value}
