"""Lines that say the same about different things, told apart from those that say something else."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from holdfast.previews.groups import Group, said_groups, scattered, spread
from holdfast.previews.quoting import evenly, without_colours
from holdfast.previews.room import Room, shortened

__all__ = [
    "TIME",
    "LineKind",
    "commonest_then_rarest",
    "kinds_of",
    "lines_with",
    "said_kinds",
    "shared_prefix",
    "stamp_of",
    "without_stamp",
]

TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|\s?[+-]\d\d:?\d\d)?"
    r"|\d\d?/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?: [+-]\d{4})?"
    r"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d+)?"
)
"""A pattern of the times that stand at the head of log lines."""

_STAMP = re.compile(rf".{{0,40}}?(?P<time>{TIME})\]?")
_CLOCK, _HEAD = re.compile(r"\d\d:\d\d"), 100
_VARYING = re.compile(
    r"\b0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b(?=[a-f]{0,40}\d)[0-9a-f]{7,64}\b|\d+(?:[.,:]\d+)*"
)
_INNER = re.compile(r"[\w.-]")
_COMPARED = 300
_MOST_SHAPES, _MOST_NEIGHBOURS, _MOST_LINES = 20_000, 12, 60_000
_ALIKE, _TELLING = 0.66, 10
_LONGEST_EXAMPLE, _LONGEST_VALUES, _MOST_VALUES = 180, 70, 100


@dataclass
class LineKind:
    """Lines that differ in single words only; `indices` count from 0, and the first of them is the example."""

    words: list[str]
    indices: list[int] = field(default_factory=list)


def stamp_of(line: str) -> str | None:
    """Return the time at the head of a line, if there is one."""
    found = _stamp(line)
    return found["time"] if found else None


def without_stamp(line: str) -> str:
    """Return a line without the time at its head, and what stands before that."""
    found = _stamp(line)
    return line[found.end() :] if found else line


def _stamp(line: str) -> re.Match[str] | None:
    # Every time has hours and minutes in it, which are found, or not, much faster.
    return _STAMP.match(line[:_HEAD]) if _CLOCK.search(line, 0, _HEAD) else None


def shared_prefix(lines: Sequence[str]) -> str:
    """Return the words that follow the time in all lines alike, such as the name of a host."""
    some = [_body(lines[index]) for index in evenly(len(lines), 60)]
    first, last = min(filter(None, some), default=""), max(some, default="")
    shared = next((at for at, (this, that) in enumerate(zip(first, last, strict=False)) if this != that), len(first))
    return first[: first.rfind(" ", 0, shared) + 1]


def kinds_of(lines: Sequence[str], indices: Sequence[int]) -> list[LineKind]:
    """Return the kinds of these lines in the order of their first one. Of very many lines, some are looked at."""
    shapes: dict[str, list[int]] = {}
    for index in (indices[at] for at in evenly(len(indices), _MOST_LINES)):
        shape = _VARYING.sub("#", _body(lines[index]))
        if shape in shapes or len(shapes) < _MOST_SHAPES:
            shapes.setdefault(shape, []).append(index)
    shapes.pop("", None)
    return _merged(shapes)


def _merged(shapes: dict[str, list[int]]) -> list[LineKind]:
    """Return shapes of as many words as each other, most of them the same, as one kind."""
    kinds: list[LineKind] = []
    neighbours: dict[tuple[int, str], list[LineKind]] = {}
    for shape, indices in shapes.items():
        words = shape.split()
        near = neighbours.setdefault((len(words), words[0][:_TELLING]), [])
        kind = next((kind for kind in near[-_MOST_NEIGHBOURS:] if _alike(kind.words, words)), None)
        if kind is None:
            near.append(kind := LineKind(words))
            kinds.append(kind)
        kind.indices.extend(indices)
    for kind in kinds:
        kind.indices.sort()
    return kinds


def _alike(these: list[str], those: list[str]) -> bool:
    same = sum(_likeness(this, that) for this, that in zip(these, those, strict=True))
    return same >= _ALIKE * len(these)


def _likeness(this: str, that: str) -> float:
    if this == that:
        return 1.0
    return 0.6 if len(this) > _TELLING and this[:_TELLING] == that[:_TELLING] else 0.0


def lines_with(text: str, lines: Sequence[str], words: Iterable[str]) -> list[int]:
    """Return the indices of the lines that hold any of the words, written in small letters, capitals or capitalised."""
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found: set[int] = set()
    for word in words:
        for written in (word, word.capitalize(), word.upper()):
            found.update(_lines_with(text, starts, written))
    return sorted(found)


def _lines_with(text: str, starts: list[int], word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        line = bisect_right(starts, at) - 1
        yield line
        at = text.find(word, starts[line + 1]) if line + 1 < len(starts) else -1


def said_kinds(
    kinds: Sequence[LineKind], lines: Sequence[str], room: Room, *, others: float = 0.4, prefix: str = ""
) -> list[str]:
    """Return an example of each kind with its count, and what differs in the others, within the room.

    Times and the *prefix* that all lines share are left out.
    """
    groups = [
        Group(
            kind.indices[0],
            len(kind.indices),
            partial(_example, kind, lines, prefix),
            partial(_values, kind, lines),
        )
        for kind in kinds
    ]
    return said_groups(groups, room, others=others)


def commonest_then_rarest(kinds: Sequence[LineKind], common: int) -> list[LineKind]:
    """Return the *common* commonest kinds, and then the others from the rarest on, which say most.

    However few of the rare ones are taken, they are from everywhere.
    """
    ordered = sorted(kinds, key=lambda kind: -len(kind.indices))
    rest = [ordered[common:][place] for place in scattered(len(ordered[common:]))]
    return [*ordered[:common], *sorted(rest, key=lambda kind: len(kind.indices))]


def _example(kind: LineKind, lines: Sequence[str], prefix: str) -> str:
    first, last = kind.indices[0], kind.indices[-1]
    count = f" (×{len(kind.indices):,}, to {last + 1})" if last > first else ""
    return f"{first + 1}: {shortened(_body(lines[first], 2_000).removeprefix(prefix), _LONGEST_EXAMPLE)}{count}"


def _body(line: str, longest: int = _COMPARED) -> str:
    return without_stamp(without_colours(line[:longest])).lstrip(" :]\t").rstrip()


def _values(kind: LineKind, lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return what differs in the lines from the first, each once."""
    example = _body(lines[kind.indices[0]]).split()
    others = (kind.indices[1 + at] for at in evenly(len(kind.indices) - 1, _MOST_VALUES))
    found = dict.fromkeys(_differing(example, _body(lines[index]).split()) for index in others)
    return spread([values for values in found if values])


def _differing(example: list[str], words: list[str]) -> str:
    pairs = zip(example, words, strict=False)
    values = " ".join(_trimmed(this, that) for this, that in pairs if this != that)
    return values if len(values) <= _LONGEST_VALUES else f"{values[:_LONGEST_VALUES]}…"


def _trimmed(this: str, that: str) -> str:
    """Return *that* without the marks and words that it begins and ends with as *this* does."""
    start, end = 0, 0
    while start < min(len(this), len(that)) and this[start] == that[start]:
        start += 1
    while start and _INNER.match(that[start - 1]):
        start -= 1
    while end < min(len(this), len(that)) - start and this[-1 - end] == that[-1 - end]:
        end += 1
    while end and _INNER.match(that[-end]):
        end -= 1
    return that[start : len(that) - end]
