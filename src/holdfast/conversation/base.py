"""What every conversation manager does."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypedDict

from holdfast.budget import Budget, require_share
from holdfast.compression.plans import Plan
from holdfast.compression.window import MOST_RETRIES, ContextWindow
from holdfast.conversation.agents import conversation_of
from holdfast.defaults import TRIGGER
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError
from holdfast.hooks import AfterModelCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.overflow import is_context_overflow

__all__ = ["ConversationManager", "ProactiveCompressionConfig"]

logger = logging.getLogger(__name__)


class ProactiveCompressionConfig(TypedDict, total=False):
    """When to compress before a model call."""

    compression_threshold: float
    """The share of the window from which on, above 0 and up to 1. Without it, 0.7."""


class ConversationManager(ABC):
    """Keeps the history of an agent, anything with a list of ``messages``, within bounds, changing it in place.

    *proactive_compression* reduces the history before a model call: True from 0.7 of the window on, a mapping with
    ``compression_threshold`` from that share on, False or None never. It is best effort: what fails is logged, and the
    call proceeds. After an overflow, `reduce_context` is called with the error; a loop that fires `AfterModelCall` need
    not call it. *window* is how many tokens the model takes, where the agent does not say.
    """

    def __init__(
        self,
        *,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        window: int | None = None,
        count_text: Callable[[str], int] | None = None,
    ) -> None:
        self.window = ContextWindow(trigger=_threshold(proactive_compression), window=window, count_text=count_text)
        self._retries = 0

    @property
    def removed_message_count(self) -> int:
        """How many messages of users, models and tools left so far; summaries are not counted."""
        return self.window.removed_message_count

    @removed_message_count.setter
    def removed_message_count(self, count: int) -> None:
        self.window.removed_message_count = count

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Act on the events of an agent. Whoever overrides it must call it."""
        registry.add_callback(BeforeModelCall, self._compress_proactively)
        registry.add_callback(AfterModelCall, self._recover)

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Go on from what `get_state` returned, and return the messages to put before the agent's, if any."""
        if not isinstance(state, Mapping) or state.get("__name__") != type(self).__name__:
            name = state.get("__name__") if isinstance(state, Mapping) else state
            raise InvalidValueError(f"this is not the state of a {type(self).__name__}: {name!r:.80}")
        self.window.restore(state)
        return None

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return {"__name__": type(self).__name__, **self.window.get_state()}

    @abstractmethod
    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Bring the history of *agent* within bounds after it answered."""

    @abstractmethod
    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Make the history of *agent* smaller.

        With *e*, the overflow that happened, it must fit afterwards, or *e* is raised. Without, it may stay as it is.
        """

    def _compress_proactively(self, event: BeforeModelCall) -> Any:
        try:
            if self.window.is_due(event.conversation):
                self.reduce_context(event.conversation)
        except Exception:
            # Best effort: the call may still fit, and else the provider says so.
            logger.exception("the history could not be reduced, so the model call goes on without")

    def _recover(self, event: AfterModelCall) -> Any:
        """Learn from the usage; after an overflow, reduce the history and ask for a retry."""
        if (error := self._overflow_to_recover_from(event)) is not None:
            with self._retry_unless_refused(event):
                self.reduce_context(event.conversation, error)

    def _overflow_to_recover_from(self, event: AfterModelCall) -> Exception | None:
        if self.window.is_waiting:
            return None
        if event.error is None:
            self._retries = 0
            self.window.meter.learn(event.conversation, event.usage)
        if is_context_overflow(event.error) and isinstance(event.error, Exception) and self._retries < MOST_RETRIES:
            return event.error
        self._retries = 0
        return None

    @contextmanager
    def _retry_unless_refused(self, event: AfterModelCall) -> Iterator[None]:
        """Ask for a retry if what is done here succeeds; else the overflow stays as it came."""
        try:
            yield
        except Exception as error:
            logger.error("after a context overflow, the history could not be reduced: %s", error)
            self._retries = 0
        else:
            self._retries, event.retry = self._retries + 1, True

    def _read(self, agent: Any) -> Conversation:
        conversation = conversation_of(agent)
        self.window.history.verify(conversation.messages)
        return conversation

    def _budget(self, conversation: Conversation, e: Exception | None) -> Budget:
        return self.window.budget(conversation) if e is None else self.window.budget_after_overflow(conversation, e)

    def _best(self, overflow: ContextOverflowError, conversation: Conversation, e: Exception | None) -> Plan | None:
        """Return the best there is; after an overflow, if that cannot fit, raise it, and say what is left."""
        if e is None:
            logger.warning("the history cannot be reduced enough: %s", overflow)
            best: Plan | None = overflow.best
            return best
        if (best := self.window.best_after_overflow(overflow, conversation)) is None:
            raise e from overflow
        return best

    def _carry_out(self, plan: Plan | None, conversation: Conversation, e: Exception | None) -> None:
        """Apply a plan. After an overflow there must be one."""
        done = plan is not None and self.window.carry_out(plan, conversation)
        if e is not None and not done:
            raise e


def _threshold(given: object) -> float | None:
    if given is None or isinstance(given, bool):
        return TRIGGER if given else None
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            "proactive_compression must be True, False, None or {'compression_threshold': share}, "
            f"got {type(given).__name__}"
        )
    unknown = [name for name in given if name != "compression_threshold"]
    if unknown:
        raise InvalidValueError(
            f"unknown option of proactive_compression: {unknown[0]!r}; allowed is 'compression_threshold'"
        )
    threshold = given.get("compression_threshold", TRIGGER)
    require_share("compression_threshold", threshold)
    return float(threshold)
