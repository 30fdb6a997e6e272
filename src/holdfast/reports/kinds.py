"""What kind of thing a message is, and a few words for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.compression.seams import BRIDGE
from holdfast.dialects.wires import as_mapping
from holdfast.ledger.lines import one_line
from holdfast.messages import (
    SUMMARY,
    Block,
    Document,
    Image,
    Json,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    as_json_text,
)

__all__ = ["UNKNOWN_TOOL", "first_words", "kind_of", "name_of_tool", "words_for", "words_of_call"]

UNKNOWN_TOOL = "unknown tool"
_LONGEST, _LONGEST_ARGUMENT, _LONGEST_READ = 120, 60, 10_000
# The first that a message holds names its kind.
_KINDS: tuple[tuple[type[Block], str], ...] = (
    (ToolResult, "tool result"),
    (ToolUse, "tool call"),
    (Image, "image"),
    (Document, "document"),
    (Text, "text"),
    (Json, "text"),
    (Reasoning, "reasoning"),
)


def kind_of(message: Message) -> str:
    """Return what a message is in a word or two: the most telling of what it holds, "other" if nobody knows."""
    if message.role == "system":
        return "system"
    if message.made_as is not None:
        return message.made_as if message.made_as in (SUMMARY, BRIDGE) else "marker"
    if message.offloaded:
        return "extract"
    return next((kind for block, kind in _KINDS if any(isinstance(held, block) for held in message.blocks)), "other")


def words_of_call(use: ToolUse) -> str:
    """Return the tool that is called, and the first of its arguments if that is a word or a number."""
    name, first = one_line(use.name, _LONGEST), _first_argument(use.input)
    return f"{name} {one_line(first, _LONGEST_ARGUMENT)}".rstrip()


def _first_argument(given: Any) -> str:
    # Where a provider sends text, long ones are not worth reading for that.
    if isinstance(given, str) and len(given) <= _LONGEST_READ:
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return ""
    first = next(iter(given.values()), "") if isinstance(given, Mapping) else ""
    if isinstance(first, str):
        return first
    return as_json_text(first) if isinstance(first, (int, float)) else ""


def words_for(message: Message, calls: Mapping[str, str]) -> str:
    """Return what a message calls or answers for, else its first words. *calls* are in words, by id."""
    if results := list(message.tool_results):
        return one_line(", ".join(_result_of(result, calls) for result in results[:_LONGEST]), _LONGEST)
    if uses := list(message.tool_uses):
        return one_line(", ".join(map(words_of_call, uses[:_LONGEST])), _LONGEST)
    return _first_words_of(message.blocks)


def first_words(given: Any) -> str:
    """Return the first words of a system prompt: of a text, or of the texts in a provider's blocks."""
    if isinstance(given, str):
        return one_line(given, _LONGEST)
    for block in given if isinstance(given, (list, tuple)) else [given]:
        text = (as_mapping(block) or {}).get("text")
        if isinstance(text, str) and text.strip():
            return one_line(text, _LONGEST)
    return ""


def name_of_tool(spec: Any) -> str:
    """Return the name in what a provider is told of a tool, whichever its format is."""
    given = as_mapping(spec) or {}
    for part in (given, *(as_mapping(given.get(key)) or {} for key in ("function", "toolSpec"))):
        if isinstance(name := part.get("name"), str) and name:
            return one_line(name, _LONGEST)
    kind = given.get("type")
    return one_line(kind, _LONGEST) if isinstance(kind, str) and kind else "unnamed"


def _result_of(result: ToolResult, calls: Mapping[str, str]) -> str:
    call = calls.get(result.tool_use_id) or UNKNOWN_TOOL
    return f"{call} (error)" if result.is_error else call


def _first_words_of(blocks: Iterable[Block]) -> str:
    found = ""
    for block in blocks:
        match block:
            case Text(text) if text.strip():
                return one_line(text, _LONGEST)
            case Json(value):
                return one_line(as_json_text(value), _LONGEST)
            case Document(media_type, name):
                found = found or one_line(name or media_type, _LONGEST)
            case Image(kind) | Opaque(kind) | Reasoning(kind):
                found = found or one_line(kind, _LONGEST)
    return found
