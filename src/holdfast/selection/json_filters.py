"""The conditions in JSON paths: ``@.price < 10 && contains(@.name, 'x')``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from holdfast.selection.expressions import Condition, Cursor, Words, condition
from holdfast.selection.json_selectors import MISSING, Steps

__all__ = ["NAME", "filter_in", "integer_in", "string_in"]

NAME = re.compile(r"[^\s.\[\]()'\",?&|!=<>*]+")
"""A key that needs no quotes. More than RFC 9535 allows: ``$ref``, ``my-key`` and ``a:b`` do."""

_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_ESCAPE_OR_QUOTE = re.compile(r"\\(.)|\"", re.DOTALL)
_INTEGER = re.compile(r"-?[0-9]{1,15}(?![0-9])")
_NUMBER = re.compile(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?(?![0-9A-Za-z])")
_WORD = re.compile(r"(?:true|false|null)(?![A-Za-z0-9_])")
_WORD_VALUES = {"true": True, "false": False, "null": None}
_CONTAINS = re.compile(r"contains\s*\(")
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_WORDS = Words(both=re.compile("&&"), either=re.compile(r"\|\|"), negation=re.compile("!(?!=)"))
_CHARACTERS_PER_STEP = 256

_Operand: TypeAlias = Callable[[tuple[Any, Steps]], Any]


def filter_in(cursor: Cursor) -> Condition:
    """Read a condition, which is asked with a value and the steps that may be taken."""
    return condition(cursor, _WORDS, _test)


def integer_in(cursor: Cursor) -> int | None:
    """Read an integer, if one is here, and the space around it."""
    cursor.skip_space()
    digits = cursor.take(_INTEGER)
    cursor.skip_space()
    return None if digits is None else int(digits)


def string_in(cursor: Cursor) -> str | None:
    """Read a text in single or double quotes, if one is here."""
    start = cursor.position
    quoted = cursor.take(_STRING)
    if quoted is None:
        if cursor.text.startswith(("'", '"'), start):
            cursor.fail("a closing quote", len(cursor.text))
        return None
    try:
        return str(json.loads(f'"{_ESCAPE_OR_QUOTE.sub(_as_in_json, quoted[1:-1])}"', strict=False))
    except ValueError:
        cursor.fail(r"no escapes but those of JSON, such as \n and \\, in this text", start)


def _as_in_json(match: re.Match[str]) -> str:
    if match[1] is None:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _test(cursor: Cursor) -> Condition:
    if cursor.take(_CONTAINS):
        return _contains(cursor)
    start = cursor.position
    left = _operand(cursor)
    cursor.skip_space()
    if operator := cursor.take(_COMPARISON):
        return _compared(left, operator, _operand(cursor))
    if not cursor.text.startswith("@", start):
        cursor.fail("a comparison such as ==")
    return lambda item: left(item) is not MISSING


def _contains(cursor: Cursor) -> Condition:
    whole = _operand(cursor)
    cursor.skip_space()
    cursor.expect(",", "',' and what may be contained")
    part = _operand(cursor)
    cursor.skip_space()
    cursor.expect(")", "')'")
    return lambda item: _holds(whole(item), part(item), item[1])


def _holds(whole: Any, part: Any, steps: Steps) -> bool:
    if isinstance(whole, str):
        steps.take(len(whole) // _CHARACTERS_PER_STEP)
        return isinstance(part, str) and part in whole
    if isinstance(whole, list):
        steps.take(len(whole))
        return any(_equal(item, part) for item in whole)
    return isinstance(whole, dict) and isinstance(part, str) and part in whole


def _operand(cursor: Cursor) -> _Operand:
    cursor.skip_space()
    if cursor.accept("@"):
        return _relative(cursor)
    if (text := string_in(cursor)) is not None:
        return lambda item: text
    if word := cursor.take(_WORD):
        return lambda item: _WORD_VALUES[word]
    if digits := cursor.take(_NUMBER):
        number = int(digits) if digits.lstrip("-").isdecimal() else float(digits)
        return lambda item: number
    return cursor.fail("@ with a path, a text in quotes, a number, true, false or null")


def _relative(cursor: Cursor) -> _Operand:
    keys: list[str | int] = []
    while cursor.text.startswith((".", "["), cursor.position):
        keys.append(_key_or_index(cursor))
    cost = 1 + len(keys) // 8
    return lambda item: _at(item[0], keys, item[1], cost)


def _key_or_index(cursor: Cursor) -> str | int:
    if cursor.accept("."):
        return cursor.take(NAME) or cursor.fail("a key: in filters, paths name keys and indexes only")
    cursor.expect("[", "'['")
    cursor.skip_space()
    key = string_in(cursor)
    chosen = integer_in(cursor) if key is None else key
    if chosen is None:
        cursor.fail("a key in quotes or an index: in filters, paths name keys and indexes only")
    cursor.skip_space()
    cursor.expect("]", "']'")
    return chosen


def _at(value: Any, keys: list[str | int], steps: Steps, cost: int) -> Any:
    steps.take(cost)
    for key in keys:
        if isinstance(key, str):
            value = value.get(key, MISSING) if isinstance(value, dict) else MISSING
        else:
            inside = isinstance(value, list) and -len(value) <= key < len(value)
            value = value[key] if inside else MISSING
        if value is MISSING:
            return MISSING
    return value


def _compared(left: _Operand, operator: str, right: _Operand) -> Condition:
    compare = _COMPARISONS[operator]
    return lambda item: _paid(compare, left(item), right(item), item[1])


def _paid(compare: Callable[[Any, Any], bool], left: Any, right: Any, steps: Steps) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        steps.take(min(len(left), len(right)) // _CHARACTERS_PER_STEP)
    return compare(left, right)


def _equal(left: Any, right: Any) -> bool:
    """Compare as RFC 9535 does, but for lists and objects, which equal nothing."""
    if _comparable(left, right):
        return bool(left == right)
    return left is right and not isinstance(left, (dict, list))


def _less(left: Any, right: Any) -> bool:
    return _comparable(left, right) and bool(left < right)


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return isinstance(right, str)
    return _is_number(left) and _is_number(right)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: _less(left, right) or _equal(left, right),
    ">=": lambda left, right: _less(right, left) or _equal(left, right),
}
