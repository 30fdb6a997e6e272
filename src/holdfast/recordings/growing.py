"""Logs of requests, in which a conversation stands again and again, each time a little longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.recordings.values import Recording, Unreadable

__all__ = ["whole_conversations"]

# As many agents may have their requests logged in one file, in turn.
_AT_ONCE = 16
_SAID = ("role", "content", "tool_calls")


def whole_conversations(found: Iterable[Recording | Unreadable]) -> Iterator[Recording | Unreadable]:
    """Yield conversations in the order in which they begin; of one that goes on in a later one, only that."""
    held: list[Recording | Unreadable] = []
    for each in found:
        place = next((place for place, earlier in enumerate(held) if _goes_on(earlier, each)), None)
        if place is not None:
            held[place] = each
            continue
        held.append(each)
        if len(held) > _AT_ONCE:
            yield held.pop(0)
    yield from held


def _goes_on(earlier: Recording | Unreadable, later: Recording | Unreadable) -> bool:
    """Say whether a conversation begins with all of another, whose last answer a program may have written anew."""
    if isinstance(earlier, Unreadable) or isinstance(later, Unreadable):
        return False
    count = len(earlier.messages)
    if len(later.messages) <= count or earlier.system_prompt != later.system_prompt:
        return False
    *before, last = earlier.messages
    return _said(last) == _said(later.messages[count - 1]) and tuple(before) == later.messages[: count - 1]


def _said(message: Mapping[str, Any]) -> list[Any]:
    return [message.get(name) or None for name in _SAID]
