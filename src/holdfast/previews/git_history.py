"""What git log and git blame write: who, when, and what it was about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.previews.groups import scattered
from holdfast.previews.line_kinds import commonest_then_rarest, kinds_of, said_kinds
from holdfast.previews.quoting import at_most, counted, counted_lines, evenly, some_of, written
from holdfast.previews.rare_words import rare_words
from holdfast.previews.room import Room

__all__ = ["preview_blame", "preview_git_log"]

_BLAMED = re.compile(r"(\^?[0-9a-f]{7,40}) (?:\S+ +)?\((.{1,60}?) +(\d{4}-\d\d-\d\d).{0,20}? +(\d+)\) ?(.*)")
_SHORT = re.compile(r"[*|\\/_ ]{0,12}([0-9a-f]{7,40})\s+(.*)")
_WHEN = re.compile(r"(\d{4}-\d\d(?:-\d\d)?)[T ]?[\d:+ -]{0,24}\s*|\((?:HEAD|tag|origin|\w+/)[^)]{0,200}\)\s*")
_LONG = re.compile(r"commit ([0-9a-f]{7,40})\b")
_SORT = re.compile(
    r"(\w{2,14})(?:\([^)]{0,40}\))?!?: |(Merge|Revert|Bump|Update|Add|Fix|Remove|Release)\b", re.IGNORECASE
)
_MOST_NAMED, _ENOUGH = 8, 60
_MOST_COMMITS = 100_000
_COMMITS, _WORDS = 0.35, 0.6
_OUTLINED = re.compile(r"\s*(?:async )?(?:def|class|func|fn|pub|function|interface|struct|impl|export|type|module)\b")


class _Blamed(NamedTuple):
    number: int
    commit: str
    author: str
    date: str
    code: str


def preview_blame(lines: Sequence[str], room: Room) -> str | None:
    """Return the authors, the commits with what they left, and an outline of the file; None if this is no blame."""
    some = [lines[index] for index in evenly(len(lines), _ENOUGH)]
    if sum(_read_blame(0, line) is not None for line in some) <= 0.8 * len(some):
        return None
    filled = written(lines)
    blamed = [one for index in some_of(filled) if (one := _read_blame(index + 1, lines[index]))]
    authors = Counter(one.author for one in blamed)
    dates = sorted(one.date for one in blamed)
    said = room.take_all(
        [
            f"{counted_lines(lines, filled)}, {dates[0]} to {dates[-1]}",
            f"authors: {_most(authors)}",
        ]
    )
    said += _told_commits(blamed, room)
    code = [one.code for one in blamed]
    words = rare_words(code, room, _WORDS, said)
    outline = [one for one in blamed if _OUTLINED.match(one.code)] or blamed
    told = room.take_all(f"{one.number}: {one.commit} {one.code.strip()[:80]}" for one in _some(outline, room))
    return "\n".join([*said, "lines:", *told, *words])


def _read_blame(number: int, line: str) -> _Blamed | None:
    found = _BLAMED.match(line[:1_000])
    return _Blamed(number, found[1], found[2].strip(), found[3], found[5]) if found else None


def _told_commits(blamed: Sequence[_Blamed], room: Room) -> list[str]:
    """Return commits by month, with how many lines are theirs and where the first is."""
    counts = Counter(one.commit for one in blamed)
    firsts = {one.commit: one for one in reversed(blamed)}
    commits = sorted(firsts.values(), key=lambda one: one.date)
    part = room.part(_COMMITS)
    told = {one.commit: f"{one.commit} ×{counts[one.commit]} {one.number}" for one in commits}
    taken = part.take_all(told[commits[place].commit] for place in scattered(len(commits)))
    kept = set(taken)
    by_month: dict[str, list[str]] = {}
    for one in commits:
        if told[one.commit] in kept:
            by_month.setdefault(one.date[:7], []).append(told[one.commit])
    months = [f"{month}: {', '.join(some)}" for month, some in by_month.items()]
    return room.take_all([f"{counted(len(commits), 'commit')} (×lines, first line):", *months])


def _some(blamed: Sequence[_Blamed], room: Room) -> list[_Blamed]:
    sizes = [room.cost(f"{one.number}: {one.commit} {one.code.strip()[:80]}") for one in blamed[:40]]
    return [blamed[index] for index in evenly(len(blamed), room.left * len(sizes) // sum(sizes))]


def preview_git_log(lines: Sequence[str], room: Room) -> str | None:
    """Return counts by month, sort and author, and the commits told by their subjects; None for other texts."""
    short = _short_commits(lines)
    commits = short or _long_commits(lines)
    if not commits:
        return None
    months = Counter(when for _, _, when, _ in commits if when)
    sorts = Counter((found[1] or found[2]).lower() for *_, subject in commits if (found := _SORT.match(subject)))
    most = _MOST_COMMITS if short else len(lines)
    said = [f"{counted_lines(lines, written(lines), most)}, {counted(len(commits), 'commit')}"]
    said += [f"months: {_most(months)}"] if months else []
    said += [f"sorts: {_most(sorts)}"] if sorts else []
    authors = Counter(line[8:].strip()[:60] for line in lines if line.startswith("Author: "))
    said += [f"authors: {_most(authors)}"] if authors else []
    said = room.take_all(said)
    told = [""] * len(lines)
    for number, commit, _, subject in commits:
        told[number - 1] = f"{commit} {subject[:70]}"
    subjects = kinds_of(told, [number - 1 for number, *_ in commits])
    title = room.take_all([f"subjects, {subjects.told()}:"])
    return "\n".join([*said, *title, *said_kinds(commonest_then_rarest(subjects.kinds, 2), told, room, others=0.5)])


def _short_commits(lines: Sequence[str]) -> list[tuple[int, str, str, str]]:
    """Return number, commit, month and subject of lines that hold one commit each."""
    some = [lines[index][:200] for index in evenly(len(lines), _ENOUGH)]
    if sum(map(bool, map(_SHORT.match, some))) < 0.5 * len(some):
        return []
    looked_at = some_of(written(lines), _MOST_COMMITS)
    found = [(index + 1, _SHORT.match(lines[index][:1_000])) for index in looked_at]
    commits = [(number, one[1], *_dated(one[2])) for number, one in found if one]
    return commits if len(commits) > 0.8 * len(looked_at) else []


def _dated(rest: str) -> tuple[str, str]:
    when = _WHEN.match(rest)
    return ((when[1] or "")[:7], rest[when.end() :]) if when else ("", rest)


def _long_commits(lines: Sequence[str]) -> list[tuple[int, str, str, str]]:
    """Return the same of `git log` with a commit on several lines: its subject is its first indented line."""
    commits: list[tuple[int, str, str, str]] = []
    for number, line in enumerate(lines, 1):
        if found := _LONG.match(line[:200]):
            commits.append((number, found[1], "", ""))
        elif commits and line.startswith("    ") and not commits[-1][3]:
            commits[-1] = (*commits[-1][:3], line.strip()[:200])
        elif commits and line.startswith("Date: "):
            commits[-1] = (*commits[-1][:2], _month(line.split()), commits[-1][3])
    return commits if len(commits) > 1 else []


def _month(words: Sequence[str]) -> str:
    return f"{words[2]} {words[5]}" if len(words) > 5 else " ".join(words[1:2])[:7]


def _most(counts: Counter[str]) -> str:
    return at_most([f"{name} ×{count:,}" for name, count in counts.most_common()], _MOST_NAMED)
