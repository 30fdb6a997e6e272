"""A summary put in the place of what leaves, followed by an extract of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from holdfast.budget import Budget
from holdfast.compression.plans import Plan
from holdfast.compression.reduction import Reduction
from holdfast.compression.summary_messages import summary_message, summary_text
from holdfast.compression.summary_request import SummaryRequest
from holdfast.errors import ContextOverflowError
from holdfast.extracts import extract_removed
from holdfast.history import History
from holdfast.messages import Message, text_of

__all__ = ["Replacement"]

_ROUNDS = 4


@dataclass(frozen=True)
class Replacement:
    """What leaves a history, and what a summarizer is asked about it.

    *enough_facts* is the share of the names which later messages use that a summary must hold.
    """

    history: History
    budget: Budget
    reduction: Reduction
    request: SummaryRequest
    enough_facts: float

    def summary_of(self, answer: str) -> str:
        """Return what a summarizer answered as it may stand in a message."""
        return summary_text(answer, self.request)

    def flaw_of(self, summary: str) -> str | None:
        """Return why a summary should not be taken, if that is so."""
        held = sum(name in summary for name in self._referred) if self.enough_facts else 0
        if held >= self.enough_facts * len(self._referred):
            return None
        return f"its summary held {held:,} of {len(self._referred):,} names that are still used"

    def with_summary(self, summary: str, reason: str) -> Plan | None:
        """Return the plan that puts a summary there, with an extract if there is room; None if there is none."""
        return self._fitted(summary, reason, self.budget.marker) or self._fitted(summary, reason, 0)

    @cached_property
    def _referred(self) -> set[str]:
        """The names in what is to leave that stand in what stays, too."""
        names = self.history.names
        used = names.of("\n".join(map(text_of, self._staying())), most=None)
        left = names.of("\n".join(map(text_of, self.request.messages)), most=None)
        return {*used} & {*left}

    def _staying(self) -> Iterator[Message]:
        draft = self.reduction.draft
        dropped = set(draft.dropped)
        stays = (unit for unit in self.history.units() if unit not in dropped)
        return (draft.message(index) for unit in stays for index in range(unit.start, unit.stop))

    def _fitted(self, summary: str, reason: str, room: int) -> Plan | None:
        draft, history = self.reduction.draft, self.history
        plan = None
        for _ in range(_ROUNDS):
            dropped = draft.dropped_messages
            count_text = history.estimator.text
            extract = extract_removed(dropped, self._staying(), room, names=history.names, count_text=count_text)
            draft.put_summary(summary_message(summary, extract))
            try:
                plan = self.reduction.fitting(self.budget, reason)
            except ContextOverflowError:
                return None
            if len(draft.dropped_messages) == len(dropped):
                break
            # More had to leave than was thought, and is to be in the extract.
        return plan
