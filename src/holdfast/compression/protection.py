"""Which messages stay, whatever happens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.checks import check_flag
from holdfast.cuts import answers, opens_a_turn
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.history import History, Unit
from holdfast.messages import Message, Text

__all__ = ["Protection", "survives_compression"]


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The *first* and the *last* so many messages are kept, and all that are pinned, each with its whole tool pair.

    System messages are kept too, and the latest message. With *task*, the first message of the user stays, which says
    what all is about; a `ContextManager` takes None for True. With *current_request*, the latest of the user stays,
    however many tools were called since. Up to *in_a_row* messages of the user count as one, as far as they fit.
    """

    first: int = 0
    last: int = 0
    task: bool | None = None
    current_request: bool = True
    in_a_row: int = 5

    def __post_init__(self) -> None:
        for name, value, least in (
            ("protect_first", self.first, 0),
            ("protect_last", self.last, 0),
            ("in_a_row", self.in_a_row, 1),
        ):
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidTypeError(f"{name} must be a number of messages, got {type(value).__name__}")
            if value < least:
                both = "; to protect both ends, set both" if name.startswith("protect") else ""
                raise InvalidValueError(f"{name} must be {least} or more, got {value}{both}")
        check_flag("protect_task", False if self.task is None else self.task)
        check_flag("current_request", self.current_request)

    def kept_units(self, history: History) -> set[Unit]:
        """Return the units that nothing may leave out or edit."""
        # An earlier summary may stand first. It is no message of the conversation's, and will be replaced.
        given = (index for index, message in enumerate(history.messages) if message.made_as is None)
        first = islice(given, min(self.first, len(history)))
        kept = {history.unit_at(index) for index in (*history.kept, *first)}
        return kept | _request(history, range(len(history)), self.in_a_row) if self.task else kept

    def recent_units(self, history: History, *, at_least: int = 1) -> set[Unit]:
        """Return the units at the end that stay; only when nothing else helps are results in them shortened."""
        latest = _units_of(history, len(history) - max(self.last, at_least), len(history))
        if not (self.current_request and at_least):
            return latest
        backwards = range(len(history) - 1, -1, -1)
        return latest | _request(history, backwards, self.in_a_row) | _words_beside_results(history, backwards)


def survives_compression(messages: Sequence[Message], index: int, protection: Protection) -> bool:
    """Say whether the message at *index* stays, whatever happens: for itself, or as part of a protected tool pair."""
    history, protection = History.of(messages), replace(protection, in_a_row=1)
    unit = history.unit_at(range(len(messages))[index])
    return unit in protection.kept_units(history) or unit in protection.recent_units(history)


def _request(history: History, indices: Iterable[int], most: int) -> set[Unit]:
    """Return the units of the first of these messages in which the user speaks: a request may be several in a row."""
    units: set[Unit] = set()
    for index in indices:
        message = history.messages[index]
        if _is_request(message):
            units.add(history.unit_at(index))
        if units and (message.role == "assistant" or answers(message) or len(units) == most):
            break
    return units


def _words_beside_results(history: History, indices: Iterable[int]) -> set[Unit]:
    """Return the unit of the first of these messages that holds words of the user beside results of tools.

    There they stand when a user interrupts, where the results have to come first.
    """
    for index in indices:
        message = history.messages[index]
        if _is_request(message):
            break
        if answers(message) and any(isinstance(block, Text) and block.text.strip() for block in message.blocks):
            return {history.unit_at(index)}
    return set()


def _is_request(message: Message) -> bool:
    """Say whether the user speaks, and not something that holdfast put there."""
    return opens_a_turn(message) and message.made_as is None


def _units_of(history: History, start: int, stop: int) -> set[Unit]:
    units = set()
    at, stop = max(start, 0), min(stop, len(history))
    while at < stop:
        units.add(unit := history.unit_at(at))
        at = unit.stop
    return units
