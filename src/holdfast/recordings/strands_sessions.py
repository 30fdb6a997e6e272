"""Sessions of Strands: logs of messages, one file each, and snapshots of an agent.

The messages of a log are those that were added, in their order; what a conversation manager left out or rewrote since
is in the agent's state, and is not read. A snapshot holds the messages as they were when it was taken, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast.recordings.beside import joined_prompt
from holdfast.recordings.conversations import recording_of, recording_of_log, told_left_out
from holdfast.recordings.json_values import parsed
from holdfast.recordings.shapes import logged_in
from holdfast.recordings.sources import Source, disk_reason
from holdfast.recordings.streams import Progress, joined, lines_of, opened
from holdfast.recordings.values import Recording, Unreadable, UnusableError

__all__ = ["read_log", "recording_of_snapshot"]


def read_log(source: Source, progress: Progress) -> Iterator[Recording | Unreadable]:
    """Yield the conversation of an agent, and the files of its log that cannot be read."""
    read: list[tuple[str, dict[str, Any]]] = []
    for path in source.logged:
        try:
            read.append((path, _message_in(path, progress)))
        except UnusableError as error:
            yield Unreadable(path, error.line, error.reason)
    try:
        recording, places = recording_of_log(source.name, [message for _, message in read], "strands")
    except UnusableError as error:
        yield Unreadable(source.name, None, error.reason)
        return
    if places:
        yield Unreadable(read[places[0]][0], None, told_left_out(places))
    yield recording


def recording_of_snapshot(name: str, value: dict[str, Any]) -> Recording:
    """Make a recording of the messages in a snapshot. Raises an UnusableError if there is no conversation in it."""
    data = value["data"]
    recording = recording_of(name, data["messages"], "converse")
    prompt = joined_prompt([data.get("system_prompt"), recording.system_prompt])
    return replace(recording, format="strands", system_prompt=prompt)


def _message_in(path: str, progress: Progress) -> dict[str, Any]:
    try:
        with opened(path, progress) as stream:
            value = parsed(joined(lines_of(stream, progress)))
    except OSError as error:
        raise UnusableError(disk_reason(error)) from None
    if (message := logged_in(value)) is None:
        raise UnusableError("no message of a session of Strands in it")
    return message
