"""The steps in which a history becomes smaller, from the one that costs least to the last that helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.budget import Budget
from holdfast.compression.draft import Draft, unreasoned
from holdfast.compression.plans import Plan
from holdfast.compression.protection import Protection
from holdfast.compression.seams import bridge
from holdfast.compression.shortening import shorten_largest, shorten_to_fit
from holdfast.cuts import opens_a_turn
from holdfast.errors import ContextOverflowError
from holdfast.history import History, Unit
from holdfast.messages import SUMMARY

__all__ = ["Reduction"]


class Reduction:
    """One attempt to bring a history down to a budget: shorten old results, drop old messages, shorten new results."""

    def __init__(
        self, history: History, protection: Protection, *, shortens: bool = True, keeps_latest: bool = True
    ) -> None:
        self._history = history
        self._protection = protection
        self._shortens = shortens
        self._at_least = int(keeps_latest)
        self.draft = Draft(history)
        self._protect(protection)

    def _protect(self, protection: Protection) -> None:
        self._kept = protection.kept_units(self._history)
        self._recent = protection.recent_units(self._history, at_least=self._at_least) - self._kept
        self._old = [unit for unit in self._history.units() if unit not in self._kept and unit not in self._recent]
        self._next = 0

    def make_room(self, budget: Budget) -> None:
        """If what stays would not fit by itself, protect less of what a user said in a row, then shorten results in it.

        Else all that is old would leave in vain. A quarter of what there is room for is left to it.
        """
        if self._tokens_that_stay() > budget.limit:
            self._protect(replace(self._protection, in_a_row=1))
        floor = self._tokens_that_stay()
        if floor > budget.limit:
            for_old = min(self.draft.tokens - floor, budget.target // 4)
            self.shorten_recent_results(self.draft.tokens - floor + budget.target - for_old)

    def target(self, budget: Budget) -> int:
        """Return how far down to go: to the low-water mark, unless what stays takes more than that already.

        Then what may leave need not leave all at once; half of the room that is left beside what stays is used.
        """
        floor = self._tokens_that_stay()
        if floor <= budget.target:
            return budget.target
        return min((floor + (budget.trigger_at if floor < budget.trigger_at else budget.limit)) // 2, budget.limit)

    def _tokens_that_stay(self) -> int:
        """Return the tokens of what nothing lets leave, without the reasoning that leaves with any edit."""
        history, stays = self._history, self._kept | self._recent
        bound = (index for index in history.bound_reasoning_after(0) if history.unit_at(index) in stays)
        leaving = sum(
            history.tokens(index, index + 1) - history.estimator.message(unreasoned(history.messages[index]))
            for index in bound
        )
        saved = history.total - self.draft.tokens
        return sum(history.tokens(unit.start, unit.stop) for unit in stays) - leaving - saved

    @property
    def old_messages(self) -> int:
        """How many messages may leave."""
        return sum(unit.stop - unit.start for unit in self._old)

    def shorten_old_results(self, target: int) -> None:
        """Shorten large tool results among what may leave, until *target* tokens are reached."""
        if not self._shortens or self.draft.tokens <= target:
            return
        stays = self._kept | self._recent
        large = self._history.large_results
        shorten_largest(
            self.draft, self._history, (index for index in large if self._history.unit_at(index) not in stays), target
        )

    def drop_oldest(self, target: int, *, at_least: int = 1) -> None:
        """Let the oldest leave until *target* tokens are reached, and at least so many messages.

        What holdfast put there itself, such as a summary, leaves only with something that it did not.
        """
        removed = 0
        if self.draft.tokens <= target or not any(map(self._originals, self._old)):
            return
        target -= self._tokens_for_seams()
        while self._next < len(self._old) and (self.draft.tokens > target or removed < at_least):
            removed += self._originals(self._drop_next())
        self._prefer_to_open_a_turn()

    def drop_to_length(self, length: int) -> None:
        """Let the oldest leave until so many messages are left. A summary, which stands for many, stays."""
        surplus = len(self._history) - length
        self._old = [unit for unit in self._old if self._history.messages[unit.start].made_as != SUMMARY]
        while self._next < len(self._old) and surplus > 0:
            unit = self._drop_next()
            surplus -= unit.stop - unit.start
        self._prefer_to_open_a_turn()

    def let_markers_leave(self) -> None:
        """Let what says that messages left go with the next that do: one that stands for all is put in its place."""
        if not any(map(self._originals, self.draft.dropped)):
            return
        rest = self._old[self._next :]
        for unit in filter(self._is_marker, rest):
            self.draft.drop(unit)
        self._old[self._next :] = [unit for unit in rest if not self._is_marker(unit)]

    def _is_marker(self, unit: Unit) -> bool:
        messages = self._history.messages[unit.start : unit.stop]
        return all(message.made_as not in (None, SUMMARY) for message in messages)

    def drop_one_more(self) -> bool:
        """Let the oldest that is left leave; False if nothing may."""
        if self._next >= len(self._old):
            return False
        self._drop_next()
        return True

    def shorten_recent_results(self, target: int) -> None:
        """Shorten the largest tool results of what stays only for being recent."""
        if not self._shortens or self.draft.tokens <= target:
            return
        indices = [index for unit in sorted(self._recent) for index in range(unit.start, unit.stop)]
        shorten_to_fit(self.draft, self._history, indices, target)

    def fitting(self, budget: Budget, reason: str) -> Plan | None:
        """Return the plan, after whatever it takes to stay within the budget's limit.

        Raises ContextOverflowError, with the best plan there is, if nothing more can go.
        """
        self.let_markers_leave()
        plan = self.draft.plan(reason)
        while _after(plan, self._history) > budget.limit and self.drop_one_more():
            plan = self.draft.plan(reason)
        if _after(plan, self._history) > budget.limit:
            self.shorten_recent_results(budget.trigger_at)
            plan = self.draft.plan(reason)
        if _after(plan, self._history) > budget.limit:
            self.shorten_recent_results(0)
            plan = self.draft.plan(reason)
        if (after := _after(plan, self._history)) > budget.limit:
            raise self._overflow(after, budget, plan)
        return plan

    def _tokens_for_seams(self) -> int:
        """Return what may have to be put where messages leave: between what is kept, and once before all."""
        return (len(self._kept) + 2) * self._history.estimator.message(bridge("user"))

    def _originals(self, unit: Unit) -> int:
        return sum(message.made_as is None for message in self._history.messages[unit.start : unit.stop])

    def _drop_next(self) -> Unit:
        unit = self._old[self._next]
        self._next += 1
        self.draft.drop(unit)
        return unit

    def _prefer_to_open_a_turn(self) -> None:
        """Go on to where a user speaks, if all before it leaves and that does not cost half of what is left."""
        if not self.draft.dropped or any(unit.stop <= self.draft.dropped[-1].stop for unit in self._kept_speakers()):
            return
        skipped: list[Unit] = []
        for unit in self._old[self._next :]:
            if opens_a_turn(self._history.messages[unit.start]):
                break
            skipped.append(unit)
        else:
            return
        cost = sum(self._history.tokens(unit.start, unit.stop) for unit in skipped)
        if cost <= self.draft.tokens // 2:
            for _ in skipped:
                self._drop_next()

    def _kept_speakers(self) -> Sequence[Unit]:
        return [unit for unit in self._kept if self._history.messages[unit.start].role != "system"]

    def _overflow(self, after: int, budget: Budget, best: Plan | None) -> ContextOverflowError:
        history, dropped = self._history, {unit.start for unit in self.draft.dropped}
        left = [unit for unit in history.units() if unit.start not in dropped]
        largest = max(left, key=lambda unit: history.tokens(unit.start, unit.stop), default=Unit(0, 0))
        protected = sum(unit.stop - unit.start for unit in self._kept | self._recent)
        size = history.tokens(largest.start, largest.stop)
        return ContextOverflowError(
            f"the context does not fit: {after:,} tokens of messages are left, and {budget.limit:,} fit (a window of "
            f"{budget.window:,}, {budget.reserved:,} reserved for the answer, {budget.fixed:,} for system prompt and "
            f"tools). {protected:,} messages are protected; the largest part left is messages {largest.start} to "
            f"{largest.stop - 1} with {size:,} tokens. Protect or pin fewer messages, shorten the system prompt or the "
            "tools, or use a model with a larger window",
            after,
            budget.limit,
            best,
        )


def _after(plan: Plan | None, history: History) -> int:
    return history.total if plan is None else plan.tokens_after
