"""Anthropic Messages: ``{"role": …, "content": "text" or [{"type": "text", …}, {"type": "tool_use", …}, …]}``."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.dialects.blocks import BlockDialect
from holdfast.dialects.wires import (
    MAPPING,
    Wire,
    as_dict,
    as_value,
    joined_text,
    string_in,
)
from holdfast.messages import (
    Block,
    Document,
    Image,
    Json,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
)

__all__ = ["Anthropic"]


class Anthropic(BlockDialect):
    """Messages of Anthropic's API."""

    name = "anthropic"
    may_repeat_roles = True

    def read_content(self, content: Any) -> tuple[Block, ...]:
        """Return the blocks of a content."""
        return _read_content(content, _READERS)

    def write_content(self, blocks: tuple[Block, ...], before: Any) -> Any:
        """Return the content for *blocks*, as plain text where that is what was there before."""
        return _write_content(blocks, before)


def _read_content(content: Any, readers: _Readers) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple([_read_block(wire, readers) for wire in content]) if isinstance(content, list) else ()


def _read_block(wire: Any, readers: _Readers) -> Block:
    if (given := as_dict(wire)) is None:
        return Opaque("", wire, wire)
    read = readers.get(kind := string_in(given, "type"))
    block = read(given) if read is not None else None
    return Opaque(kind, given, given) if block is None else block


def _text(wire: Wire) -> Block | None:
    text = wire.get("text")
    return Text(text, wire) if isinstance(text, str) else None


def _tool_use(wire: Wire) -> Block | None:
    if not isinstance(wire.get("id"), str):
        return None
    return ToolUse(wire["id"], string_in(wire, "name"), wire.get("input"), wire)


def _tool_result(wire: Wire) -> Block | None:
    if not isinstance(wire.get("tool_use_id"), str):
        return None
    content = _read_content(wire.get("content"), _READERS_IN_RESULTS)
    return ToolResult(wire["tool_use_id"], content, wire.get("is_error") is True, wire)


def _image(wire: Wire) -> Block | None:
    source = wire.get("source")
    return Image(string_in(source, "media_type"), _data(source), wire) if isinstance(source, MAPPING) else None


def _document(wire: Wire) -> Block | None:
    source = wire.get("source")
    if not isinstance(source, MAPPING):
        return None
    title = string_in(wire, "title")
    if source.get("type") != "content":
        return Document(string_in(source, "media_type"), title, _data(source), wire)
    text = joined_text(source.get("content"))
    return None if text is None else Document("text/plain", title, text.encode("utf-8", "surrogatepass"), wire)


def _data(source: Mapping[str, Any]) -> bytes | str | None:
    data = source.get("data")
    if source.get("type") == "text" and isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")
    return data if isinstance(data, (bytes, str)) else None


def _thinking(wire: Wire) -> Block | None:
    return Reasoning(string_in(wire, "thinking"), bool(wire.get("signature")), wire)


def _redacted(wire: Wire) -> Block | None:
    return Reasoning("", True, wire)


_Readers = Mapping[str, Callable[[Wire], Block | None]]

_READERS_IN_RESULTS: _Readers = {"text": _text, "image": _image, "document": _document}
_READERS: _Readers = {
    **_READERS_IN_RESULTS,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
}


def _write_content(blocks: tuple[Block, ...], before: Any) -> Any:
    """Return the blocks, as plain text where that is what the provider's object held."""
    if isinstance(before, str) and len(blocks) == 1 and isinstance(blocks[0], Text):
        return blocks[0].text
    return [_write_block(block) for block in blocks]


def _write_block(block: Block) -> Any:
    if isinstance(block, ToolResult):
        return _write_result(block)
    if isinstance(block, Opaque):
        return block.value
    return block.wire if block.wire is not None else _new_block(block)


def _write_result(result: ToolResult) -> Wire:
    if result.wire is not None and not result.edited:
        wire: Wire = result.wire
        return wire
    before = result.wire if result.wire is not None else _new_result(result)
    return {**before, "content": _write_content(result.content, before.get("content"))}


def _new_result(result: ToolResult) -> Wire:
    wire: Wire = {"type": "tool_result", "tool_use_id": result.tool_use_id}
    return wire | {"is_error": True} if result.is_error else wire


def _new_block(block: Block) -> Wire:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Json(value):
            return {"type": "text", "text": json.dumps(value, ensure_ascii=False, default=str)}
        case ToolUse(id, name, input):
            return {"type": "tool_use", "id": id, "name": name, "input": as_value(input)}
        case Image(media_type, data):
            return {"type": "image", "source": _new_source(media_type, data)}
        case Document(media_type, name, data):
            titled = {"title": name} if name else {}
            return {"type": "document", "source": _new_source(media_type, data), **titled}
        case Reasoning(text):
            return {"type": "thinking", "thinking": text}
    return {"type": "text", "text": str(getattr(block, "value", ""))}


def _new_source(media_type: str, data: bytes | str | None) -> Wire:
    encoded = b64encode(data).decode() if isinstance(data, bytes) else data or ""
    return {"type": "base64", "media_type": media_type, "data": encoded}
