"""The columns of tables: what they are called, and their cells in a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from holdfast.errors import InvalidValueError
from holdfast.selection.expressions import closest, listed
from holdfast.selection.row_filters import Getter

__all__ = ["JsonColumns", "SeparatedColumns", "is_header", "unique_names"]

_SAMPLE = 1_000
_MOST_LISTED = 40
_MOST_PARTS = 50
_NUMBERED = re.compile(r"column[_ ]([0-9]{1,6})", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[+-]?[0-9.,]*[0-9][0-9.,]*\s*%?\s*")


class SeparatedColumns:
    """Columns of rows that are lists of cells. ``column_3`` is the third, whatever it is called."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def getter(self, name: str) -> Getter:
        """Return what finds a column's cells; a cell that a row does not have is empty text."""
        place = self._place(name)
        return lambda cells: cells[place] if place < len(cells) else ""

    def all_cells(self, cells: list[str]) -> tuple[Any, ...]:
        """Return a cell for each column, and those beyond."""
        return (*cells, *[""] * (len(self._names) - len(cells)))

    def _place(self, name: str) -> int:
        if (known := _matching(name, self._names)) is not None:
            return self._names.index(known)
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None or int(numbered[1]) < 1:
            raise _unknown(name, self._names)
        return int(numbered[1]) - 1


class JsonColumns:
    """Columns of rows that are objects. ``a.b`` is the key b of the object under a; numbers are indexes of lists."""

    def __init__(self, names: Sequence[str], rows: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self._names = names
        self._rows = rows

    def getter(self, name: str) -> Getter:
        """Return what finds a column's cells; a cell that a row does not have is None."""
        if (known := _matching(name, self._names)) is not None:
            return lambda row: row.get(known)
        outer, *inner = name.split(".", _MOST_PARTS)
        outer = _matching(outer, self._names) or ""
        if not inner or not any(_inside(row.get(outer), inner) is not None for row in self._rows()):
            raise _unknown(name, [*self._inner_names(outer), *self._names])
        return lambda row: _inside(row.get(outer), inner)

    def all_cells(self, row: dict[str, Any]) -> tuple[Any, ...]:
        """Return a cell for each column."""
        return tuple(map(row.get, self._names))

    def _inner_names(self, outer: str) -> list[str]:
        values = (row.get(outer) for row in islice(self._rows(), _SAMPLE))
        return list(dict.fromkeys(f"{outer}.{key}" for value in values if isinstance(value, dict) for key in value))


def _inside(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _matching(name: str, names: Sequence[str]) -> str | None:
    """Return the column of that name, or the only one that has it in other letters, large or small."""
    if name in names:
        return name
    alike = [known for known in names if known.strip().lower() == name.strip().lower()]
    return alike[0] if len(alike) == 1 else None


def _unknown(name: str, names: Sequence[str]) -> InvalidValueError:
    near = closest(name, names)
    hint = f" Closest: {listed(near)}." if near else ""
    return InvalidValueError(f"unknown column {name!r:.100}.{hint} There are: {listed(names, _MOST_LISTED)}")


def unique_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each column: what stands there, made unique, or ``column_1`` and so on."""
    names: dict[str, None] = {}
    times: dict[str, int] = {}
    for number, cell in enumerate(cells, start=1):
        name = base = cell.strip() or f"column_{number}"
        while name in names:
            times[base] = times.get(base, 1) + 1
            name = f"{base}_{times[base]}"
        names[name] = None
    return tuple(names)


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row names the columns: no numbers, nothing twice, and nothing that stands below it."""
    first, *others = rows
    names = [cell for cell in first if cell.strip()]
    if not names or len(set(names)) < len(names) or any(_NUMBER.fullmatch(name) for name in names):
        return False
    return not any(name and name in row[place : place + 1] for row in others for place, name in enumerate(first))
