"""The report as values: what `holdfast replay --json` writes, read gently. What is missing is nothing, not an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.replay.page.markup import cut

__all__ = ["Event", "Item", "Policy", "Recording", "Report", "Request", "Series", "Totals", "Unread", "read_report"]

_PARTS = ("system", "tools", "user", "assistant", "tool results", "summaries")
# As far as a browser counts exactly.
_MOST = 2**53


@dataclass(frozen=True)
class Totals:
    """The figures of one policy, over a recording or over all of them."""

    figures: Mapping[str, Any]

    def count(self, *path: str) -> int:
        """Return the whole number at *path*."""
        return round(self.amount(*path))

    def amount(self, *path: str) -> float:
        """Return the number at *path*; zero if there is none."""
        found: Any = self.figures
        for key in path:
            found = _mapping(found).get(key)
        return _number(found)

    @property
    def to_pay(self) -> float:
        """What is paid with prompt caching, look-ups and summaries included."""
        return sum(self.amount("bill", key) for key in ("cached", "lookups", "summaries"))

    @property
    def values(self) -> int:
        """How many values were asked about."""
        return sum(self.count("values", key) for key in ("kept", "lookup", "lost"))


@dataclass(frozen=True)
class Policy:
    """One way to manage the context, and what it came to."""

    name: str
    options: str
    totals: Totals


@dataclass(frozen=True)
class Request:
    """One model call: its tokens by part, how many of them were cached, and whether sent history was rewritten."""

    parts: tuple[int, ...]
    cached: int
    rewritten: bool

    @cached_property
    def tokens(self) -> int:
        """The tokens of all parts."""
        return sum(self.parts)


@dataclass(frozen=True)
class Event:
    """What happened before the model call at *request*."""

    request: int
    kind: str
    what: str
    tokens: int


@dataclass(frozen=True)
class Series:
    """A recording under one policy."""

    requests: tuple[Request, ...] = ()
    events: tuple[Event, ...] = ()

    @cached_property
    def peak(self) -> int:
        """The tokens of the largest request."""
        return max((request.tokens for request in self.requests), default=0)


@dataclass(frozen=True)
class Recording:
    """A recorded run, under each of the policies, in their order. Its requests are read when they are asked for."""

    name: str
    given: tuple[Mapping[str, Any], ...]
    parts: int

    @property
    def peaks(self) -> list[int]:
        """The largest request under each policy."""
        return [Totals(each).count("totals", "peak") for each in self.given]

    @cached_property
    def under(self) -> tuple[Series, ...]:
        """The requests and the events under each policy."""
        return tuple(_series(each, self.parts) for each in self.given)

    @property
    def calls(self) -> int:
        """The model calls under the policy that lasted longest."""
        return max((len(series.requests) for series in self.under), default=0)


@dataclass(frozen=True)
class Item:
    """One of the largest messages, and the tokens left of it under each policy; None where nobody knows."""

    recording: str
    message: int
    kind: str
    what: str
    tokens: int
    left: tuple[int | None, ...]


@dataclass(frozen=True)
class Unread:
    """A file or a line that could not be read."""

    file: str
    line: int | None
    reason: str


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    title: str
    made: str
    version: str
    window: int
    tokens: str
    parts: tuple[str, ...]
    unmanaged: Totals
    prices: Mapping[str, Any]
    policies: tuple[Policy, ...]
    recordings: tuple[Recording, ...]
    largest: tuple[Item, ...]
    unread: tuple[Unread, ...]

    @cached_property
    def baseline(self) -> int:
        """The place of the policy that the others are measured against: "none", or else the first."""
        return next((place for place, policy in enumerate(self.policies) if policy.name == "none"), 0)

    def price(self, key: str) -> float | None:
        """Return dollars for a million tokens, None where no price is known."""
        return _number(self.prices[key]) if key in self.prices else None


def read_report(given: Mapping[str, Any]) -> Report:
    """Return the values in *given*, a report as JSON has it."""
    parts = tuple(cut(_text(part), 40) for part in _list(given.get("parts"))) or _PARTS
    policies = tuple(_policy(each) for each in _mappings(given.get("policies")))
    recordings = tuple(_recording(each, len(policies), len(parts)) for each in _mappings(given.get("recordings")))
    return Report(
        title=_text(given.get("title")) or "Replay",
        made=_text(given.get("made")),
        version=_text(given.get("holdfast")),
        window=round(_number(given.get("window"))),
        tokens=_text(given.get("tokens")) or "estimated",
        parts=parts,
        unmanaged=Totals(_mapping(given.get("unmanaged"))),
        prices=_mapping(given.get("prices")),
        policies=policies,
        recordings=recordings,
        largest=tuple(_item(each, policies, recordings) for each in _mappings(given.get("largest"))),
        unread=tuple(_unread(each) for each in _mappings(given.get("unreadable"))),
    )


def _policy(given: Mapping[str, Any]) -> Policy:
    config = given.get("config")
    options = "" if config is None else json.dumps(config, ensure_ascii=False, default=str)
    return Policy(_text(given.get("name")), options, Totals(_mapping(given.get("totals"))))


def _recording(given: Mapping[str, Any], policies: int, parts: int) -> Recording:
    under = [*_mappings(given.get("under")), *({} for _ in range(policies))][:policies]
    return Recording(_text(given.get("name")), tuple(under), parts)


def _series(given: Mapping[str, Any], parts: int) -> Series:
    requests = tuple(_request(_list(row), parts) for row in _list(given.get("requests")))
    events = (_event(each) for each in _mappings(given.get("events")))
    return Series(requests, tuple(sorted(events, key=lambda event: event.request)))


def _request(row: Sequence[Any], parts: int) -> Request:
    figures = [max(0, round(_number(figure))) for figure in row] + [0] * (parts + 2 - len(row))
    return Request(tuple(figures[:parts]), figures[parts], bool(figures[parts + 1]))


def _event(given: Mapping[str, Any]) -> Event:
    request, tokens = (max(0, round(_number(given.get(key)))) for key in ("request", "tokens"))
    return Event(request, _text(given.get("kind")), _text(given.get("what")), tokens)


def _item(given: Mapping[str, Any], policies: Iterable[Policy], recordings: Sequence[Recording]) -> Item:
    left, place = _mapping(given.get("left")), round(_number(given.get("recording")))
    return Item(
        recordings[place].name if 0 <= place < len(recordings) else "",
        round(_number(given.get("message"))),
        _text(given.get("kind")),
        _text(given.get("what")),
        round(_number(given.get("tokens"))),
        tuple(round(_number(left[each.name])) if each.name in left else None for each in policies),
    )


def _unread(given: Mapping[str, Any]) -> Unread:
    line = given.get("line")
    return Unread(_text(given.get("file")), None if line is None else round(_number(line)), _text(given.get("reason")))


def _number(given: Any) -> float:
    return given if isinstance(given, int | float) and -_MOST <= given <= _MOST else 0


def _text(given: Any) -> str:
    return "" if given is None else str(given)


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _list(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else ()


def _mappings(given: Any) -> Iterable[Mapping[str, Any]]:
    return (each for each in _list(given) if isinstance(each, Mapping))
