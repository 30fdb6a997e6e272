"""One conversation measured against its model's window."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from operator import is_
from typing import Any

from holdfast.budget import Budget, require_share
from holdfast.compression.meter import Meter
from holdfast.compression.plans import Plan, apply, check_plan
from holdfast.compression.words import in_words
from holdfast.defaults import LOW_WATER, MARKER_TOKENS, TRIGGER, WINDOW
from holdfast.dialects import Dialect
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError
from holdfast.history import History
from holdfast.hooks import Conversation
from holdfast.names import Names
from holdfast.overflow import figures_in
from holdfast.tokens import Calibration, TokenEstimator

__all__ = ["MOST_RETRIES", "ContextWindow"]

logger = logging.getLogger(__name__)

MOST_RETRIES = 3
_SMALLER_EACH_TIME, _NOT_MUCH_LESS = 0.7, 0.9


class ContextWindow:
    """Reads a conversation, says what of its window it takes, and carries plans out in place.

    *trigger* is the share of the window from which on history is to be reduced, None for never. `latest` is what the
    plan did that was carried out last, in a line.
    """

    def __init__(
        self,
        *,
        trigger: float | None,
        low_water: float | None = None,
        marker_tokens: int = MARKER_TOKENS,
        names: Names | None = None,
        window: int | None = None,
        dialect: Dialect | None = None,
        count_text: Callable[[str], int] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.trigger = trigger
        self.low_water = _low_water(low_water, trigger)
        self._window = None if window is None else Budget(window=window).window
        self._learnt: dict[str, int] = {}
        self.marker_tokens = Budget(window=1, marker_tokens=marker_tokens).marker_tokens
        estimator = TokenEstimator() if count_text is None else TokenEstimator(count_text)
        self.history = History(dialect, estimator, names)
        self.meter = Meter(self.history, calibration or Calibration())
        self.removed_message_count = 0
        self.latest = ""
        self.is_waiting = False
        self._warned = False

    def budget(self, conversation: Conversation) -> Budget:
        """Return the budget for messages, in estimated tokens."""
        return self.meter.scaled(self.budget_of_provider(conversation), conversation)

    def budget_of_provider(self, conversation: Conversation) -> Budget:
        """Return the same in the tokens that the provider counts."""
        window = self._window_of(conversation)
        return Budget(
            window=window,
            # An overflow may have said that the model takes less than was to be kept free.
            reserved=conversation.reserved if conversation.reserved < window else window // 2,
            fixed=self.meter.fixed(conversation),
            trigger=self.trigger or 1.0,
            low_water=self.low_water,
            marker_tokens=self.marker_tokens,
        )

    def request_with(self, tokens: int, conversation: Conversation) -> int:
        """Return what a request takes as the provider counts, if its messages have so many estimated tokens."""
        fixed = self.meter.fixed(conversation)
        estimated = self.history.total + fixed
        # Rounded up in whole numbers, so that what the history takes now is what the meter says.
        return -(-(tokens + fixed) * self.meter.request(conversation) // estimated) if estimated else 0

    def read(self, conversation: Conversation) -> None:
        """Take in what is new. While something about the history is waited for, it stays as it is."""
        if not self.is_waiting:
            self.history.read(conversation.messages)

    def verify(self, conversation: Conversation) -> None:
        """Do the same with a look at every message, for what others may have changed."""
        if not self.is_waiting:
            self.history.verify(conversation.messages)

    def is_due(self, conversation: Conversation) -> bool:
        """Read what is new, and say whether the trigger is reached. While a plan is waited for, nothing is due."""
        if self.is_waiting:
            return False
        self.read(conversation)
        return self.trigger is not None and self.history.total >= self.budget(conversation).trigger_at

    def budget_after_overflow(self, conversation: Conversation, error: BaseException) -> Budget:
        """Return a budget that the history does not fit, whatever had been thought of the window before."""
        sent, limit = figures_in(error)
        if sent is not None:
            self.meter.learn_total(conversation, sent)
        self._learnt[conversation.model] = limit or self._most_of_window(conversation)
        budget = self.budget(conversation)
        if self.history.total > budget.limit:
            return budget
        return replace(
            budget.below(int(self.history.total * _SMALLER_EACH_TIME)), trigger=1.0, low_water=_NOT_MUCH_LESS
        )

    def _most_of_window(self, conversation: Conversation) -> int:
        """Return the most that the window can be: what was refused, and what was found out before."""
        refused = self.meter.request(conversation)
        return min(refused, self._learnt.get(conversation.model, refused))

    def best_after_overflow(self, overflow: ContextOverflowError, conversation: Conversation) -> Plan | None:
        """Return the plan that comes nearest, if it fits the window as far as that is known.

        How much smaller than what was refused a history has to be is a guess, where the provider names no figures.
        """
        best: Plan | None = overflow.best
        return None if best is None or best.tokens_after > self.budget(conversation).limit else best

    def used(self, conversation: Conversation) -> float:
        """Read what is new, and return the share of the window that the next model call takes."""
        self.read(conversation)
        return self.meter.request(conversation) / self._window_of(conversation)

    async def planned(self, plan: Plan | Awaitable[Plan | None] | None) -> Plan | None:
        """Return *plan*, waiting for it where needed. A summarizer may use this very agent: hence `is_waiting`."""
        if inspect.isawaitable(plan):
            with self.waiting():
                plan = await plan
        check_plan(plan, len(self.history))
        return plan

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let the history be as it is while something about it is waited for."""
        self.is_waiting = True
        try:
            yield
        finally:
            self.is_waiting = False

    def carry_out(self, plan: Plan, conversation: Conversation) -> bool:
        """Change the framework's list in place. Whatever was appended since the history was read stays.

        False, and nothing changes, if somebody else put messages in or took them out meanwhile.
        """
        read = len(self.history)
        if not self._is_still_there(conversation.messages):
            logger.warning("the history is not reduced: somebody else changed it meanwhile")
            return False
        self.latest = in_words(plan, self.history.messages)
        conversation.messages[:read] = self.history.written(apply(plan, self.history.messages))
        self.history.read(conversation.messages)
        self.removed_message_count += plan.removed - plan.made_here
        logger.info("%s", plan)
        return True

    def go_on_with(self, history: History) -> None:
        """Measure another history of the same conversation from now on, one that is read already."""
        self.history = history
        self.meter = Meter(history, self.meter.calibration)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return {"removed_message_count": self.removed_message_count, "calibration": self.meter.calibration.get_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        if not isinstance(state, Mapping):
            raise InvalidTypeError(f"state must be what get_state() returned, got {type(state).__name__}")
        removed = state.get("removed_message_count")
        if not isinstance(removed, int) or isinstance(removed, bool) or removed < 0:
            raise InvalidValueError(f"the state has no count of removed messages: {removed!r:.80}")
        self.meter.calibration.restore(state.get("calibration", {}))
        self.removed_message_count = removed

    def _is_still_there(self, wires: list[Any]) -> bool:
        read = [message.wire for message in self.history.messages]
        return len(read) <= len(wires) and all(map(is_, read, wires))

    def _window_of(self, conversation: Conversation) -> int:
        """Return the window that was named, or what an overflow said of the model's if that is less."""
        named, learnt = conversation.window or self._window, self._learnt.get(conversation.model)
        if named is None or learnt is None:
            return named or learnt or self._default_window(conversation.model)
        return min(named, learnt)

    def _default_window(self, model: str) -> int:
        if not self._warned:
            self._warned = True
            which = f"the model {model!r:.80}" if model else "the model"
            logger.warning(
                "nobody said how many tokens %s takes, so %s are assumed; pass window=…", which, f"{WINDOW:,}"
            )
        return WINDOW


def _low_water(given: float | None, trigger: float | None) -> float:
    """Return what was asked for; else the usual share, or as much less as the trigger is below the usual one."""
    if given is None:
        return LOW_WATER * min((trigger or TRIGGER) / TRIGGER, 1.0)
    require_share("low_water", given)
    if trigger is not None and given > trigger:
        raise InvalidValueError(f"low_water must be at most the trigger ({trigger:g}), got {given:g}")
    return float(given)
