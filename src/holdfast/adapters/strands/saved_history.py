"""A history as the state of a session holds it: by number what stands in its log, in full what does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from holdfast.errors import InvalidValueError

__all__ = ["Logged", "SavedHistory", "as_entries", "damaged", "read_saved"]


class Logged(NamedTuple):
    """A message as it was written into the log, and its number there."""

    message: Any
    number: int


class SavedHistory(NamedTuple):
    """A history as *head*, and after it the log from number *tail* on. Strands is to read the log from *first* on.

    An entry of *head* is a message, ``{"logged": [start, stop]}`` for those that stand in the log, or a message with
    ``"logged"``, a number there, in the place of its content.
    """

    head: list[Any]
    tail: int
    first: int

    def as_state(self) -> dict[str, Any]:
        """Return it as JSON, with the name by which Strands asks where to begin."""
        return {"head": self.head, "tail": self.tail, "removed_message_count": self.first}

    def messages(self, log: list[Any]) -> Iterator[Any]:
        """Yield the history, out of the *log* that Strands read."""
        for entry in self.head:
            match entry:
                case {"logged": [start, stop]}:
                    yield from self._part(log, start, stop)
                case {"logged": number}:
                    [logged] = self._part(log, number, number + 1)
                    yield {name: value for name, value in entry.items() if name != "logged"} | _content_of(logged)
                case _:
                    yield entry
        yield from self._part(log, self.tail, self.first + len(log))

    def _part(self, log: list[Any], start: int, stop: int) -> list[Any]:
        if not self.first <= start <= stop <= self.first + len(log):
            raise damaged(f"messages {start} to {stop - 1} are not in its log")
        return log[start - self.first : stop - self.first]


def as_entries(messages: Iterable[tuple[Any, Logged | None]]) -> list[Any]:
    """Return the entries for messages, each of which comes with what stands in the log with its content."""
    return [_entry_for([pair for _, pair in run]) for _, run in groupby(enumerate(messages), _run_of)]


def read_saved(state: Mapping[str, Any]) -> SavedHistory:
    """Return the history of a saved state, also of one that a conversation manager of Strands wrote."""
    head, first = state.get("head", []), state.get("removed_message_count", 0)
    tail = state.get("tail", first)
    if not isinstance(head, list) or not all(_is_message(entry) or _is_in_log(entry) for entry in head):
        raise damaged("head must be a list of messages, or of their numbers in the log")
    for name, number in (("removed_message_count", first), ("tail", tail)):
        if not _is_number(number):
            raise damaged(f"{name} must be a number, 0 or more, and is {number!r:.80}")
    if (summary := state.get("summary_message")) is None:
        return SavedHistory(head, tail, first)
    if not _is_message(summary):
        raise damaged("summary_message must be a message")
    return SavedHistory([summary, *head], tail, first)


def damaged(what: str) -> InvalidValueError:
    """Return the error to raise for a session that does not hold what was written there."""
    return InvalidValueError(f"the session is damaged: {what}; restore it from a copy, or begin a new one")


def _run_of(placed: tuple[int, tuple[Any, Logged | None]]) -> tuple[bool, int]:
    """Return the same for neighbours that are neighbours in the log too, as they are."""
    at, (message, logged) = placed
    return (False, at) if logged is None or logged.message is not message else (True, logged.number - at)


def _entry_for(run: list[tuple[Any, Logged | None]]) -> Any:
    message, logged = run[0]
    if logged is None:
        return message
    if logged.message is message:
        return {"logged": [logged.number, logged.number + len(run)]}
    return {name: value for name, value in message.items() if name != "content"} | {"logged": logged.number}


def _content_of(message: Any) -> dict[str, Any]:
    return {"content": message["content"]}


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
        return False
    content = value.get("content")
    return isinstance(content, list) and all(isinstance(block, Mapping) for block in content)


def _is_in_log(value: Any) -> bool:
    match value:
        case {"logged": [start, stop]}:
            return _is_number(start) and _is_number(stop)
        case {"logged": number, "role": str()}:
            return _is_number(number)
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
