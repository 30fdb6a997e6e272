"""Reports for the tests of the page: plausible ones of any size, made of nothing but a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

__all__ = ["PARTS", "POLICIES", "one_request", "sample_report"]

PARTS = ["system", "tools", "user", "assistant", "tool results", "summaries"]
POLICIES = ("none", "auto", "summarize")
PRICES = {"name": "example-model", "as_of": "2026-11-18", "input": 2.0, "cache_read": 0.1, "cache_write": 2.5}
TOOLS = ("read_file src/app.py", "bash pytest -q", "grep -rn timeout", "fetch https://example.org/log", "ls -R")
RUNS = ("fix-the-build", "trace-a-leak", "port-to-asyncio", "answer-a-ticket", "upgrade-django", "find-the-flake")


@dataclass
class Life:
    """A made-up conversation under one policy."""

    policy: str
    window: int
    parts: list[int]
    rows: list[list[int]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    offloaded: int = 0
    saved: int = 0

    def call(self, said: int, result: int, tool: str) -> None:
        rewritten = self.policy != "none" and sum(self.parts) > 0.7 * self.window
        before = sum(self.rows[-1][:6]) if self.rows else 0
        if rewritten:
            self.reduce()
        cached = sum(self.parts[:3]) if rewritten else before
        self.rows.append([*self.parts, cached, int(rewritten)])
        self.parts[3] += said
        self.parts[4] += self.offload(result, tool)

    def offload(self, result: int, tool: str) -> int:
        if self.policy == "none" or result < 2_500:
            return result
        event = {
            "request": len(self.rows),
            "kind": "offload",
            "what": f"the result of {tool}",
            "tokens": result - 1_500,
        }
        self.events.append(event)
        self.offloaded, self.saved = self.offloaded + 1, self.saved + result - 1_500
        return 1_500

    def reduce(self) -> None:
        before = sum(self.parts)
        self.parts[3], self.parts[4] = self.parts[3] // 3, self.parts[4] // 3
        self.parts[5] = 2_200 if self.policy == "summarize" else 0
        tokens = before - sum(self.parts)
        what = f"{before:,} tokens became {sum(self.parts):,}"
        self.events.append({"request": len(self.rows), "kind": "reduction", "what": what, "tokens": tokens})

    def totals(self, values: int, random: Random) -> dict[str, Any]:
        sizes = [sum(row[:6]) for row in self.rows]
        tokens, cached = sum(sizes), sum(row[6] for row in self.rows)
        reductions = sum(event["kind"] == "reduction" for event in self.events)
        lookup = 0 if self.policy == "none" else sum(random.random() < 0.2 for _ in range(values))
        lost = min(values - lookup, sum(random.random() < 0.04 for _ in range(lookup)))
        return {
            "requests": len(sizes),
            "tokens": tokens,
            "peak": max(sizes, default=0),
            "overflows": sum(size > self.window for size in sizes),
            "cached": cached,
            "fresh": tokens - cached,
            "per_request": tokens // max(1, len(sizes)),
            "reuse": cached / tokens if tokens else 0.0,
            "rewrites": sum(row[7] for row in self.rows),
            "bill": {
                "cached": (cached * 0.1 + (tokens - cached) * 2.5) / 1e6,
                "uncached": tokens * 2 / 1e6,
                "lookups": lookup * 0.004,
                "summaries": 0.05 * reductions if self.policy == "summarize" else 0.0,
            },
            "offloaded": self.offloaded,
            "offloaded_tokens": self.saved,
            "reductions": reductions,
            "dropped": 0 if self.policy == "summarize" else 40 * reductions,
            "summarised": 40 * reductions if self.policy == "summarize" else 0,
            "shortened": 3 * reductions,
            "values": {"kept": values - lookup - lost, "lookup": lookup, "lost": lost},
            "further": lost,
            "failed": 0,
        }


def sample_report(
    recordings: int = 6, calls: int = 120, policies: Sequence[str] = POLICIES, window: int = 100_000, seed: int = 1
) -> dict[str, Any]:
    """Return a report of *recordings* with up to *calls* model calls each."""
    random = Random(seed)
    runs = [_recording(number, calls, policies, window, random) for number in range(recordings)]
    together = [[run["under"][place]["totals"] for run in runs] for place in range(len(policies))]
    return {
        "holdfast": "0.1.0",
        "made": "2026-11-18",
        "title": f"Replay of {recordings} recordings",
        "window": window,
        "tokens": "estimated",
        "parts": PARTS,
        "unmanaged": {"requests": 900, "overflows": 321, "recordings": 2},
        "prices": PRICES,
        "policies": [
            {"name": name, "config": None if name == "none" else {"strategy": name}, "totals": _sum(totals)}
            for name, totals in zip(policies, together, strict=True)
        ],
        "recordings": runs,
        "largest": [_item(number, recordings, policies, random) for number in range(50 if recordings else 0)],
        "unreadable": [{"file": "runs/broken.jsonl", "line": 7, "reason": "not JSON: Expecting value"}],
    }


def one_request(tokens: int = 10) -> dict[str, Any]:
    """Return a report of a single request."""
    report = sample_report(recordings=1, calls=10, policies=["none"])
    report["recordings"][0]["under"][0]["requests"] = [[tokens, 0, 0, 0, 0, 0, 0, 0]]
    return report


def _recording(number: int, calls: int, policies: Sequence[str], window: int, random: Random) -> dict[str, Any]:
    length = random.randint(max(1, calls // 4), calls) if calls else 0
    turns = [
        (random.randint(40, 260), int(random.lognormvariate(5.6, 1.3)), random.choice(TOOLS)) for _ in range(length)
    ]
    lives = [Life(policy, window, [3_100, 7_900, random.randint(200, 3_000), 0, 0, 0]) for policy in policies]
    for life in lives:
        for turn in turns:
            life.call(*turn)
    values = length // 8
    return {
        "name": f"runs/day-{number // 6 + 1}.jsonl:{number + 1} {RUNS[number % len(RUNS)]}",
        "format": "openai",
        "messages": 2 * length + 1,
        "values": values,
        "under": [
            {
                "policy": life.policy,
                "totals": life.totals(values, random),
                "requests": life.rows,
                "events": life.events,
            }
            for life in lives
        ],
    }


def _sum(totals: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys = totals[0] if totals else {}
    summed: dict[str, Any] = {
        key: _sum([each[key] for each in totals]) if isinstance(keys[key], dict) else sum(each[key] for each in totals)
        for key in keys
    }
    if "peak" in summed:
        summed["peak"] = max(each["peak"] for each in totals)
        summed["reuse"] = summed["cached"] / summed["tokens"] if summed["tokens"] else 0.0
    return summed


def _item(number: int, recordings: int, policies: Sequence[str], random: Random) -> dict[str, Any]:
    tokens = 48_211 - 700 * number
    return {
        "recording": random.randrange(recordings),
        "message": 5 + 3 * number,
        "kind": "tool result",
        "what": TOOLS[number % len(TOOLS)],
        "tokens": tokens,
        "left": {name: tokens if name == "none" else 1_490 + number for name in policies},
    }
