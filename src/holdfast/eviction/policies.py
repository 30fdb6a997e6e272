"""Policies: which entries are to go. Each is a pure function of what is held and of the moment.

A policy of your own is a class with one method; see `Policy`. The attributes that the policies here have beside it
are all optional:

* ``because``: why, in words that complete "it is gone because …";
* ``needs``: what must be written down with an entry for the policy to be right after a restart, of ``"use"`` (when it
  was last read) and ``"turn"`` (in which turn); without it, both;
* ``hard``: True if even entries that are still visible in the conversation may go;
* ``exceeds(count, size)``: True if that many entries and bytes can never be held, and ``limits``, which says so;
* ``quiet_until(entries)``: until when it drops nothing more, as long as no turn begins. Storing changes that, unless
  ``heeds_stores`` is False or ``exceeds`` says that it is not too much. It saves asking; leave it out unless every
  microsecond counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar, Literal, NamedTuple, Protocol

from holdfast.errors import InvalidValueError
from holdfast.storage.checks import require_positive

__all__ = [
    "Candidate",
    "Candidates",
    "Chains",
    "LeastRecentlyUsed",
    "Moment",
    "Policy",
    "TimeToLive",
    "TurnsToLive",
    "require_seconds",
]


class Moment(NamedTuple):
    """When a policy is asked: seconds since the epoch, the conversation's turn, and the references visible in it."""

    time: float
    turn: int = 0
    live: Set[str] = frozenset()


class Candidate(Protocol):
    """An entry as policies see it. In a chain, the times and the turn are those of the freshest member."""

    @property
    def reference(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def content_type(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def stored_at(self) -> float: ...
    @property
    def last_used(self) -> float: ...
    @property
    def last_turn(self) -> int: ...


class Candidates(Protocol):
    """What is held. Iterating yields every entry; the orders leave out what is live, and cost only what is taken."""

    @property
    def total_size(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Candidate]: ...
    def by_age(self, *, before: float = inf) -> Iterable[Candidate]:
        """Return what was stored before that time, the oldest first."""
        ...

    def by_use(self, *, before: float = inf) -> Iterable[Candidate]:
        """Return what was last used before that time, the least recently used first."""
        ...

    def by_turn(self, *, before: float = inf) -> Iterable[Candidate]:
        """Return what was last used before that turn, the earliest first."""
        ...

    def live_by_use(self) -> Iterable[Candidate]:
        """Return what is live, the least recently used first."""
        ...

    def surplus(self, count: int, size: int) -> Iterable[Candidate]:
        """Return the least recently used, live ones last, until they are *count* entries and *size* bytes."""
        ...

    def stored_since(self) -> float:
        """Return a time that nothing `by_age` was stored before."""
        ...

    def used_since(self) -> float:
        """Return a time that nothing `by_use` was last used before."""
        ...


class Policy(Protocol):
    """Decides what to drop, from its arguments alone."""

    def expired(self, entries: Candidates, now: Moment) -> Iterable[Candidate]:
        """Return those of *entries* that are to go. Live ones among them stay, unless the policy is `hard`."""
        ...


@dataclass(frozen=True, kw_only=True)
class TimeToLive:
    """Drop what was stored, or with ``since="use"`` last stored or read, more than *seconds* ago."""

    seconds: float
    since: Literal["stored", "use"] = "stored"
    heeds_stores: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_seconds("seconds", self.seconds)
        if self.since not in ("stored", "use"):
            raise InvalidValueError(f"since must be 'stored' or 'use', got {self.since!r}")

    @property
    def because(self) -> str:
        """Why."""
        happened = "was stored" if self.since == "stored" else "was last used"
        return f"it {happened} more than {self.seconds:g} seconds before"

    @property
    def needs(self) -> frozenset[str]:
        """What to write down: nothing, or uses."""
        return frozenset() if self.since == "stored" else frozenset({"use"})

    def expired(self, entries: Candidates, now: Moment) -> Iterable[Candidate]:
        """Return what is too old."""
        limit = now.time - self.seconds
        return entries.by_age(before=limit) if self.since == "stored" else entries.by_use(before=limit)

    def quiet_until(self, entries: Candidates) -> float:
        """Return when the oldest is due."""
        return self.seconds + (entries.stored_since() if self.since == "stored" else entries.used_since())


@dataclass(frozen=True, kw_only=True)
class TurnsToLive:
    """Drop what nobody stored or read for more than *turns* turns."""

    turns: int
    needs: ClassVar[frozenset[str]] = frozenset({"use", "turn"})
    heeds_stores: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_positive("turns", self.turns)

    @property
    def because(self) -> str:
        """Why."""
        return f"nobody stored or read it for more than {self.turns} turns"

    def expired(self, entries: Candidates, now: Moment) -> Iterable[Candidate]:
        """Return what has been out of use for too many turns."""
        return entries.by_turn(before=now.turn - self.turns)

    def quiet_until(self, entries: Candidates) -> float:
        """Return forever: only a turn changes anything."""
        return inf


@dataclass(frozen=True, kw_only=True)
class LeastRecentlyUsed:
    """Keep at most *max_entries* entries and *max_bytes* bytes: the least recently used leave, live ones last."""

    max_entries: int | None = None
    max_bytes: int | None = None
    needs: ClassVar[frozenset[str]] = frozenset({"use"})
    hard: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.max_entries is None and self.max_bytes is None:
            raise InvalidValueError("LeastRecentlyUsed needs max_entries, max_bytes or both")
        for name, value in (("max_entries", self.max_entries), ("max_bytes", self.max_bytes)):
            if value is not None:
                require_positive(name, value)

    @cached_property
    def because(self) -> str:
        """Why."""
        return f"it was the least recently used of more than {self.limits}"

    @cached_property
    def limits(self) -> str:
        """The limits in words."""
        entries = None if self.max_entries is None else f"{self.max_entries:,} entries"
        size = None if self.max_bytes is None else f"{self.max_bytes:,} bytes"
        return " or ".join(filter(None, (entries, size)))

    def exceeds(self, count: int, size: int) -> bool:
        """Say whether *count* entries of together *size* bytes are too much."""
        return (self.max_entries is not None and count > self.max_entries) or (
            self.max_bytes is not None and size > self.max_bytes
        )

    def expired(self, entries: Candidates, now: Moment) -> Iterable[Candidate]:
        """Return as many as are too many."""
        count = 0 if self.max_entries is None else len(entries) - self.max_entries
        size = 0 if self.max_bytes is None else entries.total_size - self.max_bytes
        return entries.surplus(count, size) if count > 0 or size > 0 else ()

    def quiet_until(self, entries: Candidates) -> float:
        """Return forever: only a store changes anything."""
        return inf


@dataclass(frozen=True)
class Chains:
    """Let a tool call and all that it led to leave together or not at all. Drops nothing by itself.

    A chain is as fresh as its freshest member. See `in_chain` for how entries come to be in one.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    heeds_stores: ClassVar[bool] = False

    def expired(self, entries: Candidates, now: Moment) -> Iterable[Candidate]:
        """Return nothing: what other policies drop is widened by the storage."""
        return ()

    def quiet_until(self, entries: Candidates) -> float:
        """Return forever."""
        return inf


def require_seconds(name: str, value: object) -> None:
    """Refuse anything but a number above 0."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise InvalidValueError(f"{name} must be a positive number, got {value!r:.80}")
