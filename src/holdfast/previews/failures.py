"""Stack traces and the output of tests: what failed, how, where, and the summary."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from holdfast.previews.line_kinds import commonest_then_rarest, kinds_of, said_kinds
from holdfast.previews.quoting import counted, lines_of, quoted, take_quotes, without_colours
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
_RULERS = tuple(mark * 4 for mark in "_=*~#-")
_SHARES = {
    "failed": 0.3,
    "details of": 0.35,
    "errors": 0.5,
    "where": 0.35,
    "skipped and warnings": 0.3,
    "other lines": 0.6,
}
_PATTERNS = (
    ("summary", _SUMMARY),
    ("failed", _FAILED),
    ("errors", _RAISED),
    ("where", _FRAME),
    ("skipped and warnings", _SKIPPED),
)
_VERDICTS = {
    "FAIL": "failed",
    "ERROR": "failed",
    "FAILED": "failed",
    "skipped": "skipped and warnings",
    "expected": "skipped and warnings",
}
_MOST_SUMMARIES, _LAST, _COMMON = 8, 2, 3
_MOST_LOCATED, _NEXT = 3, 2
_LONGEST_LINE, _LONGEST_SUMMARY = 1_000, 200


def preview_failures(text: str, room: Room) -> str | None:
    """Return the summary, the tests that failed, the errors, the frames next to them, and what else there is."""
    lines = [without_colours(line[:_LONGEST_LINE]) for line in lines_of(text)]
    classes = _classified(lines)
    near = _frames_next_to(classes.get("errors", []), classes.get("where", []))
    lines = [_tidied(line) for line in lines]
    said = room.take_all([counted(len(lines), "line")])
    said += room.within(0.3, lambda part: _summary(classes.get("summary", []), lines, part))
    for name, share in _SHARES.items():
        if name == "where" and near:
            said += room.within(share, lambda part: take_quotes(part, lines, near))
        said += _told(name, classes.get(name, []), lines, room, share)
    return "\n".join([*said, *rare_words(lines, room, 1.0, said)])


def _tidied(line: str) -> str:
    line = _CUT_REASON.sub("", line) if line.endswith("...") else line
    return _RULER.sub("", line) if any(ruler in line for ruler in _RULERS) else line


def _classified(lines: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of the lines of each class. What passed has details too, which are no failures."""
    classes: dict[str, list[int]] = {}
    passed = False
    for index, line in enumerate(lines):
        if _PART.match(line):
            passed = "PASSES" in line or (passed and not _TOP_PART.match(line))
        if line.strip():
            name = _class_of(line)
            classes.setdefault("other lines" if passed and name == "details of" else name, []).append(index)
    return classes


def _class_of(line: str) -> str:
    if " ... " in line and (verdict := _VERDICTS.get((line.rpartition(" ... ")[2].split() or [""])[0])):
        return verdict
    if _SECTION.match(line):
        return "details of"
    bare = line.lstrip("= ") if line.startswith("==") else line
    return next((name for name, pattern in _PATTERNS if pattern.match(bare)), "other lines")


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
    kinds = commonest_then_rarest(kinds_of(lines, indices), _COMMON)
    title = f"{name}, {counted(len(indices), 'line')}, {counted(len(kinds), 'kind')}:"
    if not kinds or not room.take(title):
        return []
    return [title, *room.within(share, lambda part: said_kinds(kinds, lines, part, others=0.5))]
