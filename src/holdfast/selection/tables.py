"""Tables in text: CSV, TSV and JSON lines, their columns, and the rows that are asked for.

Rows are read anew each time: a table takes no more memory than its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from holdfast.errors import InvalidValueError
from holdfast.selection.columns import JsonColumns, SeparatedColumns, is_header, unique_names
from holdfast.selection.row_filters import Getter, row_condition
from holdfast.selection.table_rows import Faults, best_delimiter, json_rows, looks_like_json_lines, separated_rows

__all__ = ["Row", "RowsPage", "Table", "select_rows"]

_JSON_LINES = re.compile(r"jsonl|ndjson|json-?lines|json-seq", re.IGNORECASE)
_TABS = re.compile(r"tab-separated|tsv", re.IGNORECASE)
_SEPARATED = re.compile(r"csv|comma-separated|semicolon-separated", re.IGNORECASE)
_SAMPLE = 50
_LEAST_SHARE = 0.9
_HEAD = 1 << 18  # Characters in which the first rows are looked for.


@dataclass(frozen=True)
class Row:
    """The cells of one row: text, or any value of JSON. `line` is where it begins, from 1."""

    line: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class RowsPage:
    """Some of the rows that were asked for, and how many there are. `note` says what was wrong with the table."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    offset: int
    total_matching: int
    total_rows: int
    note: str

    @property
    def next_offset(self) -> int | None:
        """The offset that continues this page, or None after the last row."""
        end = self.offset + len(self.rows)
        return end if self.rows and end < self.total_matching else None


@dataclass(frozen=True)
class Table:
    """A text read as rows. `row_count` is without the header; `note` says what was wrong, in words, or is empty."""

    text: str = field(repr=False)
    columns: tuple[str, ...]
    row_count: int
    note: str
    delimiter: str | None
    has_header: bool

    @staticmethod
    def read(text: str, content_type: str = "text/plain") -> Table | None:
        """Return the table that a text is, or None. What the content type does not tell is seen in the first rows."""
        head = text[:_HEAD]
        if _JSON_LINES.search(content_type) or looks_like_json_lines(head):
            return _json_table(text)
        if _TABS.search(content_type):
            return _separated_table(text, "\t")
        delimiter, share = best_delimiter(head)
        if _SEPARATED.search(content_type):
            return _separated_table(text, delimiter if share else ",")
        if share < _LEAST_SHARE or text[:1] in ("{", "["):
            return None
        return _separated_table(text, delimiter, declared=False)

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Yield rows as they stand there, a list of cells or an object, each with the line it begins in."""
        if self.delimiter is None:
            return json_rows(self.text, Faults())
        rows = separated_rows(self.text, self.delimiter, Faults(), len(self.columns))
        return islice(rows, 1 if self.has_header else 0, None)

    def getter(self, name: str) -> Getter:
        """Return what finds the cells of a column. An unknown column is an error that names those there are."""
        return self._known().getter(name)

    def all_cells(self) -> Callable[[Any], tuple[Any, ...]]:
        """Return what turns a row into all of its cells."""
        return self._known().all_cells

    def _known(self) -> JsonColumns | SeparatedColumns:
        if self.delimiter is None:
            return JsonColumns(self.columns, lambda: (row for _, row in self.rows()))
        return SeparatedColumns(self.columns)


def select_rows(
    table: Table, columns: Sequence[str] | None = None, where: str | None = None, *, limit: int, offset: int = 0
) -> RowsPage:
    """Return *limit* of the rows for which *where* holds, from *offset* on, with these columns or all of them."""
    if limit < 0 or offset < 0:
        raise InvalidValueError(f"limit and offset must be 0 or more, got {limit} and {offset}")
    cells = table.all_cells() if columns is None else _chosen_cells([table.getter(name) for name in columns])
    wanted = row_condition(where, table.getter) if where is not None else _always
    rows: list[Row] = []
    total = 0
    for line, row in table.rows():
        if wanted(row):
            total += 1
            if offset < total <= offset + limit:
                rows.append(Row(line, cells(row)))
    names = table.columns if columns is None else tuple(columns)
    return RowsPage(names, tuple(rows), offset, total, table.row_count, table.note)


def _always(row: Any) -> bool:
    return True


def _chosen_cells(getters: Sequence[Getter]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda row: tuple([getter(row) for getter in getters])


def _json_table(text: str) -> Table | None:
    faults = Faults()
    columns: dict[str, None] = {}
    count = 0
    for _, row in json_rows(text, faults):
        columns.update(dict.fromkeys(row))
        count += 1
    return Table(text, tuple(columns), count, faults.told(), None, False) if count else None


def _separated_table(text: str, delimiter: str, *, declared: bool = True) -> Table | None:
    sample = [cells for _, cells in islice(separated_rows(text, delimiter, Faults()), _SAMPLE)]
    if len(sample) < (1 if declared else 2):
        return None
    has_header = is_header(sample)
    columns = unique_names(sample[0] if has_header else [""] * max(map(len, sample)))
    faults = Faults()
    count = uneven = 0
    for line, cells in separated_rows(text, delimiter, faults, len(columns)):
        count += 1
        if len(cells) != len(columns):
            uneven += 1
            faults.add(f"with {'more' if len(cells) > len(columns) else 'fewer'} cells than there are columns", line)
    if not declared and count - uneven < _LEAST_SHARE * count:
        return None
    return Table(text, columns, count - has_header, faults.told(), delimiter, has_header)
