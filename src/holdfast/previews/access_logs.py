"""Logs of web servers: who asked for what, and how it was answered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.previews.quoting import at_most, counted, counted_lines, evenly, some_of, written
from holdfast.previews.room import Room, shortened

__all__ = ["preview_access_log"]

_REQUEST = re.compile(
    r'(\S{1,200}) \S{1,100} \S{1,100} \[([^\]]{1,60})\] "(?:([A-Z]{1,10}) )?([^" ]{0,2000})[^"]{0,200}"'
    r" (\d{3}) (\S{1,20})"
    r'(?: "([^"]{0,2000})" "([^"]{0,1000})")?'
)
_LONGEST_PATH, _LONGEST_AGENT, _MOST_AGENTS = 80, 70, 4
_COMMONEST = 8


class _Request(NamedTuple):
    number: int
    client: str
    time: str
    method: str
    path: str
    status: str
    size: str
    referrer: str
    agent: str


def preview_access_log(lines: Sequence[str], room: Room) -> str | None:
    """Return counts of statuses, clients and paths, and requests told shortly; None if these are no requests."""
    if not _looks_like_one(lines):
        return None
    filled = written(lines)
    requests = [request for index in some_of(filled) if (request := _read(index + 1, lines[index]))]
    said = room.take_all(_counts(counted_lines(lines, filled), requests))
    said += _told("failed requests", _first_of_each([r for r in requests if r.status >= "400"]), room, 0.25)
    said += _agents(requests, room)
    said += _told("paths asked for only once", _asked_once(requests), room, 1.0)
    return "\n".join(said)


def _looks_like_one(lines: Sequence[str]) -> bool:
    some = [lines[index] for index in evenly(len(lines), 40)]
    return sum(_read(0, line) is not None for line in some) > 0.8 * len(some)


def _read(number: int, line: str) -> _Request | None:
    found = _REQUEST.match(line)
    return _Request(number, *(part or "" for part in found.groups())) if found else None


def _counts(lines: str, requests: Sequence[_Request]) -> Iterable[str]:
    yield f"{lines}, requests to a web server, {requests[0].time} to {requests[-1].time}"
    for name, values in (
        ("statuses", [request.status for request in requests]),
        ("methods", [request.method for request in requests]),
        ("clients", [request.client for request in requests]),
        ("paths", [shortened(request.path, _LONGEST_PATH) for request in requests]),
    ):
        counts = Counter(values)
        yield f"{name}: {at_most([f'{value} ×{count:,}' for value, count in counts.most_common()], _COMMONEST)}"


def _told(title: str, requests: Sequence[_Request], room: Room, share: float) -> list[str]:
    """Return requests without what most share, spread evenly over the log."""
    if not requests or not room.take(heading := f"{title}, {counted(len(requests), 'path')}:"):
        return []
    told = [_short(request) for request in requests]
    wanted = int(room.left * share) // (sum(map(room.cost, told[:40])) // len(told[:40]) + 1)
    return [heading, *room.take_all(told[index] for index in evenly(len(told), wanted))]


def _short(request: _Request) -> str:
    answer = f"{request.status} {request.size}" if request.status != "200" else request.size
    method = f"{request.method} " if request.method not in ("GET", "") else ""
    return f"{request.number}: {method}{shortened(request.path, _LONGEST_PATH)} {answer}"


def _first_of_each(requests: Sequence[_Request]) -> list[_Request]:
    firsts = {request.path: request for request in reversed(requests)}
    return sorted(firsts.values(), key=lambda request: request.number)


def _asked_once(requests: Sequence[_Request]) -> list[_Request]:
    counts = Counter(request.path for request in requests)
    return [request for request in requests if counts[request.path] == 1 and request.status < "400"]


def _agents(requests: Sequence[_Request], room: Room) -> list[str]:
    counts = Counter(request.agent for request in requests if len(request.agent) > 1)
    named = [f"{shortened(agent, _LONGEST_AGENT)} ×{count:,}" for agent, count in counts.most_common(_MOST_AGENTS)]
    return room.take_all([f"agents, {counted(len(counts), 'kind')}:", *named]) if counts else []
