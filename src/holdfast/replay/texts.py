"""All that a model reads of a message, as one text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.messages import Block, Document, Json, Message, Opaque, Reasoning, Text, ToolResult, ToolUse, as_json_text

__all__ = ["text_of"]


def text_of(message: Message) -> str:
    """Return what a message says, shows and calls, without media and without what no provider sees."""
    return "\n".join(_texts(message.blocks))


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text) | Reasoning(text):
                yield text
            case ToolUse(_, name, given):
                yield f"{name} {given if isinstance(given, str) else as_json_text(given)}"
            case ToolResult(_, content):
                yield from _texts(content)
            case Json(value) | Opaque(_, value):
                yield as_json_text(value)
            case Document(_, name):
                yield name
