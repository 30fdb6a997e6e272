"""One batch: the messages that one reduction took out or rewrote, and where they stood.

It is stored as lines of JSON: what is known of all of them first, then each message on a line of its own. So a message
that somebody damaged costs no other, and no step of reading or writing takes longer than one message does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, NamedTuple

from holdfast.checks import LARGEST, is_count
from holdfast.errors import DamagedContentError, InvalidValueError

__all__ = ["BATCH_TYPE", "MOST_NAMED", "Batch", "Entry", "Removal", "Seal"]

BATCH_TYPE = "application/vnd.holdfast.batch+jsonl"
MOST_NAMED = 100
"""How many batches before it a batch names. The oldest of them names those before that."""

_VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One message as it was. *wire* is encoded, see `holdfast.batches.encoding`.

    *number* counts the conversation's messages from 1, and is None for what holdfast itself had put there. *tools* has
    the names of those whose results it holds, by the id of the call. *original* is where the message is stored as it
    was before anything of it was left out, if something was. If somebody changed it after that, that is *changed_from*,
    and this is another message, stored whole. With *damage*, which says why, there is no wire.
    """

    wire: Any = field(repr=False)
    number: int | None
    turn: int = 0
    at: float | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    original: str | None = None
    damage: str = ""
    changed_from: str | None = None


class Seal(NamedTuple):
    """What tells a message from others: of all that it says, without a name that stands at *gaps*."""

    digest: str
    gaps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Removal:
    """A place in the history before the reduction: *start* and how many messages were taken from there.

    *made* tells each that was put there from others: none, the marker and what has to stand beside it, or one that was
    *rewritten*. *after* tells the message that came next, None if there was none.
    """

    start: int
    taken: int
    made: tuple[Seal, ...] = ()
    rewritten: bool = False
    after: str | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a reduction took: entries in the order of the removals. *before* are the latest batches before, in order.

    *lost* are messages, from one number to another, that left before and could not be stored. *size* is how many bytes
    it was read from.
    """

    dialect: str
    entries: tuple[Entry, ...]
    removals: tuple[Removal, ...]
    before: tuple[str, ...] = ()
    reason: str = ""
    lost: tuple[tuple[int, int], ...] = ()
    size: int = field(default=0, compare=False)

    def has_lost(self, number: str) -> bool:
        """Say whether a message, or the one that a part is of, is known to be lost."""
        message = number.partition(".")[0]
        return message.isdecimal() and any(first <= int(message) <= last for first, last in self.lost)

    def written(self) -> bytes:
        """Return it as it is stored."""
        head = {
            "holdfast_batch": _VERSION,
            "dialect": self.dialect,
            "reason": self.reason,
            "before": self.before,
            "lost": self.lost,
            "removals": [[one.start, one.taken, one.made, one.rewritten, one.after] for one in self.removals],
            "entries": list(map(_row, self.entries)),
        }
        # The place is said on each line: one that is torn in two does not move those after it.
        return b"\n".join([_line(head), *(_line([place, entry.wire]) for place, entry in enumerate(self.entries))])

    @staticmethod
    def read(content: bytes) -> Batch:
        """Return what was stored, as far as it can be read. Raises DamagedContentError if that is not even the head."""
        lines = BytesIO(content)
        try:
            return replace(_batch(_value(next(lines, b"")), _wires(lines)), size=len(content))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DamagedContentError(f"this is no batch of messages, or it is damaged: {error!s:.120}") from error


def _row(entry: Entry) -> list[Any]:
    changed = [] if entry.changed_from is None else [entry.changed_from]
    return [entry.number, entry.turn, entry.at, dict(entry.tools), entry.original, *changed]


def _line(value: Any) -> bytes:
    # Lone surrogates are no UTF-8, and yet a tool may have said them.
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"a message cannot be written as JSON: {error!r:.120}") from error


def _value(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))


def _wires(lines: Iterable[bytes]) -> dict[int, Any]:
    """Return the messages that can be read, by their places. Of two for one place, the one that stands there is it."""
    found: dict[int, Any] = {}
    for at, line in enumerate(lines):
        with suppress(ValueError, RecursionError):
            match _value(line):
                case [int(place), wire] if at == place or place not in found:
                    found[place] = wire
    return found


def _batch(head: Any, wires: Mapping[int, Any]) -> Batch:
    match head:
        case {
            "holdfast_batch": 1,
            "dialect": str(dialect),
            "reason": str(reason),
            "before": list(before),
            "removals": list(removals),
            "entries": list(entries),
        } if _are_strings(before):
            return Batch(
                dialect=dialect,
                entries=tuple(_entry(value, wires, place) for place, value in enumerate(entries)),
                removals=tuple(map(_removal, removals)),
                before=tuple(before[-MOST_NAMED:]),
                reason=reason,
                lost=tuple(map(_range, head.get("lost", []))),
            )
    raise InvalidValueError("it has another form")


def _entry(value: Any, wires: Mapping[int, Any], place: int) -> Entry:
    damage = "" if place in wires else "it is missing in what is stored, or no longer what was stored"
    match value:
        case [
            (int() | None) as number,
            int(turn),
            (int() | float() | None) as at,
            dict(tools),
            (str() | None) as original,
            *changed,
        ] if _are_counts(number or 0, turn) and 0 <= (at or 0) <= LARGEST and _are_strings([*tools.values(), *changed]):
            return Entry(wires.get(place), number, turn, at, tools, original, damage, *changed[:1])
    raise InvalidValueError("an entry has another form")


def _are_strings(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_counts(*values: Any) -> bool:
    return all(map(is_count, values))


def _range(value: Any) -> tuple[int, int]:
    match value:
        case [first, last] if _are_counts(first, last):
            return first, last
    raise InvalidValueError("a range has another form")


def _removal(value: Any) -> Removal:
    match value:
        case [start, taken, list(made), bool(rewritten), (str() | None) as after] if _are_counts(start, taken):
            return Removal(start, taken, tuple(map(_seal, made)), rewritten, after)
    raise InvalidValueError("a removal has another form")


def _seal(value: Any) -> Seal:
    match value:
        case [str(digest), list(gaps)] if _are_counts(*gaps):
            return Seal(digest, tuple(gaps))
    raise InvalidValueError("a seal has another form")
