"""Logs: the errors and warnings told apart and counted, and what else is in them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.previews.access_logs import preview_access_log
from holdfast.previews.line_kinds import (
    commonest_then_rarest,
    kinds_of,
    lines_with,
    said_kinds,
    shared_prefix,
    stamp_of,
)
from holdfast.previews.quoting import counted, lines_of, take_quotes, without_colours
from holdfast.previews.room import Room

__all__ = ["PROBLEM_WORDS", "SEVERE_WORDS", "preview_log"]

SEVERE_WORDS = ("error", "fatal", "critical", "exception", "panic", "traceback", "severe", "fail", "emerg")
"""What stands in lines that tell of a failure."""

PROBLEM_WORDS = (*SEVERE_WORDS, "warn", "denied", "refused", "timeout", "timed out", "unreachable", "killed", "abort")
"""What stands in lines that tell of any trouble."""

_FIRST, _LAST = 2, 3
_ENDS, _PROBLEMS, _RECORDS = 0.15, 0.5, 0.75
_LONGEST_QUOTE = 160
_MOST_COMMON = 5


def preview_log(text: str, room: Room) -> str | None:
    """Return the log's span, the kinds of problems in it, the other kinds of lines, and the first and last lines."""
    lines = lines_of(text)
    if (access := preview_access_log(lines, room)) is not None:
        return access
    prefix = shared_prefix(lines)
    said = room.take_all([_title(lines, prefix)])
    ends = _ends(lines, room)
    problems = lines_with(text, PROBLEM_WORDS)
    said += _said_problems(problems, lines, room, prefix)
    said += _said_others(problems, lines, room, prefix)
    return "\n".join([*said, *ends])


def _title(lines: Sequence[str], prefix: str) -> str:
    first = next((stamp for line in lines[:50] if (stamp := stamp_of(line))), None)
    last = next((stamp for line in reversed(lines[-50:]) if (stamp := stamp_of(line))), None)
    span = f", {first} to {last}" if first and last else ""
    shared = f"; after the time, each has {prefix.strip()!r}" if prefix else ""
    return f"{counted(len(lines), 'line')}{span}{shared}"


def _ends(lines: Sequence[str], room: Room) -> list[str]:
    indices = sorted({*range(min(_FIRST, len(lines))), *range(max(0, len(lines) - _LAST), len(lines))})
    if not room.take(title := "first and last lines:"):
        return []
    return [title, *room.within(_ENDS, lambda part: take_quotes(part, lines, indices, _LONGEST_QUOTE))]


def _said_problems(problems: Sequence[int], lines: Sequence[str], room: Room, prefix: str) -> list[str]:
    found = kinds_of(lines, problems)
    kinds = commonest_then_rarest(found.kinds, _MOST_COMMON)
    kinds.sort(key=lambda kind: not _is_severe(lines[kind.indices[0]]))
    title = f"errors and warnings, {counted(len(problems), 'line')}, {found.told()}:"
    if not kinds or not room.take(title):
        return []
    return [title, *room.within(_PROBLEMS, lambda part: said_kinds(kinds, lines, part, prefix=prefix))]


def _said_others(problems: Sequence[int], lines: Sequence[str], room: Room, prefix: str) -> list[str]:
    """Return the kinds that begin a record, and shortly those that continue one."""
    troubled = set(problems)
    found = kinds_of(lines, [index for index in range(len(lines)) if index not in troubled])
    kinds = commonest_then_rarest(found.kinds, _MOST_COMMON)
    if not kinds or not room.take(title := f"other lines, {found.told()}:"):
        return []
    stamped = [stamp_of(lines[kind.indices[0]]) is not None for kind in kinds]
    records = [kind for kind, begins in zip(kinds, stamped, strict=True) if begins] or kinds
    further = [kind for kind, begins in zip(kinds, stamped, strict=True) if not begins] if any(stamped) else []
    share = _RECORDS if further else 1.0
    said = room.within(share, lambda part: said_kinds(records, lines, part, prefix=prefix))
    return [title, *said, *said_kinds(further, lines, room, others=0.0, prefix=prefix)]


def _is_severe(line: str) -> bool:
    small = without_colours(line[:1_000]).lower()
    return any(word in small for word in SEVERE_WORDS)
