"""What a provider's object says beside what is read of it: an address, a title, a citation, a refusal."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse

__all__ = ["beside_block", "beside_message"]

# What things are and belong to, how they are sent, and what only answers and frameworks carry: nobody looks for it.
_STRUCTURE = frozenset({"role", "id", "index", "status", "is_error", "toolUseId", "tool_use_id", "tool_call_id"})
_OF_MESSAGES = _STRUCTURE | {"metadata", "tracking_id", "model", "usage", "stop_reason", "stop_sequence"}
_OF_MEDIA = _STRUCTURE | {
    "format",
    "media_type",
    "mediaType",
    "detail",
    "data",
    "bytes",
    "file_data",
    "text",
    "content",
}
_OF_CALLS = _STRUCTURE | {"input", "arguments"}
_ANYWHERE = frozenset({"type", "signature", "cache_control"})


def beside_block(block: Block, tool: str) -> Any:
    """Return what texts a block's object holds beside those that are read of it, as JSON; None if there are none.

    *tool* is the tool whose result it is.
    """
    match block:
        case Text(text) | Reasoning(text) if text or isinstance(block, Text):
            return _beside(block.wire, (text,), _STRUCTURE, 2)
        case ToolUse(_, name, _):
            return _beside(block.wire, (name,), _OF_CALLS, 2)
        case ToolResult():
            return _beside(block.wire, (tool,), _OF_MESSAGES | _read_of(block.wire), 1 + _is_nested(block.wire))
        case Image() | Document() if block.data:
            return _beside(_without_data(block.wire), (), _OF_MEDIA, 3)
    return None


def beside_message(message: Message) -> Any:
    """Return what texts a message's object holds beside its blocks, as JSON; None if there are none."""
    # A tool's message of OpenAI is a block too.
    if any(block.wire is message.wire for block in message.blocks):
        return None
    return _beside(message.wire, (), _OF_MESSAGES | _read_of(message.wire), 1)


def _is_nested(wire: Any) -> bool:
    return isinstance(wire, Mapping) and isinstance(wire.get("toolResult"), Mapping)


def _read_of(wire: Any) -> frozenset[str]:
    """Return the names under which blocks are, as far as they have the form that is read."""
    given = wire["toolResult"] if _is_nested(wire) else wire
    forms = {"content": (str, list), "tool_calls": (list,), "reasoning_content": (str,)}
    read = given if isinstance(given, Mapping) else {}
    return frozenset(name for name, form in forms.items() if isinstance(read.get(name), form))


def _without_data(wire: Any) -> Any:
    """Return an image of OpenAI without the address that holds its bytes."""
    match wire:
        case {"image_url": {"url": str()}}:
            return {**wire, "image_url": {name: item for name, item in wire["image_url"].items() if name != "url"}}
        case {"image_url": str()}:
            return {name: item for name, item in wire.items() if name != "image_url"}
    return wire


def _beside(wire: Any, said: Collection[str], known: Collection[str], depth: int) -> Any:
    """Return what is not *said*, without *known* names down to that depth: None if that holds no text."""
    found = _without(wire, said, known, depth)
    return found if _holds_text(found) else None


def _without(value: Any, said: Collection[str], known: Collection[str], depth: int) -> Any:
    if isinstance(value, Mapping):
        names = [name for name in value if name not in _ANYWHERE and not (depth > 0 and name in known)]
        left = {name: _without(value[name], said, known, depth - 1) for name in names}
        return {name: item for name, item in left.items() if item is not None} or None
    if isinstance(value, (list, tuple)):
        return [item for item in (_without(item, said, known, depth) for item in value) if item is not None] or None
    return None if isinstance(value, str) and (value in said or not value.strip()) else value


def _holds_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_text, value.values()))
    return any(map(_holds_text, value)) if isinstance(value, list) else isinstance(value, str)
