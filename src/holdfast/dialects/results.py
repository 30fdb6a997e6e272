"""A tool's result on its own, outside of any message, in whatever shape a loop or a framework hands it over."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.dialects.anthropic import Anthropic
from holdfast.dialects.converse import Converse
from holdfast.dialects.openai import OpenAI
from holdfast.dialects.protocol import Dialect
from holdfast.dialects.wires import as_dict, as_mapping
from holdfast.messages import Json, Message, Text, ToolResult, as_json_text

__all__ = ["GivenResult", "read_result"]

_DATA_URL = "data:application/octet-stream;base64,"


@dataclass(frozen=True)
class GivenResult:
    """A tool's result as it was read, and how to write another in its shape."""

    result: ToolResult
    write: Callable[[ToolResult], Any]


def read_result(given: Any, dialect: Dialect) -> GivenResult:
    """Read a tool's result: plain text, a JSON value, a content of *dialect*, or any provider's result or tool message.

    `GivenResult.write` gives text back as text, and all else in the shape that it came in. Bytes that are no text are
    read as a data URL, which holds all of them and which every provider takes.
    """
    if (text := _text_in(given)) is not None:
        return GivenResult(ToolResult("", (Text(text),)), _as_text)
    if isinstance(given, (bytes, bytearray)):
        return _read_bytes(given)
    if (wire := as_dict(given)) is not None:
        shape = _shape_of(wire)
        return (shape.read(wire) if shape is not None else None) or _read_value(wire, given)
    if isinstance(given, list) and (found_in := _dialect_of_content(given, dialect)) is not None:
        return _read_content(given, found_in)
    return _read_value(given, given)


def _text_in(given: Any) -> str | None:
    if isinstance(given, (bytes, bytearray)) and b"\0" not in given:
        try:
            return given.decode()
        except UnicodeDecodeError:
            return None
    return given if isinstance(given, str) else None


def _read_bytes(given: bytes | bytearray) -> GivenResult:
    content = (Text(f"{_DATA_URL}{b64encode(given).decode()}"),)
    return GivenResult(ToolResult("", content), lambda result: given if result.content == content else _as_text(result))


def _read_value(value: Any, given: Any) -> GivenResult:
    return GivenResult(ToolResult("", (Json(value),)), lambda result: _as_value(result, value, given))


@dataclass(frozen=True)
class _Shape:
    """How a result becomes a message that a dialect reads, and is taken out of what the dialect writes."""

    dialect: Dialect
    wrap: Callable[[Any], Any]
    unwrap: Callable[[Any], Any]

    def read(self, wire: Any) -> GivenResult | None:
        message = self.dialect.read(self.wrap(wire))
        result = next(message.tool_results, None)
        return None if result is None else GivenResult(result, lambda changed: self._write(message, changed))

    def _write(self, message: Message, changed: ToolResult) -> Any:
        return self.unwrap(self.dialect.write(message.with_blocks((changed,)))[0])


def _in_user_message(block: Any) -> Any:
    return {"role": "user", "content": [block]}


def _from_user_message(message: Any) -> Any:
    return message["content"][0]


_OF_CONVERSE = _Shape(Converse(), _in_user_message, _from_user_message)
_INSIDE_OF_CONVERSE = _Shape(
    Converse(),
    lambda result: _in_user_message({"toolResult": result}),
    lambda message: _from_user_message(message)["toolResult"],
)
_OF_ANTHROPIC = _Shape(Anthropic(), _in_user_message, _from_user_message)
_OF_OPENAI = _Shape(OpenAI(), lambda message: message, lambda message: message)
# OpenAI's Responses, and the Model Context Protocol: read as what is nearest to them, and written back as they were.
_OF_RESPONSES = _Shape(
    OpenAI(),
    lambda wire: {"role": "tool", "tool_call_id": wire["call_id"], "content": wire["output"], "wire": wire},
    lambda message: {**message["wire"], "output": message["content"]},
)
_OF_MCP = _Shape(
    Anthropic(),
    lambda wire: _in_user_message(
        {
            "type": "tool_result",
            "tool_use_id": "",
            "content": [_from_mcp(block) for block in wire["content"]],
            "is_error": wire.get("isError") is True,
            "wire": wire,
        }
    ),
    lambda message: {
        **_from_user_message(message)["wire"],
        "content": [_into_mcp(block) for block in _from_user_message(message)["content"]],
    },
)


def _from_mcp(block: Any) -> Any:
    given = as_mapping(block) or {}
    if given.get("type") != "image":
        return block
    source = {"type": "base64", "media_type": given.get("mimeType"), "data": given.get("data")}
    return {"type": "image", "source": source, "wire": block}


def _into_mcp(block: Any) -> Any:
    return block.get("wire", block) if isinstance(block, dict) else block


def _shape_of(wire: Mapping[str, Any]) -> _Shape | None:
    if as_mapping(wire.get("toolResult")) is not None:
        return _OF_CONVERSE
    if isinstance(wire.get("toolUseId"), str) and isinstance(wire.get("content"), list):
        return _INSIDE_OF_CONVERSE
    if wire.get("type") == "tool_result":
        return _OF_ANTHROPIC
    if wire.get("type") == "function_call_output" and isinstance(wire.get("call_id"), str):
        return _OF_RESPONSES
    if isinstance(wire.get("content"), list) and ("isError" in wire or "structuredContent" in wire):
        return _OF_MCP
    return _OF_OPENAI if wire.get("role") == "tool" else None


def _dialect_of_content(given: list[Any], dialect: Dialect) -> Dialect | None:
    """Return the dialect to read a list of blocks in, which is *dialect* in case of doubt; None if it is other JSON.

    A row of some table may well have a ``type`` and a ``text``: a block has no other members than those of its kind.
    """
    parts = [as_mapping(block) or {} for block in given]
    if parts and all(len(part) == 1 and part.keys() <= _MEMBERS_IN_CONVERSE for part in parts):
        return _OF_CONVERSE.dialect
    if parts and all(_is_block(part) for part in parts):
        return _OF_ANTHROPIC.dialect if dialect.name == "converse" else dialect
    return None


def _is_block(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    members = _MEMBERS_BY_KIND.get(kind) if isinstance(kind, str) else None
    return members is not None and part.keys() <= members and isinstance(part.get(_CONTENT_OF[str(kind)]), _CONTENTS)


_MEMBERS_IN_CONVERSE = {"text", "json", "image", "document"}
_MEMBERS_BY_KIND = {
    "text": {"type", "text", "citations", "annotations", "cache_control"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    "image_url": {"type", "image_url"},
    "file": {"type", "file"},
}
_CONTENT_OF = {"text": "text", "image": "source", "document": "source", "image_url": "image_url", "file": "file"}
_CONTENTS = (str, dict)


def _read_content(given: list[Any], dialect: Dialect) -> GivenResult:
    message = dialect.read({"role": "user", "content": given})
    result = ToolResult("", message.blocks)
    return GivenResult(result, lambda changed: dialect.write(message.with_blocks(changed.content))[0]["content"])


def _as_text(result: ToolResult) -> str:
    return "\n".join(block.text if isinstance(block, Text) else as_json_text(block) for block in result.content)


def _as_value(result: ToolResult, value: Any, given: Any) -> Any:
    """Return a JSON value as it came, unless it became something else: then as text, which every provider takes."""
    match result.content:
        case (Json(unchanged),) if unchanged is value:
            return given
    return _as_text(result)
