"""What a dialect does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from holdfast.messages import Message

__all__ = ["Dialect"]


class Dialect(Protocol):
    """Reads and writes one provider's messages. Whatever it cannot read it passes on; it never raises for it."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    @property
    def may_repeat_roles(self) -> bool:
        """Whether the provider takes two messages of one role in a row."""
        ...

    def read(self, wire: Any) -> Message:
        """Return the message that a provider's message stands for."""
        ...

    def write(self, message: Message) -> list[Any]:
        """Return the provider's messages for one of ours: the very object it was read from, if nobody changed it."""
        ...

    def sendable(self, wires: Iterable[Any]) -> list[Any]:
        """Return the messages without what no provider may see: the same objects, wherever there is nothing such."""
        ...
