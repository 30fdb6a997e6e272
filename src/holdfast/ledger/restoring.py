"""What a session kept of a ledger, read as far as it can be: it may be of another version, or damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.checks import is_count
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.ledger.records import Record, record_from
from holdfast.ledger.totals import Total, totals_of

__all__ = ["ReadState"]

# No ledger counts that far, and from there another can go on without end.
_MOST = 2**53
_PARTS = frozenset({"turn", "totals", "forgotten", "records"})


class ReadState:
    """What could be read of a state: up to so many of the latest records. *skipped* ones could not be, nor *others*.

    *latest* is the largest number that is known of any record, so that no number comes twice.
    """

    def __init__(self, state: Mapping[str, Any], most: int) -> None:
        self.skipped = 0
        self.others = len(state.keys() - _PARTS)
        given = self._part(state, "records", list, [])
        self.records = self._records(given[-most:])
        self.totals = totals_of(self.records)
        counted = self._read_totals(self._part(state, "totals", Mapping, {}))
        self.turn = self._count(state, "turn", default=max((record.turn for record in self.records), default=0))
        numbered = max((_number_of(record) for record in given), default=0)
        forgotten = self._count(state, "forgotten", default=0)
        self.latest = min(max(numbered, counted, forgotten + len(given)), _MOST)

    def _part(self, state: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
        part = state.get(name, default)
        if isinstance(part, kind):
            return part
        self.others += 1
        return default

    def _count(self, state: Mapping[str, Any], name: str, *, default: int) -> int:
        if name not in state:
            return default
        if is_count(given := state[name], most=_MOST):
            return given
        self.others += 1
        return default

    def _records(self, given: list[Any]) -> list[Record]:
        """Return those that can be read by their numbers; of two with the same the first."""
        found: dict[int, Record] = {}
        for value in given:
            record = _record(value)
            if record is None or record.number in found:
                self.skipped += 1
            else:
                found[record.number] = record
                self.others += len(value.keys() - record.as_json().keys())
        return [found[number] for number in sorted(found)]

    def _read_totals(self, given: Mapping[Any, Any]) -> int:
        """Take over totals that count what is held at least; return how many records all of them count."""
        counted = 0
        for kind, value in given.items():
            total = _total(value)
            if total is None or kind not in self.totals:
                self.others += 1
            else:
                self.others += len(value.keys() - {"count", "tokens_saved"})
                self.totals[kind] = max(total, self.totals[kind], key=lambda one: one.count)
            counted += total.count if total else 0
        return max(counted, sum(total.count for total in self.totals.values()))


def _number_of(value: object) -> int:
    """Return the number of a record, of whatever kind; 0 if it has none."""
    number = value.get("number") if isinstance(value, Mapping) else None
    return number if is_count(number, most=_MOST) else 0


def _record(value: object) -> Record | None:
    try:
        record = record_from(value)
    except InvalidValueError:
        return None
    return record if max(record.number, record.turn) <= _MOST else None


def _total(value: object) -> Total | None:
    if not isinstance(value, Mapping):
        return None
    try:
        total = Total(value.get("count", 0), value.get("tokens_saved", 0))
    except (InvalidTypeError, InvalidValueError):
        return None
    # What counts nothing saved nothing.
    return (total if total.count else Total()) if total.count <= _MOST else None
