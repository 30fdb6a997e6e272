"""What a session manager of Strands wrote down, and what else it takes to get the very same history back.

A repository of Strands is a log of messages as they were added. On restart it hands back those from a number on, behind
whatever its conversation manager puts in front. So the messages that stand in the log as they are, up to its end, are
named by the number of the first; all before them go into the saved state: rewritten ones, summaries, pins, and those
that were kept while others around them left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from strands import Agent
from strands.session import SnapshotSessionManager

from holdfast.errors import InvalidValueError
from holdfast.history import goes_on

__all__ = ["SavedHistory", "SessionLog"]


class SavedHistory(NamedTuple):
    """A history as *head* and the log from number *offset* on, of which *instead* may replace the first message.

    The log is never named by its end: Strands would number new messages from 0 then, and overwrite old ones.
    """

    head: list[Any]
    offset: int
    instead: list[Any] | None


class SessionLog:
    """Follows which of an agent's messages are in the log of its session, and under which number."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[Any, int]] = {}
        self._next = 0
        self._known: list[Any] | None = None
        self._saved = SavedHistory([], 0, None)
        self._restored: SavedHistory | None = None

    def added(self, message: Any) -> None:
        """Say that a message was added, and is written down next."""
        self._numbers[id(message)] = (message, self._next)
        self._next += 1

    def changed(self, messages: list[Any]) -> bool:
        """Say whether anything but new messages came since `saved` was asked for."""
        if self._known is None or not goes_on(self._known, messages):
            return True
        new = messages[len(self._known) :]
        return any(self._number_of(message) is None for message in new)

    def saved(self, messages: list[Any]) -> SavedHistory:
        """Return how *messages* can be had again. As long as messages are only added, it is the same."""
        if self.changed(messages):
            self._saved = self._parted(messages)
            self._numbers = {id(message): entry for message in messages if (entry := self._entry(message)) is not None}
        self._known = list(messages)
        return self._saved

    def restore(self, state: Mapping[str, Any]) -> SavedHistory:
        """Return what a saved state says. The log's own part is handed over by Strands, before `initialized`."""
        self._restored = _read(state)
        return self._restored

    def initialized(self, agent: Agent) -> None:
        """Number the messages that the agent was restored with, or written down with for the first time."""
        head, offset, instead = self._restored or SavedHistory([], 0, None)
        self._restored, self._numbers, self._known = None, {}, None
        logged = agent.messages[len(head) :]
        end = _end_of_log(agent, offset + len(logged))
        if offset + len(logged) == end:
            self._next = offset
            for message in logged:
                self.added(message)
        self._next = end
        if instead is not None and logged:
            agent.messages[len(head) : len(head) + 1] = instead

    def _parted(self, messages: list[Any]) -> SavedHistory:
        at, number = len(messages), self._next
        while at and self._number_of(messages[at - 1]) == number - 1:
            at, number = at - 1, number - 1
        if at < len(messages) or not self._next:
            return SavedHistory(messages[:at], number, None)
        return SavedHistory(messages[:-1], number - 1, messages[-1:])

    def _entry(self, message: Any) -> tuple[Any, int] | None:
        entry = self._numbers.get(id(message))
        return entry if entry is not None and entry[0] is message else None

    def _number_of(self, message: Any) -> int | None:
        entry = self._entry(message)
        return None if entry is None else entry[1]


def has_log(agent: Agent) -> bool:
    """Say whether the agent's session is kept as a log of messages, and not as a copy of all of them each time."""
    session = agent._session_manager
    return session is not None and not isinstance(session, SnapshotSessionManager)


def _end_of_log(agent: Agent, supposed: int) -> int:
    """Return the number of the next message. Strands repairs what it restores, so counting alone may deceive."""
    latest = getattr(agent._session_manager, "_latest_agent_message", {}).get(agent.agent_id)
    return supposed if latest is None else latest.message_id + 1


def _read(state: Mapping[str, Any]) -> SavedHistory:
    head, offset, instead = state.get("head", []), state.get("removed_message_count", 0), state.get("instead")
    for name, messages in (("head", head), ("instead", instead or [])):
        if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
            raise InvalidValueError(f"the session's state is damaged: {name} must be a list of messages")
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise InvalidValueError(f"the session's state is damaged: removed_message_count is {offset!r:.80}")
    if "summary_message" in state and state["summary_message"] is not None:
        # A conversation manager of Strands wrote it, before this one came.
        head = [state["summary_message"], *head]
    return SavedHistory(head, offset, instead)
