"""Compression as a plugin: before a model call, after an overflow, and after an invocation."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.budget import Budget, require_share
from holdfast.checks import check_told
from holdfast.compression.config import CompressionConfig, Compressor, compressor_from
from holdfast.compression.plans import Plan
from holdfast.compression.window import MOST_RETRIES, ContextWindow
from holdfast.defaults import TRIGGER
from holdfast.dialects import dialect_named
from holdfast.errors import ContextOverflowError, InvalidValueError
from holdfast.hooks import AfterInvocation, AfterModelCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.overflow import is_context_overflow
from holdfast.tokens import Calibration

__all__ = ["ContextCompression"]

logger = logging.getLogger(__name__)

_WORTH_IT = 0.05


class ContextCompression:
    """Keeps one conversation inside its window.

    *compression* is True, ``"truncate"``, ``"summarize"``, a `Truncate` or `Summarize`, or a mapping of their options
    with ``method``. *proactive* reduces before a model call from that share of the window on: True means 0.7, False
    never. *window* is used where the conversation does not say how much its model takes.

    Reducing before a call and after an invocation is best effort: what fails is logged, and the call proceeds. After
    an overflow the history is reduced and a retry asked for, at most three times, each time with less.
    """

    def __init__(
        self,
        compression: CompressionConfig = True,
        *,
        proactive: bool | float = True,
        low_water: float | None = None,
        window: int | None = None,
        dialect: str | None = None,
        count_text: Callable[[str], int] | None = None,
        calibration: Calibration | None = None,
        on_reduction: Callable[[Plan], object] | None = None,
    ) -> None:
        self.compressor: Compressor = compressor_from(compression)
        for name, given in (("count_text", count_text), ("on_reduction", on_reduction)):
            check_told(name, given)
        self.window = ContextWindow(
            trigger=_trigger(proactive),
            low_water=low_water,
            window=window,
            dialect=None if dialect is None else dialect_named(dialect),
            count_text=count_text,
            calibration=calibration,
        )
        self._on_reduction = on_reduction
        self._conversation: Conversation | None = None
        self._retries = 0
        self._enough_until = (0, 0)

    @property
    def removed_message_count(self) -> int:
        """How many messages of the conversation left so far."""
        return self.window.removed_message_count

    def register_hooks(self, registry: HookRegistry) -> None:
        """Act on the events of one conversation."""
        registry.add_callback(BeforeModelCall, self.before_model_call)
        registry.add_callback(AfterModelCall, self.after_model_call)
        registry.add_callback(AfterInvocation, self.after_invocation)

    async def before_model_call(self, event: BeforeModelCall) -> None:
        """Reduce the history if it takes more than the trigger's share of the window."""
        conversation = self.own(event.conversation)
        # The call may still fit, and else the provider says so.
        with _logged("the history could not be reduced, so the model call goes on without"):
            if self.window.is_due(conversation):
                await self._reduce_before(conversation)

    async def after_model_call(self, event: AfterModelCall) -> None:
        """Learn from the usage; after an overflow, reduce the history and ask for a retry."""
        conversation = self.own(event.conversation)
        if self.window.is_waiting:
            return
        retries, self._retries = self._retries, 0
        with _logged("nothing could be made of the end of a model call"):
            if event.error is None:
                self._learn(conversation, event.usage)
            elif retries < MOST_RETRIES and is_context_overflow(event.error) and await self._reduce_after(event):
                self._retries, event.retry = retries + 1, True

    async def after_invocation(self, event: AfterInvocation) -> None:
        """Leave at most `window_size` messages, if the compressor has such a bound."""
        conversation = self.own(event.conversation)
        if self.window.is_waiting:
            return
        self._retries = 0
        with _logged("the window could not be applied"):
            self._apply_window(conversation)

    def used(self, conversation: Conversation) -> float:
        """Return the share of the window that the next model call takes."""
        return self.window.used(self.own(conversation))

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return self.window.get_state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.window.restore(state)

    def own(self, conversation: Conversation) -> Conversation:
        """Belong to *conversation*, and to no other."""
        if self._conversation is None:
            self._conversation = conversation
        if self._conversation is not conversation:
            raise InvalidValueError(
                "this ContextCompression belongs to another conversation; make one for each conversation"
            )
        return conversation

    def _learn(self, conversation: Conversation, usage: Any) -> None:
        # Without any message read, the usage is of a request that nobody announced.
        if len(self.window.history):
            self.window.meter.learn(conversation, usage)

    def _apply_window(self, conversation: Conversation) -> None:
        size = self.compressor.window_size
        if size is None or len(conversation.messages) <= size:
            return
        self.window.history.verify(conversation.messages)
        # As with tokens, further down than needed: so that the next invocations only append.
        down_to = math.ceil(size * self.window.low_water / (self.window.trigger or 1.0))
        plan = self.compressor.plan_window(self.window.history, down_to=min(down_to, size))
        if plan is not None:
            self._carry_out(plan, conversation)

    async def _plan(self, budget: Budget) -> Plan | None:
        return await self.window.planned(self.compressor.plan(self.window.history, budget))

    async def _reduce_before(self, conversation: Conversation) -> None:
        history = self.window.history
        history.verify(conversation.messages)
        budget = self.window.budget(conversation)
        revision, tokens = self._enough_until
        if history.revision == revision and history.total < min(tokens, budget.limit):
            return
        try:
            plan = await self._plan(budget)
        except ContextOverflowError as error:
            logger.warning("the next model call may not fit: %s", error)
            # Where system prompt and tools alone are too much, nothing that leaves would help.
            plan = error.best if budget.limit else None
        if plan is not None and _is_worth_it(plan, budget):
            self._carry_out(plan, conversation)
        # If little could be done, a summarizer is not asked again for as little, unless more than that changes.
        self._enough_until = (history.revision, history.total + int(budget.window * _WORTH_IT))

    async def _reduce_after(self, event: AfterModelCall) -> bool:
        """Make the history smaller than what did not fit. If that is impossible, the event's error says why."""
        conversation = event.conversation
        assert event.error is not None
        self.window.history.verify(conversation.messages)
        try:
            plan = await self._plan(self.window.budget_after_overflow(conversation, event.error))
        except ContextOverflowError as overflow:
            plan = self.window.best_after_overflow(overflow, conversation)
            if plan is None:
                logger.error("after a context overflow, nothing more can leave: %s", overflow)
                overflow.__cause__, event.error = event.error, overflow
        return plan is not None and self._carry_out(plan, conversation)

    def _carry_out(self, plan: Plan, conversation: Conversation) -> bool:
        if not self.window.carry_out(plan, conversation):
            return False
        if self._on_reduction is not None:
            with _logged("on_reduction failed"):
                self._on_reduction(plan)
        return True


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """Log what fails, and go on: compression must not stop an agent that could have gone on without it."""
    try:
        yield
    except Exception:
        logger.exception("%s", what)


def _trigger(proactive: bool | float) -> float | None:
    if isinstance(proactive, bool):
        return TRIGGER if proactive else None
    require_share("proactive", proactive)
    return float(proactive)


def _is_worth_it(plan: Plan, budget: Budget) -> bool:
    """Say whether a plan frees enough to break the provider's cache for, or has to be."""
    return plan.saved >= budget.window * _WORTH_IT or plan.tokens_before > budget.limit
