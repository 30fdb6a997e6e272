"""The latest messages stay."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from holdfast.compression.truncate import Truncate
from holdfast.conversation.base import ConversationManager, ProactiveCompressionConfig
from holdfast.defaults import LOW_WATER, TRIGGER, WINDOW_SIZE
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError
from holdfast.hooks import BeforeModelCall, HookRegistry

__all__ = ["SlidingWindowConversationManager"]


class SlidingWindowConversationManager(ConversationManager):
    """Keeps at most *window_size* messages, and after an overflow as many as fit.

    With *should_truncate_results*, large tool results are shortened before whole messages leave. *per_turn* also
    applies the window before each model call, or before every so many. 0 as *window_size* leaves nothing but what is
    protected once the agent has answered.
    """

    def __init__(
        self,
        window_size: int = WINDOW_SIZE,
        should_truncate_results: bool = True,
        *,
        per_turn: bool | int = False,
        protect_first: int = 0,
        protect_last: int = 0,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        window: int | None = None,
        count_text: Callable[[str], int] | None = None,
    ) -> None:
        super().__init__(proactive_compression=proactive_compression, window=window, count_text=count_text)
        _check_per_turn(per_turn)
        self._truncate = Truncate(
            window_size=window_size,
            protect_first=protect_first,
            protect_last=protect_last,
            shorten_results=should_truncate_results,
        )
        self.window_size = window_size
        self.should_truncate_results = should_truncate_results
        self.per_turn = per_turn
        self._model_calls = 0

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Act on the events of an agent."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCall, self._apply_per_turn)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return {**super().get_state(), "model_call_count": self._model_calls}

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Go on from what `get_state` returned."""
        restored = super().restore_from_session(state)
        calls = state.get("model_call_count", 0)
        self._model_calls = calls if isinstance(calls, int) and calls >= 0 else 0
        return restored

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Let the oldest messages leave until at most `window_size` are there."""
        conversation = self._read(agent)
        self._carry_out(self._truncate.plan_window(self.window.history), conversation, None)

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Let messages leave until the window and the budget are kept; after an overflow, more than that."""
        conversation = self._read(agent)
        if e is None:
            # Further down than needed, so that the next turns only append.
            down_to = math.ceil(self.window_size * LOW_WATER / TRIGGER)
            self._carry_out(self._truncate.plan_window(self.window.history, down_to=down_to), conversation, None)
        try:
            plan = self._truncate.plan(self.window.history, self._budget(conversation, e))
        except ContextOverflowError as overflow:
            plan = self._best(overflow, conversation, e)
        self._carry_out(plan, conversation, e)

    def _apply_per_turn(self, event: BeforeModelCall) -> None:
        if self.per_turn is False:
            return
        self._model_calls += 1
        if self._model_calls % int(self.per_turn) == 0:
            self.apply_management(event.conversation)


def _check_per_turn(per_turn: object) -> None:
    if not isinstance(per_turn, int):
        raise InvalidTypeError(
            f"per_turn must be True, False or a number of model calls, got {type(per_turn).__name__}"
        )
    if not isinstance(per_turn, bool) and per_turn < 1:
        raise InvalidValueError(f"per_turn must be True, False or at least 1, got {per_turn}")
