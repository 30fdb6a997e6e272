"""Entries as people read them: in order, in columns, and added up. Pure: entries go in, lines and figures come out."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from rich.cells import cell_len, set_cell_size
from rich.filesize import decimal

from holdfast.cli.quantities import duration_text
from holdfast.cli.terminal import printable
from holdfast.storage import Entry

__all__ = ["ORDERS", "Amount", "Usage", "aligned", "amounts", "columns", "in_order", "usage"]

_Key = Callable[[Entry], tuple[float, str]]

ORDERS: dict[str, _Key | None] = {
    "stored": lambda entry: (entry.stored_at, entry.reference),
    "used": lambda entry: (entry.last_used, entry.reference),
    "size": lambda entry: (-entry.size, entry.reference),
    "none": None,
}
_HEADLINE = ("stored", "last used", "size", "type", "key", "reference")
_TO_THE_RIGHT = (2,)
_ALIGNED_TOGETHER = 1_000
_AGES = (("under 1h", 3_600), ("1h to 1d", 86_400), ("1d to 7d", 604_800), ("7d to 30d", 2_592_000))
_OLDER = "over 30d"


@dataclass
class Amount:
    """So many entries, of so many bytes."""

    entries: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        """Count one more."""
        self.entries += 1
        self.bytes += size

    def __str__(self) -> str:
        return f"{self.entries:,} {'entry' if self.entries == 1 else 'entries'}, {decimal(self.bytes)}"


@dataclass
class Usage:
    """What a store holds: all of it, by content type, the largest first, and by the time since it was stored.

    What is not of the size that it was stored with is apart from all that.
    """

    total: Amount = field(default_factory=Amount)
    wrong_size: Amount = field(default_factory=Amount)
    by_type: dict[str, Amount] = field(default_factory=dict)
    by_age: dict[str, Amount] = field(default_factory=lambda: {label: Amount() for label in (*dict(_AGES), _OLDER)})


def in_order(entries: Iterable[Entry], order: str, *, backwards: bool, limit: int | None) -> Iterable[Entry]:
    """Sort by one of `ORDERS`. With a *limit*, no more than that are held; unsorted, none are."""
    key = ORDERS[order]
    if key is None:
        return islice(entries, limit)
    if limit is None:
        return sorted(entries, key=key, reverse=backwards)
    return (heapq.nlargest if backwards else heapq.nsmallest)(limit, entries, key=key)


def columns(entries: Iterable[Entry], now: float, *, widest: int) -> Iterator[str]:
    """Yield a line for each entry, below a headline. References are never cut; types and keys are cut at *widest*."""
    return aligned(chain([_HEADLINE], (_cells(entry, now, widest) for entry in entries)), to_the_right=_TO_THE_RIGHT)


def aligned(rows: Iterable[Sequence[str]], *, to_the_right: Sequence[int] = ()) -> Iterator[str]:
    """Yield *rows* as lines in columns, as wide as the rows so far need. Any number of rows passes through."""
    rows, widths = iter(rows), [0] * len(_HEADLINE)
    while some := [tuple(map(printable, row)) for row in islice(rows, _ALIGNED_TOGETHER)]:
        for row in some:
            widths = [max(width, cell_len(text)) for text, width in zip(row, widths, strict=False)]
        for row in some:
            cells = enumerate(zip(row, widths, strict=True))
            yield "  ".join(_padded(text, width, place in to_the_right) for place, (text, width) in cells).rstrip()


def amounts(named: Iterable[tuple[str, Amount]]) -> Iterator[str]:
    """Yield a line for each amount."""
    rows = ((name, f"{amount.entries:,}", decimal(amount.bytes)) for name, amount in named)
    return aligned(rows, to_the_right=(1, 2))


def usage(entries: Iterable[Entry], now: float) -> Usage:
    """Add up."""
    found = Usage()
    for entry in entries:
        found.total.add(entry.size)
        found.by_type.setdefault(_essence(entry.content_type), Amount()).add(entry.size)
        found.by_age[_age_group(now - entry.stored_at)].add(entry.size)
    found.by_type = dict(sorted(found.by_type.items(), key=lambda named: -named[1].bytes))
    return found


def _cells(entry: Entry, now: float, widest: int) -> tuple[str, ...]:
    return (
        f"{duration_text(now - entry.stored_at)} ago",
        f"{duration_text(now - entry.last_used)} ago",
        decimal(entry.size),
        _cut(_essence(entry.content_type), widest),
        _cut(entry.key, widest),
        entry.reference,
    )


def _essence(content_type: str) -> str:
    """Return a content type without its parameters."""
    return content_type.partition(";")[0].strip() or "unknown"


def _age_group(age: float) -> str:
    return next((label for label, limit in _AGES if age < limit), _OLDER)


def _cut(text: str, width: int) -> str:
    text = printable(text)
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _padded(text: str, width: int, to_the_right: bool) -> str:
    blank = " " * (width - cell_len(text))
    return blank + text if to_the_right else text + blank
