"""What a model asks of a stored content, checked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["SCHEMA", "Request", "Span"]

_SPAN = re.compile(r"\s*(-?\d{1,15})\s*(?:(?:-|–|:|,|\.\.|to)\s*(-?\d{1,15})\s*)?")
_MOST_CONTEXT = 100
_MOST_COLUMNS = 100


@dataclass(frozen=True)
class Span:
    """From *start* to *end*, both counted from 1 and included; negative ones count from the end, None is the end."""

    start: int = 1
    end: int | None = None

    def within(self, length: int, noun: str) -> tuple[int, int]:
        """Return first and last of *length* things. Raises if there is none of them in it."""
        first = self.start if self.start > 0 else max(length + 1 + self.start, 1)
        last = length if self.end is None else self.end if self.end > 0 else length + 1 + self.end
        if first > length or last < first:
            raise InvalidValueError(
                f"there is nothing from {noun} {self.start:,} to {'the end' if self.end is None else f'{self.end:,}'}: "
                f"there are {length:,}, counted from 1"
            )
        return first, min(last, length)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of one call of the retrieval tool."""

    reference: str
    pattern: str | None = None
    plain_text: bool = False
    ignore_case: bool = False
    line_range: Span | None = None
    context_lines: int | None = None
    characters: Span | None = None
    json_path: str | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    offset: int = 0

    @staticmethod
    def read(arguments: Mapping[str, Any]) -> Request:
        """Check the arguments as a model gave them."""
        # Models like to fill in what they do not use.
        given = {name: value for name, value in arguments.items() if value is not None and value != ""}
        unknown = [name for name in given if name not in _READERS]
        if unknown:
            raise InvalidValueError(f"unknown argument {unknown[0]!r:.80}; allowed are {', '.join(_READERS)}")
        if "reference" not in given:
            raise InvalidValueError(
                "reference is missing: pass one that stands above an extract, as it is written there"
            )
        request = Request(**{name: _READERS[name](name, value) for name, value in given.items()})
        request._check()
        return request

    @property
    def asks_for_rows(self) -> bool:
        """Whether it is about the rows of a table."""
        return self.columns is not None or self.where is not None

    def _check(self) -> None:
        ways = [
            ("pattern", self.pattern is not None),
            ("json_path", self.json_path is not None),
            ("columns or where", self.asks_for_rows),
        ]
        chosen = [name for name, is_chosen in ways if is_chosen]
        if len(chosen) > 1:
            raise InvalidValueError(f"give only one of {' and '.join(chosen)} in one call")
        if self.offset and chosen in ([], ["pattern"]):
            raise InvalidValueError(
                "offset goes with json_path, columns and where; go on with line_range or characters"
            )
        if chosen and chosen != ["pattern"] and (self.line_range or self.characters):
            raise InvalidValueError(f"line_range and characters do not go with {chosen[0]}; use offset to go on")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} must be text, got {value!r:.80}")
    if not value.strip():
        raise InvalidValueError(f"{name} must not be empty")
    return value


def _pattern(name: str, value: Any) -> str:
    # Blanks alone may be looked for.
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} must be text, got {value!r:.80}")
    return value


def _reference(name: str, value: Any) -> str:
    return _text(name, value).strip().strip("\"'`<>[]()").strip()


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be true or false, got {value!r:.80}")
    return value


def _number(name: str, value: Any) -> int:
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a whole number, got {value!r:.80}")
    if abs(value) >= 10**15:
        raise InvalidValueError(f"{name} must be a number of fewer than 16 digits")
    return value


def _context(name: str, value: Any) -> int:
    lines = _number(name, value)
    if not 0 <= lines <= _MOST_CONTEXT:
        raise InvalidValueError(f"{name} must be from 0 to {_MOST_CONTEXT}, got {lines}")
    return lines


def _offset(name: str, value: Any) -> int:
    if (offset := _number(name, value)) < 0:
        raise InvalidValueError(f"{name} must be 0 or more, got {offset}")
    return offset


def _span(name: str, value: Any) -> Span:
    """Read ``{"start": 1, "end": 9}``, and what models write for it: ``[1, 9]``, ``"1-9"``, ``7``, and JSON as text."""
    if isinstance(value, str):
        if (match := _SPAN.fullmatch(value)) is not None:
            return _checked_span(name, int(match[1]), int(match[2] or match[1]))
        value = _from_json(value)
    if isinstance(value, Mapping) and value.keys() <= {"start", "end"} and value:
        end = value.get("end")
        return _checked_span(name, _number(name, value.get("start", 1)), None if end is None else _number(name, end))
    if isinstance(value, list) and len(value) == 2:
        return _checked_span(name, _number(name, value[0]), _number(name, value[1]))
    if isinstance(value, (int, float)):
        return _checked_span(name, _number(name, value), _number(name, value))
    raise InvalidTypeError(f'{name} must look like {{"start": 1, "end": 200}}, got {value!r:.80}')


def _checked_span(name: str, start: int, end: int | None) -> Span:
    if start == 0 or end == 0:
        raise InvalidValueError(f"{name} counts from 1, and from the end with -1; there is no 0")
    return Span(start, end)


def _columns(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        parsed = _from_json(value)
        value = parsed if isinstance(parsed, list) else [part.strip() for part in value.split(",")]
    if not isinstance(value, list) or not value or not all(isinstance(column, str) and column for column in value):
        raise InvalidTypeError(f"{name} must be a list of columns' names, got {value!r:.80}")
    if len(value) > _MOST_COLUMNS:
        raise InvalidValueError(f"{name} must name at most {_MOST_COLUMNS} columns, got {len(value):,}")
    return tuple(value)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text[:1_000])
    except (ValueError, RecursionError):
        return text


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "reference": _reference,
    "pattern": _pattern,
    "plain_text": _flag,
    "ignore_case": _flag,
    "line_range": _span,
    "context_lines": _context,
    "characters": _span,
    "json_path": _text,
    "columns": _columns,
    "where": _text,
    "offset": _offset,
}


def _range_schema(description: str) -> dict[str, Any]:
    numbers = {"start": {"type": "integer"}, "end": {"type": "integer"}}
    return {"type": "object", "properties": numbers, "additionalProperties": False, "description": description}


SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reference": {"type": "string", "description": "The reference, exactly as it stands above the extract."},
        "pattern": {
            "type": "string",
            "description": (
                "Only lines that match this regular expression (RE2 syntax, without lookaround and back-references), "
                "with the lines around them."
            ),
        },
        "plain_text": {"type": "boolean", "default": False, "description": "Take the pattern as plain text."},
        "ignore_case": {"type": "boolean", "default": False, "description": "Let case make no difference."},
        "line_range": _range_schema("Only these lines, from 1, both included; negative numbers count from the end."),
        "context_lines": {
            "type": "integer",
            "minimum": 0,
            "maximum": _MOST_CONTEXT,
            "description": "How many lines to show before and after each match (2 if not given).",
        },
        "characters": _range_schema("A window of characters, from 1, inside line_range or the whole: for huge lines."),
        "json_path": {
            "type": "string",
            "description": (
                "For JSON: what to select, such as $.items[0].name, $.items[*].id, $.items[-5:], $..error or "
                "$.items[?@.price > 10 && contains(@.name, 'x')]."
            ),
        },
        "columns": {
            "type": "array",
            "items": {"type": "string"},
            "description": "For CSV, TSV and JSON lines: the columns to show.",
        },
        "where": {
            "type": "string",
            "description": "For CSV, TSV and JSON lines: which rows, such as: status == 'failed' and seconds > 2.5.",
        },
        "offset": {"type": "integer", "minimum": 0, "description": "For json_path and rows: skip so many matches."},
    },
    "required": ["reference"],
    "additionalProperties": False,
}
