"""Logs of requests, in which a conversation stands again and again, each time a little longer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.dialects import dialect_named
from holdfast.messages import Block, Json, Message, Reasoning, Text, ToolResult, ToolUse, as_json_text
from holdfast.recordings.values import Recording, Unreadable

__all__ = ["whole_conversations"]

# As many agents may have their requests logged in one file, in turn.
_AT_ONCE, _MOST_FAULTS = 16, 100
_MARK = "cache_control"


def whole_conversations(found: Iterable[Recording | Unreadable]) -> Iterator[Recording | Unreadable]:
    """Yield what is found, in order; a conversation where it begins, and as long as it gets in the end."""
    held: dict[int, _Held] = {}
    faults: dict[int, Unreadable] = {}
    for number, each in enumerate(found):
        if isinstance(each, Unreadable):
            faults[number] = each
        else:
            _hold(_Held(each, number), held)
        if len(held) > _AT_ONCE:
            yield held.pop(min(held, key=lambda place: held[place].number)).recording
        if not held or len(faults) > _MOST_FAULTS:
            yield from faults.values()
            faults.clear()
    rest: dict[int, Recording | Unreadable] = {**faults}
    rest |= {place: each.recording for place, each in held.items()}
    yield from (rest[place] for place in sorted(rest))


def _hold(later: _Held, held: dict[int, _Held]) -> None:
    """Put a conversation in the place of the one that it goes on from; of several, where a request was sent again."""
    place, *again = [place for place, earlier in held.items() if later.goes_on_from(earlier)] or [later.number]
    held[place] = later
    for other in again:
        del held[other]


class _Held:
    """A conversation that may go on, and the *number* of the value in its file that it was last seen in."""

    def __init__(self, recording: Recording, number: int) -> None:
        self.recording = recording
        self.number = number
        self._dialect = dialect_named(recording.dialect)
        self._said: dict[int, Any] = {}

    def goes_on_from(self, earlier: _Held) -> bool:
        """Say whether all of another conversation, and more, stands in this one."""
        count = len(earlier.recording.messages)
        if count >= len(self.recording.messages) or self.recording.dialect != earlier.recording.dialect:
            return False
        if _unmarked(self.recording.system_prompt) != _unmarked(earlier.recording.system_prompt):
            return False
        # Backwards: conversations that are not the same mostly begin alike.
        return all(self.said(place) == earlier.said(place) for place in reversed(range(count)))

    def said(self, place: int) -> Any:
        """Return what a message says, however a program wrote it down."""
        if place not in self._said:
            self._said[place] = _said_in(self._dialect.read(self.recording.messages[place]))
        return self._said[place]


def _said_in(message: Message) -> Any:
    """Return what is said, called and answered. Reasoning is often not sent back, and marks of caches move."""
    texts = "".join(block.text for block in message.blocks if isinstance(block, Text))
    others = [_fact(block) for block in message.blocks if not isinstance(block, (Text, Reasoning))]
    return message.role, "".join(texts.split()), others


def _fact(block: Block) -> Any:
    match block:
        case ToolUse(id, name, given):
            return id, name, _as_value(given)
        case ToolResult(id, content):
            return id, [_fact(each) for each in content]
        case Text(text):
            return text
        case Json(value):
            return as_json_text(value)
    return type(block).__name__


def _as_value(given: Any) -> Any:
    try:
        return json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _unmarked(prompt: Any) -> Any:
    blocks = prompt if isinstance(prompt, list) else [prompt]
    return [
        {name: value for name, value in block.items() if name != _MARK} if isinstance(block, dict) else block
        for block in blocks
    ]
