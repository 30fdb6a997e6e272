"""A summary in sections, each under a title: read, and written within a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["CUT", "Section", "first_and_latest", "firsts", "latest", "read_sections", "written"]

CUT = "…"
_GAP = f"- {CUT}"
_FEWEST_CHARACTERS = 12
_Fit: TypeAlias = Callable[[Sequence[str], int], Sequence[str]]


class Section(NamedTuple):
    """Lines under a title, and which of them stay where there is room for so many characters only."""

    title: str
    lines: Sequence[str]
    fitting: _Fit


def read_sections(text: str, titles: Mapping[str, str], otherwise: str) -> dict[str, list[str]]:
    """Return the items of a summary by the section to which they go on; *titles* says to which each title belongs.

    What is no item under one of them goes to the section *otherwise*.
    """
    sections: dict[str, list[str]] = {section: [] for section in (*titles.values(), otherwise)}
    section = otherwise
    for line in filter(str.strip, text.splitlines()):
        if (titled := titles.get(line.removesuffix(":"))) is not None and line.endswith(":"):
            section = titled
        elif line.startswith("- ") or section == otherwise:
            sections[section].append(line)
        else:
            section = otherwise
            sections[section].append(line)
    return sections


def written(sections: Iterable[Section], longest: int) -> str:
    """Return the sections that have lines, in at most *longest* characters: the first may take half of them.

    Each of the others may take an equal share of what those before it left.
    """
    filled = [section for section in sections if section.lines]
    texts: list[str] = []
    for number, section in enumerate(filled):
        others = len(filled) - number
        share = longest // (min(others, 2) if number == 0 else others)
        if text := _text(section, share - 1):
            texts.append(text)
            longest -= len(text) + 1
    return "\n".join(texts)


def _text(section: Section, room: int) -> str:
    left = room - len(section.title) - 2
    lines = section.fitting(section.lines, left) if left >= _FEWEST_CHARACTERS else ()
    return "\n".join([f"{section.title}:", *lines]) if lines else ""


def firsts(lines: Sequence[str], room: int) -> Sequence[str]:
    """Return as many of the first lines as there is room for; of the first a part, if need be."""
    kept: list[str] = []
    for line in lines:
        if len(line) > room and kept:
            break
        kept.append(_cut(line, room))
        room -= len(line) + 1
    return kept


def latest(lines: Sequence[str], room: int) -> Sequence[str]:
    """Return as many of the last lines as there is room for; of the last a part, if need be."""
    return firsts(lines[::-1], room)[::-1]


def first_and_latest(lines: Sequence[str], room: int) -> Sequence[str]:
    """Return the first line and as many of the last as there is room for, and a mark where some are missing."""
    given = [line for line in lines if line != _GAP]
    if not given:
        return ()
    first, rest = _cut(given[0], room - len(_GAP) - 1), given[1:]
    left = room - len(first) - len(_GAP) - 2
    kept = latest(rest, left) if left >= _FEWEST_CHARACTERS else ()
    is_whole = len(kept) == len(rest) and _GAP not in lines
    return [first, *([] if is_whole else [_GAP]), *kept]


def _cut(line: str, room: int) -> str:
    return line if len(line) <= room else line[: max(room - len(CUT), 0)] + CUT
