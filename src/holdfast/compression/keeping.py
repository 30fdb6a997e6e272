"""What it takes to lose nothing when a history is reduced, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from holdfast.compression.plans import Plan
from holdfast.history import History

__all__ = ["CompressionEvent", "Keeping", "NotKept", "Reduced", "ReductionFailed", "SummaryFailed"]


class Keeping(Protocol):
    """Stores what a plan takes before it is carried out; `holdfast.archive.Archive` does."""

    async def keep(self, plan: Plan, history: History, *, limit: int, room: int) -> Any:
        """Store what leaves, and return what has the `plan` to carry out, of at most *limit* tokens if that can be.

        An extract of it stands in its place, of at most *room* tokens.

        It has the `reference` too, and says with `is_current(history)` whether what is stored still stands there. None
        if nothing would be gained.
        """
        ...

    def foreseen(self, plan: Plan, history: History, *, limit: int, room: int) -> Plan | None:
        """Return the plan to carry out that `keep` would, as far as that can be known, and store nothing."""
        ...

    def confirm(self, kept: Any) -> None:
        """Say that it was carried out."""
        ...

    def withdraw(self, kept: Any) -> None:
        """Say that it was not."""
        ...

    def lose(self, plan: Plan, history: History) -> Any:
        """Return what has the `plan` to carry out although what it takes could not be stored.

        Its `numbers` are those of the messages that are lost then, in words.
        """
        ...

    def confirm_lost(self, lost: Any) -> None:
        """Say that such a plan was carried out."""
        ...


@dataclass(frozen=True)
class Reduced:
    """A history became smaller, by *what*, in a line. What left is stored under *reference*, unless that is empty."""

    plan: Plan
    reference: str
    seconds: float
    what: str = ""


@dataclass(frozen=True)
class NotKept:
    """What a plan takes could not be stored. It was carried out all the same only if *was_carried_out*.

    Then *lost* says which messages that cost. With *in_portions*, the storage takes less at once, and what it takes
    leaves.
    """

    plan: Plan
    error: BaseException
    was_carried_out: bool
    in_portions: bool = False
    lost: str = ""


@dataclass(frozen=True)
class ReductionFailed:
    """A history could not be reduced."""

    error: BaseException


@dataclass(frozen=True)
class SummaryFailed:
    """No summary could be made, so a plan goes without."""

    error: BaseException


CompressionEvent: TypeAlias = Reduced | NotKept | ReductionFailed | SummaryFailed
