"""The values of a file: one a line, or one for the whole file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, groupby
from typing import Any, NoReturn

from holdfast.recordings.streams import joined
from holdfast.recordings.values import Unreadable, UnusableError

__all__ = ["Placed", "parsed", "values_in"]

_DEEPEST = 200
_OPENING = (b"{", b"[")
_GOES_ON = (b"{", b"[", b",", b":")


@dataclass(frozen=True)
class Placed:
    """A value and its place, if the file holds several: the line, and the number in a list, from 1."""

    value: Any
    line: int | None = None
    item: int | None = None

    @property
    def place(self) -> str:
        """What follows the name of the file."""
        return ("" if self.line is None else f":{self.line}") + ("" if self.item is None else f"[{self.item}]")


class _BrokenOffError(UnusableError):
    """A file ends here that should not; the line before may be broken too, and is told by itself."""


def parsed(text: bytes, line: int = 1) -> Any:
    """Return a value that begins in *line*. Raises an UnusableError with the line and the reason in words."""
    try:
        value = _DECODER.decode(text.decode("utf-8").strip())
    except UnicodeDecodeError as error:
        at = line + text.count(b"\n", 0, error.start)
        raise UnusableError(f"not UTF-8: byte {error.start + 1} is 0x{text[error.start]:02x}", at) from None
    except json.JSONDecodeError as error:
        raise UnusableError(f"not JSON: {_in_words(error)}", line + error.lineno - 1) from None
    except MemoryError:
        raise UnusableError("more in it than memory holds", line) from None
    except RecursionError:
        raise UnusableError("nested too deeply", line) from None
    except UnusableError as error:
        raise UnusableError(error.reason, line) from None
    except ValueError:
        # Python reads no number of thousands of digits: that would take too long.
        raise UnusableError("a number in it has too many digits", line) from None
    if _is_deep(value):
        raise UnusableError(f"nested more than {_DEEPEST} levels deep", line)
    return value


def values_in(name: str, lines: Iterator[tuple[int, bytes]]) -> Iterator[Placed | Unreadable]:
    """Yield the values of a file, and what is none: neighbouring lines that are no JSON are told together.

    Lines come one by one. Only a file that is one value over several lines is read whole.
    """
    values = _to_the_end(_values(lines))
    first = next(values, None)
    if first is None:
        yield Unreadable(name, None, "there is nothing in it")
    elif (second := next(values, None)) is None:
        yield _alone(name, first)
    else:
        yield from _told_together(name, chain((first, second), values))


def _values(lines: Iterator[tuple[int, bytes]]) -> Iterator[Placed | UnusableError]:
    """Yield values and what is none; raises where the file breaks off."""
    first = next(lines, None)
    if first is None:
        return
    value = _value(*first)
    second = next(lines, None) if _may_go_on(first[1], value) else None
    if second is None:
        yield value
    elif _is_value(second) and not first[1].rstrip().endswith(_GOES_ON):
        yield from (value, _value(*second))
    else:
        yield from _of_the_whole(first, second, lines)
        return
    yield from (_value(*line) for line in lines)


def _of_the_whole(
    first: tuple[int, bytes], second: tuple[int, bytes], lines: Iterator[tuple[int, bytes]]
) -> Iterator[Placed | UnusableError]:
    """Yield the one value that all lines are, or, if they are none, those of a file whose first line is broken."""
    text = joined(chain((first, second), lines))
    try:
        yield Placed(parsed(text))
    except UnusableError as error:
        if not _is_value(second):
            yield error
            return
        yield from (_value(*line) for line in enumerate(BytesIO(text), 1) if not line[1].isspace())


def _value(number: int, line: bytes) -> Placed | UnusableError:
    try:
        return Placed(parsed(line, number), number)
    except UnusableError as error:
        return error


def _is_value(numbered: tuple[int, bytes]) -> bool:
    value = _value(*numbered)
    return isinstance(value, Placed) and isinstance(value.value, (dict, list))


def _may_go_on(line: bytes, value: Placed | UnusableError) -> bool:
    """Say whether a line that is no JSON may be the beginning of a value over several lines: it only breaks off."""
    if isinstance(value, Placed) or not line.lstrip().startswith(_OPENING):
        return False
    try:
        text = line.decode("utf-8").strip()
        _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except (ValueError, RecursionError):
        return False
    return False


def _alone(name: str, value: Placed | UnusableError) -> Placed | Unreadable:
    if isinstance(value, UnusableError):
        return Unreadable(name, value.line, value.reason)
    return Placed(value.value)


def _told_together(name: str, values: Iterable[Placed | UnusableError]) -> Iterator[Placed | Unreadable]:
    for kind, run in groupby(values, key=type):
        if kind is Placed:
            yield from (value for value in run if isinstance(value, Placed))
        elif isinstance(first := next(run), UnusableError):
            yield Unreadable(name, first.line, first.reason + _and_others(sum(1 for _ in run)))


def _to_the_end(values: Iterable[Placed | UnusableError]) -> Iterator[Placed | UnusableError]:
    try:
        yield from values
    except UnusableError as error:
        yield _BrokenOffError(error.reason, error.line)


def _and_others(count: int) -> str:
    return f"; nor can the next {count:,} be read" if count > 1 else "; nor can the next be read" if count else ""


def _in_words(error: json.JSONDecodeError) -> str:
    return f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"


def _is_deep(value: Any) -> bool:
    """Say whether a value is nested so deeply that whoever walks through it later might fail."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = chain.from_iterable(map(_within, level))
        level = [each for each in inner if isinstance(each, (dict, list))]
        if not level:
            return False
    return True


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse(constant: str) -> NoReturn:
    raise UnusableError(f"not JSON: {constant} is no number there")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
