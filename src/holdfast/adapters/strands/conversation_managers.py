"""holdfast's conversation managers, as ``Agent(conversation_manager=…)`` takes them."""

from __future__ import annotations

import weakref
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

import holdfast.conversation as core
from holdfast.adapters.strands.reading import reported_usage
from holdfast.adapters.strands.sessions import SessionLog, has_log
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

    def register_hooks(self, registry: Any, **kwargs: Any) -> None:
        """Act on the events of an agent."""
        self._log = SessionLog()
        self._events = CoreRegistry()
        super().register_hooks(self._events, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._initialized, order=HookOrder.SDK_LAST)
        registry.add_callback(MessageAddedEvent, self._added, order=HookOrder.SDK_FIRST)
        registry.add_callback(BeforeModelCallEvent, self._before_model_call, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterModelCallEvent, self._after_model_call, order=HookOrder.SDK_LAST)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session."""
        state = super().get_state()
        agent = None if self._agent is None else self._agent()
        if agent is None or not has_log(agent):
            return state
        head, offset, instead = self._log.saved(agent.messages)
        return state | {"removed_message_count": offset, "head": head, "instead": instead, "summary_message": None}

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Go on from what `get_state` returned, and return the messages to put before those of the log."""
        super().restore_from_session(state)
        return self._log.restore(state).head

    def _initialized(self, event: AgentInitializedEvent) -> None:
        if self._agent is not None and self._agent() is not event.agent:
            raise InvalidValueError(f"this {type(self).__name__} belongs to another agent already; make one for each")
        self._agent = weakref.ref(event.agent)
        self._log.initialized(event.agent)

    async def _added(self, event: MessageAddedEvent) -> None:
        self._log.added(event.message)

    async def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        await self._events.invoke(BeforeModelCall(conversation_of(event.agent)))

    async def _after_model_call(self, event: AfterModelCallEvent) -> None:
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
