"""Plain text: its head and its tail at line ends, and lines from in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.previews.quoting import counted, evenly, left_out, lines_of, quoted, take_quotes
from holdfast.previews.rare_words import rare_words
from holdfast.previews.room import Room

__all__ = ["head_and_tail", "preview_plain", "sampled_quotes"]

_LONGEST, _LONGEST_SAMPLE = 400, 160
_PER_QUOTE, _MOST_READ = 40, 4_000
_HEAD, _TAIL, _WORDS = 0.5, 0.3, 0.3


def preview_plain(text: str, room: Room) -> str | None:
    """Return the first and last lines, and some from in between, all with their numbers."""
    lines = lines_of(text)
    title = f"{counted(len(lines), 'line')}, {counted(len(text), 'character')}"
    if not room.take(title):
        return None
    ends = room.within(1 - _WORDS, partial(head_and_tail, lines))
    return "\n".join([title, *ends, *rare_words(lines, room, 1.0, ends)])


def head_and_tail(lines: Sequence[str], room: Room, *, head: float = _HEAD, tail: float = _TAIL) -> list[str]:
    """Return the first lines, lines spread over the middle and the last lines, within the room."""
    first = room.within(head, lambda part: take_quotes(part, lines, range(len(lines)), _LONGEST))
    from_the_end = range(len(lines) - 1, len(first) - 1, -1)
    last = room.within(tail, lambda part: take_quotes(part, lines, from_the_end, _LONGEST))[::-1]
    missing = len(lines) - len(first) - len(last)
    if not missing:
        return [*first, *last]
    note = f"{left_out(missing)} of them:"
    room.take(note)
    between = sampled_quotes(lines, range(len(first), len(lines) - len(last)), room)
    return [*first, note if between else left_out(missing), *between, *last]


def sampled_quotes(
    lines: Sequence[str], indices: Sequence[int], room: Room, *, tells: Callable[[int], bool] = lambda index: True
) -> list[str]:
    """Return quotes of lines spread evenly over these indices, as many as fit. Blank lines tell nothing."""
    some = (indices[at] for at in evenly(len(indices), _MOST_READ))
    telling = [index for index in some if len(lines[index].strip()) > 3 and tells(index)]
    if not telling:
        return []
    longest, per_line = _affordable(lines, [telling[at] for at in evenly(len(telling), 12)], room, _LONGEST_SAMPLE)
    chosen = evenly(len(telling), room.left // per_line)
    return take_quotes(room, lines, (telling[at] for at in chosen), longest)


def _affordable(lines: Sequence[str], some: Sequence[int], room: Room, longest: int) -> tuple[int, int]:
    """Return how long quotes may be, and what one takes then: scripts differ in how many tokens a character is."""
    cost = sum(room.cost(quoted(index + 1, lines[index], longest)) for index in some) // len(some) + 1
    return (longest * _PER_QUOTE // cost, _PER_QUOTE) if cost > _PER_QUOTE else (longest, cost)
