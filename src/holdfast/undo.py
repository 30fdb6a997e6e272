"""Undoing reductions, and writing down that it was done, or why it was not."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.archive import Archive, undo_reductions
from holdfast.compression import ContextCompression
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import Conversation
from holdfast.ledger import FailureRecord, Ledger, ReductionRecord, UndoRecord

__all__ = ["undo_and_record"]


async def undo_and_record(
    archive: Archive,
    compression: ContextCompression,
    conversation: Conversation,
    ledger: Ledger,
    *,
    to: ReductionRecord | None,
) -> UndoRecord:
    """Put back what the last reduction took, or what all took from that of the record *to* on."""
    down_to = None if to is None else _batch_of(to)
    try:
        undone = await undo_reductions(archive, compression, conversation, down_to=down_to)
    except Exception as error:
        if archive.undoable:
            ledger.add(FailureRecord, why="an undo was asked for", what="nothing was put back", error=error)
        raise
    count = len(undone.references)
    return ledger.add(
        UndoRecord,
        why="asked for",
        what=f"{count} reduction{'' if count == 1 else 's'} undone",
        undone=_first_undone(ledger, undone.references),
        tokens_before=undone.tokens_before,
        tokens_after=undone.tokens_after,
        references=undone.references,
    )


def _batch_of(record: object) -> str:
    if not isinstance(record, ReductionRecord):
        raise InvalidTypeError(
            f"to must be a record of a reduction, such as manager.ledger.last('reduction'), got {type(record).__name__}"
        )
    if not record.references:
        raise InvalidValueError("this reduction cannot be undone: what it took could not be archived")
    return record.references[0]


def _first_undone(ledger: Ledger, references: Sequence[str]) -> int | None:
    """Return the number of the earliest reduction that was undone, None if the ledger no longer holds it."""
    batches = frozenset(references)
    undone = (record.number for record in ledger.of(ReductionRecord) if not batches.isdisjoint(record.references))
    return next(undone, None)
