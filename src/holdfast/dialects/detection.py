"""Which dialect a history is written in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.dialects.anthropic import Anthropic
from holdfast.dialects.converse import Converse
from holdfast.dialects.openai import OpenAI
from holdfast.dialects.protocol import Dialect
from holdfast.dialects.wires import as_mapping, role_in
from holdfast.errors import InvalidValueError

__all__ = ["dialect_named", "dialect_of"]

_BY_NAME: dict[str, Dialect] = {dialect.name: dialect for dialect in (Converse(), Anthropic(), OpenAI())}
_OPENAI_ROLES = {"tool", "system", "developer", "function"}
_OPENAI_KEYS = {"tool_calls", "tool_call_id", "refusal", "reasoning_content", "function_call"}
_OPENAI_PARTS = {"image_url", "input_audio", "file", "refusal"}
_ANTHROPIC_BLOCKS = {"image", "document", "thinking", "redacted_thinking", "search_result", "container_upload"}
_ANTHROPIC_ENDINGS = ("tool_use", "tool_result")


def dialect_named(name: str) -> Dialect:
    """Return the dialect that goes by *name*: converse, anthropic or openai."""
    try:
        return _BY_NAME[name]
    except (KeyError, TypeError):
        allowed = ", ".join(repr(known) for known in _BY_NAME)
        raise InvalidValueError(f"dialect must be one of {allowed}, got {name!r}") from None


def dialect_of(wires: Iterable[Any]) -> Dialect | None:
    """Return the dialect of a history by the first message that gives it away; None if none does.

    A message with nothing but plain text is the same in Anthropic's format and in OpenAI's.
    """
    found = next((name for wire in wires for name in _evidence(wire)), None)
    return None if found is None else _BY_NAME[found]


def _evidence(wire: Any) -> Iterator[str]:
    if (given := as_mapping(wire)) is None:
        return
    if role_in(given) in _OPENAI_ROLES or not _OPENAI_KEYS.isdisjoint(given):
        yield "openai"
    content = given.get("content")
    for block in content if isinstance(content, list) else ():
        if (part := as_mapping(block)) is not None:
            yield from _evidence_of_block(part)


def _evidence_of_block(block: Mapping[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    if "type" not in block and block:
        yield "converse"
    elif not isinstance(kind, str):
        return
    elif kind in _OPENAI_PARTS:
        yield "openai"
    elif kind in _ANTHROPIC_BLOCKS or kind.endswith(_ANTHROPIC_ENDINGS):
        yield "anthropic"
