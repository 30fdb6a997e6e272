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
    inside = set(changed)
    words = rare_words([line if index in inside else "" for index, line in enumerate(lines)], room, _WORDS, said)
    if changed and room.take(title := "changed lines:"):
        said += [title, *said_kinds(commonest_then_rarest(kinds_of(lines, changed), _COMMON), lines, room)]
    return "\n".join([*said, *words])


def _read(lines: Sequence[str], changed: list[int]) -> list[_File]:
    """Return the files of a diff, and collect the indices of the lines that changed."""
    files: list[_File] = []
    old = new = 0
    for index, line in enumerate(lines):
        if (old > 0 or new > 0) and line[:1] in ("+", "-", " ", "\\", ""):
            old -= line[:1] in ("-", " ", "")
            new -= line[:1] in ("+", " ", "")
            _count(files[-1], line)
            if line[:1] in ("+", "-") and len(line) > 3:
                changed.append(index)
        elif (hunk := _HUNK.match(line)) and files:
            old, new = int(hunk[2] or 1), int(hunk[4] or 1)
            files[-1].places.append((index + 1, hunk[5].strip()))
        else:
            _read_header(files, index, line)
    return files


def _count(file: _File, line: str) -> None:
    file.added += line.startswith("+")
    file.removed += line.startswith("-")


def _read_header(files: list[_File], index: int, line: str) -> None:
    """Take what stands before a file's hunks; without git's own line, the file begins at '---'."""
    if named := _GIT_FILE.match(line):
        files.append(_File(named[1], index + 1))
    elif (named := _FILE.match(line)) and line.startswith("---"):
        if not files or files[-1].places:
            files.append(_File(named[1], index + 1))
    elif named and files and named[1] != "/dev/null":
        files[-1].path = named[1].strip()
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
