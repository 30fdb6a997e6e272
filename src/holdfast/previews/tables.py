"""Tables read from separated values, whatever is wrong with their quotes."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

from holdfast.previews.quoting import evenly, lines_of

__all__ = ["Row", "Table", "read_table"]

# The number of the line on which a row begins, and its cells.
Row = tuple[int, list[str]]
# The index of the first line of a row, and of the line after its last.
Span = tuple[int, int]

_SEPARATORS = (",", "\t", ";", "|")
_SAMPLE = 200
_MOST_COLUMNS = 1000
_MOST_LINES_OF_A_ROW = 50
_LONGEST_QUOTED_ROW = 100_000
_ROWS_BELOW = 50
_MOST_ROWS = 2_000


@dataclass(frozen=True)
class Table:
    """Rows below the header, each with the line on which it begins. Without a header, columns have numbers.

    Of very many rows, the first, the last and some that are spread evenly are there; *count* is the number of all.
    """

    separator: str
    header: Sequence[str] | None
    rows: Sequence[Row]
    count: int

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns: as many as the widest row has cells."""
        given = self.header or []
        width = max(len(given), *(len(cells) for _, cells in self.rows)) if self.rows else len(given)
        return [name.strip() or f"column {at + 1}" for at, name in enumerate([*given, *[""] * (width - len(given))])]

    @cached_property
    def columns(self) -> list[tuple[str, ...]]:
        """The cells of each column; of very wide tables, of the first 1,000."""
        return list(zip_longest(*(cells[:_MOST_COLUMNS] for _, cells in self.rows), fillvalue=""))

    def typed_columns(self) -> list[tuple[str, list[Any]]]:
        """Return the values of each column, as numbers where all that is there is numbers, empty cells as None."""
        return list(zip(self.names, map(_typed, self.columns), strict=False))


def read_table(text: str) -> Table | None:
    """Return the table that a text is, or None if its lines do not have the same columns."""
    lines = lines_of(text)
    if (separator := _separator(lines)) is None:
        return None
    spans = _spans(lines, has_quotes='"' in text)
    rows = [(start + 1, _cells("\n".join(lines[start:end]), separator)) for start, end in _some(spans)]
    width, count = Counter(len(cells) for _, cells in rows).most_common(1)[0]
    if width < 2 or count < len(rows) / 2 or len(rows) < 2:
        return None
    if _is_header(rows[0][1], rows[1:]):
        return Table(separator, rows[0][1], rows[1:], len(spans) - 1)
    return Table(separator, None, rows, len(spans))


def _some(spans: Sequence[Span]) -> Sequence[Span]:
    """Return all, or of very many the first, some from everywhere, and the last."""
    if len(spans) <= _MOST_ROWS + 2 * _ROWS_BELOW:
        return spans
    between = spans[_ROWS_BELOW:-_ROWS_BELOW]
    some = [between[at] for at in evenly(len(between), _MOST_ROWS)]
    return [*spans[:_ROWS_BELOW], *some, *spans[-_ROWS_BELOW:]]


def _separator(lines: Sequence[str]) -> str | None:
    """Return the separator that stands equally often in most of the first lines."""
    first = [line for line in lines[: _SAMPLE * 2] if line.strip()][:_SAMPLE]
    best = max(_SEPARATORS, key=lambda separator: _agreement(first, separator))
    return best if first and _agreement(first, best) >= 0.5 else None


def _agreement(lines: Sequence[str], separator: str) -> float:
    widths = Counter(len(_cells(line, separator)) for line in lines)
    return max((count / len(lines) for width, count in widths.items() if width > 1), default=0.0)


def _spans(lines: Sequence[str], *, has_quotes: bool) -> list[Span]:
    """Return where each row that is not blank begins and ends."""
    if not has_quotes:
        return [(at, at + 1) for at, line in enumerate(lines) if line and not line.isspace()]
    is_odd = [line.count('"') % 2 for line in lines]
    spans: list[Span] = []
    at = 0
    while at < len(lines):
        end = _end_of_row(is_odd, at) if is_odd[at] else at + 1
        if end > at + 1 or not (lines[at] == "" or lines[at].isspace()):
            spans.append((at, end))
        at = end
    return spans


def _end_of_row(is_odd: list[int], start: int) -> int:
    """Return where the row ends whose first line opens a quote; one that none of the next lines closes is text."""
    try:
        return is_odd.index(1, start + 1, start + _MOST_LINES_OF_A_ROW) + 1
    except ValueError:
        return start + 1


def _cells(row: str, separator: str) -> list[str]:
    if '"' not in row or row.count('"') % 2 or len(row) > _LONGEST_QUOTED_ROW:
        return row.rstrip("\r").split(separator)
    try:
        return next(csv.reader([row.replace("\r", " ").replace("\0", " ")], delimiter=separator), [])
    except csv.Error:
        return row.split(separator)


def _is_header(first: Sequence[str], rows: Sequence[Row]) -> bool:
    """Tell whether the first row names the columns: words only, each once, and not what stands below them."""
    names = [name for name in first if name.strip()]
    if len(set(names)) < len(names) or len(names) < len(first) - 1 or any(_number(name) is not None for name in names):
        return False
    below = [cells for _, cells in rows[:_ROWS_BELOW]]
    return not any(name and at < len(cells) and cells[at] == name for cells in below for at, name in enumerate(first))


def _typed(cells: Sequence[str]) -> list[Any]:
    values: dict[str, Any] = {cell: cell.strip() or None for cell in set(cells)}
    numbers = {cell: _number(filled) if filled else None for cell, filled in values.items()}
    if all(number is not None or values[cell] is None for cell, number in numbers.items()):
        values = numbers
    return [values[cell] for cell in cells]


def _number(cell: str) -> float | None:
    if len(cell) > 40 or "_" in cell or (cell[:1] == "0" and cell[1:2].isdigit()):
        return None
    try:
        return float(cell) if "." in cell or "e" in cell.lower() or "n" in cell.lower() else int(cell)
    except ValueError:
        return None
