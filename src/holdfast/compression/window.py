"""One conversation measured against its model's window."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.budget import LOW_WATER, Budget, require_share
from holdfast.compression.meter import Meter
from holdfast.compression.plans import Plan, apply
from holdfast.dialects import Dialect
from holdfast.errors import InvalidValueError
from holdfast.history import History
from holdfast.hooks import Conversation
from holdfast.overflow import figures_in
from holdfast.tokens import Calibration, TokenEstimator

__all__ = ["DEFAULT_WINDOW", "ContextWindow"]

logger = logging.getLogger(__name__)

DEFAULT_WINDOW = 128_000
_SMALLER_EACH_TIME = 0.7


class ContextWindow:
    """Reads a conversation, says what of its window it takes, and carries plans out in place.

    *trigger* is the share of the window from which on history is to be reduced, None for never.
    """

    def __init__(
        self,
        *,
        trigger: float | None,
        low_water: float = LOW_WATER,
        window: int | None = None,
        dialect: Dialect | None = None,
        count_text: Callable[[str], int] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        require_share("low_water", low_water)
        self.trigger = trigger
        self.low_water = min(low_water, trigger or 1.0)
        self._window = None if window is None else Budget(window=window).window
        self.history = History(dialect, TokenEstimator() if count_text is None else TokenEstimator(count_text))
        self.meter = Meter(self.history, calibration or Calibration())
        self.removed_message_count = 0
        self._warned = False

    def budget(self, conversation: Conversation) -> Budget:
        """Return the budget for messages, in estimated tokens."""
        window = conversation.window or self._window or self._default_window()
        budget = Budget(
            window=window,
            reserved=conversation.reserved if conversation.reserved < window else 0,
            fixed=self.meter.fixed(conversation),
            trigger=self.trigger or 1.0,
            low_water=self.low_water,
        )
        return self.meter.scaled(budget, conversation)

    def is_due(self, conversation: Conversation) -> bool:
        """Read what is new, and say whether the trigger is reached."""
        self.history.read(conversation.messages)
        return self.trigger is not None and self.history.total >= self.budget(conversation).trigger_at

    def budget_after_overflow(self, conversation: Conversation, error: BaseException) -> Budget:
        """Return a budget that the history does not fit, whatever had been thought of the window before."""
        sent, limit = figures_in(error)
        if sent is not None:
            self.meter.learn_total(conversation, sent)
        if limit is not None and conversation.window is None:
            self._window = limit
        budget = self.budget(conversation)
        if self.history.total > budget.limit:
            return budget
        return replace(budget.below(int(self.history.total * _SMALLER_EACH_TIME)), trigger=1.0)

    def carry_out(self, plan: Plan, conversation: Conversation) -> None:
        """Change the framework's list in place. Whatever was appended since the history was read stays."""
        read = len(self.history)
        conversation.messages[:read] = self.history.written(apply(plan, self.history.messages))
        self.history.read(conversation.messages)
        self.removed_message_count += plan.removed - plan.made_here
        logger.info("%s", plan)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return {"removed_message_count": self.removed_message_count, "calibration": self.meter.calibration.get_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        removed = state.get("removed_message_count")
        if not isinstance(removed, int) or isinstance(removed, bool) or removed < 0:
            raise InvalidValueError(f"the state has no count of removed messages: {removed!r:.80}")
        self.removed_message_count = removed
        self.meter.calibration.restore(state.get("calibration", {}))

    def _default_window(self) -> int:
        if not self._warned:
            self._warned = True
            logger.warning(
                "nobody said how many tokens the model takes, so %s are assumed; pass window=…", f"{DEFAULT_WINDOW:,}"
            )
        return DEFAULT_WINDOW
