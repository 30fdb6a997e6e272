"""Recordings, read from files and folders one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any

from holdfast.checks import check_told
from holdfast.errors import InvalidValueError
from holdfast.recordings.claude_entries import Entry, conversations_among, entry_of
from holdfast.recordings.claude_turns import recording_of_entries
from holdfast.recordings.conversations import named, recording_of, recording_of_log, told_left_out
from holdfast.recordings.growing import whole_conversations
from holdfast.recordings.json_values import Placed, values_in
from holdfast.recordings.shapes import CONVERSATION, ENTRY, LOGGED, MESSAGE, SNAPSHOT, WHAT, flat, kind_of, logged_in
from holdfast.recordings.sources import Given, Source, checked_paths, disk_reason, sources
from holdfast.recordings.strands_sessions import read_log, recording_of_snapshot
from holdfast.recordings.streams import Progress, lines_of, opened
from holdfast.recordings.values import FORMATS, Recording, Unreadable, UnusableError

__all__ = ["read_recordings"]

_Read = Iterator[Recording | Unreadable]
_Values = Iterable[Placed | Unreadable]

_KINDS = {"claude-code": (ENTRY,), "strands": (SNAPSHOT, LOGGED)}
_OF_PROVIDERS = (CONVERSATION, MESSAGE)


def read_recordings(
    paths: Given, *, format: str | None = None, on_read: Callable[[int], None] | None = None
) -> Iterator[Recording | Unreadable]:
    """Yield what is in files and folders, in order, and hold no more than a few conversations at a time.

    Whatever is in a file, it costs an `Unreadable`, and the rest is read. *format*, one of `FORMATS`, is detected if it
    is None. *on_read* is told how many bytes of the files on disk were read since it was last called; in the end that
    is `size_of` all *paths*.
    """
    if format is not None and format not in FORMATS:
        raise InvalidValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r:.80}")
    check_told("on_read", on_read)
    return _read_all(checked_paths(paths), format, on_read)


def _read_all(paths: list[str], format: str | None, on_read: Callable[[int], None] | None) -> _Read:
    for source in sources(paths):
        if isinstance(source, Unreadable):
            yield source
            continue
        progress = Progress(on_read)
        yield from _read_source(source, format, progress)
        progress.finish(source.size)


def _read_source(source: Source, format: str | None, progress: Progress) -> _Read:
    if not source.logged:
        return _read_file(source.name, format, progress)
    if format in (None, "strands"):
        return read_log(source, progress)
    return iter([Unreadable(source.name, None, _mismatch(LOGGED, format))])


def _read_file(name: str, format: str | None, progress: Progress) -> _Read:
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(opened(name, progress))
        except (OSError, ValueError) as error:
            yield Unreadable(name, None, disk_reason(error))
            return
        values = values_in(name, lines_of(stream, progress))
        yield from _recordings(name, chain.from_iterable(map(_flat, values)), format)


def _flat(value: Placed | Unreadable) -> Iterable[Placed | Unreadable]:
    return flat(value) if isinstance(value, Placed) else (value,)


def _recordings(name: str, values: _Values, format: str | None) -> _Read:
    """Yield what a file holds. The first value that is known says what the others have to be."""
    values, unknown = iter(values), _Unknown(name)
    for value in values:
        kind = kind_of(value.value) if isinstance(value, Placed) else None
        if isinstance(value, Unreadable):
            yield value
        elif kind is None:
            unknown.add(value.line)
        else:
            # Of Claude Code's entries any may be unknown, as it writes more of them with every version.
            yield from unknown.told() if kind != ENTRY else ()
            yield from _of_kind(kind, name, chain([value], values), format)
            return
    yield from unknown.told()


@dataclass
class _Unknown:
    """How many values of a file are nothing that is known, and the line of the first."""

    name: str
    count: int = 0
    line: int | None = None

    def add(self, line: int | None) -> None:
        self.count += 1
        self.line = self.line or line

    def told(self) -> Iterator[Unreadable]:
        if self.count:
            others = f", and {self.count - 1:,} more like it" if self.count > 1 else ""
            reason = f"no conversation in a form that is known{others}; --format takes {', '.join(FORMATS)}"
            yield Unreadable(self.name, self.line, reason)


def _of_kind(kind: str, name: str, values: _Values, format: str | None) -> _Read:
    if format is not None and kind not in _KINDS.get(format, _OF_PROVIDERS):
        return iter([Unreadable(name, None, _mismatch(kind, format))])
    if kind == ENTRY:
        return _of_entries(name, values)
    if kind in (MESSAGE, LOGGED):
        return _of_messages(name, values, "strands" if kind == LOGGED else format)
    return _of_conversations(name, values, format)


def _mismatch(kind: str, format: str | None) -> str:
    return f"it holds {WHAT[kind]}, which --format {format} does not read"


def _of_conversations(name: str, values: _Values, format: str | None) -> _Read:
    return whole_conversations(_each_conversation(name, values, format))


def _each_conversation(name: str, values: _Values, format: str | None) -> _Read:
    for value in values:
        try:
            yield value if isinstance(value, Unreadable) else _recording(name, value, format)
        except UnusableError as error:
            yield Unreadable(name, value.line, _at(value, error.reason))


def _recording(name: str, placed: Placed, format: str | None) -> Recording:
    called = named(name, placed.place, placed.value)
    if kind_of(placed.value) == SNAPSHOT:
        return recording_of_snapshot(called, placed.value)
    return recording_of(called, placed.value, format)


def _at(value: Placed | Unreadable, reason: str) -> str:
    """Return a reason with the place in a list, for which an `Unreadable` has no other."""
    return f"item {value.item}: {reason}" if isinstance(value, Placed) and value.item is not None else reason


def _of_messages(name: str, values: _Values, format: str | None) -> _Read:
    """Yield the one conversation of a file that holds a message in each line."""
    logged: list[tuple[int | None, Any]] = []
    for value in values:
        if isinstance(value, Unreadable):
            yield value
        elif kind_of(value.value) in (MESSAGE, LOGGED):
            logged.append((value.line, logged_in(value.value) or value.value))
        else:
            yield Unreadable(name, value.line, "no message: it has no role")
    try:
        recording, places = recording_of_log(name, [message for _, message in logged], format)
    except UnusableError as error:
        yield Unreadable(name, None, error.reason)
        return
    if places:
        yield Unreadable(name, logged[places[0]][0], told_left_out(places))
    yield recording


def _of_entries(name: str, values: _Values) -> _Read:
    """Yield the conversations of a session of Claude Code: the main one, and those of its sub-agents."""
    entries: list[Entry] = []
    for number, value in enumerate(values, 1):
        if isinstance(value, Unreadable):
            yield value
        elif (entry := entry_of(number, value)) is not None:
            entries.append(entry)
    found = [(track, members) for track, members in conversations_among(entries) if members]
    if not found:
        yield Unreadable(name, None, "no answer of a model in it")
    for track, members in found:
        yield from _of_branch(f"{name}:{track}" if track and len(found) > 1 else name, name, members)


def _of_branch(called: str, name: str, members: list[Entry]) -> _Read:
    try:
        recording, losses = recording_of_entries(called, members)
    except UnusableError as error:
        yield Unreadable(name, members[0].line, error.reason)
        return
    if str(losses):
        yield Unreadable(name, losses.line, str(losses))
    yield recording
