"""Bedrock Converse, which Strands speaks: ``{"role": …, "content": [{"text": …}, {"toolUse": {…}}, …]}``."""

from __future__ import annotations

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

__all__ = ["Converse"]


class Converse(BlockDialect):
    """Messages of Bedrock's Converse API."""

    name = "converse"
    may_repeat_roles = False

    def read_content(self, content: Any) -> tuple[Block, ...]:
        """Return the blocks of a content."""
        return _read_content(content, _READERS)

    def write_content(self, blocks: tuple[Block, ...], before: Any) -> Any:
        """Return the content for *blocks*."""
        return [_write_block(block) for block in blocks]


def _read_content(content: Any, readers: _Readers) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple([_read_block(wire, readers) for wire in content]) if isinstance(content, list) else ()


def _read_block(wire: Any, readers: _Readers) -> Block:
    if (given := as_dict(wire)) is None:
        return Opaque("", wire, wire)
    for kind, value in given.items():
        if (read := readers.get(kind)) is not None and (block := read(value, given)) is not None:
            return block
    return Opaque(next((kind for kind in given if isinstance(kind, str)), ""), given, given)


def _text(value: Any, wire: Wire) -> Block | None:
    return Text(value, wire) if isinstance(value, str) else None


def _tool_use(value: Any, wire: Wire) -> Block | None:
    if not isinstance(value, MAPPING) or not isinstance(value.get("toolUseId"), str):
        return None
    return ToolUse(value["toolUseId"], string_in(value, "name"), value.get("input"), wire)


def _tool_result(value: Any, wire: Wire) -> Block | None:
    if not isinstance(value, MAPPING) or not isinstance(value.get("toolUseId"), str):
        return None
    blocks = _read_content(value.get("content"), _READERS_IN_RESULTS)
    return ToolResult(value["toolUseId"], blocks, value.get("status") == "error", wire)


def _json(value: Any, wire: Wire) -> Block | None:
    return Json(value, wire)


def _image(value: Any, wire: Wire) -> Block | None:
    if not isinstance(value, MAPPING):
        return None
    return Image(f"image/{string_in(value, 'format')}", _bytes_in(value), wire)


def _document(value: Any, wire: Wire) -> Block | None:
    if not isinstance(value, MAPPING):
        return None
    name = string_in(value, "name")
    if (content := _text_source_in(value)) is None:
        return Document(string_in(value, "format"), name, _bytes_in(value), wire)
    text = joined_text(content)
    return None if text is None else Document("txt", name, text.encode("utf-8", "surrogatepass"), wire)


def _text_source_in(value: Mapping[str, Any]) -> Any:
    """Return what a document consists of if it is given as text, whatever its format is said to be."""
    source = value.get("source")
    given = source if isinstance(source, MAPPING) else {}
    return given.get("content") if given.get("text") is None else given["text"]


def _bytes_in(value: Mapping[str, Any]) -> bytes | str | None:
    source = value.get("source")
    data = source.get("bytes") if isinstance(source, MAPPING) else None
    return data if isinstance(data, (bytes, str)) else None


def _reasoning(value: Any, wire: Wire) -> Block | None:
    if not isinstance(value, MAPPING):
        return None
    said = value.get("reasoningText")
    text, signature = (said.get("text"), said.get("signature")) if isinstance(said, MAPPING) else ("", None)
    return Reasoning(text if isinstance(text, str) else "", bool(signature) or "redactedContent" in value, wire)


_Readers = Mapping[str, Callable[[Any, Wire], Block | None]]

_READERS_IN_RESULTS: _Readers = {"text": _text, "json": _json, "image": _image, "document": _document}
_READERS: _Readers = {
    **_READERS_IN_RESULTS,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "reasoningContent": _reasoning,
}


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
    outer = result.wire if result.wire is not None else {}
    before = outer.get("toolResult") or {"toolUseId": result.tool_use_id, "status": _STATUS[result.is_error]}
    return {**outer, "toolResult": {**before, "content": [_write_block(block) for block in result.content]}}


_STATUS = {True: "error", False: "success"}


def _new_block(block: Block) -> Wire:
    match block:
        case Text(text):
            return {"text": text}
        case Json(value):
            return {"json": value}
        case ToolUse(id, name, input):
            return {"toolUse": {"toolUseId": id, "name": name, "input": as_value(input)}}
        case Image(media_type, data):
            return {"image": {"format": media_type.rpartition("/")[2], "source": {"bytes": data}}}
        case Document(media_type, name, data):
            return {"document": {"format": media_type.rpartition("/")[2], "name": name, "source": {"bytes": data}}}
        case Reasoning(text):
            return {"reasoningContent": {"reasoningText": {"text": text}}}
    return {"text": str(getattr(block, "value", ""))}
