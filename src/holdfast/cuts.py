"""Where a history may be cut.

A cut is legal if a provider accepts what stands after it, and that follows from a few properties:

* a call and its result, matched by id, are on one side (`Cuts`), and so is a whole batch of parallel calls;
* what stands after it does not begin with a tool's result (`answers`);
* unless something is kept before it, it begins with what a user said (`opens_a_turn`);
* a model's reasoning stays with the message that it led to: cuts are between messages only.

`History` keeps `Cuts` up as messages are added. What lies between two of them is a unit; compressors know only units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.messages import Message, ToolResult, ToolUse

__all__ = ["Cuts", "answers", "legal_cuts", "opens_a_turn"]


def legal_cuts(messages: Sequence[Message], *, kept_before: bool = False) -> list[int]:
    """Return each index at which *messages* may be cut, 0 included.

    With *kept_before*, something stays before the cut, so what follows need not open a turn.
    """
    cuts = (at for at in Cuts(messages).indices if not answers(messages[at]))
    return [at for at in cuts if kept_before or opens_a_turn(messages[at])]


def opens_a_turn(message: Message) -> bool:
    """Say whether a user speaks, not a tool."""
    return message.role == "user" and not answers(message)


def answers(message: Message) -> bool:
    """Say whether a tool's result is in it."""
    return any(isinstance(block, ToolResult) for block in message.blocks)


class Cuts:
    """The indices at which no call is separated from its result, kept up as messages are added."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.indices: list[int] = []
        self._length = 0
        # The latest call of each id that was not answered yet: providers repeat ids from turn to turn.
        self._open: dict[str, int] = {}
        for message in messages:
            self.add(message)

    def copy(self) -> Cuts:
        """Return the same cuts, to be kept up by themselves."""
        twin = Cuts()
        twin.indices, twin._length, twin._open = self.indices.copy(), self._length, self._open.copy()
        return twin

    def add(self, message: Message) -> None:
        """Take in the next message."""
        at, self._length = self._length, self._length + 1
        called_at = at
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self._open[block.id] = at
            elif isinstance(block, ToolResult):
                called_at = min(called_at, self._open.pop(block.tool_use_id, called_at))
        self.indices.append(at)
        while self.indices[-1] > called_at:
            self.indices.pop()
