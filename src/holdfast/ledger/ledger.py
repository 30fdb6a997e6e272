"""Keeps the latest records of one conversation, counts all of them, and tells whoever wants to know."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar, overload

from holdfast.errors import InvalidTypeError
from holdfast.ledger.checks import checked_number
from holdfast.ledger.kinds import ByKind, Subscribe, class_of
from holdfast.ledger.records import OffloadRecord, Record, ReductionRecord, UndoRecord
from holdfast.ledger.restoring import ReadState
from holdfast.ledger.showing import shown
from holdfast.ledger.telling import Subscribers
from holdfast.ledger.totals import Total, totals_of

__all__ = ["Ledger"]

logger = logging.getLogger(__name__)

_R = TypeVar("_R", bound=Record)

_RECORDS_IN_STATE, _CHARACTERS_IN_STATE = 25, 8_000
# What left, and whether it came back, is worth more later than what was looked up. Many look-ups displace none of it.
_LEAVING, _LEAVING_IN_STATE = (ReductionRecord, OffloadRecord, UndoRecord), 15


class Ledger(ByKind):
    """The records of one conversation, oldest first: the latest *limit* of them, numbered over its whole life.

    `turn` is written into each record; whoever owns the conversation advances it. `totals` count what is no longer held
    too. *clock* returns seconds since the epoch. Several threads may add: a storage may evict in one of its own.
    """

    def __init__(self, limit: int = 1_000, clock: Callable[[], float] = time.time) -> None:
        self.limit = checked_number("limit", limit, at_least=1)
        self.turn = 0
        self._clock = clock
        self._records: deque[Record] = deque(maxlen=limit)
        self._totals = totals_of(())
        self._latest = 0
        self._subscribers = Subscribers()
        self._lock = threading.RLock()

    def add(self, kind: type[_R] | str, **values: Any) -> _R:
        """Record what happened just now, and tell of it. Number, time and turn are filled in."""
        with self._lock:
            made: _R = class_of(kind)(number=self._latest + 1, at=self._clock(), turn=self.turn, **values)
            self._latest = made.number
            self._totals[made.kind] = self._totals[made.kind].plus(made)
            self._records.append(made)
        self._subscribers.tell(made)
        return made

    @property
    def on(self) -> Subscribe:
        """``on(kind, callback)`` has *callback* called with each new record of a kind, "*" for all.

        Call what is returned to end that. An error of a callback is logged and does no harm. What callbacks add is told
        when all know of the record before, up to 100 records; none is told of what it brought about itself.
        """
        return self._subscribe

    @property
    def totals(self) -> dict[str, Total]:
        """What there ever was, by kind."""
        return dict(self._totals)

    @property
    def forgotten(self) -> int:
        """How many older records are no longer held."""
        return self._latest - len(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._held)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...

    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        return self._held[index]

    def __str__(self) -> str:
        totals = {kind: (total.count, total.tokens_saved) for kind, total in self._totals.items()}
        return shown(self._held, totals, self.forgotten)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return self._as_json([record.as_json() for record in self._held])

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON: totals, and 25 records as far as 8 KB hold them.

        These are the latest 15 of what left or came back, and else the latest.
        """
        kept: list[dict[str, Any]] = []
        room = _CHARACTERS_IN_STATE
        for record in _for_state(self._held[::-1]):
            written = record.as_json(brief=True)
            room -= len(json.dumps(written)) + 2
            if room < 0 and kept:
                break
            kept.append(written)
        return self._as_json(sorted(kept, key=itemgetter("number")))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` or `as_json` returned, also in another version.

        What cannot be read of it is skipped, which is logged; numbers go on after the largest that is known.
        """
        if not isinstance(state, Mapping):
            raise InvalidTypeError(f"state must be what get_state() returned, got {type(state).__name__}")
        read = ReadState(state, self.limit)
        if read.skipped or read.others:
            logger.warning(
                "the ledger of this session is damaged or from another version; "
                f"records skipped: {read.skipped:,}, other values: {read.others:,}"
            )
        with self._lock:
            self.turn, self._totals, self._latest = read.turn, read.totals, read.latest
            self._records = deque(read.records, maxlen=self.limit)

    @property
    def _held(self) -> tuple[Record, ...]:
        with self._lock:
            return tuple(self._records)

    def _subscribe(self, kind: Any, callback: Callable[[Any], object]) -> Callable[[], None]:
        return self._subscribers.add(Record if kind in ("*", Record) else class_of(kind), callback)

    def _as_json(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        totals = {kind: asdict(total) for kind, total in self._totals.items() if total.count}
        return {"turn": self.turn, "totals": totals, "forgotten": self._latest - len(records), "records": records}


def _for_state(latest_first: Sequence[Record]) -> Iterator[Record]:
    """Yield the records that a session saves, the most important first."""
    leaving = list(islice((record for record in latest_first if isinstance(record, _LEAVING)), _LEAVING_IN_STATE))
    numbers = {record.number for record in leaving}
    others = (record for record in latest_first if record.number not in numbers)
    yield from leaving
    yield from islice(others, _RECORDS_IN_STATE - len(leaving))
