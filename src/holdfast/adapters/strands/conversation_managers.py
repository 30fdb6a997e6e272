"""holdfast's conversation managers, as ``Agent(conversation_manager=…)`` takes them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import ConversationManager as StrandsConversationManager
from strands.hooks import (
    AfterModelCallEvent,
    AgentInitializedEvent,
    BeforeModelCallEvent,
    HookOrder,
    MessageAddedEvent,
)
from strands.middleware import InvokeModelStage

import holdfast.conversation as core
from holdfast.adapters.strands.reading import reported_usage
from holdfast.adapters.strands.saved_history import read_saved
from holdfast.adapters.strands.sessions import SessionLog, has_log, steady, write_down
from holdfast.adapters.strands.turn_taking import take_turns
from holdfast.conversation.agents import conversation_of
from holdfast.errors import InvalidValueError
from holdfast.hooks import AfterModelCall, BeforeModelCall
from holdfast.hooks import HookRegistry as CoreRegistry

__all__ = [
    "ConversationManager",
    "NullConversationManager",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
]


class ConversationManager(core.ConversationManager, StrandsConversationManager):
    """Turns the hooks of one agent into events, and keeps its history for a session, whatever left from where."""

    _agent: weakref.ref[Agent] | None = None
    _ratios: Mapping[str, float] = {}
    _restored: Mapping[str, Any] | None = None

    def register_hooks(self, registry: Any, **kwargs: Any) -> None:
        """Act on the events of an agent."""
        self._log = SessionLog()
        self._events = CoreRegistry()
        super().register_hooks(self._events, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._belong_to, order=HookOrder.SDK_FIRST)
        registry.add_callback(AgentInitializedEvent, self._initialized, order=HookOrder.SDK_LAST)
        registry.add_callback(MessageAddedEvent, self._added, order=HookOrder.SDK_FIRST)
        registry.add_callback(BeforeModelCallEvent, self._before_model_call, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterModelCallEvent, self._after_model_call, order=HookOrder.SDK_LAST)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session."""
        state = super().get_state()
        agent = None if self._agent is None else self._agent()
        if agent is None:
            return state
        saved = self._log.saved(agent.messages)
        if not has_log(agent):
            return state
        self._ratios = steady(self._ratios, state["calibration"])
        kept = {"calibration": self._ratios, "removed_in_all": self.removed_message_count, "summary_message": None}
        return state | kept | saved.as_state()

    def restore_from_session(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        super().restore_from_session(state)
        self._restored = state
        agent = None if self._agent is None else self._agent()
        if agent is None or self._log.is_open or not has_log(agent):
            self._count_on()
        else:
            self._log.restore(read_saved(state))

    def _count_on(self) -> None:
        """Go on counting what left, in the place of which the state names where in the log to begin."""
        if self._restored is not None and "removed_in_all" in self._restored:
            self.window.restore({**self._restored, "removed_message_count": self._restored["removed_in_all"]})
        self._restored = None

    def _belong_to(self, event: AgentInitializedEvent) -> None:
        if self._agent is not None and self._agent() is not event.agent:
            raise InvalidValueError(f"this {type(self).__name__} belongs to another agent already; make one for each")
        self._agent = weakref.ref(event.agent)

    def _initialized(self, event: AgentInitializedEvent) -> None:
        event.agent.add_middleware(InvokeModelStage.Input, take_turns)
        self._log.initialized(event.agent)
        self._count_on()

    async def _added(self, event: MessageAddedEvent) -> None:
        self._log.added(event.message)

    async def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        if event.cancel:
            return
        await self._events.invoke(BeforeModelCall(conversation_of(event.agent)))
        if self._log.changed(event.agent.messages):
            await write_down(event.agent)

    async def _after_model_call(self, event: AfterModelCallEvent) -> None:
        if event.exception is not None and event.retry:
            # Somebody knows a better way already.
            return
        usage = None if event.stop_response is None else reported_usage(event.stop_response.message)
        told = AfterModelCall(conversation_of(event.agent), usage=usage, error=event.exception)
        await self._events.invoke(told)
        event.retry = event.retry or told.retry


class NullConversationManager(ConversationManager, core.NullConversationManager):
    """`holdfast.conversation.NullConversationManager` for Strands."""


class SlidingWindowConversationManager(ConversationManager, core.SlidingWindowConversationManager):
    """`holdfast.conversation.SlidingWindowConversationManager` for Strands."""


class SummarizingConversationManager(ConversationManager, core.SummarizingConversationManager):
    """`holdfast.conversation.SummarizingConversationManager` for Strands."""
