"""Stack traces and the output of tests: what failed, how, where, and the summary."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from holdfast.previews.line_kinds import commonest_then_rarest, kinds_of, said_kinds
from holdfast.previews.quoting import (
    counted,
    counted_lines,
    lines_of,
    quoted,
    some_of,
    take_quotes,
    without_colours,
    written,
)
from holdfast.previews.rare_words import rare_words
from holdfast.previews.room import Room

__all__ = ["preview_failures"]

_SUMMARY = re.compile(
    r"=* ?\d+ (?:passed|failed|errors?|skipped|warnings?|deselected|xfailed|xpassed)\b.{0,300}$|no tests ran"
    r"|Ran \d+ tests? in |(?:FAILED|OK) ?\(.{0,200}\)$|OK$|test result: |(?:FAIL|ok  |\?   )\t\S|FAILURES!"
    r"|(?:Tests|Test Suites|Snapshots|Test Files):? +.{0,200}\d+ (?:total|passed|failed)|(?:\[\w+\] )?Tests run: \d+"
    r"|\s+\d+ (?:passing|failing|pending)\b|\d+ examples?, \d+ failures?|# (?:tests|pass|fail) \d+|Found \d+ errors?"
    r"|BUILD (?:FAILED|SUCCESS)"
)
_FAILED = re.compile(
    r"(?:FAILED|ERROR|XPASS) \S|(?:FAIL|ERROR): \w|\s*--- FAIL: |\s*[✕✗×✘] |\s*● .|not ok \d+|FAIL +\S"
    r"|\S{1,300} (?:FAILED|ERROR)\b|\[ERROR\]\s+\S"
)
_RAISED = re.compile(
    r"E  +\S|(?:[\w$]{1,100}\.){0,20}\w{0,100}(?:Error|Exception|Warning|Exit|Interrupt|Failure|Panic|Fault)(?::|\s*$)"
    r"|Caused by: |Exception in thread |panic: |thread '.{0,200}' (?:\(\d+\) )?panicked at |fatal(?: error)?: "
    r"|error(?:\[\w+\])?: |Uncaught |\s+(?:Expected|Received|expected|actual|left|right)\b ?:|Segmentation fault"
)
_FRAME = re.compile(
    r'\s*File "[^"]{1,400}", line \d+|\S{1,300}\.\w{1,5}:\d+: |\s+at \S.{0,300}\d\)?$'
    r"|\s+\S{1,300}\.(?:go|rs):\d+|\s+--> \S+:\d+"
)
_SKIPPED = re.compile(r"SKIPPED |XFAIL|--- SKIP|(?:\S{1,300}: )?(?:\w+Warning|warning): ")
_SECTION = re.compile(r"_{1,80} .{1,300} _{1,80}$|---- \S{1,300} stdout ----")
_PART = re.compile(r"={4,} .{1,80} ={4,}$")
_TOP_PART = re.compile(r"=+ (?:FAILURES|ERRORS|short test summary|warnings summary)")
# Tools cut the reason to the width of the terminal, each time elsewhere.
_CUT_REASON = re.compile(r" - [^-]{0,40}\.\.\.$")
_RULER = re.compile(r"([_=*~#-])\1{3,} ?| ?([_=*~#-])\2{3,}")
_HAS_RULER = re.compile(r"____|====|\*\*\*\*|~~~~|####|----")
_SHARES = {
    "failed": 0.3,
    "details of": 0.35,
    "errors": 0.5,
    "where": 0.35,
    "skipped": 0.3,
    "other lines": 0.6,
}
_CLASSES = re.compile(
    "|".join(
        f"(?P<{name}>{pattern.pattern})"
        for name, pattern in (
            ("summary", _SUMMARY),
            ("failed", _FAILED),
            ("errors", _RAISED),
            ("where", _FRAME),
            ("skipped", _SKIPPED),
        )
    )
)
_VERDICTS = {
    "FAIL": "failed",
    "ERROR": "failed",
    "FAILED": "failed",
    "skipped": "skipped",
    "expected": "skipped",
}
_MOST_SUMMARIES, _LAST, _COMMON = 8, 2, 3
_MOST_LOCATED, _NEXT = 3, 2
_LONGEST_LINE, _LONGEST_SUMMARY = 1_000, 200


def preview_failures(text: str, room: Room) -> str | None:
    """Return the summary, the tests that failed, the errors, the frames next to them, and what else there is."""
    lines = [without_colours(line[:_LONGEST_LINE]) for line in lines_of(text)]
    filled = written(lines)
    classes = _classified(lines, looked_at := some_of(filled))
    near = _frames_next_to(classes.get("errors", []), classes.get("where", []))
    for index in looked_at:
        lines[index] = _tidied(lines[index])
    said = room.take_all([counted_lines(lines, filled)])
    said += room.within(0.3, lambda part: _summary(classes.get("summary", []), lines, part))
    for name, share in _SHARES.items():
        if name == "where" and near:
            said += room.within(share, lambda part: take_quotes(part, lines, near))
        said += _told(name, classes.get(name, []), lines, room, share)
    return "\n".join([*said, *rare_words(lines, room, 1.0, said)])


def _tidied(line: str) -> str:
    line = _CUT_REASON.sub("", line) if line.endswith("...") else line
    return _RULER.sub("", line) if _HAS_RULER.search(line) else line


def _classified(lines: Sequence[str], indices: Iterable[int]) -> dict[str, list[int]]:
    """Return the indices of the lines of each class. What passed has details too, which are no failures."""
    classes: dict[str, list[int]] = {}
    passed = False
    for index in indices:
        line = lines[index]
        if line.startswith("====") and _PART.match(line):
            passed = "PASSES" in line or (passed and not _TOP_PART.match(line))
        name = _class_of(line)
        classes.setdefault("other lines" if passed and name == "details of" else name, []).append(index)
    return classes


def _class_of(line: str) -> str:
    if " ... " in line and (verdict := _VERDICTS.get((line.rpartition(" ... ")[2].split() or [""])[0])):
        return verdict
    if _SECTION.match(line):
        return "details of"
    bare = line.lstrip("= ") if line.startswith("==") else line
    return (found.lastgroup or "") if (found := _CLASSES.match(bare)) else "other lines"


def _frames_next_to(errors: Sequence[int], frames: Sequence[int]) -> list[int]:
    """Return the frames before and after the last errors: one of the two is where it happened."""
    places = [bisect_left(frames, error) for error in errors[-_MOST_LOCATED:]]
    return sorted({frame for place in places for frame in frames[max(0, place - _NEXT) : place + _NEXT]})


def _summary(summaries: Sequence[int], lines: Sequence[str], room: Room) -> list[str]:
    """Return the last summaries and the last lines; the last of all come first where not all fit."""
    chosen = {*summaries[-_MOST_SUMMARIES:], *range(max(0, len(lines) - _LAST), len(lines))}
    last_first = sorted((index for index in chosen if lines[index].strip()), reverse=True)
    return room.take_all(quoted(index + 1, lines[index], _LONGEST_SUMMARY) for index in last_first)[::-1]


def _told(name: str, indices: Sequence[int], lines: Sequence[str], room: Room, share: float) -> list[str]:
    found = kinds_of(lines, indices)
    kinds = commonest_then_rarest(found.kinds, _COMMON)
    heading = {"skipped": "skipped and warnings"}.get(name, name)
    title = f"{heading}, {counted(len(indices), 'line')}, {found.told()}:"
    if not kinds or not room.take(title):
        return []
    return [title, *room.within(share, lambda part: said_kinds(kinds, lines, part, others=0.5))]
