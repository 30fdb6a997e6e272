"""Previews of rows: tables of separated values, and JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from holdfast.previews.examples import one_line
from holdfast.previews.json_values import texts_of, told_texts
from holdfast.previews.quoting import counted, evenly, lines_of, written
from holdfast.previews.room import Room, shortened
from holdfast.previews.shape_lines import shape_lines, value_lines
from holdfast.previews.shapes import Place, opened
from holdfast.previews.tables import Table, read_table
from holdfast.previews.telling import Found, telling, with_rare_words

__all__ = ["preview_json_lines", "preview_table"]

_ENOUGH = 0.8
_SAMPLE = 200
_MOST_ROWS, _MOST_TEXTS = 2_000, 500
_LONGEST_ROW = 240
_COLUMNS = 0.4
_WORDS = 0.45
_HEAD, _TAIL = 2, 1


def preview_json_lines(text: str, room: Room) -> str | None:
    """Return the shape of all rows seen together, values, and the first and the last row."""
    lines = lines_of(text)
    filled = written(lines)
    if not _are_json([lines[index] for index in filled[:_SAMPLE]]):
        return None
    some = _some(filled)
    rows = _json_rows([(index + 1, lines[index]) for index in some])
    if len(rows) < _ENOUGH * len(some) or not rows:
        return None
    title = _json_title(len(rows), len(some), len(filled))
    write = partial(_json_lines, title, lines, rows)
    return with_rare_words(write, lines, room, share=_WORDS, numbers=True)


def _some(indices: Sequence[int]) -> list[int]:
    """Return all, or of very many the first, the last and some from everywhere."""
    return sorted({indices[at] for at in (*_ends(len(indices)), *evenly(len(indices), _MOST_ROWS))})


def _json_title(rows: int, looked_at: int, count: int) -> str:
    unread = f", {counted(looked_at - rows, 'line')} not JSON" if looked_at > rows else ""
    if looked_at == count:
        return f"JSON lines, {counted(rows, 'row')}{unread}; $ is a row"
    return f"JSON lines, {counted(count, 'line')}, of which {looked_at:,} were looked at{unread}; $ is a row"


def _json_lines(title: str, lines: Sequence[str], rows: Sequence[tuple[int, Any]], room: Room) -> list[str]:
    said = room.take_all([title])
    ends = _first_and_last([(rows[index][0], lines[rows[index][0] - 1]) for index in _ends(len(rows))], room)
    some = (rows[index] for index in evenly(len(rows), _MOST_TEXTS))
    texts = told_texts((found for number, row in some for found in texts_of(row, f"{number} $")), room)
    shape = shape_lines(opened("$", [row for _, row in rows], len(rows)), room)
    return [*said, *shape, *ends, *texts]


def _are_json(lines: Sequence[str]) -> bool:
    return len(_json_rows(enumerate(lines))) >= _ENOUGH * len(lines)


def _json_rows(lines: Iterable[tuple[int, str]]) -> list[tuple[int, Any]]:
    rows = []
    for number, line in lines:
        if not line.lstrip().startswith(("{", "[")):
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, (dict, list)):
            rows.append((number, row))
    return rows


def preview_table(text: str, room: Room) -> str | None:
    """Return the columns with the values in them, the first and last rows, and rows from in between."""
    if (table := read_table(text)) is None:
        return None
    return with_rare_words(lambda part: _table(table, part), lines_of(text), room, share=_WORDS, numbers=True)


def _table(table: Table, room: Room) -> list[str]:
    title = room.take_all([_title(table)])
    ends = _first_and_last(_rows_at(table, _ends(len(table.rows))), room)
    places = [Place(name, values, len(values)) for name, values in table.typed_columns()]
    columns = room.within(_COLUMNS, lambda part: value_lines(places, part))
    note = "from between, by line; cells that other rows share may be left out:"
    between = telling(_own_cells(table), room, rare_only=False) if room.take(note) else []
    return [*title, *columns, *ends, *([note, *between] if between else [])]


def _title(table: Table) -> str:
    separator = {"\t": "tab"}.get(table.separator, table.separator)
    header = "" if table.header else ", no header"
    widths = {len(cells) for _, cells in table.rows}
    uneven = f" of {min(widths)} to {max(widths)} cells" if len(widths) > 1 else ""
    some = f" ({len(table.rows):,} of them looked at)" if len(table.rows) < table.count else ""
    rows = f"{counted(table.count, 'row')}{some}{uneven}"
    return f"table, {rows}, {counted(len(table.names), 'column')}, separator {separator}{header}"


def _rows_at(table: Table, indexes: Iterable[int]) -> list[tuple[int, str]]:
    return [(number, table.separator.join(cells)) for number, cells in (table.rows[index] for index in indexes)]


def _ends(count: int) -> list[int]:
    return [*range(min(_HEAD, count)), *range(max(count - _TAIL, _HEAD), count)]


def _first_and_last(rows: Sequence[tuple[int, str]], room: Room) -> list[str]:
    return room.take_all(f"{number}: {shortened(one_line(row), _LONGEST_ROW)}" for number, row in rows)


def _own_cells(table: Table) -> list[Found]:
    """Return rows from in between, those with text of their own without the cells that they share with others."""
    counts = list(map(Counter, table.columns))
    found = []
    for number, cells in table.rows[_HEAD:-_TAIL]:
        own = [cell for cell, count in zip(cells, counts, strict=False) if count[cell] == 1]
        shown = own if any(_has_letters(cell) for cell in own) else cells
        found.append((str(number), table.separator.join(shown)))
    return found


def _has_letters(cell: str) -> bool:
    return any(map(str.isalpha, cell[:40]))
