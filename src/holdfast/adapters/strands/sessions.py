"""What a session manager of Strands wrote down, and what else it takes to get the very same history back.

A repository of Strands is a log of messages as they were added. On restart it hands back those from a number on. So the
messages that stand in the log as they are, up to its end, are named by the number of the first; all before them go into
the saved state: in full if they were rewritten or made, by number if they are in that part of the log. Strands writes
the state anew with every turn, so it has to be small.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from operator import attrgetter
from typing import Any

from strands import Agent
from strands.session import FileSessionManager, S3SessionManager, SnapshotSessionManager

from holdfast.adapters.strands.saved_history import Logged, SavedHistory, as_entries, damaged
from holdfast.history import goes_on

__all__ = ["SessionLog", "has_log", "session_of", "steady", "write_down"]

logger = logging.getLogger(__name__)

_NOTHING = SavedHistory([], 0, 0)
_FOR_ANY_THREAD = (FileSessionManager, S3SessionManager, SnapshotSessionManager)
_AS_GOOD_AS_SAME = 0.02
# How much of the log is read on restart, for a history of which most left: so many times its length, and some more.
_TIMES_AS_LONG, _SOME_MORE = 4, 100


class SessionLog:
    """Follows which of an agent's messages are in the log of its session, and under which number."""

    def __init__(self) -> None:
        # By the identity of a message's content, which is held with it: a pin changes only the rest.
        self._logged: dict[int, Logged] = {}
        self._next = 0
        self._latest: Any = None
        self._paired_from = 0
        self._known: tuple[list[Any], int] | None = None
        self._saved = _NOTHING
        self._restored: SavedHistory | None = None
        self._follows = False
        self.is_open = False

    def added(self, message: Any) -> None:
        """Say that a message was added, and is written down next, if anything is."""
        if not self._follows:
            return
        if _ids("toolResult", message) != _ids("toolUse", self._latest):
            # Strands repairs what it reads, so that nothing may be left of this one as it was.
            self._paired_from = self._next + 1
        self._logged[id(message["content"])] = Logged(message, self._next)
        self._latest, self._next = message, self._next + 1

    def changed(self, messages: list[Any]) -> bool:
        """Say whether anything but new messages came since `saved` was asked for."""
        if self._known is None:
            return self._follows
        known, end = self._known
        if not goes_on(known, messages):
            return True
        return [self._number_of(message) for message in messages[len(known) :]] != list(range(end, self._next))

    def saved(self, messages: list[Any]) -> SavedHistory:
        """Return how *messages* can be had again. As long as messages are only added, it is the same."""
        if self.changed(messages):
            self._saved = self._parted(messages)
            self._logged = {id(found.message["content"]): found for found in map(self._find, messages) if found}
        if self._follows:
            self._known = list(messages), self._next
        return self._saved

    def restore(self, saved: SavedHistory) -> None:
        """Go on from *saved*, as soon as Strands has read the log and `initialized` is called."""
        self._restored = saved

    def initialized(self, agent: Agent) -> None:
        """Number the messages that the agent was restored with, or written down with for the first time."""
        self.is_open, self._follows = True, session_of(agent) is not None
        saved, self._restored = self._restored or _NOTHING, None
        log = _handed_over(agent)
        if saved.first and not log:
            raise damaged(f"its log ends before message {saved.first}")
        if saved.head or saved.tail != saved.first:
            agent.messages[:] = _repaired(agent, list(saved.messages(log)))
        self._next = saved.first
        for message in log:
            self.added(message)

    def _parted(self, messages: list[Any]) -> SavedHistory:
        lowest = max(self._paired_from, self._next - _TIMES_AS_LONG * len(messages) - _SOME_MORE)
        at, tail = len(messages), self._next
        while at and tail > lowest and self._number_of(messages[at - 1]) == tail - 1:
            at, tail = at - 1, tail - 1
        head = [(message, self._find_from(lowest, message)) for message in messages[:at]]
        needed = [logged for _, logged in head if logged] + [Logged(message, tail) for message in messages[at : at + 1]]
        return SavedHistory(as_entries(head), tail, self._first_to_read(needed))

    def _first_to_read(self, needed: list[Logged]) -> int:
        """Return where to begin: with a call if its result is needed, and before the end.

        After the end, Strands would number new messages from 0, and overwrite old ones.
        """
        first = min(needed, key=attrgetter("number"), default=None)
        if first is None:
            return max(self._next - 1, 0)
        return first.number - 1 if _ids("toolResult", first.message) else first.number

    def _find_from(self, lowest: int, message: Any) -> Logged | None:
        found = self._find(message)
        return found if found is not None and found.number >= lowest else None

    def _find(self, message: Any) -> Logged | None:
        found = self._logged.get(id(message["content"]))
        return found if found is not None and found.message["content"] is message["content"] else None

    def _number_of(self, message: Any) -> int | None:
        found = self._find(message)
        return found.number if found is not None and found.message is message else None


def session_of(agent: Agent) -> Any:
    """Return the agent's session manager; None if it has none."""
    # Strands shows it nowhere in public.
    return getattr(agent, "_session_manager", None)


def has_log(agent: Agent) -> bool:
    """Say whether the agent's session is kept as a log of messages, and not as a copy of all of them each time."""
    session = session_of(agent)
    return session is not None and not isinstance(session, SnapshotSessionManager)


def steady(known: Mapping[str, float], ratios: Mapping[str, float]) -> Mapping[str, float]:
    """Return the *known* ratios of a calibration as long as none changed much: each change is written to the disk."""
    is_same = known.keys() == ratios.keys() and all(
        math.isclose(known[model], ratios[model], rel_tol=_AS_GOOD_AS_SAME) for model in known
    )
    return known if is_same else ratios


async def write_down(agent: Agent) -> None:
    """Have the session written as it is now, if it is one that is written with every message."""
    session = session_of(agent)
    if session is None or getattr(session, "_save_latest_on", "message") != "message":
        return
    if isinstance(session, _FOR_ANY_THREAD):
        await _to_its_end(asyncio.to_thread(session.sync_agent, agent))
    else:
        # As Strands itself does: one that somebody wrote may insist on its thread.
        session.sync_agent(agent)


async def _to_its_end(writing: Awaitable[None]) -> None:
    """Wait for *writing* even if cancelled: nothing must be written after what comes next."""
    task = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if (error := task.exception()) is not None:
            logger.error("the session could not be written down: %s", error)
        raise


def _handed_over(agent: Agent) -> list[Any]:
    """Return what Strands read from the log: in the agent's messages it may be repaired."""
    records = getattr(session_of(agent), "_held_records", {}).get(agent.agent_id)
    return list(agent.messages) if records is None else [record.to_message() for record in records]


def _repaired(agent: Agent, messages: list[Any]) -> list[Any]:
    repair: Callable[[list[Any]], list[Any]] | None = getattr(session_of(agent), "_fix_broken_tool_use", None)
    return messages if repair is None else repair(messages)


def _ids(kind: str, message: Any) -> set[str]:
    """Return the ids of the calls, or of the results, that a message holds."""
    return set() if message is None else {block[kind]["toolUseId"] for block in message["content"] if kind in block}
