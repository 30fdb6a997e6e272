"""Listings: files by directory and suffix, and what grep, git log and git blame write."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.previews.git_history import preview_blame, preview_git_log
from holdfast.previews.grep_output import preview_grep
from holdfast.previews.groups import MOST_GROUPS, Group, said_groups, scattered
from holdfast.previews.quoting import at_most, counted, counted_lines, evenly, lines_of, some_of, written
from holdfast.previews.room import Room

__all__ = ["preview_listing"]

_DATE = r"(?:\d{4}-\d\d-\d\d \S+(?: [+-]\d{4})?|\S+\s+\S+\s+[\d:]+)"
_LS = re.compile(rf"([-dlbcps])[-rwxsStT]{{9}}[.+@]?\s+\d+\s+\S+\s+(?:\S+\s+)?(\d+)\s+{_DATE}\s(.+)")
_TREE = re.compile(r"\d{6} (?:blob|tree|commit) [0-9a-f]{7,64}(?:\s+(\d+|-|BAD))?\t(.+)")
_SIZED = re.compile(r"(\d{1,15}(?:\.\d)?[KMGT]?)\s+(\S.*)")
_TOTAL = re.compile(r"total \d+")
_MOST_ENTRIES = 100_000
_LARGEST, _MOST_COUNTED, _MOST_OTHERS = 0.25, 8, 1_000


class _Entry(NamedTuple):
    number: int
    path: str
    size: int

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0]

    def told(self, name: str) -> str:
        return f"{name} {self.size}" if self.size >= 0 else name


def preview_listing(text: str, room: Room) -> str | None:
    """Return what a listing holds: counts by where and what, and some of it; None if it lists nothing known."""
    lines = lines_of(text)
    for preview in (preview_blame, preview_grep, preview_git_log):
        if (told := preview(lines, room)) is not None:
            return told
    return _preview_files(lines, room)


def _preview_files(lines: Sequence[str], room: Room) -> str | None:
    filled = written(lines)
    entries = _entries(lines, looked_at := some_of(filled, _MOST_ENTRIES))
    if len(entries) < 0.6 * len(looked_at) or not entries:
        return None
    said = room.take_all(_counts(counted_lines(lines, filled, _MOST_ENTRIES), entries))
    largest = _largest(entries, room)
    said += room.take_all([f"largest: {'; '.join(map(_numbered, largest))}"]) if largest else []
    by_directory: dict[str, list[_Entry]] = defaultdict(list)
    named = set(largest)
    for entry in (entry for entry in entries if entry not in named):
        by_directory[entry.directory].append(entry)
    if room.take(title := "other files by directory:" if largest else "files by directory:"):
        chosen = _by_weight(by_directory)
        groups = [_group(entries) for entries in chosen[:MOST_GROUPS]]
        beyond = list(map(len, chosen[MOST_GROUPS:]))
        said += [title, *said_groups(groups, room, others=0.4, noun="directory", beyond=beyond)]
    return "\n".join(said)


def _entries(lines: Sequence[str], indices: Iterable[int]) -> list[_Entry]:
    """Return the files listed; `ls -R` names the directory in a line of its own."""
    entries: list[_Entry] = []
    below = ""
    for index in indices:
        line = lines[index][:1_000]
        if line.endswith(":") and line[0] != " ":
            below = f"{line[:-1].rstrip('/')}/"
        elif not _TOTAL.match(line):
            entries.append(_entry(index + 1, line.rstrip(), below))
    return entries


def _entry(number: int, line: str, below: str) -> _Entry:
    if line[0].isdigit() and (found := _TREE.match(line)):
        return _Entry(number, found[2], int(found[1]) if (found[1] or "-").isdigit() else -1)
    if line[0] in "-dlbcps" and (found := _LS.match(line)):
        path = f"{below}{found[3]}{'/' if found[1] == 'd' else ''}"
        return _Entry(number, path, int(found[2]) if found[1] == "-" else -1)
    if line[0].isdigit() and (found := _SIZED.match(line)) and found[1].isdigit():
        return _Entry(number, found[2], int(found[1]))
    return _Entry(number, below + line.strip(), -1)


def _counts(lines: str, entries: Sequence[_Entry]) -> list[str]:
    sizes = [entry.size for entry in entries if entry.size >= 0]
    total = f", {counted(sum(sizes), 'byte')} together" if sizes else ""
    tops = Counter("/".join(entry.path.split("/", 2)[:-1]) + "/" for entry in entries)
    suffixes = Counter(_suffix(entry.path) for entry in entries)
    return [
        f"{lines}, {len(entries):,} {'entry' if len(entries) == 1 else 'entries'}{total}",
        f"directories: {_most(tops)}",
        f"suffixes: {_most(suffixes)}",
    ]


def _largest(entries: Sequence[_Entry], room: Room) -> list[_Entry]:
    sized = sorted((entry for entry in entries if entry.size > 0), key=lambda entry: -entry.size)
    return sized[: len(room.part(_LARGEST).take_all(map(_numbered, sized)))]


def _numbered(entry: _Entry) -> str:
    """Return a file without its directory: the number of the line leads there."""
    return f"{entry.number}: {entry.told(_name(entry.path))}"


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _suffix(path: str) -> str:
    name = _name(path)
    return f".{name.rpartition('.')[2]}"[:20] if "." in name[1:] else "none"


def _most(counts: Counter[str]) -> str:
    return at_most([f"{name} ×{count:,}" for name, count in counts.most_common()], _MOST_COUNTED)


def _by_weight(by_directory: dict[str, list[_Entry]]) -> list[list[_Entry]]:
    """Return the directories that hold most, and then some from everywhere."""
    bytes_in = {name: sum(entry.size for entry in entries) for name, entries in by_directory.items()}
    most_files = sorted(by_directory, key=lambda name: -len(by_directory[name]))[: _MOST_COUNTED // 2]
    most_bytes = sorted(by_directory, key=lambda name: -bytes_in[name])[:_MOST_COUNTED]
    directories = list(by_directory)
    spread = [directories[place] for place in scattered(len(directories))]
    chosen = dict.fromkeys([*most_files, *most_bytes, *spread])
    return [by_directory[name] for name in chosen]


def _group(entries: Sequence[_Entry]) -> Group:
    """Return a directory with its largest file at the head, or with its first one if no sizes are listed."""
    head = max(entries, key=lambda entry: entry.size)
    return Group(head.number, len(entries), partial(_head, head, entries), partial(_names, head, entries))


def _head(head: _Entry, entries: Sequence[_Entry]) -> str:
    return f"{head.number}: {head.told(head.path)}{f' (of {len(entries):,})' if len(entries) > 1 else ''}"


def _names(head: _Entry, entries: Sequence[_Entry]) -> list[tuple[int, str]]:
    """Return the other files of a directory, the largest first, or from everywhere if no sizes are listed."""
    others = [entries[at] for at in evenly(len(entries), _MOST_OTHERS) if entries[at] is not head]
    told = [(one.number, one.told(one.path[len(head.directory) :].lstrip("/"))) for one in others]
    if head.size < 0:
        return [told[place] for place in scattered(len(told))]
    return [told[place] for place in sorted(range(len(told)), key=lambda place: -others[place].size)]
