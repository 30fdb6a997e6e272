"""A summary put in the place of what leaves, with the facts that it left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.budget import Budget
from holdfast.compression.fact_check import Leaving, ReferredFact, leaving_from, referred_facts
from holdfast.compression.kept_facts import FactPolicy
from holdfast.compression.plans import Plan
from holdfast.compression.reduction import Reduction
from holdfast.compression.summary_messages import Known, known_in, summary_message, summary_text, without_list
from holdfast.compression.summary_request import SummaryRequest
from holdfast.errors import ContextOverflowError
from holdfast.history import History

__all__ = ["Replacement"]

_ROUNDS = 4


@dataclass(frozen=True)
class Replacement:
    """What leaves a history, what a summarizer is asked about it, and what is known of what left before."""

    history: History
    budget: Budget
    reduction: Reduction
    request: SummaryRequest
    known: Known
    policy: FactPolicy

    @cached_property
    def referred(self) -> Sequence[ReferredFact]:
        """The facts of what is to leave at first that what stays refers to. To find them takes long."""
        return referred_facts(self._leaving())

    def _leaving(self) -> Leaving:
        """Return what is said by what leaves and by what stays, if anybody wants to know."""
        if not self.policy.checks:
            return Leaving((), ())
        draft = self.reduction.draft
        dropped, left = set(draft.dropped), draft.dropped_messages
        stays = (unit for unit in self.history.units() if unit not in dropped)
        staying = (draft.message(index) for unit in stays for index in range(unit.start, unit.stop))
        known = known_in(left)
        return leaving_from(left, known.words, staying, listed=known.listed)

    def summary_of(self, answer: str) -> str:
        """Return what a summarizer answered as it may stand in a message: without a list, if one is made for it."""
        if self.policy.checks:
            answer = without_list(answer, self.known.listed)
        return summary_text(answer, self.request)

    def flaw_of(self, summary: str) -> str | None:
        """Return why a summary should not be taken, if that is so."""
        return self.policy.flaw_of(summary, self.referred)

    def with_summary(self, summary: str, reason: str) -> Plan | None:
        """Return the plan that puts a summary there, completed as far as there is room; None if there is none."""
        plan = self._fitted(summary, reason, self.policy.room(self.request.longest))
        return plan or self._fitted(summary, reason, 0)

    def _fitted(self, summary: str, reason: str, room: int) -> Plan | None:
        draft, referred = self.reduction.draft, self.referred
        plan = None
        for _ in range(_ROUNDS):
            completed = self.policy.completed(summary, referred, room=room, count=self.request.estimator.text)
            draft.put_summary(summary_message(completed.text))
            dropped = len(draft.dropped)
            try:
                plan = self.reduction.fitting(self.budget, f"{reason}{completed}")
            except ContextOverflowError:
                return None
            if len(draft.dropped) == dropped:
                break
            # More had to leave than was thought, and its facts with it.
            referred = referred_facts(self._leaving())
        return plan
