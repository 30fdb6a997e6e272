"""A tool's result on its own, outside of any message, in whatever shape a loop or a framework hands it over."""

from __future__ import annotations

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


@dataclass(frozen=True)
class GivenResult:
    """A tool's result as it was read, and how to write another in its shape."""

    result: ToolResult
    write: Callable[[ToolResult], Any]


def read_result(given: Any, dialect: Dialect) -> GivenResult:
    """Read a tool's result: plain text, a JSON value, a content of *dialect*, or any provider's result or tool message.

    `GivenResult.write` gives text back as text, and all else in the shape that it came in.
    """
    if isinstance(given, str):
        return GivenResult(ToolResult("", (Text(given),)), _as_text)
    if (wire := as_dict(given)) is not None and (shape := _shape_of(wire)) is not None:
        if (found := shape.read(wire)) is not None:
            return found
    elif isinstance(given, list) and (found_in := _dialect_of_content(given, dialect)) is not None:
        return _read_content(given, found_in)
    return GivenResult(ToolResult("", (Json(given),)), lambda result: _as_value(result, given))


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


def _shape_of(wire: Mapping[str, Any]) -> _Shape | None:
    if as_mapping(wire.get("toolResult")) is not None:
        return _OF_CONVERSE
    if isinstance(wire.get("toolUseId"), str) and isinstance(wire.get("content"), list):
        return _INSIDE_OF_CONVERSE
    if wire.get("type") == "tool_result":
        return _OF_ANTHROPIC
    return _OF_OPENAI if wire.get("role") == "tool" else None


def _dialect_of_content(given: list[Any], dialect: Dialect) -> Dialect | None:
    """Return the dialect to read a list of blocks in, which is *dialect* in case of doubt; None if it is other JSON."""
    parts = [as_mapping(block) or {} for block in given]
    if parts and all(part and part.keys() <= _NAMES_IN_CONVERSE for part in parts):
        return _OF_CONVERSE.dialect
    if parts and all(part.get("type") in _KINDS_OF_OTHERS for part in parts):
        return _OF_ANTHROPIC.dialect if dialect.name == "converse" else dialect
    return None


_NAMES_IN_CONVERSE = {"text", "json", "image", "document"}
_KINDS_OF_OTHERS = ("text", "image", "document", "image_url", "file", "search_result")


def _read_content(given: list[Any], dialect: Dialect) -> GivenResult:
    message = dialect.read({"role": "user", "content": given})
    result = ToolResult("", message.blocks)
    return GivenResult(result, lambda changed: dialect.write(message.with_blocks(changed.content))[0]["content"])


def _as_text(result: ToolResult) -> str:
    return "\n".join(block.text if isinstance(block, Text) else as_json_text(block) for block in result.content)


def _as_value(result: ToolResult, given: Any) -> Any:
    """Return a JSON value as it came, unless it became something else: then as text, which every provider takes."""
    match result.content:
        case (Json(value),) if value is given:
            return given
    return _as_text(result)
