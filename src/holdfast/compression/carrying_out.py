"""Carrying a plan out: what leaves is stored first, and if that fails it stays, unless the model took no more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.compression.keeping import CompressionEvent, Keeping, NotKept
from holdfast.compression.patience import Patience, is_hanging
from holdfast.compression.plans import Plan
from holdfast.compression.portions import Portions
from holdfast.compression.window import ContextWindow
from holdfast.hooks import Conversation

__all__ = ["CarryingOut"]

logger = logging.getLogger(__name__)

_MOST_TRIES = 64


@dataclass(frozen=True)
class CarryingOut:
    """Carries plans out in one conversation, with an archive.

    *reduced* is told of each plan that was, with the reference under which what left is stored; *tell* of what failed.
    With a storage that does not answer in time there is *patience*.
    """

    window: ContextWindow
    archive: Keeping
    conversation: Conversation
    patience: Patience
    reduced: Callable[[Plan, str], None]
    tell: Callable[[CompressionEvent], None]

    async def carry_out(self, plan: Plan, *, lose_above: int | None) -> bool:
        """Store what leaves, then let it leave. What cannot be stored at once is stored in portions.

        What cannot be stored at all stays, unless the history takes more than *lose_above* tokens: then it is lost.
        """
        try:
            kept = await self._kept(plan)
        except Exception as error:
            # A storage may be anybody's, and raise anything.
            return await self._in_portions(plan, error, lose_above)
        return kept is not None and self._let_leave(kept)

    async def _kept(self, plan: Plan) -> Any:
        """Store what leaves, and note whether the storage answers."""
        budget = self.window.budget(self.conversation)
        try:
            with self.window.waiting():
                kept = await self.archive.keep(plan, self.window.history, limit=budget.limit, room=budget.marker)
        except Exception as error:
            self._note(error, budget.window)
            raise
        if kept is not None:
            self.patience.end()
        return kept

    def _note(self, error: Exception, window: int) -> None:
        if is_hanging(error):
            self.patience.begin(self.window.history.total, window)
        else:
            self.patience.end()

    def _let_leave(self, kept: Any) -> bool:
        """Let what is stored leave, unless somebody changed it meanwhile."""
        is_current = kept.is_current(self.window.history)
        if not is_current or not self.window.carry_out(kept.plan, self.conversation):
            self.archive.withdraw(kept)
            return False
        self.archive.confirm(kept)
        self.reduced(kept.plan, kept.reference)
        return True

    async def _in_portions(self, plan: Plan, error: Exception, lose_above: int | None) -> bool:
        """Let what is refused as a whole leave bit by bit, and say whether anything did."""
        portions, latest = Portions(plan, self.window.history), error
        while not self._is_enough(portions, lose_above):
            try:
                kept = await self._kept_next(portions)
            except Exception as again:
                latest = again
                portions.refuse(again)
                continue
            if kept is None:
                portions.wait()
            elif self._let_leave(kept):
                portions.leave(kept.plan)
            else:
                return portions.stored > 0
        if portions.stored:
            self._tell_of_portions(plan, error)
        rest = portions.rest()
        return (rest is not None and self._without_storing(rest, latest, lose_above)) or portions.stored > 0

    def _is_enough(self, portions: Portions, lose_above: int | None) -> bool:
        """Say whether nothing is left to try, or nothing more to be tried in this model call.

        What may be lost otherwise is worth any number of tries, but not to wait again and again.
        """
        if not portions.is_worth_a_try:
            return True
        if lose_above is not None:
            return self.patience.is_worn
        return portions.tries == _MOST_TRIES or self.patience.is_tried

    async def _kept_next(self, portions: Portions) -> Any:
        plan = portions.next()
        return None if plan is None else await self._kept(plan)

    def _tell_of_portions(self, plan: Plan, error: Exception) -> None:
        logger.warning("what leaves could not be stored at once, and leaves in portions: %r", error)
        self.tell(NotKept(plan, error, False, in_portions=True))

    def _without_storing(self, plan: Plan, error: Exception, lose_above: int | None) -> bool:
        """Let it leave if it has to; say whether it did."""
        is_needed = lose_above is not None and self.window.history.total > lose_above
        lost = self.archive.lose(plan, self.window.history) if is_needed else None
        if lost is None or not self.window.carry_out(lost.plan, self.conversation):
            logger.warning("the history is not reduced: what would leave could not be stored: %r", error)
            self.tell(NotKept(plan, error, False))
            return False
        self.archive.confirm_lost(lost)
        logger.error(
            "%s, and they could not be stored, so they are LOST (%s): the model takes no more, and the storage said %r",
            plan,
            lost.numbers,
            error,
        )
        self.tell(NotKept(plan, error, True, lost=lost.numbers))
        self.reduced(lost.plan, "")
        return True
