"""A history with what one reduction took put back."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from holdfast.archive.left import LEFT
from holdfast.archive.seals import BESIDE, fingerprint, is_sealed
from holdfast.batches import Batch, Removal
from holdfast.batches.encoding import decoded
from holdfast.dialects.wires import MAPPING, notes_in, with_notes
from holdfast.errors import InvalidValueError
from holdfast.messages import KEPT_AS, KEPT_IN, LEFT_AS

__all__ = ["put_back"]

_OWN = frozenset({KEPT_AS, KEPT_IN, LEFT, LEFT_AS})


def put_back(wires: list[Any], batch: Batch, reference: str) -> list[Any]:
    """Return *wires* with the messages of *batch* where they were, and whatever came since behind them.

    Raises InvalidValueError if something else stands where the reduction left a marker or a part of a message, or if
    the batch is damaged.
    """
    taken = _taken(batch, reference)
    result: list[Any] = []
    at = passed = done = 0
    for removal in batch.removals:
        stays = removal.start - passed
        result += wires[at : at + stays]
        at += stays
        _check(wires, at, removal, reference)
        back = taken[done : done + removal.taken]
        result += [_noted_as(wires[at], back[0])] if removal.rewritten else back
        at, passed, done = at + len(removal.made), removal.start + removal.taken, done + removal.taken
    return result + wires[at:]


def _taken(batch: Batch, reference: str) -> list[Any]:
    """Return the messages of a batch, if all of them are there and it is known where they stood."""
    damaged = next((entry for entry in batch.entries if entry.damage), None)
    if damaged is None and _is_in_order(batch):
        return [decoded(entry.wire) for entry in batch.entries]
    which = f"message {damaged.number}" if damaged is not None and damaged.number else "something"
    raise InvalidValueError(
        f"the reduction that left {reference} cannot be undone: {which} in it is damaged; what is sound can be opened"
    )


def _is_in_order(batch: Batch) -> bool:
    """Say whether there is an entry for each message that was taken, and each was taken once."""
    free = taken = 0
    for removal in batch.removals:
        if removal.start < free or (removal.rewritten and (removal.taken != 1 or not removal.made)):
            return False
        free, taken = removal.start + removal.taken, taken + removal.taken
    return taken == len(batch.entries)


def _check(wires: list[Any], at: int, removal: Removal, reference: str) -> None:
    after = at + len(removal.made)
    # A list that became shorter has too few of them.
    is_made = after <= len(wires) and all(map(is_sealed, wires[at:after], removal.made, repeat(reference)))
    is_same = removal.after is None or [removal.after] == list(map(fingerprint, wires[after : after + 1]))
    if not (is_made and is_same):
        raise InvalidValueError(
            f"the reduction that left {reference} cannot be undone: around message {at + 1} the history was changed by "
            "somebody else since; what was removed is still in the archive"
        )


def _noted_as(now: Any, before: Any) -> Any:
    """Return a message as it was, with what others have noted on it by now: pins, say, or what it cost."""
    if not (_takes_notes(now) and _takes_notes(before)) or _of_others(now) == _of_others(before):
        return before
    said = {name: value for name, value in before.items() if name not in BESIDE}
    beside = {name: now[name] for name in BESIDE if name in now}
    own = {name: note for name, note in notes_in(before).items() if name in _OWN}
    return with_notes({**said, **beside}, {**own, **_notes_of_others(now)})


def _takes_notes(wire: Any) -> bool:
    return isinstance(wire, dict) and isinstance(wire.get("metadata"), (*MAPPING, type(None)))


def _of_others(wire: dict[str, Any]) -> list[Any]:
    """Return all that stands beside what a message says, without what holdfast noted there."""
    metadata = {name: value for name, value in (wire.get("metadata") or {}).items() if name != "custom"}
    return [metadata, wire.get("tracking_id"), _notes_of_others(wire)]


def _notes_of_others(wire: Any) -> dict[str, Any]:
    return {name: note for name, note in notes_in(wire).items() if name not in _OWN}
