"""What became of recordings under policies."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.replay.counts import Counts
from holdfast.replay.timeline import Request

__all__ = ["Event", "Large", "Outcome", "Replayed"]


@dataclass(frozen=True)
class Event:
    """Something that a manager did before the request with that number: an offload, a reduction or a failure."""

    request: int
    kind: str
    what: str
    tokens: int = 0


@dataclass(frozen=True)
class Large:
    """One of the largest messages of a recording, with its *number* from 1, and what it is in words."""

    number: int
    kind: str
    what: str
    tokens: int


@dataclass(frozen=True)
class Outcome:
    """What became of one recording under one policy.

    *left* is what was sent for each of the recording's largest messages when it was new, 0 if it never was. *failure*
    says why the run ended early, if it did.
    """

    policy: str
    requests: tuple[Request, ...]
    events: tuple[Event, ...]
    counts: Counts
    left: tuple[int, ...]
    failure: str = ""


@dataclass(frozen=True)
class Replayed:
    """One recording under all policies, and *unmanaged*: what it comes to without any manager."""

    name: str
    format: str
    messages: int
    values: int
    largest: tuple[Large, ...]
    outcomes: tuple[Outcome, ...]
    unmanaged: Counts
