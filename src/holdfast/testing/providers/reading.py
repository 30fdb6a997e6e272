"""What can be read of messages that may be malformed, and how rules are asked about them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Message", "Rule", "is_blank", "items_of", "mapping_of", "problems", "read_messages", "shown", "type_of"]


@dataclass(frozen=True)
class Message:
    """One message and what could be read of it; `role` is empty and `blocks` are none where it is malformed."""

    index: int
    raw: Any
    role: str = ""
    blocks: tuple[dict[str, Any], ...] = ()

    def says(self, problem: str) -> str:
        """The sentence for a problem of this message."""
        return f"message {self.index}: {problem}."

    def get(self, key: str) -> Any:
        """What the message has under *key*, or None."""
        return mapping_of(self.raw).get(key)


class Rule(Protocol):
    """Names its violations in messages, of which there is at least one."""

    def __call__(self, messages: list[Message], /) -> Iterable[str]: ...


def items_of(value: object) -> list[Any]:
    """The list that *value* is, or an empty one."""
    return value if isinstance(value, list) else []


def mapping_of(value: object) -> dict[str, Any]:
    """The object that *value* is, or an empty one."""
    return value if isinstance(value, dict) else {}


def type_of(block: dict[str, Any]) -> str:
    """What a block has as its `type`; empty if that is no text."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def is_blank(text: object) -> bool:
    """Whether this is a text of nothing but whitespace."""
    return isinstance(text, str) and not text.strip()


def shown(value: object) -> str:
    """A value, as short as a sentence wants it."""
    return textwrap.shorten(repr(value), 50)


def problems(
    messages: object, rules: Iterable[Rule], read_blocks: Callable[[object], list[Any]] = items_of
) -> list[str]:
    """What *rules* say of *messages*, in their order; *read_blocks* gives the blocks of a message's content."""
    if not isinstance(messages, list):
        return [f"messages must be a list, got {type(messages).__name__}."]
    if not messages:
        return ["messages must hold at least one message."]
    read = read_messages(messages, read_blocks)
    return [problem for rule in rules for problem in rule(read)]


def read_messages(messages: Iterable[object], read_blocks: Callable[[object], list[Any]] = items_of) -> list[Message]:
    """Each message with what can be read of it."""
    return [_read_message(index, raw, read_blocks) for index, raw in enumerate(messages)]


def _read_message(index: int, raw: object, read_blocks: Callable[[object], list[Any]]) -> Message:
    if not isinstance(raw, dict):
        return Message(index, raw)
    role = raw.get("role")
    blocks = tuple(block for block in read_blocks(raw.get("content")) if isinstance(block, dict))
    return Message(index, raw, role if isinstance(role, str) else "", blocks)
