"""What Converse and Anthropic share: a message is a role and a content of blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from holdfast.dialects.wires import as_mapping, no_message, notes_in, sendable, unchanged, with_notes
from holdfast.messages import Block, Message, Role

__all__ = ["BlockDialect"]


class BlockDialect(ABC):
    """A dialect whose messages have a role and a content; what is in the content, each says for itself."""

    @abstractmethod
    def read_content(self, content: Any) -> tuple[Block, ...]:
        """Return the blocks of a content."""

    @abstractmethod
    def write_content(self, blocks: tuple[Block, ...], before: Any) -> Any:
        """Return the content for *blocks*, in the shape of the one *before* where there is a choice."""

    def read(self, wire: Any) -> Message:
        """Return the message that *wire* stands for."""
        if (given := as_mapping(wire)) is None:
            return no_message(wire)
        role: Role = "assistant" if given.get("role") == "assistant" else "user"
        return Message(role, self.read_content(given.get("content")), notes_in(given), wire)

    def write(self, message: Message) -> list[Any]:
        """Return what *message* was read from, or what it has become since."""
        if (as_it_came := unchanged(message)) is not None:
            return as_it_came
        given = as_mapping(message.wire)
        wire = {"role": message.role, "content": []} if given is None else dict(given)
        if message.blocks != self.read_content(wire.get("content")):
            wire["content"] = self.write_content(message.blocks, wire.get("content"))
        return [with_notes(wire, message.notes)]

    def sendable(self, wires: Iterable[Any]) -> list[Any]:
        """Return the messages without what no provider may see."""
        return sendable(wires)
