"""Diffs: the files with what was added and removed, the places, and lines that changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.previews.groups import Group, said_groups, scattered
from holdfast.previews.line_kinds import commonest_then_rarest, kinds_of, said_kinds
from holdfast.previews.quoting import counted, lines_of
from holdfast.previews.rare_words import rare_words
from holdfast.previews.room import Room, shortened

__all__ = ["preview_diff"]

_GIT_FILE = re.compile(r"diff --git (?:a/)?(.{1,1000}?) (?:b/)?\S{1,1000}$")
_FILE = re.compile(r"(?:\+\+\+|---) (?:[ab]/)?([^\t\n]{1,1000})")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.{0,200})")
_NOTES = ("new file", "deleted file", "rename to", "rename from", "Binary files", "similarity index", "copy from")
_MARKS = frozenset(["+", "-", " ", "\\", ""])
_LONGEST_PLACE = 70
_FILES, _PLACES, _WORDS = 0.4, 0.25, 0.6
_COMMON = 3


@dataclass
class _File:
    path: str
    number: int
    notes: list[str] = field(default_factory=list)
    places: list[tuple[int, str]] = field(default_factory=list)
    added: int = 0
    removed: int = 0

    def told(self) -> str:
        notes = f" ({', '.join(dict.fromkeys(self.notes))})" if self.notes else ""
        return f"{self.number}: {self.path} +{self.added:,} -{self.removed:,}{notes}"


def preview_diff(text: str, room: Room) -> str | None:
    """Return totals, the files, the places of their hunks and changed lines of each sort; None without any file."""
    lines = lines_of(text)
    changed: list[int] = []
    files = _read(lines, changed)
    if not files:
        return None
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    said = room.take_all([f"{counted(len(files), 'file')}, +{added:,} -{removed:,}, {counted(len(lines), 'line')}"])
    said += _told_files(files, room)
    said += _told_places(files, room)
    words = rare_words(lines, room, _WORDS, said, changed)
    found = kinds_of(lines, changed)
    if changed and room.take(title := f"changed lines, {found.told()}:"):
        said += [title, *said_kinds(commonest_then_rarest(found.kinds, _COMMON), lines, room)]
    return "\n".join([*said, *words])


def _read(lines: Sequence[str], changed: list[int]) -> list[_File]:
    """Return the files of a diff, and collect the indices of the lines that changed."""
    files: list[_File] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if line.startswith("@@") and files and (hunk := _HUNK.match(line)):
            files[-1].places.append((index, hunk[5].strip()))
            index = _read_hunk(files[-1], lines, index, (int(hunk[2] or 1), int(hunk[4] or 1)), changed)
        else:
            _read_header(files, index - 1, line)
    return files


def _read_hunk(file: _File, lines: Sequence[str], start: int, sizes: tuple[int, int], changed: list[int]) -> int:
    """Count what a hunk adds and removes, and return where it ends: when it has as many lines as its head says."""
    old, new = sizes
    for index in range(start, len(lines)):
        mark = lines[index][:1]
        if (old <= 0 and new <= 0) or mark not in _MARKS:
            return index
        if mark == "+":
            new -= 1
            file.added += 1
        elif mark == "-":
            old -= 1
            file.removed += 1
        elif mark != "\\":
            old, new = old - 1, new - 1
            continue
        if mark != "\\" and len(lines[index]) > 3:
            changed.append(index)
    return len(lines)


def _read_header(files: list[_File], index: int, line: str) -> None:
    """Take what stands before a file's hunks; without git's own line, the file begins at '---'."""
    if line.startswith("diff ") and (named := _GIT_FILE.match(line)):
        files.append(_File(named[1], index + 1))
    elif line.startswith("--- ") and (named := _FILE.match(line)):
        if not files or files[-1].places:
            files.append(_File(named[1], index + 1))
    elif line.startswith("+++ ") and files and (named := _FILE.match(line)):
        files[-1].path = named[1].strip() if named[1] != "/dev/null" else files[-1].path
    elif files and line.startswith(_NOTES):
        files[-1].notes.append(line.split(" and ")[0] if line.startswith("Binary") else " ".join(line.split()[:2]))


def _told_files(files: Sequence[_File], room: Room) -> list[str]:
    """Return the files; where not all fit, those of which most changed."""
    largest = sorted(files, key=lambda file: -file.added - file.removed)
    groups = [Group(file.number, 1, file.told, list) for file in largest]
    return room.within(_FILES, lambda part: said_groups(groups, part, others=0.0, noun="file"))


def _told_places(files: Sequence[_File], room: Room) -> list[str]:
    named = list(_named_places(files))
    if not named or not room.take(title := "changed in:"):
        return []
    chosen = [named[place] for place in scattered(len(named))]
    kept = set(room.within(_PLACES, lambda part: part.take_all(chosen)))
    more = [f"… {counted(len(named) - len(kept), 'more place')}"] if len(kept) < len(named) else []
    return [title, *(told for told in named if told in kept), *more]


def _named_places(files: Sequence[_File]) -> Iterator[str]:
    """Yield the places that diffs name after a hunk's numbers, each once in a file."""
    for file in files:
        seen: set[str] = set()
        for number, place in file.places:
            if place and place not in seen:
                seen.add(place)
                yield f"{number}: {shortened(place, _LONGEST_PLACE)}"
