"""What stands where Strands expects a conversation manager, while a context manager does the work."""

from __future__ import annotations

import weakref
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import ConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from holdfast.adapters.strands.sessions import SessionLog, has_log
from holdfast.errors import ContextOverflowError
from holdfast.manager import ContextManager

__all__ = ["ContextWindowOverflowError", "SessionKeeper"]


class ContextWindowOverflowError(ContextOverflowError, ContextWindowOverflowException):
    """The conversation cannot be made to fit, and why. It is Strands' own exception too."""


class SessionKeeper(ConversationManager):
    """Keeps what a session needs to go on with the very same history. It reduces nothing itself."""

    def __init__(self, manager: ContextManager, agent: Agent) -> None:
        super().__init__()
        self.log = SessionLog()
        self.refusal: ContextOverflowError | None = None
        self._manager = manager
        self._agent = weakref.ref(agent)
        self._parts: dict[str, Any] | None = None

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Do nothing: the context manager acts on the events of the agent."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Raise the overflow that was not to be mended, with what stood in the way."""
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise ContextWindowOverflowError(*refusal.args) from e
        if e is not None:
            raise e

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session. It changes only when the history was reduced: the rest is in the log."""
        agent = self._agent()
        messages = [] if agent is None else agent.messages
        if self._parts is None or self.log.changed(messages):
            self._parts = self._manager.get_state()
        state = {"__name__": type(self).__name__, "removed_message_count": 0, **self._parts}
        if agent is None or not has_log(agent):
            return state
        head, offset, instead = self.log.saved(messages)
        self.removed_message_count = offset
        return state | {"removed_message_count": offset, "head": head, "instead": instead}

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Go on from a saved state, also from one of a conversation manager of Strands."""
        self._manager.restore(state)
        head, self.removed_message_count, _ = self.log.restore(state)
        return head
