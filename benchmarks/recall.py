"""What an agent still has of what it once saw: under holdfast, and under strands' sliding window and its "auto".

Recorded runs of real agents are replayed under a window of 32,000 and of 100,000 tokens. Each probe is a value that the
agent used in a tool call at least eight messages after it had last seen it. At that call, the value is

- in context: it stands in the request with what stood on its line in the original, up to 40 characters on each side;
- named: it stands there only as a bare name;
- lost: neither, and one search with the words around its use does not show it.

A search finds a value if the first 4,000 characters of its answer show it. Some of that is chance: how much, a search
with the words around another value of the same run tells. After one search is what is in context, and of the rest the
share that is found less the share that is found by chance. Strands' managers have no search.

Strict are the probes whose value was in one single message, a tool result. Fresh is the share in context of names that
the agent used and that only tool results of the last eight messages held. User's words is the share of the characters
of what the user has written so far that stands word for word in the request. The bill is the cost of all requests,
those for summaries included, relative to sending everything: 1.25 for a token, 0.1 if the provider has it in its cache.
It includes the tools of the manager, but not those of the run, and no searches; the mean tokens of an answer are shown.

Strands takes ten minutes, so its figures are those of benchmarks/recall_peers.json; --peers measures them again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from recall_replay import STRANDS, with_holdfast, with_strands
from recall_runs import NAMES, recorded
from reporting import DATA, Benchmark, Row, today

WINDOWS = (32_000, 100_000)
HOLDFAST = "holdfast"
PACKAGE = "strands-agents"
PEERS = Path(__file__).with_name("recall_peers.json")
# What is asked for in the first file, under each window.
AT_LEAST = {
    "in context": (0.74, 0.80),
    "strict in context": (0.42, 0.50),
    "fresh": (0.94, 0.94),
    "after one search": (0.78, 0.83),
}
BILL_AT_MOST = (0.28, 0.31)


@dataclass(frozen=True)
class Figures:
    """What was counted in all runs of one file under one manager."""

    runs: str
    window: int
    manager: str
    counts: Mapping[str, int]

    def of(self, part: str, whole: str) -> float:
        """Return one count relative to another."""
        return self.counts.get(part, 0) / self.counts[whole] if self.counts.get(whole) else 0.0

    def shares(self) -> dict[str, float]:
        """Return the share of each count of values, by name."""
        return {
            "in context": self.of("in context", "probes"),
            "strict in context": self.of("strict in context", "strict probes"),
            "after one search": self._after_one_search(""),
            "strict after one search": self._after_one_search("strict "),
            "named": self.of("named", "probes"),
            "lost": self.of("lost", "probes"),
            "strict lost": self.of("strict lost", "strict probes"),
            "fresh": self.of("fresh in context", "fresh"),
            "user's words": self.of("words kept", "words"),
        }

    def _after_one_search(self, strict: str) -> float:
        """Return c + (1 - c) * (finds - chance): c in context, finds and chance of the rest."""
        parts = [self.of(f"{strict}{part}", f"{strict}probes") for part in ("in context", "found", "by chance")]
        return parts[0] + parts[1] - parts[2]

    @property
    def bill(self) -> float:
        """The cost of all requests, relative to sending everything."""
        return self.of("cost", "unmanaged cost")

    def line(self) -> dict[str, str]:
        """Return the line of the table, by column."""
        return {
            "runs (probes)": f"{self.runs} ({self.counts['probes']:,})",
            "window": f"{self.window:,}",
            "manager": self.manager,
            **{name: f"{share:.1%}" for name, share in self.shares().items()},
            "bill": f"{self.bill:.3f}",
            "rewrites per 100 calls": f"{100 * self.of('rewrites', 'calls'):.1f}",
            "tokens of a search answer": f"{self.of('answer tokens', 'answers'):,.0f}",
        }


# Measuring


def measure_holdfast() -> list[Figures]:
    """holdfast"""
    return measured(HOLDFAST, with_holdfast)


def measure_strands() -> list[Figures]:
    """strands' managers"""
    if "--peers" in sys.argv or not PEERS.exists() or peers()["version"] != version(PACKAGE):
        figures = [asdict(each) for manager in STRANDS for each in measured(manager, partial(with_strands, manager))]
        known = {"version": version(PACKAGE), "measured": today(), "figures": figures}
        PEERS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    return [Figures(**each) for each in peers()["figures"]]


def peers() -> dict[str, Any]:
    """Return the figures of strands' managers, with their version and the day of the measurement."""
    known: dict[str, Any] = json.loads(PEERS.read_text(encoding="utf-8"))
    return known


def measured(manager: str, replay: Callable[[str, int, int], Counter[str]]) -> list[Figures]:
    """Return the figures of each file under each window. Two processes share the runs of a file."""
    # A process that is forked while another thread holds a lock may wait for it forever.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        figures = []
        for name, window in product(NAMES, WINDOWS):
            print(f"{manager}: {name}, {window:,} tokens …", file=sys.stderr)
            counts = pool.map(partial(replay, name, window), range(len(recorded(name))))
            figures.append(Figures(name, window, manager, dict(sum(counts, Counter()))))
        return figures


# Reporting


def bars(figures: Sequence[Figures]) -> list[Row]:
    """Return what is asked for and what came out, and what strands' managers reach."""
    of = {(each.runs, each.window, each.manager): each for each in figures}
    rows = []
    for position, window in enumerate(WINDOWS):
        own, *others = (of[NAMES[0], window, manager] for manager in (HOLDFAST, *STRANDS))
        where = f"{NAMES[0]}, window of {window:,}"
        for name, bounds in AT_LEAST.items():
            share, bar = own.shares()[name], bounds[position]
            rows.append(Row(f"{where}: {name}", f"≥ {bar:.0%}", f"{share:.1%}", share >= bar))
        bar = BILL_AT_MOST[position]
        rows.append(Row(f"{where}: bill", f"≤ {bar:.2f}", f"{own.bill:.3f}", own.bill <= bar))
        rows += beside(others, where)
    return rows


def beside(others: Sequence[Figures], where: str) -> list[Row]:
    under = f"{where}, under {' and '.join(each.manager for each in others)}"
    in_context = ", ".join(f"{each.shares()['in context']:.1%}" for each in others)
    bills = ", ".join(f"{each.bill:.3f}" for each in others)
    return [Row(f"{under}: in context", "none", in_context, True), Row(f"{under}: bill", "none", bills, True)]


@dataclass(frozen=True, kw_only=True)
class RecallBenchmark(Benchmark):
    """A benchmark that measures `Figures`, shown as a table of all of them and one of bars."""

    def parser(self) -> argparse.ArgumentParser:
        """The options of the command."""
        parser = super().parser()
        parser.add_argument("--peers", action="store_true", help="measure strands again as well, for ten minutes")
        return parser

    def part(self, measured: list[Any]) -> dict[str, Any]:
        """What results.json says of it: the bars, the whole table, and when strands was measured."""
        part = super().part(bars(measured))
        known = peers()
        part["packages"][PACKAGE] = f"{known['version']} (measured on {known['measured']})"
        lines = [each.line() for each in sorted(measured, key=lambda each: (each.runs, each.window))]
        return {**part, "runs": {name: len(recorded(name)) for name in NAMES}, "table": lines}


BENCHMARK = RecallBenchmark(
    name="recall",
    measures=(measure_holdfast, measure_strands),
    packages=("bpe-openai", PACKAGE),
    data=[DATA / f"{name}{part}.jsonl.gz" for name in NAMES for part in ("", ".probes")],
)

if __name__ == "__main__":
    BENCHMARK.run()
