"""JSON of any size, read and written without keeping other threads waiting.

The decoder and the encoder of the standard library hold the interpreter until they are through: an event loop beside
them stands still for as long, which is a second or so for 50 MB. Here they get one small part after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar

from holdfast.errors import InvalidValueError
from holdfast.readable_json import dumps_readable

__all__ = ["dumps_readable", "loads_in_steps"]

_PART = 131_072  # Characters that the decoder gets at once: about a millisecond.
_OUTER_LEVELS = 8  # Below them a value is decoded at once, however large: each level may cost one part read in vain.
_NEAR = 64
_QUOTED = 40
_SPACE = re.compile(r"[ \t\n\r]*")
_SEPARATOR = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_OPENING = re.compile(r'\{[ \t\n\r]*"[^"\\]{0,60}"|[\[{"]')
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode

_Container = TypeVar("_Container", list[Any], dict[str, Any])
_ReadOne: TypeAlias = Callable[[_Container, int, int], int]


def loads_in_steps(text: str) -> Any:
    """Return what `json.loads` returns, in many short steps. `InvalidValueError` says where the text is no JSON."""
    reader = _Reader(text)
    try:
        value, end = reader.value(reader.after_space(0), 0)
    except json.JSONDecodeError as error:
        reader.refuse(error.pos, error.msg)
    except InvalidValueError:
        raise
    except RecursionError:
        raise InvalidValueError("this JSON is nested too deeply to be read") from None
    except ValueError as error:
        # Not the syntax: a number of more digits than Python converts.
        raise InvalidValueError(f"this JSON holds a number that cannot be read: {error}") from None
    if (end := reader.after_space(end)) != len(text):
        reader.refuse(end, "expected the end of the text")
    return value


class _Reader:
    """Reads one text. Positions are those of the whole text; every method returns where it stopped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._part = ""
        self._part_start = 0
        self._no_run_before = 0
        self._large_until = 0

    def after_space(self, position: int) -> int:
        return _end_of(_SPACE, self._text, position) or position

    def refuse(self, position: int, reason: str) -> NoReturn:
        before = self._text.count("\n", 0, position)
        column = position - self._text.rfind("\n", 0, position)
        found = repr(self._text[position : position + _QUOTED]) if position < len(self._text) else "the end of the text"
        reason = reason.strip().rstrip(":").replace("Expecting", "expected")
        raise InvalidValueError(f"no valid JSON at line {before + 1}, column {column}: {reason}, found {found}")

    def value(self, position: int, level: int) -> tuple[Any, int]:
        """Read one value, as a whole if it is small."""
        opening = self._text[position : position + 1]
        if opening not in ("[", "{") or level >= _OUTER_LEVELS:
            return _decode(self._text, position)
        if (small := self._small(position)) is not None:
            return small
        if opening == "[":
            items: list[Any] = []
            return items, self._walk(items, "[]", self._item, position, level)
        members: dict[str, Any] = {}
        return members, self._walk(members, "{}", self._member, position, level)

    def _small(self, position: int) -> tuple[Any, int] | None:
        """Read a list or an object that ends within one part, or nothing."""
        if position < self._large_until:
            return None
        if not self._part_start <= position < self._part_start + len(self._part):
            self._turn_to(position)
        while True:
            start = self._part_start
            try:
                value, end = _decode(self._part, position - start)
            except json.JSONDecodeError:
                if position == start:
                    # What begins right here is walked as well: lists around a large one should not all be tried.
                    self._large_until = position + _NEAR
                    return None
                self._turn_to(position)
            else:
                return value, start + end

    def _turn_to(self, position: int) -> None:
        self._part, self._part_start = self._text[position : position + _PART], position

    def _walk(self, into: _Container, brackets: str, read: _ReadOne[_Container], position: int, level: int) -> int:
        """Read the large list or object that begins here, one item after the other or many in a run."""
        position = self.after_space(position + 1)
        if self._text.startswith(brackets[1], position):
            return position + 1
        while True:
            end = read(into, position, level + 1)
            following = _end_of(_SEPARATOR, self._text, end)
            if following is None:
                return self._closed(end, brackets[1])
            position, closed = self._run(into, brackets, end, following)
            if closed:
                return position

    def _item(self, into: list[Any], position: int, level: int) -> int:
        value, end = self.value(position, level)
        into.append(value)
        return end

    def _member(self, into: dict[str, Any], position: int, level: int) -> int:
        if not self._text.startswith('"', position):
            self.refuse(position, "expected a key in double quotes")
        key, end = _decode(self._text, position)
        after_colon = _end_of(_COLON, self._text, end)
        if after_colon is None:
            self.refuse(self.after_space(end), "expected ':' after the key")
        into[key], end = self.value(after_colon, level)
        return end

    def _closed(self, end: int, bracket: str) -> int:
        end = self.after_space(end)
        if not self._text.startswith(bracket, end):
            self.refuse(end, f"expected ',' or '{bracket}'")
        return end + 1

    def _run(self, into: _Container, brackets: str, end: int, following: int) -> tuple[int, bool]:
        """Read as many further items as one part holds. Return where the next begins, or the end of all if they end.

        What stands between the last item and this one, as in ``}, {"id":``, is looked for from the end of the part.
        All before it are whole items if they can be decoded as such. If not, it stood inside of one: nothing is read.
        """
        if following < self._no_run_before:
            return following, False
        mark, lead = self._mark(end, following)
        cut = self._text.rfind(mark, following, following + _PART)
        self._no_run_before = max(cut, following + _PART // 2)
        stop = cut + lead if cut >= 0 else min(following + _PART, len(self._text))
        run, length = _decoded(brackets[0] + self._text[following:stop] + brackets[1])
        if not run:
            return following, False
        if (closed := following + length - 1) <= stop:
            _extend(into, run)
            self._no_run_before = closed
            return closed, True
        if cut < 0:
            return following, False
        _extend(into, run)
        return _end_of(_SEPARATOR, self._text, stop) or stop, False

    def _mark(self, end: int, following: int) -> tuple[str, int]:
        """Return what stands between two items, up to the first key, and how much of it belongs to the first one."""
        lead = 1 if self._text[end - 1] in ']}"' else 0
        tail = _end_of(_OPENING, self._text, following) or following
        return self._text[end - lead : tail], lead


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int | None:
    match = pattern.match(text, position)
    return match.end() if match else None


def _decoded(text: str) -> tuple[Any, int]:
    """Return the list or object that *text* begins with and its length, or nothing."""
    try:
        return _decode(text)
    except json.JSONDecodeError:
        return None, 0


def _extend(into: list[Any] | dict[str, Any], more: Any) -> None:
    if isinstance(into, list):
        into.extend(more)
    else:
        into.update(more)
