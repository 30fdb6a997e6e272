"""What grep found: by file, with the lines told without the path that they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from holdfast.previews.groups import MOST_GROUPS, Group, said_groups, scattered, spread
from holdfast.previews.quoting import at_most, counted, counted_lines, evenly, some_of, written
from holdfast.previews.room import Room

__all__ = ["preview_grep"]

_FOUND = re.compile(r"((?:[\w@^~-]{1,80}:)?[^\s:][^:\n]{0,300}?)([:-])(\d{1,9})\2(.*)")
_WORD = re.compile(r"[\w$-]{2,60}")
_LONGEST_HEAD, _LONGEST_OTHER, _MOST_NAMED = 80, 32, 5
_COMMON = 0.15


class _Found(NamedTuple):
    number: int
    path: str
    line: str
    text: str


def preview_grep(lines: Sequence[str], room: Room) -> str | None:
    """Return the files with their counts and what was found in them; None if these are no lines of grep."""
    some = [lines[index] for index in evenly(len(lines), 60)]
    if sum(line == "--" or _read(0, line) is not None for line in some) < 0.8 * len(some):
        return None
    by_file: dict[str, list[_Found]] = {}
    filled = written(lines)
    for index in some_of(filled):
        if found := _read(index + 1, lines[index]):
            by_file.setdefault(found.path, []).append(found)
    said = room.take_all(_counts(counted_lines(lines, filled), by_file))
    common = _common_words([found.text for files in by_file.values() for found in files])
    files = list(by_file.values())
    chosen = [files[place] for place in scattered(len(files))]
    groups = [_group(found, common) for found in chosen[:MOST_GROUPS]]
    beyond = list(map(len, chosen[MOST_GROUPS:]))
    return "\n".join([*said, *said_groups(groups, room, others=0.6, noun="file", beyond=beyond)])


def _common_words(texts: Sequence[str]) -> frozenset[str]:
    """Return the words that a good part of the lines holds: that all of them were searched for, for instance."""
    some = [texts[index] for index in evenly(len(texts), 2_000)]
    counts = Counter(word for text in some for word in set(_WORD.findall(text)))
    return frozenset(word for word, count in counts.items() if count > max(2, _COMMON * len(some)))


def _read(number: int, line: str) -> _Found | None:
    found = _FOUND.match(line[:2_000])
    if not found or ("." not in found[1] and "/" not in found[1]) or " " in found[1]:
        return None
    return _Found(number, found[1], found[3], " ".join(found[4].split()))


def _counts(lines: str, by_file: dict[str, list[_Found]]) -> list[str]:
    most = sorted(by_file.items(), key=lambda item: -len(item[1]))
    named = at_most([f"{path} ×{len(found):,}" for path, found in most], _MOST_NAMED)
    return [f"{lines} of {counted(len(by_file), 'file')}: {named}"]


def _group(found: Sequence[_Found], common: frozenset[str]) -> Group:
    return Group(found[0].number, len(found), partial(_head, found), partial(_others, found, common))


def _head(found: Sequence[_Found]) -> str:
    first, last = found[0], found[-1]
    count = f" (×{len(found):,}, to {last.number})" if len(found) > 1 else ""
    return f"{first.number}: {first.path}:{first.line}: {first.text[:_LONGEST_HEAD]}{count}"


def _others(found: Sequence[_Found], common: frozenset[str]) -> list[tuple[int, str]]:
    """Return the other lines of a file by what few lines share with them."""
    others = (found[1 + at] for at in evenly(len(found) - 1, 100))
    return spread([f"{one.line} {_telling(one.text, common)}" for one in others])


def _telling(text: str, common: frozenset[str]) -> str:
    words = [word for word in _WORD.findall(text) if word not in common]
    lengths = accumulate(len(word) + 1 for word in words)
    short = [word for word, length in zip(words, lengths, strict=True) if length <= _LONGEST_OTHER]
    return " ".join(short or words[:1]) or text[:_LONGEST_OTHER]
