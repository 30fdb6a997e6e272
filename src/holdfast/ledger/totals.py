"""How much there ever was of each kind, counted on where records are forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.checks import LARGEST
from holdfast.ledger.checks import checked_number
from holdfast.ledger.records import KINDS, Record

__all__ = ["Total", "totals_of"]


@dataclass(frozen=True)
class Total:
    """How many records of a kind there ever were, and how many tokens they saved together."""

    count: int = 0
    tokens_saved: int = 0

    def __post_init__(self) -> None:
        checked_number("count", self.count)
        checked_number("tokens_saved", self.tokens_saved, at_least=-LARGEST)

    def plus(self, record: Record) -> Total:
        """Return it with one more."""
        # Sums beyond that come from nonsense only, which must not stop whoever works.
        return Total(self.count + 1, max(-LARGEST, min(self.tokens_saved + record.saved, LARGEST)))


def totals_of(records: Iterable[Record]) -> dict[str, Total]:
    """Return the totals of these records, by kind, for all kinds there are."""
    totals = dict.fromkeys(KINDS, Total())
    for record in records:
        totals[record.kind] = totals[record.kind].plus(record)
    return totals
