"""What policies need to know of an entry after a restart, written into the content type that a backend keeps.

``text/plain; holdfast-kept=k.t12.c3f2a…`` was last used in turn 12 and belongs to a chain. The label stands before the
scopes, if there are any, so whoever reads a store finds it at one place, however its wrappers are nested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["MOST_CHAINS", "Label", "labelled", "scopes_in", "split_label"]

_MARK = "; holdfast-kept="
MOST_CHAINS = 64
_LABEL = re.compile(
    rf"{_MARK}k(?:\.t(?P<turn>[0-9]{{1,15}}))?"
    rf"(?P<chains>(?:\.c[0-9a-f]{{16}}){{0,{MOST_CHAINS}}})"
    rf"(?:\.l(?P<left_at>[0-9]{{1,15}}))?(?P<scopes>(?:; holdfast-scope=[^;\s]*)*)"
)
_SCOPES = re.compile(r"(?:; holdfast-scope=[^;\s]*)*\Z")


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
    scopes = scopes_in(content_type)
    return f"{content_type[: len(content_type) - len(scopes)]}{_MARK}{'.'.join(parts)}{scopes}"


def split_label(content_type: str) -> tuple[str, Label]:
    """Return the content type as it was given, and what was written into it."""
    if _MARK not in content_type:
        return content_type, _NOTHING
    before = content_type.rpartition(_MARK)[0]
    found = _LABEL.fullmatch(content_type, len(before))
    if found is None:
        return content_type, _NOTHING
    turn, chains, left_at, scopes = found.group("turn", "chains", "left_at", "scopes")
    return before + scopes, Label(
        turn=None if turn is None else int(turn),
        chains=tuple(chains.split(".c")[1:]),
        left_at=None if left_at is None else int(left_at) / 1000,
    )


def scopes_in(content_type: str) -> str:
    """Return the scopes that a content type ends with."""
    found = _SCOPES.search(content_type) if "; holdfast-scope=" in content_type else None
    return found.group() if found is not None else ""
