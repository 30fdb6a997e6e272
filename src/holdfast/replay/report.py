"""What many replays come to, as plain data: for ``--json``, for the page, and for the table on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from heapq import nlargest
from importlib.metadata import version
from typing import Any, TypeAlias

from holdfast.recordings import Unreadable
from holdfast.replay.counts import Counts
from holdfast.replay.outcomes import Outcome, Replayed
from holdfast.replay.parts import PARTS
from holdfast.replay.policies import Policy
from holdfast.replay.prices import Bill, Prices
from holdfast.replay.running import Replay, Result

__all__ = ["Report", "report_of", "totals_of"]

Report: TypeAlias = dict[str, Any]

_LARGEST = 50


def report_of(results: Iterable[Result], replay: Replay, prices: Prices, *, made: str, title: str = "") -> Report:
    """Add up. *made* is the date; *title* stands above the page."""
    found = list(results)
    replayed = [result for result in found if isinstance(result, Replayed)]
    return {
        "holdfast": version("holdfast"),
        "made": made,
        "title": title or f"Replay of {len(replayed):,} recording{'' if len(replayed) == 1 else 's'}",
        "window": replay.window,
        "tokens": "o200k" if replay.exact else "estimated",
        "parts": list(PARTS),
        "prices": asdict(prices),
        "unmanaged": _unmanaged([each.unmanaged for each in replayed]),
        "policies": [_policy(place, each, replayed, prices) for place, each in enumerate(replay.policies)],
        "recordings": [_recording(each, prices) for each in replayed],
        "largest": _largest(replayed),
        "unreadable": [asdict(result) for result in found if isinstance(result, Unreadable)],
    }


def totals_of(counts: Counts, prices: Prices) -> dict[str, Any]:
    """Return the figures of runs as plain data, with what they cost."""
    figures = asdict(counts)
    for name in ("kept", "lookup", "lost", "lookup_cached", "lookup_fresh", "summary_input", "summary_output"):
        del figures[name]
    return {
        **figures,
        "fresh": counts.fresh,
        "per_request": round(counts.per_request),
        "reuse": round(counts.reuse, 4),
        "bill": {name: round(dollars, 6) for name, dollars in asdict(Bill.of(counts, prices)).items()},
        "values": {"kept": counts.kept, "lookup": counts.lookup, "lost": counts.lost},
    }


def _unmanaged(alone: Sequence[Counts]) -> dict[str, int]:
    total = Counts.total(alone)
    overflowing = sum(1 for each in alone if each.overflows)
    return {"requests": total.requests, "overflows": total.overflows, "recordings": overflowing}


def _policy(place: int, policy: Policy, replayed: Sequence[Replayed], prices: Prices) -> dict[str, Any]:
    counts = Counts.total(each.outcomes[place].counts for each in replayed)
    config = None if policy.config is None else dict(policy.config)
    return {"name": policy.name, "config": config, "totals": totals_of(counts, prices)}


def _recording(replayed: Replayed, prices: Prices) -> dict[str, Any]:
    return {
        "name": replayed.name,
        "format": replayed.format,
        "messages": replayed.messages,
        "values": replayed.values,
        "under": [_outcome(outcome, prices) for outcome in replayed.outcomes],
    }


def _outcome(outcome: Outcome, prices: Prices) -> dict[str, Any]:
    return {
        "policy": outcome.policy,
        "totals": totals_of(outcome.counts, prices),
        "requests": [[*request.split, request.cached, int(request.rewritten)] for request in outcome.requests],
        "events": [asdict(event) for event in outcome.events],
    }


def _largest(replayed: Sequence[Replayed]) -> list[dict[str, Any]]:
    items = [
        {
            "recording": number,
            "message": large.number,
            "kind": large.kind,
            "what": large.what,
            "tokens": large.tokens,
            "left": {outcome.policy: outcome.left[place] for outcome in each.outcomes},
        }
        for number, each in enumerate(replayed)
        for place, large in enumerate(each.largest)
    ]
    return nlargest(_LARGEST, items, key=lambda item: item["tokens"])
