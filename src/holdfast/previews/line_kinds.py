"""Lines that say the same about different things, told apart from those that say something else."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from operator import eq

from holdfast.previews.groups import Group, said_groups, scattered, spread
from holdfast.previews.quoting import counted, evenly, without_colours
from holdfast.previews.room import Room, shortened

__all__ = [
    "TIME",
    "LineKind",
    "LineKinds",
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
_MOST_LINES, _MOST_SHAPES, _MOST_NEIGHBOURS = 200_000, 1_200, 12
_COMMONEST_SHAPES = 200
_COMMON = 8
# What is left out to see which lines are alike: digits, or if too many differ then, all of hexadecimal numbers.
_DIGITS, _HEXADECIMAL = b"0123456789", b"0123456789abcdefABCDEF"
_ALIKE, _SIMILAR, _TELLING = 0.66, 0.6, 10
_LONGEST_EXAMPLE, _LONGEST_VALUES, _MOST_VALUES = 180, 70, 100


@dataclass
class LineKind:
    """Lines that differ in single words only; `indices` count from 0, and the first of them is the example."""

    words: list[str]
    indices: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class LineKinds:
    """The kinds of some lines, and how many of these lines were *missed* because there are too many to look at."""

    kinds: list[LineKind]
    missed: int

    def told(self) -> str:
        """Return how many kinds there are, and what that is not known of."""
        missed = f", {counted(self.missed, 'line')} not looked at" if self.missed else ""
        return f"{counted(len(self.kinds), 'kind')}{missed}"


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


def kinds_of(lines: Sequence[str], indices: Sequence[int]) -> LineKinds:
    """Return the kinds of these lines in the order of their first one. Of very many lines, some are looked at."""
    seen = [indices[at] for at in evenly(len(indices), _MOST_LINES)]
    alike = _most_telling(_alike_but_for_numbers(lines, seen))
    missed = len(indices) - sum(map(len, alike))
    shapes: dict[str, list[int]] = {}
    for some in alike:
        shapes.setdefault(_VARYING.sub("#", _body(lines[some[0]])), []).extend(some)
    shapes.pop("", None)
    return LineKinds(_merged(shapes), missed)


def _alike_but_for_numbers(lines: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
    """Return the indices in groups, found without a look at each line by itself."""
    written = "\n".join([lines[index][:_COMPARED] for index in indices]).encode("utf-8", "surrogatepass")
    keys = written.translate(None, _DIGITS).split(b"\n")
    if len(set(keys)) > _MOST_SHAPES:
        keys = written.translate(None, _HEXADECIMAL).split(b"\n")
    groups: dict[bytes, list[int]] = {}
    for key, index in zip(keys, indices, strict=False):
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _most_telling(groups: Sequence[list[int]]) -> list[list[int]]:
    """Return all groups, or if there are too many of them, the largest, and some from everywhere."""
    if len(groups) <= _MOST_SHAPES:
        return list(groups)
    by_size = sorted(range(len(groups)), key=lambda at: -len(groups[at]))
    others = sorted(by_size[_COMMONEST_SHAPES:])
    some = (others[at] for at in evenly(len(others), _MOST_SHAPES - _COMMONEST_SHAPES))
    return [groups[at] for at in sorted([*by_size[:_COMMONEST_SHAPES], *some])]


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
    same: int = sum(map(eq, these, those))
    wanted = _ALIKE * len(these)
    if same >= wanted or same + _SIMILAR * (len(these) - same) < wanted:
        return same >= wanted
    return sum(map(_likeness, these, those)) >= wanted


def _likeness(this: str, that: str) -> float:
    if this == that:
        return 1.0
    return _SIMILAR if len(this) > _TELLING and this[:_TELLING] == that[:_TELLING] else 0.0


def lines_with(text: str, words: Iterable[str]) -> list[int]:
    """Return the indices of the lines that hold any of the words, which are given in small letters."""
    small = text.lower()
    lines = small.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found: set[int] = set()
    for word in words:
        is_common = _COMMON * small.count(word) > len(lines)
        at = (index for index, line in enumerate(lines) if word in line) if is_common else _found(small, starts, word)
        found.update(at)
    return sorted(found)


def _found(text: str, starts: list[int], word: str) -> Iterator[int]:
    """Yield the lines with a word that few lines have."""
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
