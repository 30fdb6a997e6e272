"""Rows of CSV, TSV and JSON lines with the lines they begin in, read one by one, whatever is wrong with them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from holdfast.gentle_json import loads_in_steps

__all__ = ["Faults", "best_delimiter", "json_rows", "looks_like_json_lines", "separated_rows"]

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 50
_LEAST_SHARE = 0.9
_LONGEST_ROW = 200_000  # Characters of a row of several lines. A quote that nobody closes swallows no more than that.
_MOST_BROKEN = 200
_SUSPICIOUS = 3
_LARGE_LINE = 100_000


class Faults:
    """What was wrong in how many rows, and where first."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, what: str, line: int) -> None:
        """Count one more row, which begins in this line."""
        count, first = self._found.get(what, (0, line))
        self._found[what] = (count + 1, first)

    def told(self) -> str:
        """Return all of it in words, or an empty text."""
        return " ".join(
            f"{count:,} {'row' if count == 1 else 'rows'} (first: line {first:,}) {what}."
            for what, (count, first) in self._found.items()
        )


class _Lines:
    """The lines of a text, with their ends. Reading can go back to where a row began, and ends in an endless row."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 1 if text.startswith("\ufeff") else 0
        self._row_start = (self._position, 0)
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.at_end:
            raise StopIteration
        start = self._position
        if start - self._row_start[0] > _LONGEST_ROW:
            raise csv.Error("this row is too long")
        self._position = self._text.find("\n", start) + 1 or len(self._text)
        self.number += 1
        return self._text[start : self._position]

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._text)

    @property
    def only_one(self) -> bool:
        """Tell whether the line that was read is all there is."""
        return self.number == 1 and self.at_end

    def start_row(self) -> int:
        self._row_start = (self._position, self.number)
        return self.number + 1

    def row(self) -> str:
        """Return all that was read since the row began."""
        return self._text[self._row_start[0] : self._position]

    def back_to_row(self) -> None:
        self._position, self.number = self._row_start


def separated_rows(text: str, delimiter: str, faults: Faults, width: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row with the line that it begins in. Empty lines are no rows.

    A row whose quotes are broken ends with its line. If a *width* is given, so does one of several lines that has
    another number of cells, or holds lines that have it: a quote too many joined what does not belong together.
    """
    lines = _Lines(text)
    for _ in range(_MOST_BROKEN):
        yield from _sound_rows(lines, delimiter, width)
        if lines.at_end:
            return
        faults.add("with broken quotes: read up to the end of the line", lines.start_row())
        yield lines.number + 1, _cells_of(next(lines), delimiter)
    faults.add("after which every line was read on its own, as quotes are broken too often", lines.number)
    while not lines.at_end:
        line = lines.start_row()
        if (text_of_row := next(lines)).strip():
            yield line, _cells_of(text_of_row, delimiter)


def _sound_rows(lines: _Lines, delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield rows up to the end, or up to the start of a broken one."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while not lines.at_end:
        line = lines.start_row()
        try:
            cells = next(reader)
        except csv.Error:
            return lines.back_to_row()
        if width and lines.number > line and (len(cells) != width or _holds_rows(lines.row(), delimiter, width)):
            return lines.back_to_row()
        if cells:
            yield line, cells


def _holds_rows(row: str, delimiter: str, width: int) -> bool:
    """Tell whether the lines within a row look like rows themselves."""
    inner = row.rstrip("\n").split("\n")[1:-1]
    return len(inner) >= _SUSPICIOUS and all(line.count(delimiter) == width - 1 and '"' not in line for line in inner)


def _cells_of(line: str, delimiter: str) -> list[str]:
    line = line.rstrip("\r\n")
    if line.count('"') % 2 == 0:
        try:
            return next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            pass
    return line.split(delimiter)


def best_delimiter(text: str) -> tuple[str, float]:
    """Return the delimiter that gives most of the first rows the same number of cells, two or more, and their share."""
    shares = [(delimiter, _share_of_equal_rows(text, delimiter)) for delimiter in _DELIMITERS]
    return max(shares, key=lambda pair: pair[1])


def _share_of_equal_rows(text: str, delimiter: str) -> float:
    sample = islice(separated_rows(text, delimiter, Faults()), _SAMPLE)
    widths = Counter(len(cells) for _, cells in sample)
    return max((count / widths.total() for width, count in widths.items() if width > 1), default=0.0)


def looks_like_json_lines(text: str) -> bool:
    """Tell whether there are several lines, and of the first ones nearly every one is an object or a list."""
    lines = _Lines(text)
    sample: list[bool] = []
    while not lines.at_end and len(sample) < _SAMPLE:
        lines.start_row()
        if line := next(lines).strip():
            sample.append(line[0] in "{[" and not lines.only_one and _parsed(line) is not None)
            if not sample[0]:
                return False
    return len(sample) > 1 and sum(sample) >= _LEAST_SHARE * len(sample)


def json_rows(text: str, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each line with the line's number; what is none stands under ``value``."""
    lines = _Lines(text)
    while not lines.at_end:
        number = lines.start_row()
        line = next(lines).strip()
        if not line:
            continue
        if (row := _parsed(line)) is None:
            faults.add("that are no JSON: left out", number)
        else:
            yield number, row


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        value = loads_in_steps(line) if len(line) > _LARGE_LINE else json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else {"value": value}
