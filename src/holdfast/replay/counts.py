"""What happened in one run, or in many, in figures that can be added up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import reduce
from operator import add

from holdfast.replay.timeline import Request

__all__ = ["Counts"]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Figures of runs under one policy; ``+`` adds them up, and keeps the higher *peak*.

    *overflows* are requests above the window. Of *tokens*, *cached* are those that the request before began with too.
    *kept* values were in the window, *lookup* ones one look-up away, and *lost* ones neither; *further* of these
    come back with more look-ups. A look-up sends *lookup_cached* tokens again, and *lookup_fresh* new ones. *failed*
    runs ended early.
    """

    requests: int = 0
    tokens: int = 0
    peak: int = 0
    overflows: int = 0
    cached: int = 0
    rewrites: int = 0
    offloaded: int = 0
    offloaded_tokens: int = 0
    reductions: int = 0
    dropped: int = 0
    summarised: int = 0
    shortened: int = 0
    kept: int = 0
    lookup: int = 0
    lost: int = 0
    further: int = 0
    lookup_cached: int = 0
    lookup_fresh: int = 0
    summary_input: int = 0
    summary_output: int = 0
    failed: int = 0

    @classmethod
    def of_requests(cls, requests: Iterable[Request], window: int) -> Counts:
        """Count what can be seen of the requests themselves."""
        sent = list(requests)
        return cls(
            requests=len(sent),
            tokens=sum(request.tokens for request in sent),
            peak=max((request.tokens for request in sent), default=0),
            overflows=sum(request.tokens > window for request in sent),
            cached=sum(request.cached for request in sent),
            rewrites=sum(request.rewritten for request in sent),
        )

    @classmethod
    def total(cls, counts: Iterable[Counts]) -> Counts:
        """Add up."""
        return reduce(add, counts, cls())

    def __add__(self, other: Counts) -> Counts:
        summed = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Counts(**{**summed, "peak": max(self.peak, other.peak)})

    @property
    def fresh(self) -> int:
        """The tokens that are sent for the first time, or for the first time since what stands before them changed."""
        return self.tokens - self.cached

    @property
    def per_request(self) -> float:
        """The tokens of a request, on average."""
        return self.tokens / self.requests if self.requests else 0.0

    @property
    def reuse(self) -> float:
        """The share of tokens that the provider has in its cache."""
        return self.cached / self.tokens if self.tokens else 0.0

    @property
    def values(self) -> int:
        """How many values were looked for."""
        return self.kept + self.lookup + self.lost
