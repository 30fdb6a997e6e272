"""Parts of messages that stay in view in part: where they are stored, so that they are not stored again."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from holdfast.batches import Entry, Piece
from holdfast.batches.pieces import digest, parts_of, with_pieces

__all__ = ["Digests", "Place", "StoredParts", "digests_of", "with_found"]

logger = logging.getLogger(__name__)

_MOST = 2_000


class Place(NamedTuple):
    """Which part of a batch: the number of the entry, and the block, None for all of the message."""

    entry: int
    block: int | None


Digests: TypeAlias = Mapping[Place, bytes]


class StoredParts:
    """Remembers where the latest 2,000 parts are."""

    def __init__(self) -> None:
        self._pieces: OrderedDict[bytes, Piece] = OrderedDict()
        self._batches: OrderedDict[str, None] = OrderedDict()

    def knows(self, reference: str) -> bool:
        """Say whether the parts of a batch were noted."""
        return reference in self._batches

    async def found(self, digests: Digests, has: Callable[[str], Awaitable[bool]]) -> dict[Place, Piece]:
        """Return where parts like these are stored, as far as the storage still *has* them and says so."""
        known = {place: self._pieces[key] for place, key in digests.items() if key in self._pieces}
        there = await _said_to_be_there({piece.reference for piece in known.values()}, has)
        return {place: piece for place, piece in known.items() if piece.reference in there}

    def note(self, digests: Digests, reference: str) -> None:
        """Know the parts that a batch holds."""
        self._batches[reference] = None
        for place, key in digests.items():
            self._pieces[key] = Piece(reference, *place)
        for known in (self._pieces, self._batches):
            while len(known) > _MOST:
                known.popitem(last=False)

    def forget(self, references: Collection[str]) -> None:
        """Forget the parts in batches that nobody needs any more, and that may be evicted before others."""
        self._pieces = OrderedDict(
            (key, piece) for key, piece in self._pieces.items() if piece.reference not in references
        )


async def _said_to_be_there(references: Iterable[str], has: Callable[[str], Awaitable[bool]]) -> set[str]:
    there: set[str] = set()
    try:
        for reference in references:
            if await has(reference):
                there.add(reference)
    except Exception as error:
        # It is asked only to store less. A storage that cannot say may still store, and is not asked for each.
        logger.warning("what may be in the storage already is stored again, as it cannot say: %r", error)
    return there


def digests_of(entries: Sequence[Entry], numbers: Iterable[int]) -> dict[Place, bytes]:
    """Return what tells the parts of some entries from others, of those that are worth naming."""
    parts = [(Place(number, block), part) for number in numbers for block, part in parts_of(entries[number].wire)]
    return {place: key for place, part in parts if (key := digest(part)) is not None}


def with_found(entries: Sequence[Entry], found: Mapping[Place, Piece]) -> tuple[Entry, ...]:
    """Return the entries with the names of those parts that are stored already."""
    named: dict[int, dict[int | None, Piece]] = {}
    for place, piece in found.items():
        named.setdefault(place.entry, {})[place.block] = piece
    return tuple(replace(one, wire=with_pieces(one.wire, named.get(at, {}))) for at, one in enumerate(entries))
