"""What a dialect does, and what all of them share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from holdfast.messages import NO_NOTES, Message, Opaque

__all__ = [
    "MAPPING",
    "Dialect",
    "Wire",
    "as_value",
    "no_message",
    "notes_in",
    "role_in",
    "sendable",
    "string_in",
    "unchanged",
    "with_notes",
]

Wire = dict[str, Any]

MAPPING: Final = (dict, Mapping)
"""For isinstance: nearly all are dicts, which are told at once, and any other mapping at some length."""

_FOR_NO_PROVIDER = ("metadata", "tracking_id")
_NO_MESSAGE = "no message"


class Dialect(Protocol):
    """Reads and writes one provider's messages. Whatever it cannot read it passes on; it never raises for it."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def read(self, wire: Any) -> Message:
        """Return the message that a provider's message stands for."""
        ...

    def write(self, message: Message) -> list[Any]:
        """Return the provider's messages for one of ours: the very object it was read from, if nobody changed it."""
        ...

    def sendable(self, wires: Iterable[Any]) -> list[Any]:
        """Return the messages without what no provider may see: the same objects, wherever there is nothing such."""
        ...


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
