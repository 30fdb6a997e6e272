"""Previews of source code: imports, an outline of what is declared with line numbers, and telling lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.previews.declarations import MOST_IMPORTING, Declaration, declarations, imports
from holdfast.previews.languages import source_kind
from holdfast.previews.python_outline import python_declarations
from holdfast.previews.quoting import at_most, counted, counted_lines, evenly, lines_of, some_of, written
from holdfast.previews.room import Room, shortened
from holdfast.previews.sampling import sample_of
from holdfast.previews.telling import Found, numbered, telling, with_rare_words

__all__ = ["preview_code"]

_LONG_LINE = 2_000
_LONG_SHARE = 0.3
_LONGEST_READ = 400
_LONGEST_SIGNATURE, _SHORT_SIGNATURE, _LONGEST_NAME = 110, 60, 100
_OUTLINE = 0.6
_IMPORTS = 300
_OPENING = 30
_COMMENT = re.compile(
    r"""\s*(?:[rR]?["']{3}|/\*\*?|\*/?|//[/!]?|--|\#(?!include|define|if|pragma|!\[)|<\?php|;+)\W*(\w.*)?$|\w.*["']{3}$"""
)


def preview_code(text: str, room: Room) -> str | None:
    """Return imports, declarations with their lines, and telling lines, or None if the source is minified."""
    lines = lines_of(text)
    if _is_minified(lines, len(text)):
        return None
    kind = source_kind(sample_of(text)) or "source"
    filled = written(lines)
    found = python_declarations(text) if kind.startswith("Python") else None
    declared = declarations(lines, some_of(filled), kind) if found is None else found
    return with_rare_words(lambda part: _written(kind, lines, filled, declared, part), lines, room)


def _written(
    kind: str, lines: Sequence[str], filled: Sequence[int], declared: Sequence[Declaration], room: Room
) -> list[str]:
    said = room.take_all([f"{kind}, {counted_lines(lines, filled)}, {counted(len(declared), 'declaration')}"])
    imported = room.take_all([*_about(lines), *_imports(lines, kind)])
    outline = _outline(declared, room)
    told = telling(_others(lines, filled, declared), room) if room.take("other lines:") else []
    return [*said, *imported, *outline, *(["other lines:", *told] if told else [])]


def _is_minified(lines: Sequence[str], size: int) -> bool:
    return sum([length for length in map(len, lines) if length > _LONG_LINE]) > _LONG_SHARE * size


def _about(lines: Sequence[str]) -> list[str]:
    """Return the first line of the text that a source begins with, if it does."""
    for number, line in enumerate(lines[:_OPENING], start=1):
        match = _COMMENT.match(line[:_LONGEST_READ])
        if match and match[1]:
            return [f"{number}: {shortened(match[1], _LONGEST_SIGNATURE)}"]
        if line.strip() and not match:
            return []
    return []


def _imports(lines: Sequence[str], kind: str) -> list[str]:
    names = imports(lines, kind)
    where = f" of the first {MOST_IMPORTING:,} lines" if len(lines) > MOST_IMPORTING else ""
    return [f"imports{where}: {shortened(at_most(names, 60), _IMPORTS)}"] if names else []


def _outline(declared: Sequence[Declaration], room: Room) -> list[str]:
    """Take all signatures if they fit, else all names, else names from everywhere."""
    part = room.part(_OUTLINE)
    for longest in (_LONGEST_SIGNATURE, _SHORT_SIGNATURE):
        lines = (f"{one.number}: {'  ' * one.depth}{shortened(one.signature, longest)}" for one in declared)
        if len(told := room.part(_OUTLINE).take_all(lines)) == len(declared):
            return room.take_all(told)
    few = _most_that_fit(declared, part)
    grouped = _grouped([declared[index] for index in evenly(len(declared), few)])
    missing = [f"… {counted(len(declared) - few, 'declaration')} left out …"] if few < len(declared) else []
    return room.take_all([*grouped, *missing])


def _most_that_fit(declared: Sequence[Declaration], room: Room) -> int:
    low, high = 0, min(len(declared), max(room.left, 0))
    while low < high:
        middle = (low + high + 1) // 2
        lines = _grouped([declared[index] for index in evenly(len(declared), middle)])
        low, high = (middle, high) if sum(map(room.cost, lines)) <= room.left else (low, middle - 1)
    return low


def _grouped(declared: Sequence[Declaration]) -> list[str]:
    """Return one line for each outer declaration, with the names and lines of those inside of it or on it."""
    lines: list[str] = []
    of_owner: dict[str, int] = {}
    for one in declared:
        at = len(lines) - 1 if one.depth else of_owner.get(one.owner, -1)
        if at >= 0:
            lines[at] += f", {shortened(one.name, _LONGEST_NAME)} {one.number}"
            continue
        owner = f"{one.owner}: " if one.owner else ""
        lines.append(f"{one.number}: {owner}{shortened(one.name, _LONGEST_NAME)}")
        of_owner.setdefault(one.owner or one.name, len(lines) - 1)
    return lines


def _others(lines: Sequence[str], filled: Sequence[int], declared: Sequence[Declaration]) -> list[Found]:
    known = {one.number for one in declared}
    return numbered(lines, [index for index in filled if index + 1 not in known and len(lines[index]) > 3])
