"""Conditions on rows: ``price >= 10 and (name contains 'x' or not "unit cost" == 3)``.

========================  ==========================================================================================
``price < 10``            also ``<=  >  >=  ==  !=``; one ``=`` is taken for ``==``, and ``<>`` for ``!=``
``name contains 'abc'``   a part of the text, in these letters
``and  or  not  ( )``     ``and`` binds stronger than ``or``
``name`` ``"a b"``        a column, in double quotes or backticks where it holds spaces; ``a.b`` inside of JSON lines
``10`` ``'a b'`` ``abc``  a value, in single or double quotes where it holds spaces
========================  ==========================================================================================

Two numbers are compared as numbers, all else as text. In ``==`` and ``!=`` a value in quotes is text: ``'01'`` is not
1. Empty cells are neither less nor greater than anything. In JSON lines, a missing cell is ``null``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from holdfast.messages import as_json_text
from holdfast.selection.expressions import Condition, Cursor, Words, condition

__all__ = ["Getter", "row_condition"]

Getter: TypeAlias = Callable[[Any], Any]
"""Returns the cell of one column from a row."""

_MOST_COMPARISONS = 50
_COLUMN = re.compile(r"[^\s()\"'`=!<>]+")
_QUOTED_COLUMN = re.compile(r'"[^"]*"|`[^`]*`')
_QUOTED_VALUE = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\'\"])|(['\"])\2")
_VALUE = re.compile(r"[^\s()]+")
_OPERATOR = re.compile(r"==|!=|<>|<=|>=|=|<|>|contains\b", re.IGNORECASE)
_RESERVED = re.compile(r"(?:and|or|not|contains)\Z", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_WORDS = Words(
    both=re.compile(r"and(?![\w.-])|&&", re.IGNORECASE),
    either=re.compile(r"or(?![\w.-])|\|\|", re.IGNORECASE),
    negation=re.compile(r"not(?![\w.-])|!(?!=)", re.IGNORECASE),
)
_SPELLINGS = {"=": "==", "<>": "!="}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def row_condition(where: str, getter: Callable[[str], Getter]) -> Condition:
    """Read a condition on rows; *getter* finds columns by name. Mistakes are shown with their place."""
    cursor = Cursor(where, what="where")
    read = _Comparisons(getter)
    wanted = condition(cursor, _WORDS, read.next)
    cursor.skip_space()
    if not cursor.at_end:
        cursor.fail("'and', 'or' or the end; names and values that hold spaces need quotes")
    return wanted


class _Comparisons:
    """Reads comparisons, and not too many of them: each is made for every row."""

    def __init__(self, getter: Callable[[str], Getter]) -> None:
        self._getter = getter
        self._count = 0

    def next(self, cursor: Cursor) -> Condition:
        self._count += 1
        if self._count > _MOST_COMPARISONS:
            cursor.fail(f"at most {_MOST_COMPARISONS} comparisons")
        cell = self._getter(_column_in(cursor))
        cursor.skip_space()
        sign = (cursor.take(_OPERATOR) or cursor.fail("==, !=, <, <=, >, >= or contains")).lower()
        cursor.skip_space()
        return _comparison(cell, _SPELLINGS.get(sign, sign), *_value_in(cursor))


def _column_in(cursor: Cursor) -> str:
    if quoted := cursor.take(_QUOTED_COLUMN):
        return quoted[1:-1]
    start = cursor.position
    name = cursor.take(_COLUMN)
    if name is None or _RESERVED.match(name):
        cursor.fail("a column, in double quotes or backticks if it holds spaces", start)
    return name


def _value_in(cursor: Cursor) -> tuple[str, bool]:
    """Read a value, and say whether it stood in quotes."""
    if quoted := cursor.take(_QUOTED_VALUE):
        return _ESCAPED.sub(lambda match: match[1] or match[2], quoted[1:-1]), True
    start = cursor.position
    value = cursor.take(_VALUE)
    if value is None or value[0] in "'\"" or _RESERVED.match(value):
        cursor.fail("a value, in quotes if it holds spaces", start)
    return value, False


def _comparison(cell: Getter, sign: str, value: str, quoted: bool) -> Condition:
    if sign == "contains":
        return lambda row: value in _as_text(cell(row))
    number = _as_number(value)
    if sign in _ORDERS:
        return lambda row: _in_order(cell(row), _ORDERS[sign], value, number, quoted)
    if quoted:
        number = None
    if sign == "==":
        return lambda row: _same(cell(row), value, number)
    return lambda row: not _same(cell(row), value, number)


def _same(cell: Any, value: str, number: float | None) -> bool:
    if number is not None and (cell_number := _as_number(cell)) is not None:
        return cell_number == number
    return _as_text(cell) == value


def _in_order(cell: Any, compare: Callable[[Any, Any], bool], value: str, number: float | None, quoted: bool) -> bool:
    if cell is None or cell == "":
        return False
    if number is not None and (cell_number := _as_number(cell)) is not None:
        return compare(cell_number, number)
    # What is no number is neither more nor less than one.
    return (number is None or quoted) and compare(_as_text(cell), value)


def _as_number(cell: Any) -> float | None:
    if isinstance(cell, str):
        text = cell.strip()
        if not _NUMBER.fullmatch(text):
            return None
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    return cell if isinstance(cell, (int, float)) and not isinstance(cell, bool) else None


def _as_text(cell: Any) -> str:
    return cell if isinstance(cell, str) else as_json_text(cell)
