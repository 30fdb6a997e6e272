"""What the writers of all wire formats share: the parts of a conversation, in the words of one provider."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from holdfast.testing.histories.contents import Contents
from holdfast.testing.histories.dice import Dice

__all__ = ["Block", "Call", "Message", "Wire"]

Message = dict[str, Any]
Block = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    id: str
    name: str
    input: dict[str, Any]


class Wire(ABC):
    """A dialect. Where nothing else is said, blocks name their type, and a content may be plain text."""

    ids_may_repeat = True

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._contents = Contents(dice)

    def opening(self) -> list[Message]:
        """What comes before the first message of the user."""
        return []

    @abstractmethod
    def user(self, text: str) -> list[Message]:
        """The user says *text*, perhaps in several messages and with attachments."""

    @abstractmethod
    def answer(self, text: str, calls: list[Call], signature: str) -> Message:
        """The model says *text*, if there is any, and makes *calls*, perhaps after reasoning so signed."""

    @abstractmethod
    def results(self, calls: list[Call]) -> list[Message]:
        """All *calls* are answered."""

    def plain(self, role: str, text: str) -> Message:
        """A message of nothing but *text*."""
        return {"role": role, "content": text}

    def text(self, text: str) -> Block:
        """A block of *text*."""
        return {"type": "text", "text": text}

    def unknown(self) -> Block:
        """A block of a type that no provider has."""
        return {"type": "hologram", "depth": 3}
