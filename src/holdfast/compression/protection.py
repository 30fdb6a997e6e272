"""Which messages stay, whatever happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from holdfast.cuts import opens_a_turn
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.history import History, Unit
from holdfast.messages import Message

__all__ = ["Protection", "survives_compression"]


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The *first* and the *last* so many messages are kept, and all that are pinned, each with its whole tool pair.

    System messages are kept too, the latest message, and with *current_request* what the user asked for last, however
    many tools were called since.
    """

    first: int = 0
    last: int = 0
    current_request: bool = True

    def __post_init__(self) -> None:
        for name, value in (("protect_first", self.first), ("protect_last", self.last)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidTypeError(f"{name} must be a number of messages, got {type(value).__name__}")
            if value < 0:
                raise InvalidValueError(f"{name} must be 0 or more, got {value}; to protect both ends, set both")
        if not isinstance(self.current_request, bool):
            raise InvalidTypeError(f"current_request must be True or False, got {self.current_request!r:.80}")

    def kept_units(self, history: History) -> set[Unit]:
        """Return the units that nothing may leave out or edit."""
        # An earlier summary may stand first. It is no message of the conversation's, and will be replaced.
        given = (index for index, message in enumerate(history.messages) if message.made_as is None)
        first = islice(given, min(self.first, len(history)))
        return {history.unit_at(index) for index in (*history.kept, *first)}

    def recent_units(self, history: History, *, at_least: int = 1) -> set[Unit]:
        """Return the units at the end that stay; only when nothing else helps are results in them shortened."""
        latest = _units_of(history, len(history) - max(self.last, at_least), len(history))
        return latest | _request(history) if self.current_request and at_least else latest


def survives_compression(messages: Sequence[Message], index: int, protection: Protection) -> bool:
    """Say whether the message at *index* stays, whatever happens: for itself, or as part of a protected tool pair."""
    history = History.of(messages)
    unit = history.unit_at(range(len(messages))[index])
    return unit in protection.kept_units(history) or unit in protection.recent_units(history)


def _request(history: History) -> set[Unit]:
    """Return the unit with which a user last opened a turn, if one did."""
    for index in reversed(range(len(history))):
        message = history.messages[index]
        if opens_a_turn(message) and message.made_as is None:
            return {history.unit_at(index)}
    return set()


def _units_of(history: History, start: int, stop: int) -> set[Unit]:
    units = set()
    at, stop = max(start, 0), min(stop, len(history))
    while at < stop:
        units.add(unit := history.unit_at(at))
        at = unit.stop
    return units
