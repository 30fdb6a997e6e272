"""Compression as a plugin: before a model call, after an overflow, and after an invocation."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from holdfast.budget import Budget, require_share
from holdfast.checks import check_told
from holdfast.compression.carrying_out import CarryingOut
from holdfast.compression.config import CompressionConfig, Compressor, compressor_from
from holdfast.compression.keeping import CompressionEvent, Keeping, Reduced, ReductionFailed, SummaryFailed
from holdfast.compression.patience import Patience
from holdfast.compression.plans import Plan
from holdfast.compression.window import MOST_RETRIES, ContextWindow
from holdfast.defaults import MARKER_TOKENS, TRIGGER
from holdfast.dialects import dialect_named
from holdfast.errors import ContextOverflowError, InvalidValueError
from holdfast.hooks import AfterInvocation, AfterModelCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.names import Names
from holdfast.overflow import is_context_overflow
from holdfast.tokens import Calibration

__all__ = ["ContextCompression", "is_worth_it"]

logger = logging.getLogger(__name__)

_WORTH_IT, _SHARE_OF_LENGTH = 0.05, 0.5
_TOKENS_OF_MARKER, _LARGEST_SHARE_FOR_MARKER = 250, 10


class ContextCompression:
    """Keeps one conversation inside its window.

    *compression* is True, ``"truncate"``, ``"summarize"``, a `Truncate` or `Summarize`, or a mapping of their options
    with ``method``. *proactive* reduces before a model call from that share of the window on: True means 0.7, False
    never. *window* is used where the conversation does not say how much its model takes.

    Reducing before a call and after an invocation is best effort: what fails is logged, and the call proceeds. After
    an overflow the history is reduced and a retry asked for, at most three times, each time with less.

    With an *archive*, what leaves is stored first. If that fails it stays, unless the model refused to take it. In its
    place stands an extract of at most *marker_tokens* tokens, and at most a twelfth of the window. *names* says what
    counts as a name in it.
    """

    def __init__(
        self,
        compression: CompressionConfig = True,
        *,
        proactive: bool | float = True,
        low_water: float | None = None,
        marker_tokens: int = MARKER_TOKENS,
        names: Names | Mapping[str, Any] | None = None,
        window: int | None = None,
        dialect: str | None = None,
        count_text: Callable[[str], int] | None = None,
        calibration: Calibration | None = None,
        on_reduction: Callable[[Plan], object] | None = None,
        archive: Keeping | None = None,
    ) -> None:
        self.compressor: Compressor = compressor_from(compression)
        for name, given in (("count_text", count_text), ("on_reduction", on_reduction)):
            check_told(name, given)
        self.window = ContextWindow(
            trigger=_trigger(proactive),
            low_water=low_water,
            marker_tokens=marker_tokens,
            names=Names.from_options(names),
            window=window,
            dialect=None if dialect is None else dialect_named(dialect),
            count_text=count_text,
            calibration=calibration,
        )
        self.archive = archive
        self._on_reduction = on_reduction
        self._listeners: list[Callable[[CompressionEvent], object]] = []
        self._conversation: Conversation | None = None
        self._retries = 0
        self._began = 0.0
        self._enough_until = (0, 0)
        self._patience = Patience()

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
        with self._logged("the history could not be reduced, so the model call goes on without"):
            if self.window.is_due(conversation):
                await self._reduce_before(conversation)

    async def after_model_call(self, event: AfterModelCall) -> None:
        """Learn from the usage; after an overflow, reduce the history and ask for a retry."""
        conversation = self.own(event.conversation)
        if self.window.is_waiting:
            return
        retries, self._retries = self._retries, 0
        with self._logged("nothing could be made of the end of a model call"):
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
        with self._logged("the window could not be applied"):
            await self._apply_window(conversation)

    def listen(self, listener: Callable[[CompressionEvent], object]) -> None:
        """Tell *listener* of each reduction, and of what went wrong with one."""
        self._listeners.append(listener)

    def hold_off(self) -> None:
        """Reduce nothing until the history no longer fits the window, or is changed by others."""
        self._enough_until = (self.window.history.revision, sys.maxsize)

    def is_put_off(self, budget: Budget) -> bool:
        """Say whether too little came since the last attempt, or since an undo, to try again."""
        revision, tokens = self._enough_until
        history = self.window.history
        # A storage that does not answer would hold up each call from the limit on.
        return self._patience.lasts(history.total) or (
            history.revision == revision and history.total < min(tokens, budget.limit)
        )

    @property
    def is_held_off(self) -> bool:
        """Whether an undo is why it would be put off."""
        return self._enough_until[1] == sys.maxsize

    def plan_at_end(self, conversation: Conversation) -> Plan | None:
        """Return what is to leave at the end of an invocation, for a compressor with a `window_size`."""
        size = self.compressor.window_size
        if size is None or len(conversation.messages) <= size:
            return None
        self.window.verify(conversation)
        is_put_off = self.is_held_off and self.is_put_off(self.budget(conversation))
        if is_put_off or self._patience.lasts(self.window.history.total):
            return None
        # As with tokens, further down than needed: so that the next invocations only append.
        down_to = math.ceil(size * _SHARE_OF_LENGTH)
        return self.compressor.plan_window(self.window.history, down_to=min(down_to, size))

    def budget(self, conversation: Conversation) -> Budget:
        """Return the budget for messages, in estimated tokens, with room for a marker if there will be one."""
        return self._with_room(self.window.budget(conversation))

    def used(self, conversation: Conversation) -> float:
        """Return the share of the window that the next model call takes."""
        return self.window.used(self.own(conversation))

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        is_undone = self.is_held_off and self._enough_until[0] == self.window.history.revision
        return {**self.window.get_state(), **({"held_off": True} if is_undone else {})}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.window.restore(state)
        if state.get("held_off") is True:
            self.hold_off()

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

    async def _apply_window(self, conversation: Conversation) -> None:
        self._began = time.perf_counter()
        plan = self.plan_at_end(conversation)
        if plan is not None:
            await self._carry_out(plan, conversation)

    def _with_room(self, budget: Budget) -> Budget:
        if self.archive is None:
            return budget
        room = min(_TOKENS_OF_MARKER + budget.marker, budget.limit // _LARGEST_SHARE_FOR_MARKER)
        return replace(budget, fixed=budget.fixed + room)

    async def _plan(self, budget: Budget) -> Plan | None:
        self._began = time.perf_counter()
        try:
            plan = await self.window.planned(self.compressor.plan(self.window.history, budget))
        except ContextOverflowError as overflow:
            self._tell_failure_of(overflow.best)
            raise
        self._tell_failure_of(plan)
        return plan

    def _tell_failure_of(self, plan: Plan | None) -> None:
        if plan is not None and plan.failure is not None:
            self._tell(SummaryFailed(plan.failure))

    async def _reduce_before(self, conversation: Conversation) -> None:
        history = self.window.history
        self.window.verify(conversation)
        budget = self.budget(conversation)
        if self.is_put_off(budget):
            return
        try:
            plan = await self._plan(budget)
        except ContextOverflowError as error:
            logger.warning("the next model call may not fit: %s", error)
            self._tell(ReductionFailed(error))
            # Where system prompt and tools alone are too much, nothing that leaves would help.
            plan = error.best if budget.limit else None
        if plan is not None and is_worth_it(plan, budget):
            await self._carry_out(plan, conversation)
        # If little could be done, a summarizer is not asked again for as little, unless more than that changes.
        self._enough_until = (history.revision, history.total + int(budget.window * _WORTH_IT))

    async def _reduce_after(self, event: AfterModelCall) -> bool:
        """Make the history smaller than what did not fit. If that is impossible, the event's error says why."""
        conversation = event.conversation
        assert event.error is not None
        self.window.verify(conversation)
        budget = self._with_room(self.window.budget_after_overflow(conversation, event.error))
        try:
            plan = await self._plan(budget)
        except ContextOverflowError as overflow:
            plan = self.window.best_after_overflow(overflow, conversation)
            if plan is None:
                logger.error("after a context overflow, nothing more can leave: %s", overflow)
                self._tell(ReductionFailed(overflow))
                overflow.__cause__, event.error = event.error, overflow
        return plan is not None and await self._carry_out(plan, conversation, lose_above=budget.limit)

    async def _carry_out(self, plan: Plan, conversation: Conversation, *, lose_above: int | None = None) -> bool:
        """Store what leaves if there is an archive, then let it leave."""
        if self.archive is not None:
            carrying_out = CarryingOut(
                self.window, self.archive, conversation, self._patience, reduced=self._told, tell=self._tell
            )
            return await carrying_out.carry_out(plan, lose_above=lose_above)
        if not self.window.carry_out(plan, conversation):
            return False
        self._told(plan, "")
        return True

    def _told(self, plan: Plan, reference: str) -> None:
        if self._on_reduction is not None:
            with _harmless("on_reduction failed"):
                self._on_reduction(plan)
        self._tell(Reduced(plan, reference, time.perf_counter() - self._began, self.window.latest))

    def _tell(self, event: CompressionEvent) -> None:
        for listener in self._listeners:
            with _harmless("a listener failed"):
                listener(event)

    @contextmanager
    def _logged(self, what: str) -> Iterator[None]:
        """Log what fails, and go on: compression must not stop an agent that could have gone on without it."""
        try:
            yield
        except Exception as error:
            logger.exception("%s", what)
            self._tell(ReductionFailed(error))


@contextmanager
def _harmless(what: str) -> Iterator[None]:
    """Log what fails in the user's code, and go on."""
    try:
        yield
    except Exception:
        logger.exception("%s", what)


def _trigger(proactive: bool | float) -> float | None:
    if isinstance(proactive, bool):
        return TRIGGER if proactive else None
    require_share("proactive", proactive)
    return float(proactive)


def is_worth_it(plan: Plan, budget: Budget) -> bool:
    """Say whether a plan frees enough to break the provider's cache for, or has to be."""
    return plan.saved >= budget.window * _WORTH_IT or plan.tokens_before > budget.limit
