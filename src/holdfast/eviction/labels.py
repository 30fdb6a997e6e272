"""What policies need to know of an entry after a restart, written into the content type that a backend keeps.

``text/plain; holdfast-kept=k.t12.c3f2a…`` was last used in turn 12 and belongs to a chain. Only the last parameter
counts, so a content type that a tool made up cannot pass for a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["MOST_CHAINS", "Label", "labelled", "split_label"]

_MARK = "; holdfast-kept="
MOST_CHAINS = 64
_LABEL = re.compile(
    rf"{_MARK}k(?:\.t(?P<turn>[0-9]{{1,15}}))?"
    rf"(?P<chains>(?:\.c[0-9a-f]{{16}}){{0,{MOST_CHAINS}}})"
    rf"(?:\.l(?P<left_at>[0-9]{{1,15}}))?"
)


@dataclass(frozen=True, slots=True)
class Label:
    """The turn of last use, the chains that an entry ties together, and when, if so, its chain began to be deleted."""

    turn: int | None = None
    chains: tuple[str, ...] = ()
    left_at: float | None = None


_NOTHING = Label()


def labelled(content_type: str, turn: int | None, chains: Iterable[str], left_at: float | None = None) -> str:
    """Return *content_type* with a label in it; an empty one is left out where that cannot be mistaken."""
    if turn is None and not chains and left_at is None and _MARK not in content_type:
        return content_type
    parts = ["k", *([] if turn is None else [f"t{turn}"]), *(f"c{chain}" for chain in chains)]
    if left_at is not None:
        parts.append(f"l{int(left_at * 1000)}")
    return f"{content_type}{_MARK}{'.'.join(parts)}"


def split_label(content_type: str) -> tuple[str, Label]:
    """Return the content type as it was given, and what was written into it."""
    if _MARK not in content_type:
        return content_type, _NOTHING
    before = content_type.rpartition(_MARK)[0]
    found = _LABEL.fullmatch(content_type, len(before))
    if found is None:
        return content_type, _NOTHING
    turn, chains, left_at = found.group("turn", "chains", "left_at")
    return before, Label(
        turn=None if turn is None else int(turn),
        chains=tuple(chains.split(".c")[1:]),
        left_at=None if left_at is None else int(left_at) / 1000,
    )
