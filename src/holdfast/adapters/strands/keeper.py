"""What stands where Strands expects a conversation manager, while a context manager does the work."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import ConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from holdfast.adapters.strands.saved_history import damaged, read_saved
from holdfast.adapters.strands.sessions import SessionLog, has_log, steady, write_down
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError
from holdfast.manager import ContextManager
from holdfast.overflow import figures_in, is_context_overflow

__all__ = ["ContextWindowOverflowError", "SessionKeeper"]


class ContextWindowOverflowError(ContextOverflowError, ContextWindowOverflowException):
    """The conversation cannot be made to fit, and why. It is Strands' own exception too."""


class SessionKeeper(ConversationManager):
    """Keeps what a session needs to go on with the very same history. It reduces nothing itself."""

    def __init__(self, manager: ContextManager, agent: Agent) -> None:
        super().__init__()
        self.log = SessionLog()
        self._refusal: ContextWindowOverflowError | None = None
        self._manager = manager
        self._agent = weakref.ref(agent)
        self._parts: dict[str, Any] | None = None
        self._ratios: Mapping[str, float] = {}

    def apply_management(self, agent: Agent, **kwargs: Any) -> None:
        """Do nothing: the context manager acts on the events of the agent."""

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Raise the overflow that was not to be mended, with what stood in the way."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal from e
        if e is not None:
            raise e

    def refuse(self, error: BaseException, why: BaseException | None) -> None:
        """Say that an overflow is not to be mended, and why; Strands raises its own kind by way of `reduce_context`."""
        if not is_context_overflow(error):
            return
        sent, limit = figures_in(error)
        given_up = (f"the model refused a history that was made smaller several times: {error}", sent or 0, limit or 0)
        refusal = ContextWindowOverflowError(*(why.args if isinstance(why, ContextOverflowError) else given_up))
        if not isinstance(error, ContextWindowOverflowException):
            raise refusal from error
        self._refusal = refusal

    async def rewritten(self) -> None:
        """Have a history that was reduced, or put back, written down before anything else happens to it."""
        agent = self._agent()
        if agent is not None and self.log.changed(agent.messages):
            await write_down(agent)

    def refresh(self) -> None:
        """Have the state of the parts saved as it is now, and not only when the history is reduced."""
        self._parts = None

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session.

        For one with a log, it changes only when the history was reduced or the model counts otherwise: the rest is in
        the log.
        """
        agent = self._agent()
        state = {"__name__": type(self).__name__, "removed_message_count": 0}
        if agent is None:
            return state | self._manager.get_state()
        parts = self._steady_parts(agent) if has_log(agent) else self._manager.get_state()
        saved = self.log.saved(agent.messages)
        if not has_log(agent):
            return state | parts
        self.removed_message_count = saved.first
        return state | parts | saved.as_state()

    def restore_from_session(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, also from one of a conversation manager of Strands.

        Where the messages come with the state as they are, nothing more is to be done about them.
        """
        try:
            self._manager.restore(state)
        except (InvalidTypeError, InvalidValueError) as error:
            raise damaged(str(error)) from error
        agent = self._agent()
        if agent is not None and has_log(agent) and not self.log.is_open:
            saved = read_saved(state)
            self.log.restore(saved)
            self.removed_message_count = saved.first

    def _steady_parts(self, agent: Agent) -> dict[str, Any]:
        """Return the state of the parts as it was last asked for, unless it matters what became of it."""
        compression = self._manager.compression
        ratios = steady(self._ratios, compression.get_state()["calibration"] if compression else {})
        if self._parts is None or ratios is not self._ratios or self.log.changed(agent.messages):
            self._parts, self._ratios = self._manager.get_state(), ratios
        return self._parts
