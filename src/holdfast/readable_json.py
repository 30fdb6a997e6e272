"""JSON text that people, line numbers and line searches can work with.

The encoder of the standard library writes indented text in pure Python. Here its fast half writes the parts that stand
on one line and the lists and objects without others in them; only those around them are walked.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from json import encoder as _standard
from math import isfinite
from pathlib import PurePath
from typing import Any, TypeAlias
from uuid import UUID

from holdfast.dialects.wires import as_mapping
from holdfast.errors import InvalidValueError

__all__ = ["dumps_readable"]

_OUTER_LEVELS = 8
_PORTION = 200
_MOST_KEYS = 10_000
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")

_Container: TypeAlias = dict[Any, Any] | list[Any] | tuple[Any, ...]


def dumps_readable(value: Any, *, width: int = 120) -> str:
    """Return JSON text of lines: what fits into *width* stands on one, of the rest each item or member on its own.

    It loads back to an equal value; bytes become base64, and times, paths, enumerations and the like their `str`.
    Any other value, one that holds itself, keys that are no text, and too many levels are an `InvalidValueError`.
    Below eight levels all stands on one line.
    """
    if width < 1:
        raise InvalidValueError(f"width must be 1 or more, got {width}")
    try:
        return _Writer(width).text(value, 0, width)
    except RecursionError:
        raise InvalidValueError("the value is nested too deeply to be written as JSON") from None
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"the value cannot be written as JSON: {error}") from None


class _Writer:
    def __init__(self, width: int) -> None:
        self._width = width
        self._open: set[int] = set()
        self._keys: dict[str, str] = {}
        self._on_one_line = _encoder(", ")
        self._on_lines = [_encoder(f",{_line_start(level + 1)}") for level in range(_OUTER_LEVELS)]

    def text(self, value: Any, level: int, room: int) -> str:
        """Return the text of a value; *room* is left on the line where it begins."""
        if simple := _SIMPLE.get(type(value)):
            return simple(value)
        if not isinstance(value, (dict, list, tuple)):
            return self.text(dict(value), level, room) if isinstance(value, Mapping) else self._on_one_line(value)
        if not value or level >= _OUTER_LEVELS:
            return self._on_one_line(value)
        if _may_fit(value, room) and len(text := self._on_one_line(value)) <= room:
            return text
        return self._on_many_lines(value, level)

    def _on_many_lines(self, value: _Container, level: int) -> str:
        line_start = _line_start(level + 1)
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        parts = self._flat(value, level) if _is_flat(value) else self._nested(value, level)
        return f"{opening}{line_start}{f',{line_start}'.join(parts)}{line_start[:-2]}{closing}"

    def _flat(self, value: _Container, level: int) -> Iterator[str]:
        encode = self._on_lines[level]
        if isinstance(value, dict):
            return (encode(dict(portion))[1:-1] for portion in _portions(value.items()))
        return (encode(portion)[1:-1] for portion in _portions(value))

    def _nested(self, value: _Container, level: int) -> list[str]:
        if id(value) in self._open:
            raise ValueError("it holds itself")
        self._open.add(id(value))
        room = self._width - 2 * level - 3
        if isinstance(value, dict):
            members = [(self._keys.get(key) or self._key(key), member) for key, member in value.items()]
            parts = [key + self.text(member, level + 1, room - len(key)) for key, member in members]
        else:
            parts = [self.text(item, level + 1, room) for item in value]
        self._open.discard(id(value))
        return parts

    def _key(self, key: Any) -> str:
        text = self._on_one_line({key: 0})[1:-2]
        if type(key) is str and len(self._keys) < _MOST_KEYS:
            self._keys[key] = text
        return text


def _encoder(separator: str) -> Callable[[Any], str]:
    make = getattr(_standard, "c_make_encoder", None)
    if make is None:
        options = json.JSONEncoder(ensure_ascii=False, separators=(separator, ": "), default=_in_json)
        return lambda value: _without_halves(options.encode(value))
    # `JSONEncoder.encode` makes this anew for every value, which takes longer than most values do.
    write = make({}, _in_json, _standard.encode_basestring, None, ": ", separator, False, False, True)
    return lambda value: _without_halves("".join(write(value, 0)))


def _without_halves(text: str) -> str:
    """Escape halves of characters: as such they could be stored in no encoding."""
    return text if text.isascii() else _HALF_CHARACTER.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _in_json(value: Any) -> Any:
    """Return something in its place that JSON can hold and from which it can be had again. Raises if there is none."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode()
    if (given := as_mapping(value)) is not None:
        return dict(given)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, _TOLD_BY_STR):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


_TOLD_BY_STR = (date, time, timedelta, Decimal, complex, UUID, PurePath, Enum)


def _line_start(level: int) -> str:
    return "\n" + "  " * level


def _is_flat(value: _Container) -> bool:
    return _SIMPLE.keys() >= set(map(type, value.values() if isinstance(value, dict) else value))


_SIMPLE: dict[type, Callable[[Any], str]] = {
    str: lambda text: _without_halves(_standard.encode_basestring(text)),
    int: int.__repr__,
    bool: lambda flag: "true" if flag else "false",
    type(None): lambda _: "null",
    float: lambda number: float.__repr__(number) if isfinite(number) else json.dumps(number),
}


def _portions(values: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(values)
    while portion := list(islice(rest, _PORTION)):
        yield portion


def _may_fit(value: _Container, room: int) -> bool:
    """Say whether the parts may fit, by the least that each takes. Looks at no more parts than fit."""
    waiting: list[_Container] = [value]
    while waiting:
        part = waiting.pop()
        room -= 5 * len(part) if isinstance(part, dict) else 2 * len(part)
        if room < 0:
            return False
        for inner in part.values() if isinstance(part, dict) else part:
            if type(inner) is str:
                room -= len(inner)
            elif isinstance(inner, (dict, list, tuple)):
                waiting.append(inner)
    return room >= 0
