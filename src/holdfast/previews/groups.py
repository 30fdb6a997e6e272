"""Things that share most of what they say: one is quoted in full, of the others only what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from holdfast.previews.quoting import counted, evenly
from holdfast.previews.room import Room

__all__ = ["MOST_GROUPS", "Group", "said_groups", "scattered", "spread"]

MOST_GROUPS = 2_000
"""More groups than fit into any preview."""

_FIRST_TURNS, _MOST_TURNS, _MOST_SCATTERED = 10, 120, 4_096


class Group(NamedTuple):
    """A *head* to quote, which stands at line *number*, and what the others of the *size* add.

    Others are (place, what it adds), those first that tell most; they are told in the order of their places.
    """

    number: int
    size: int
    head: Callable[[], str]
    others: Callable[[], list[tuple[int, str]]]


def scattered(count: int) -> list[int]:
    """Return the indices below *count* so that any first few of them are spread over all."""
    if count > _MOST_SCATTERED:
        some = evenly(count, _MOST_SCATTERED)
        chosen = set(some)
        return [*(some[place] for place in scattered(len(some))), *(at for at in range(count) if at not in chosen)]
    width = max(1, (count - 1).bit_length())
    return sorted(range(count), key=lambda index: int(f"{index:0{width}b}"[::-1], 2))


def spread(values: Sequence[str]) -> list[tuple[int, str]]:
    """Return values with their places, so that any first few of them are from everywhere."""
    return [(place, values[place]) for place in scattered(len(values))]


def said_groups(
    groups: Sequence[Group], room: Room, *, others: float = 0.4, noun: str = "kind", beyond: Sequence[int] = ()
) -> list[str]:
    """Return the heads of the first groups, and in turns what their others add, in the order of their lines.

    The share *others* of the room is kept for these. The last line counts the groups that did not fit, and those that
    are *beyond* what could ever fit, of which only the sizes are given.
    """
    spare = room.cost(_counted_rest([*(group.size for group in groups), *beyond], noun))
    room.left -= spare
    heads = room.within(1 - others, lambda part: part.take_all(group.head() for group in groups))
    hands = _Hands(groups[: len(heads)] if others else [])
    hands.deal(room, _FIRST_TURNS)
    heads += room.take_all(group.head() for group in groups[len(heads) :])
    hands.deal(room, _MOST_TURNS)
    said = _in_order(groups[: len(heads)], heads, hands.shown())
    if rest := [*(group.size for group in groups[len(heads) :]), *beyond]:
        return [*said, _counted_rest(rest, noun)]
    room.left += spare
    return said


def _in_order(groups: Sequence[Group], heads: Sequence[str], others: Sequence[str]) -> list[str]:
    told = zip_longest([group.number for group in groups], heads, others, fillvalue="")
    return [line for _, *lines in sorted(told) for line in lines if line]


def _counted_rest(sizes: Sequence[int], noun: str) -> str:
    plural = noun if len(sizes) == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"… {len(sizes):,} more {plural}, {counted(sum(sizes), 'line')}"


class _Hands:
    """What each group holds in its hand of the room dealt out, one thing more in each turn."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._waiting = [group.others() if group.size > 1 else [] for group in groups]
        self._taken = [0] * len(groups)

    def deal(self, room: Room, turns: int) -> None:
        """Give each group one more in each turn, as long as there is room."""
        for turn in range(turns):
            for place, waiting in enumerate(self._waiting):
                if self._taken[place] == turn < len(waiting):
                    if not room.take(f"; {waiting[turn][1]}" if turn else _joined(waiting[:1])):
                        return
                    self._taken[place] += 1

    def shown(self) -> list[str]:
        return [_joined(waiting[:taken]) for waiting, taken in zip(self._waiting, self._taken, strict=True)]


def _joined(values: Sequence[tuple[int, str]]) -> str:
    return f"  also {'; '.join(value for _, value in sorted(values))}" if values else ""
