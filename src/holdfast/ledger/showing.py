"""A ledger as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from holdfast.ledger.lines import WIDTH, fitted, one_line, table
from holdfast.ledger.records import (
    FailureRecord,
    OffloadRecord,
    Record,
    RetrievalRecord,
    SearchRecord,
    UndoRecord,
)

__all__ = ["moment", "shown", "tokens_of"]

_LATEST = 20
_HEAD = ("#", "time (UTC)", "turn", "kind", "tokens", "what")


def shown(records: Sequence[Record], totals: Mapping[str, tuple[int, int]], forgotten: int) -> str:
    """Return the latest 20 records, and counts and saved tokens of all there ever were, by kind."""
    count = len(records) + forgotten
    if not count:
        return "Ledger: nothing happened yet."
    latest = records[-_LATEST:]
    head = f"Ledger: {count:,} record{'' if count == 1 else 's'}"
    if count > len(latest):
        head += f", of which these are the latest {len(latest)}"
    if forgotten:
        head += f"; {forgotten:,} older ones are no longer held"
    return "\n".join([head, *table([_HEAD, *map(_row, latest)], right=(0, 2)), *_totals(totals)])


def moment(at: float) -> str:
    """Return a time in UTC, to the minute."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%m-%d %H:%M")


def tokens_of(record: Record) -> str:
    """Return the tokens before and after, as far as they are known."""
    known = [f"{tokens:,}" for tokens in (record.tokens_before, record.tokens_after) if tokens is not None]
    return " → ".join(known)


def _row(record: Record) -> tuple[str, ...]:
    return (
        f"{record.number:,}",
        moment(record.at),
        f"{record.turn:,}",
        record.kind,
        tokens_of(record),
        one_line("; ".join(filter(None, _said(record))), WIDTH),
    )


def _said(record: Record) -> tuple[str, ...]:
    """Return what to say of a record. Why a result left, or was looked up, is always the same, so it is not said."""
    match record:
        case FailureRecord():
            return record.error, record.what, record.why
        case SearchRecord():
            return f'"{record.query}"', record.what
        case OffloadRecord() | RetrievalRecord() | UndoRecord():
            return (record.what or record.why,)
    return record.what, record.why


def _totals(totals: Mapping[str, tuple[int, int]]) -> list[str]:
    rows = [(kind, f"{count:,}", _saved(saved)) for kind, (count, saved) in totals.items() if count]
    return ["In all:", *(fitted(f"  {line}", WIDTH) for line in table(rows, right=(1,)))]


def _saved(saved: int) -> str:
    if not saved:
        return ""
    return f"{saved:,} tokens left the context" if saved > 0 else f"{-saved:,} tokens came back"
