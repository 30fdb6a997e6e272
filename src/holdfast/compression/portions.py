"""A plan in portions: a storage may refuse at once what it takes bit by bit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import NamedTuple

from holdfast.compression.draft import Draft
from holdfast.compression.plans import Drop, Insert, Plan, Rewrite
from holdfast.compression.rationing import Rationing
from holdfast.errors import InvalidValueError, TooLargeError
from holdfast.history import History, Unit
from holdfast.messages import SUMMARY, Message

__all__ = ["Portions"]


class _Step(NamedTuple):
    """What leaves together, from this place on, or the message that is put there."""

    start: int
    rewritten: Message | None = None


class Portions:
    """What is left to do of a plan that was refused as a whole, in portions as large as the storage takes them."""

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history
        self._steps = dict(enumerate(_steps_of(plan, history)))
        self._rationing = Rationing(len(self._steps))
        self._summary = _summary_in(plan)
        self.stored = self.tries = 0

    @property
    def is_worth_a_try(self) -> bool:
        """Whether there is a next portion."""
        return bool(self._rationing.portion)

    def next(self) -> Plan | None:
        """Return a plan for the next portion; None if that alone would gain nothing. The last has the summary."""
        portion = self._rationing.portion
        with_summary = self._planned(portion, self._summary) if self._rationing.is_last else None
        return with_summary or self._planned(portion, None)

    def rest(self) -> Plan | None:
        """Return a plan for all that is left; None if that is nothing, or would gain nothing."""
        return self._planned(self._steps, self._summary) if self.stored else self._plan

    def leave(self, carried_out: Plan) -> None:
        """Go on after the next portion, which left with that plan."""
        moved, gone = _moves(carried_out), set(self._rationing.portion)
        left = ((number, step) for number, step in self._steps.items() if number not in gone)
        self._steps = {number: step._replace(start=moved(step.start)) for number, step in left}
        if _summary_in(carried_out) is not None:
            self._summary = None
        self._rationing.store()
        self.stored, self.tries = self.stored + 1, self.tries + 1

    def refuse(self, error: Exception) -> None:
        """Go on with less, or with others, after the next portion was refused."""
        self.tries += 1
        self._rationing.refuse(is_to_blame=isinstance(error, (TooLargeError, InvalidValueError)))

    def wait(self) -> None:
        """Go on with others, as so little is not worth a marker."""
        self._rationing.wait()

    def _planned(self, numbers: Iterable[int], summary: Message | None) -> Plan | None:
        draft, history = Draft(self._history), self._history
        for step in map(self._steps.__getitem__, numbers):
            if step.rewritten is None:
                draft.drop(history.unit_at(step.start))
            else:
                draft.rewrite(step.start, step.rewritten)
        if draft.dropped:
            for unit in filter(lambda unit: self._gives_way(unit, summary), list(history.units())):
                draft.drop(unit)
        if summary is not None:
            draft.put_summary(summary)
        return draft.plan(self._plan.reason)

    def _gives_way(self, unit: Unit, summary: Message | None) -> bool:
        """Say whether something that holdfast put there is replaced: a marker always, a summary only by another."""
        made_as = self._history.messages[unit.start].made_as
        return made_as is not None and (made_as != SUMMARY or summary is not None)


def _summary_in(plan: Plan) -> Message | None:
    new = (edit.message for edit in plan.edits if isinstance(edit, Insert))
    return next((message for message in new if message.made_as == SUMMARY), None)


def _steps_of(plan: Plan, history: History) -> list[_Step]:
    rewritten = [_Step(edit.start, edit.message) for edit in plan.edits if isinstance(edit, Rewrite)]
    drops = (edit for edit in plan.edits if isinstance(edit, Drop))
    units = sorted({history.unit_at(place) for drop in drops for place in range(drop.start, drop.stop)})
    dropped = [_Step(unit.start) for unit in units if history.messages[unit.start].made_as is None]
    return sorted([*rewritten, *dropped], key=lambda step: step.start)


def _moves(plan: Plan) -> Callable[[int], int]:
    """Return what tells where a message is after a plan was carried out, by where it was before."""
    edits = [edit for edit in plan.edits if not isinstance(edit, Rewrite)]
    starts = [edit.start for edit in edits]
    moves = list(accumulate(1 if isinstance(edit, Insert) else edit.start - edit.stop for edit in edits))
    return lambda place: place + (moves[passed - 1] if (passed := bisect_right(starts, place)) else 0)
