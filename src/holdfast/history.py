"""A conversation's messages, read and counted once each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Any, NamedTuple

from holdfast.cuts import Cuts
from holdfast.dialects import Dialect, OpenAI, dialect_of
from holdfast.messages import Json, Message, Opaque, Reasoning, ToolResult, ToolUse
from holdfast.tokens import TokenEstimator

__all__ = ["History", "Unit"]

# Read anew in every turn: the latest, which others still work on, and a few of the rest in turn.
_LATEST, _IN_PASSING = 8, 32
_LARGE_RESULT = 500


class Unit(NamedTuple):
    """Messages that stay or leave together: a tool call with its results, or a single message."""

    start: int
    stop: int


class History:
    """Messages with their tokens, and what a compressor asks of them, kept up as messages are added.

    `read` costs what is new, and notices what others changed: a message that was put in, taken out or replaced at once,
    and one that was changed in place at once if it is recent, else within a few turns, or when `verify` looks at all.
    """

    def __init__(self, dialect: Dialect | None = None, estimator: TokenEstimator | None = None) -> None:
        self.dialect: Dialect = dialect or OpenAI()
        self.estimator = estimator or TokenEstimator()
        self._detects = dialect is None
        self._wires: list[Any] = []
        self._passed = 0
        self.revision = 0
        self._start_over()

    @classmethod
    def of(cls, messages: Iterable[Message], estimator: TokenEstimator | None = None) -> History:
        """Return a history of messages that are read already."""
        history = cls(estimator=estimator)
        for message in messages:
            history._add(message)
        return history

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def total(self) -> int:
        """The tokens of all messages."""
        return self._sums[-1]

    def tokens(self, start: int, stop: int) -> int:
        """Return the tokens of some messages."""
        return self._sums[stop] - self._sums[start]

    def read(self, wires: Sequence[Any]) -> None:
        """Take in what *wires*, a provider's messages, have become."""
        given = wires if isinstance(wires, list) else list(wires)
        known = len(self._wires)
        # Equality of lists takes the same object for equal without looking into it, far faster than any loop here.
        if self._wires != given[:known] or self._changed_in_place():
            self._read_anew(given)
        elif len(given) > known:
            self._read_on(given[known:])

    def verify(self, wires: Sequence[Any]) -> None:
        """Take in *wires*, looking at every message again."""
        self.read(wires)
        if not all(map(is_, self._wires, wires)) or not all(map(self._is_unchanged, range(len(self.messages)))):
            self._read_anew(wires)

    def written(self, messages: Sequence[Message]) -> list[Any]:
        """Return *messages* in the provider's format; what was read and not changed is the very same object."""
        return [wire for message in messages for wire in self.dialect.write(message)]

    def units(self) -> Iterator[Unit]:
        """Yield what stays or leaves together, oldest first."""
        starts = self._cuts.indices
        for number, start in enumerate(starts):
            yield Unit(start, starts[number + 1] if number + 1 < len(starts) else len(self.messages))

    def unit_at(self, index: int) -> Unit:
        """Return the unit that a message belongs to."""
        starts = self._cuts.indices
        number = bisect_right(starts, index)
        return Unit(starts[number - 1], starts[number] if number < len(starts) else len(self.messages))

    def bound_reasoning_after(self, index: int) -> list[int]:
        """Return which messages from *index* on hold reasoning that is bound to what stands before it."""
        return self._bound[bisect_left(self._bound, index) :]

    def _read_anew(self, wires: Sequence[Any]) -> None:
        self._detect(wires)
        self._start_over()
        self.revision += 1
        for wire in wires:
            self._add(self.dialect.read(wire))
        self._wires = list(wires)

    def _read_on(self, wires: Sequence[Any]) -> None:
        if self._detect(wires):
            self._read_anew([*self._wires, *wires])
            return
        for wire in wires:
            self._add(self.dialect.read(wire))
        self._wires += wires

    def _detect(self, wires: Sequence[Any]) -> bool:
        """Look for signs of the dialect as long as there were none; say whether it is another than was thought."""
        if not self._detects or (found := dialect_of(wires)) is None:
            return False
        known, self.dialect, self._detects = self.dialect, found, False
        return found.name != known.name

    def _changed_in_place(self) -> bool:
        length = len(self.messages)
        start = self._passed if self._passed < length else 0
        self._passed = start + _IN_PASSING
        looked_at = (*range(start, min(self._passed, length)), *range(max(length - _LATEST, 0), length))
        return not all(map(self._is_unchanged, looked_at))

    def _is_unchanged(self, index: int) -> bool:
        wire, message = self._wires[index], self.messages[index]
        if self.dialect.read(wire) != message:
            return False
        return not _shares_values(message) or self.estimator.message(message) == self.tokens(index, index + 1)

    def _start_over(self) -> None:
        self.messages: list[Message] = []
        self._wires = []
        self._sums = [0]
        self._cuts = Cuts()
        self._bound: list[int] = []
        self.kept: list[int] = []
        self.large_results: list[int] = []

    def _add(self, message: Message, tokens: int | None = None) -> None:
        at = len(self.messages)
        count = self.estimator.message(message) if tokens is None else tokens
        self.messages.append(message)
        self._sums.append(self._sums[-1] + count)
        self._cuts.add(message)
        if message.pinned or message.role == "system":
            self.kept.append(at)
        if any(isinstance(block, Reasoning) and block.bound for block in message.blocks):
            self._bound.append(at)
        if count > _LARGE_RESULT and any(isinstance(block, ToolResult) for block in message.blocks):
            self.large_results.append(at)


def _shares_values(message: Message) -> bool:
    """Say whether a message holds values of the provider's object that may change, so that it never differs from it."""
    return any(
        isinstance(block, (ToolUse, Json, Opaque))
        or (isinstance(block, ToolResult) and any(isinstance(part, (Json, Opaque)) for part in block.content))
        for block in message.blocks
    )
