"""Reductions that are about to be carried out: those whose messages are stored, and those whose could not be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.archive.left import Left
from holdfast.archive.parts import Digests
from holdfast.archive.snapshots import is_as_then
from holdfast.compression.plans import Plan
from holdfast.history import History

__all__ = ["Kept", "Lost"]


@dataclass(frozen=True)
class Kept:
    """A reduction whose messages are stored under *reference*; *plan* names it and is what to carry out.

    *places* are theirs in that *revision* of the history, and *large* the snapshots of those that it does not see
    whole. *needed* are the references that have to last as long, and *parts* what may be met again.
    """

    plan: Plan
    reference: str
    left: Left
    revision: int
    places: tuple[int, ...]
    large: Mapping[int, Any]
    needed: frozenset[str]
    parts: Digests

    def is_current(self, history: History) -> bool:
        """Say whether what is stored is still what stands there, after a look at each message."""
        if history.revision != self.revision:
            return False
        return history.is_as_read(self.places) and all(
            is_as_then(history.messages[place].wire, then) for place, then in self.large.items()
        )


class Lost(NamedTuple):
    """A reduction whose messages could not be stored; *numbers* are theirs, in words."""

    plan: Plan
    left: Left
    numbers: str
