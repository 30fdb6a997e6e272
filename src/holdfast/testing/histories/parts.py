"""Where the calls and the results are in messages of any dialect, however broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.testing.histories.wire import Message

__all__ = ["CALLS", "RESULTS", "Kind", "blocks_of", "parts_of", "places_of"]


@dataclass(frozen=True)
class Kind:
    """How to tell calls, or results: by a key, by a `type`, or by the `role` of a whole message."""

    key: str
    types: tuple[str, ...]
    roles: tuple[str, ...] = ()

    def matches(self, part: object) -> bool:
        """Whether *part*, a message or a block or neither, is one of this kind."""
        return isinstance(part, dict) and (
            self.key in part or part.get("type") in self.types or part.get("role") in self.roles
        )


CALLS = Kind("toolUse", ("tool_use", "function"))
RESULTS = Kind("toolResult", ("tool_result",), ("tool",))


def blocks_of(message: Message) -> list[Any]:
    """The list that is the message's content, or one that belongs to nobody."""
    content = message.get("content")
    return content if isinstance(content, list) else []


def parts_of(message: Message, kind: Kind) -> list[Any]:
    """The calls or results of a message, which may be a result itself."""
    return [part for part in (message, *_holder_of(message, kind)) if kind.matches(part)]


def places_of(messages: list[Message], kind: Kind) -> list[tuple[list[Any], int]]:
    """All calls or results, each as the list that holds it and its place there."""
    holders = (messages, *(_holder_of(message, kind) for message in messages))
    return [(holder, place) for holder in holders for place, part in enumerate(holder) if kind.matches(part)]


def _holder_of(message: Message, kind: Kind) -> list[Any]:
    """The list in which a message has its calls or results."""
    calls = message.get("tool_calls")
    return calls if kind is CALLS and isinstance(calls, list) else blocks_of(message)
