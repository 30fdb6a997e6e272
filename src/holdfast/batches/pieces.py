"""Parts of messages that are stored already, named instead of stored again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.errors import InvalidValueError

__all__ = ["Piece", "digest", "parts_of", "piece_in", "pieces_in", "put_together", "with_pieces"]

_PIECE = "$piece"
# Below that, a name would take as much room as what it stands for.
_WORTH_NAMING = 300


class Piece(NamedTuple):
    """Where a part of a message is stored: in which batch and entry, and as which block; None for the whole message."""

    reference: str
    entry: int
    block: int | None


def digest(value: Any) -> bytes | None:
    """Return what tells an encoded value from others; None if it is too small to be worth it."""
    written = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(written).digest()[:16] if len(written) >= _WORTH_NAMING else None


def parts_of(wire: Any) -> list[tuple[int | None, Any]]:
    """Return the parts of an encoded message that can be stored by themselves: its blocks, or all of it."""
    content = wire.get("content") if isinstance(wire, dict) else None
    return list(enumerate(content)) if isinstance(content, list) else [(None, wire)]


def with_pieces(wire: Any, named: Mapping[int | None, Piece]) -> Any:
    """Return an encoded message with the names of those parts, by their blocks, that are stored already."""
    if None in named:
        return _name(named[None])
    if not named:
        return wire
    return {**wire, "content": [_name(named[at]) if at in named else part for at, part in parts_of(wire)]}


def _name(piece: Piece) -> dict[str, list[Any]]:
    return {_PIECE: list(piece)}


def pieces_in(wire: Any) -> Iterator[Piece]:
    """Yield what is missing in an encoded message, and stored elsewhere."""
    for _, part in parts_of(wire):
        if (piece := piece_in(part)) is not None:
            yield piece


def piece_in(part: Any) -> Piece | None:
    """Return where a part is stored, if only its name stands here."""
    match part:
        case {"$piece": [str(reference), int(entry), (int() | None) as block]}:
            return Piece(reference, entry, block)
    return None


def put_together(wire: Any, found: Mapping[Piece, Any]) -> Any:
    """Return an encoded message with all its parts. Raises InvalidValueError if one is not *found*."""
    whole = [_whole(part, found) for _, part in parts_of(wire)]
    if piece_in(wire) is not None:
        return whole[0]
    return {**wire, "content": whole} if isinstance(wire, dict) and isinstance(wire.get("content"), list) else wire


def _whole(part: Any, found: Mapping[Piece, Any]) -> Any:
    if (piece := piece_in(part)) is None:
        return part
    if piece not in found:
        raise InvalidValueError(f"a part of a stored message is not in {piece.reference:.200} any more")
    return found[piece]
