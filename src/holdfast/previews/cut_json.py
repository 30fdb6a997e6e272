"""JSON that ends too early, or breaks somewhere: what can be read up to there."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["read_until_cut"]

_decode = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_DEEPEST = 8
_MANY = 100_000


def read_until_cut(text: str) -> tuple[Any, int]:
    """Return all that can be read from the start of *text* as one value, and where it ends. `ValueError` if nothing.

    Of a list or an object that is cut, all items that are whole are there, and the whole parts of the one that is not.
    """
    start = _after(_SPACE, text, 0) or 0
    if (found := _value(text, start, 0)) is None or (text[start : start + 1] in ("[", "{") and not found[0]):
        raise ValueError("there is no JSON to read")
    return found


def _value(text: str, position: int, level: int) -> tuple[Any, int] | None:
    """Read one value: whole if it can be decoded, else as far as it goes."""
    try:
        return _decode(text, position)
    except (ValueError, RecursionError):
        opening = text[position : position + 1]
    if level >= _DEEPEST or opening not in ("[", "{"):
        return None
    return _items(text, position + 1, level) if opening == "[" else _members(text, position + 1, level)


def _items(text: str, position: int, level: int) -> tuple[list[Any], int]:
    items, position = _run(text, position)
    start: int | None = _after(_COMMA if items else _SPACE, text, position)
    while start is not None and (found := _value(text, start, level + 1)):
        value, position = found
        items.append(value)
        start = _after(_COMMA, text, position)
    return items, position


def _run(text: str, position: int) -> tuple[list[Any], int]:
    """Read at once what stands before the last comma between objects, if these are many whole items; else nothing."""
    end = text.rfind("},", position) + 1
    if end - position < _MANY:
        return [], position
    try:
        return json.loads(f"[{text[position:end]}]"), end
    except (ValueError, RecursionError):
        return [], position


def _members(text: str, position: int, level: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    start: int | None = _after(_SPACE, text, position)
    while start is not None and (key := _key(text, start)) and (found := _value(text, key[1], level + 1)):
        members[key[0]], position = found
        start = _after(_COMMA, text, position)
    return members, position


def _key(text: str, position: int) -> tuple[str, int] | None:
    """Return a key, and where its value begins."""
    if not text.startswith('"', position):
        return None
    try:
        key, end = _decode(text, position)
    except ValueError:
        return None
    start = _after(_COLON, text, end)
    return None if start is None else (key, start)


def _after(pattern: re.Pattern[str], text: str, position: int) -> int | None:
    match = pattern.match(text, position)
    return match.end() if match else None
