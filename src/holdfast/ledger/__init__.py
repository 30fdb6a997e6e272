"""The ledger: what happened to one conversation's context, record by record."""

from __future__ import annotations

from holdfast.ledger.ledger import Ledger
from holdfast.ledger.records import (
    KINDS,
    EvictionRecord,
    FailureRecord,
    OffloadRecord,
    Record,
    ReductionRecord,
    RetrievalRecord,
    SearchRecord,
    UndoRecord,
    record_from,
)
from holdfast.ledger.totals import Total

__all__ = [
    "KINDS",
    "EvictionRecord",
    "FailureRecord",
    "Ledger",
    "OffloadRecord",
    "Record",
    "ReductionRecord",
    "RetrievalRecord",
    "SearchRecord",
    "Total",
    "UndoRecord",
    "record_from",
]
