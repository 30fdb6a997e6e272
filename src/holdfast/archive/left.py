"""What has left a conversation so far, as the marker in its place says it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from holdfast.checks import is_count
from holdfast.dialects.wires import notes_in
from holdfast.messages import Message

__all__ = ["LEFT", "Left", "forgotten", "left_in", "left_noted", "numbers_of", "offset_of"]

LEFT = "left"
_MOST_TOOLS, _MOST_NAMED, _LONGEST_NAME, _MOST_RANGES_NAMED = 50, 6, 60, 3
# More than any conversation has: a marker is in the window of an agent, and what it notes is in every session.
_MOST_RANGES = 10_000
# What has more digits cannot be asked for.
_LARGEST = 10**12
# As long as providers allow a tool's name to be, twice.
_LONGEST_NOTED = 128


@dataclass(frozen=True, kw_only=True)
class Left:
    """Messages by number, in ranges; how often each tool had been used; the turns and times of the first and last.

    Those that are *lost* could not be stored when they left.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    lost: tuple[tuple[int, int], ...] = ()
    tools: Mapping[str, int] = field(default_factory=dict)
    turns: tuple[int, int] | None = None
    times: tuple[float, float] | None = None

    @property
    def count(self) -> int:
        """How many messages."""
        return sum(last - first + 1 for first, last in self.ranges)

    @property
    def lost_ones(self) -> str:
        """Which are lost, in a few words; empty if none is."""
        named = [f"{first}–{last}" if first != last else f"{first}" for first, last in self.lost]
        more = len(named) - _MOST_RANGES_NAMED
        return ", ".join([*named[:_MOST_RANGES_NAMED], *([f"{more} others"] if more > 0 else [])])

    @staticmethod
    def of_all(parts: Iterable[Left]) -> Left:
        """Return what left with any of these."""
        given, tools = list(parts), Counter[str]()
        for part in given:
            tools.update(part.tools)
        return Left(
            ranges=_merged(span for part in given for span in part.ranges),
            lost=_merged(span for part in given for span in part.lost),
            tools=dict(tools.most_common(_MOST_TOOLS)),
            turns=_span([part.turns for part in given if part.turns is not None]),
            times=_span([part.times for part in given if part.times is not None]),
        )

    def without(self, numbers: Collection[int]) -> Left:
        """Return it without messages that are back."""
        return replace(self, ranges=_merged(_cut(self.ranges, numbers)), lost=_merged(_cut(self.lost, numbers)))

    def as_note(self) -> dict[str, Any]:
        """Return it as JSON, to be noted on a message."""
        return {
            "ranges": [list(span) for span in self.ranges],
            **({"lost": [list(span) for span in self.lost]} if self.lost else {}),
            "tools": dict(self.tools),
            "turns": None if self.turns is None else list(self.turns),
            "times": None if self.times is None else list(self.times),
        }

    def __str__(self) -> str:
        if not self.ranges:
            return "0 earlier messages"
        first, last = self.ranges[0][0], self.ranges[-1][1]
        said = [f"{first}–{last}" if first != last else f"number {first}"]
        if self.turns is not None and self.turns[1]:
            first, last = self.turns
            said.append(f"turns {first}–{last}" if first != last else f"turn {first}")
        if self.times is not None:
            said.append(f"{_moments(*self.times)} UTC")
        if self.tools:
            said.append(f"tools: {_named(self.tools)}")
        return f"{self.count:,} earlier message{'' if self.count == 1 else 's'} ({'; '.join(said)})"


def left_in(message: Message) -> Left | None:
    """Return what a message says has left, if it is a marker or a summary; None for what cannot be read."""
    return None if message.made_as is None else left_noted(message.notes.get(LEFT))


def left_noted(note: Any) -> Left | None:
    """Return what `Left.as_note` returned; None for what cannot be read: others keep it, and may change it."""
    if not isinstance(note, Mapping):
        return None
    tools = note.get("tools")
    counts = islice(tools.items(), _MOST_TOOLS) if isinstance(tools, Mapping) else ()
    return Left(
        ranges=_ranges(note.get("ranges")),
        lost=_ranges(note.get("lost")),
        tools={name[:_LONGEST_NOTED]: count for name, count in counts if isinstance(name, str) and _is_number(count)},
        turns=_pair(note.get("turns")),
        times=_pair(note.get("times"), _is_moment),
    )


def forgotten(known: Left, messages: Sequence[Message]) -> Left:
    """Return what is *known* to have left if no message says so any more, as somebody deleted it; else what is lost.

    Of a message that was shortened, something may be lost although it never left, and no marker says so.
    """
    said = _said(messages)
    return Left(lost=known.lost) if _merged([*said, *known.ranges]) == said else known


def numbers_of(messages: Sequence[Message], known: Left) -> list[int | None]:
    """Return the number of each message in the whole conversation, from 1; None for what holdfast put there.

    What is *known* to have left has its numbers for good, whether or not a message still says so.
    """
    gone = _merged([*_said(messages), *known.ranges])
    numbers: list[int | None] = []
    number, passed = 0, 0
    for message in messages:
        if message.made_as is not None:
            numbers.append(None)
            continue
        number += 1
        while passed < len(gone) and gone[passed][0] <= number:
            number = max(number, gone[passed][1] + 1)
            passed += 1
        numbers.append(number)
    return numbers


def offset_of(wires: Iterable[Any], known: Left) -> int:
    """Return by how much the conversation has more messages than *wires*: what left, less what holdfast put there."""
    noted = [Message("user", (), notes_in(wire)) for wire in wires]
    made = [message for message in noted if message.made_as is not None]
    return Left(ranges=_merged([*_said(made), *known.ranges])).count - len(made)


def _said(messages: Iterable[Message]) -> tuple[tuple[int, int], ...]:
    return _merged(span for message in messages if (left := left_in(message)) for span in left.ranges)


def _ranges(value: Any) -> tuple[tuple[int, int], ...]:
    return _merged(span for item in _list(value)[:_MOST_RANGES] if (span := _pair(item)))


def _cut(spans: Iterable[tuple[int, int]], numbers: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield what is left of *spans* without some *numbers*."""
    inside = sorted(set(numbers))
    for first, last in spans:
        for number in inside[bisect_left(inside, first) : bisect_right(inside, last)]:
            if first < number:
                yield first, number - 1
            first = number + 1
        if first <= last:
            yield first, last


def _merged(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _span(spans: Sequence[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _named(tools: Mapping[str, int]) -> str:
    most = sorted(tools.items(), key=lambda item: -item[1])
    named = [f"{' '.join(name.split())[:_LONGEST_NAME]} × {count}" for name, count in most[:_MOST_NAMED]]
    return ", ".join([*named, *([f"{len(most) - _MOST_NAMED} others"] if len(most) > _MOST_NAMED else [])])


def _moments(first: float, last: float) -> str:
    """Return two times in words, without repeating the day or the minute."""
    began, ended = _moment(first), _moment(last)
    day, _, minute = ended.partition(" ")
    return began if began == ended else f"{began} to {minute if began.startswith(day) else ended}"


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "some time"


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _is_number(value: Any) -> bool:
    return is_count(value, most=_LARGEST)


def _is_moment(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, float) and 0 <= value <= _LARGEST)


def _pair(value: Any, is_one: Callable[[Any], bool] = _is_number) -> tuple[Any, Any] | None:
    match value:
        case [first, last] if is_one(first) and is_one(last) and first <= last:
            return first, last
    return None
