"""Whatever a tool returned, as a result that its provider takes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from holdfast.dialects.protocol import Dialect
from holdfast.dialects.results import read_result
from holdfast.messages import Block, Document, Image, Json, Opaque, Text, ToolResult, as_json_text

__all__ = ["legal_result"]

_NOTHING = Text("[The tool answered nothing.]")


def legal_result(given: Any, dialect: Dialect) -> ToolResult:
    """Read what a tool returned, in any provider's shape, and make of it what *dialect* can be sent.

    Values are JSON text, but for objects in Converse, which has a place for them. A result that is empty says so.
    """
    result = read_result(given, dialect).result
    content = tuple(_legal(block, dialect) for block in result.content)
    return ToolResult("", content or (_NOTHING,), is_error=result.is_error)


def _legal(block: Block, dialect: Dialect) -> Block:
    match block:
        case Text(text):
            return Text(_speakable(text)) if text.strip() else _NOTHING
        case Image() | Document():
            # Written anew, for it may have come in another provider's shape; what is only pointed at has nothing else.
            return block if block.data is None else replace(block, wire=None)
        case Json(value) if dialect.name == "converse" and isinstance(value, dict) and _is_plain(value):
            return Json(value)
        case Json(None):
            return _NOTHING
        case Json(value) | Opaque(_, value):
            return Text(_speakable(as_json_text(value)))
    return Text(_speakable(as_json_text(block)))


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _speakable(text: str) -> str:
    """Return *text* without halves of characters, which no provider can be sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
