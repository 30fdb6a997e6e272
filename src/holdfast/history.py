"""A conversation's messages, read and counted once each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import accumulate
from operator import is_
from typing import Any, NamedTuple

from holdfast.cuts import Cuts, answers
from holdfast.dialects import Dialect, OpenAI, dialect_of
from holdfast.dialects.wires import unread_in
from holdfast.messages import Block, Json, Message, Opaque, Reasoning, ToolResult, ToolUse
from holdfast.names import Names
from holdfast.tokens import TokenEstimator

__all__ = ["History", "Unit", "goes_on"]

# Read anew in every turn: the latest, which others still work on, and a few of the rest in turn.
_LATEST, _IN_PASSING = 8, 16
_LARGE_RESULT = 500
# Of values written out, to see in every turn whether they changed: some 20,000 tokens, and well below a millisecond.
_LONGEST_VALUES, _MOST_COMPARED = 80_000, 20_000
_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})


class Unit(NamedTuple):
    """Messages that stay or leave together: a tool call with its results, or a single message."""

    start: int
    stop: int


class _Facts(NamedTuple):
    """What is found out once about a message. `values` differs after a change of what it shares with its wire.

    It is None where that would take too long to find out in every turn. `plain` is a copy of its wire: as long as that
    equals it, the message is what it was. None if the wire holds more than JSON.
    """

    tokens: int
    values: int | None
    plain: Any
    is_kept: bool
    is_large_result: bool
    is_bound: bool


class History:
    """Messages with their tokens, and what a compressor asks of them, kept up as messages are added.

    `read` costs what is new, and notices what others changed: a message that was put in, taken out or replaced at once,
    and one that was changed in place at once if it is recent, else within a few turns, or when `verify` looks at all.
    """

    def __init__(
        self,
        dialect: Dialect | None = None,
        estimator: TokenEstimator | None = None,
        names: Names | None = None,
    ) -> None:
        self.dialect: Dialect = dialect or OpenAI()
        self.estimator = estimator or TokenEstimator()
        self.names = names or Names()
        self._detects = dialect is None
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

    def copy(self) -> History:
        """Return a history of the same messages, which stays as it is, whatever is read here: for another thread."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (list, Cuts)):
                setattr(twin, name, value.copy())
        return twin

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
        if not goes_on(self._wires, given):
            self._rearrange(given)
            known = len(given)
        if not all(map(self._refresh, self._next_to_look_at())):
            self._read_anew(given)
        elif len(given) > known:
            self.read_on(given[known:])

    def verify(self, wires: Sequence[Any]) -> None:
        """Take in *wires*, looking at every message again."""
        self.read(wires)
        if not all(map(is_, self._wires, wires)) or not all(map(self._refresh, range(len(self.messages)))):
            self._read_anew(wires)

    def is_as_read(self, indices: Iterable[int]) -> bool:
        """Say whether these messages are what they were, after a look at each of them."""
        return all(map(self._refresh, indices))

    def is_seen_whole(self, index: int) -> bool:
        """Say whether such a look would show any change: what is very large is not compared in every turn."""
        return self._facts[index].values is not None

    def written(self, messages: Sequence[Message]) -> list[Any]:
        """Return *messages* in the provider's format; what was read and not changed is the very same object."""
        written: list[Any] = []
        for message in messages:
            if message.wire is not None and not message.edited:
                written.append(message.wire)
            else:
                written += self.dialect.write(message)
        return written

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

    def _start_over(self) -> None:
        self.revision += 1
        self.messages: list[Message] = []
        self._wires: list[Any] = []
        self._sums = [0]
        self._facts: list[_Facts] = []
        self._cuts = Cuts()
        self._bound: list[int] = []
        self.kept: list[int] = []
        self.large_results: list[int] = []

    def _read_anew(self, wires: Sequence[Any]) -> None:
        self._detect(wires)
        self._start_over()
        for wire in wires:
            self._add(self.dialect.read(wire))

    def _rearrange(self, wires: Sequence[Any]) -> None:
        """Take in *wires*, of which those that are known are taken for unchanged."""
        if self._detect(wires):
            self._read_anew(wires)
            return
        known = {id(wire): at for at, wire in enumerate(self._wires) if wire is not None}
        messages, facts = self.messages, self._facts
        self._start_over()
        for wire in wires:
            if (at := known.get(id(wire))) is None:
                self.messages.append(message := self.dialect.read(wire))
                self._facts.append(self._facts_of(message))
            else:
                self.messages.append(messages[at])
                self._facts.append(facts[at])
        self._wires = list(wires)
        self._sums = list(accumulate((fact.tokens for fact in self._facts), initial=0))
        self._cuts = Cuts(self.messages)
        self.kept = [at for at, fact in enumerate(self._facts) if fact.is_kept]
        self.large_results = [at for at, fact in enumerate(self._facts) if fact.is_large_result]
        self._bound = [at for at, fact in enumerate(self._facts) if fact.is_bound]

    def read_on(self, wires: Sequence[Any]) -> None:
        """Take in messages that follow what is known, without a look at that."""
        if self._detect(wires):
            self._read_anew([*self._wires, *wires])
            return
        for wire in wires:
            self._add(self.dialect.read(wire))

    def _detect(self, wires: Sequence[Any]) -> bool:
        """Look for signs of the dialect as long as there were none; say whether it is another than was thought."""
        if not self._detects or (found := dialect_of(wires)) is None:
            return False
        known, self.dialect, self._detects = self.dialect, found, False
        return found.name != known.name

    def _next_to_look_at(self) -> tuple[int, ...]:
        length = len(self.messages)
        start = self._passed if self._passed < length else 0
        self._passed = start + _IN_PASSING
        return (*range(start, min(self._passed, length)), *range(max(length - _LATEST, 0), length))

    def _refresh(self, index: int) -> bool:
        """Look at a message again, and say whether it is what it was."""
        wire, facts = self._wires[index], self._facts[index]
        if facts.plain is not None and facts.plain == wire:
            return True
        message = self.dialect.read(wire)
        if message != self.messages[index]:
            return False
        # What is equal may still differ in what is not read, such as the keys of a block that somebody replaced.
        self.messages[index] = message
        if facts.values is not None and facts.values != _print_of_values(message):
            return False
        self._facts[index] = facts._replace(plain=_plain_copy(wire, facts.tokens))
        return True

    def _add(self, message: Message) -> None:
        at, facts = len(self.messages), self._facts_of(message)
        self.messages.append(message)
        self._wires.append(message.wire)
        self._facts.append(facts)
        self._sums.append(self._sums[-1] + facts.tokens)
        self._cuts.add(message)
        if facts.is_kept:
            self.kept.append(at)
        if facts.is_large_result:
            self.large_results.append(at)
        if facts.is_bound:
            self._bound.append(at)

    def _facts_of(self, message: Message) -> _Facts:
        tokens = self.estimator.message(message)
        return _Facts(
            tokens,
            _print_of_values(message),
            _plain_copy(message.wire, tokens),
            is_kept=(message.pinned and message.made_as is None) or message.role == "system",
            is_large_result=tokens > _LARGE_RESULT and answers(message),
            is_bound=any(isinstance(block, Reasoning) and block.bound for block in message.blocks),
        )


def goes_on(known: list[Any], wires: list[Any]) -> bool:
    """Say whether *wires* are the *known* ones and perhaps more after them."""
    length = len(known)
    # Lists of one length are compared without a look at what is the same object: far faster than a loop or a copy.
    known += wires[length:]
    try:
        return known == wires
    finally:
        del known[length:]


def _plain_copy(wire: Any, tokens: int) -> Any:
    """Return a copy of a message that shares its texts, which takes a moment to compare; None where it would not."""
    try:
        return _copied(wire) if tokens <= _MOST_COMPARED else None
    except (_NotPlainError, RecursionError):
        return None


class _NotPlainError(Exception):
    """A message holds something that may change, and that nobody can compare."""


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {name: _copied(held) for name, held in value.items()}
    if kind is list:
        return [_copied(held) for held in value]
    raise _NotPlainError


def _print_of_values(message: Message) -> int | None:
    """Return a number for the values that a message shares with its wire: it always equals what it is read from.

    None if they are too long for that.
    """
    values = [*_values_in(message.blocks), *unread_in(message.wire).items()]
    try:
        written = repr(values) if values else ""
    except (RecursionError, ValueError):
        # Nested too deeply, or an integer too long to write: no provider could be sent it either.
        return None
    return hash(written) if len(written) <= _LONGEST_VALUES else None


def _values_in(blocks: Iterable[Block]) -> list[Any]:
    values: list[Any] = []
    for block in blocks:
        if isinstance(block, ToolUse) and not isinstance(block.input, str):
            values.append(block.input)
        elif isinstance(block, (Json, Opaque)):
            values.append(block.value)
        elif isinstance(block, ToolResult):
            values += _values_in(block.content)
    return values
