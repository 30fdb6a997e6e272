"""Edits being collected, and made into a plan that every provider accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from holdfast.compression.plans import Drop, Edit, Insert, Plan, Rewrite
from holdfast.compression.seams import bridged, seam
from holdfast.history import History, Unit
from holdfast.messages import Message, Reasoning, Text

__all__ = ["Draft", "unreasoned"]

_NO_REASONING = "[The reasoning that stood here is no longer shown.]"


class _Sized(NamedTuple):
    message: Message
    tokens: int


class Draft:
    """Which units of a history are to leave, and which messages are to be put in the place of others."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._dropped: list[Unit] = []
        self._rewritten: dict[int, _Sized] = {}
        self._summary: Message | None = None
        self.tokens = history.total

    @property
    def dropped(self) -> Sequence[Unit]:
        """The units that leave, in the order in which they were dropped."""
        return self._dropped

    @property
    def dropped_messages(self) -> list[Message]:
        """The messages that leave, as they were."""
        dropped = sorted(self._dropped)
        return [message for unit in dropped for message in self._history.messages[unit.start : unit.stop]]

    def message(self, index: int) -> Message:
        """Return a message as it would be."""
        rewritten = self._rewritten.get(index)
        return self._history.messages[index] if rewritten is None else rewritten.message

    def drop(self, unit: Unit) -> None:
        """Let a unit leave."""
        self._dropped.append(unit)
        self.tokens -= sum(map(self._size, range(unit.start, unit.stop))) if self._rewritten else self._whole(unit)
        for index in range(unit.start, unit.stop) if self._rewritten else ():
            self._rewritten.pop(index, None)

    def rewrite(self, index: int, message: Message) -> None:
        """Put *message* in the place of the one at *index*, if it is smaller."""
        size = self._history.estimator.message(message)
        if size < (before := self._size(index)):
            self._rewritten[index] = _Sized(message, size)
            self.tokens += size - before

    def put_summary(self, summary: Message) -> None:
        """Put a summary where the first unit left."""
        self._summary = summary

    def plan(self, reason: str) -> Plan | None:
        """Return the edits with all that they entail; None if the request would not become smaller."""
        drops = list(_spans(sorted(self._dropped)))
        starts = [drop.start for drop in drops[:1]] + list(self._rewritten)
        if not starts:
            return None
        stripped = self._without_bound_reasoning(min(starts))
        rewritten = {index: sized.message for index, sized in self._rewritten.items()} | stripped
        inserts = list(self._at_seams(drops))
        rewrites = [Rewrite(index, message) for index, message in rewritten.items()]
        unordered: list[Edit] = [*inserts, *drops, *rewrites]
        edits = sorted(unordered, key=lambda edit: edit.start)
        made_here = sum(message.made_as is not None for message in self.dropped_messages)
        plan = Plan(tuple(edits), self._history.total, self._tokens_after(inserts, stripped), reason, made_here)
        return plan if plan.saved > 0 else None

    def _whole(self, unit: Unit) -> int:
        return self._history.tokens(unit.start, unit.stop)

    def _size(self, index: int) -> int:
        rewritten = self._rewritten.get(index)
        return self._history.tokens(index, index + 1) if rewritten is None else rewritten.tokens

    def _tokens_after(self, inserts: Iterable[Insert], stripped: Mapping[int, Message]) -> int:
        count = self._history.estimator.message
        saved = sum(self._size(index) - count(message) for index, message in stripped.items())
        return self.tokens + sum(count(insert.message) for insert in inserts) - saved

    def _without_bound_reasoning(self, start: int) -> dict[int, Message]:
        """Return the messages after the first edit without reasoning that the provider would refuse there."""
        dropped = {unit.start for unit in self._dropped}
        bound = self._history.bound_reasoning_after(start)
        left = (index for index in bound if self._history.unit_at(index).start not in dropped)
        return {index: unreasoned(self.message(index)) for index in left}

    def _at_seams(self, drops: Sequence[Drop]) -> Iterator[Insert]:
        """Yield what has to stand where messages left: the summary at the first place, and what the provider needs."""
        before: Message | None = None
        summary, kept_from = self._summary, 0
        for drop, following in zip_longest(drops, drops[1:]):
            kept_until = len(self._history) if following is None else following.start
            before = self._last_speaker(kept_from, drop.start) or before
            after = self._first_speaker(drop.stop, kept_until)
            kept_from = drop.stop
            if after is None and following is not None:
                # Only instructions stand between this place and the next.
                continue
            for message in self._seam(summary, before, after):
                yield Insert(drop.start, message)
            summary = None

    def _seam(self, summary: Message | None, before: Message | None, after: Message | None) -> list[Message]:
        may_repeat = self._history.dialect.may_repeat_roles
        if summary is None:
            return bridged(before, after, may_repeat=may_repeat)
        return seam(summary, before, after, may_repeat=may_repeat)

    def _first_speaker(self, start: int, stop: int) -> Message | None:
        kept = (self._history.messages[index] for index in range(start, stop))
        return next((message for message in kept if message.role != "system"), None)

    def _last_speaker(self, start: int, stop: int) -> Message | None:
        kept = (self._history.messages[index] for index in reversed(range(start, stop)))
        return next((message for message in kept if message.role != "system"), None)


def _spans(units: Iterable[Unit]) -> Iterator[Drop]:
    """Yield one drop for neighbours that leave together."""
    span: Drop | None = None
    for unit in units:
        if span is not None and span.stop == unit.start:
            span = Drop(span.start, unit.stop)
            continue
        if span is not None:
            yield span
        span = Drop(unit.start, unit.stop)
    if span is not None:
        yield span


def unreasoned(message: Message) -> Message:
    """Return *message* without the reasoning that is bound to what stood before it."""
    left = tuple(block for block in message.blocks if not (isinstance(block, Reasoning) and block.bound))
    return message.with_blocks(left or (Text(_NO_REASONING),))
