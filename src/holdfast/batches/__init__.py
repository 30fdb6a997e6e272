"""Messages that left the window, as they are stored: exact enough to put back, and readable part by part."""

from __future__ import annotations

from holdfast.batches.batch import BATCH_TYPE, MOST_NAMED, Batch, Entry, Removal, Seal
from holdfast.batches.chains import Chain, Missing, back_from, batches_up_to, grouped
from holdfast.batches.leaves import Leaf, leaves_of
from holdfast.batches.pieces import Piece, pieces_in, put_together
from holdfast.batches.transcripts import addressed, all_of, described, holds, holds_whole, part_of, parted, transcript

__all__ = [
    "BATCH_TYPE",
    "MOST_NAMED",
    "Batch",
    "Chain",
    "Entry",
    "Leaf",
    "Missing",
    "Piece",
    "Removal",
    "Seal",
    "addressed",
    "all_of",
    "back_from",
    "batches_up_to",
    "described",
    "grouped",
    "holds",
    "holds_whole",
    "leaves_of",
    "part_of",
    "parted",
    "pieces_in",
    "put_together",
    "transcript",
]
