"""What an agent can still get at of what it once saw: ours beside strands' sliding window and its "auto".

Recorded runs of real agents are lived through again, under a window of 32,000 and of 100,000 tokens. A probe is a value
that the agent used in a tool call at least eight messages after it had last seen it. Before that call, the value is

- kept: in what the model is sent;
- searchable: not kept, but in what the search tool answers to the words with which the agent went on;
- recoverable: neither, but behind a reference that the model can see;
- lost: none of these.

A search that shows much of everything finds a lot whatever it is asked: the same is asked in words of another run, too.
Strict are the probes whose value was in one single message, a tool's result. The bill is what all requests cost, those
for summaries included, in parts of what they cost if nobody manages anything, and everything is sent, however long it
gets: 1.25 for a token, 0.1 for one that the request before began with too. Look-ups come on top: one more request for
each answer that it takes, and a page of that answer. The tools of the run are left out, as nobody knows what was told
of them; those of the manager count. Strands has no search.

Reads the runs below HOLDFAST_DATA, or ../shared/data. Prints the tables; with --write, the figures go to results.json
and the pages as well. Strands takes ten minutes, so its figures are those of benchmarks/recall_peers.json; --peers
measures them again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import recall_replay
from recall_replay import BY_CHANCE, IN_TWO_STEPS
from recall_runs import CACHED, DATA, NAMES, UNCACHED, recorded, unmanaged
from reporting import Benchmark, Row, today
from results import PLACES

NARROW, WIDE = 32_000, 100_000
OURS, SLIDING, AUTO = "holdfast", "strands, sliding window", 'strands, "auto"'
STRANDS = "strands-agents"
PEERS = Path(__file__).with_name("recall_peers.json")
FOUND, SEARCHABLE = 0.99, 0.85

Replaying = Callable[[str, int, int], recall_replay.Replayed]


@dataclass(frozen=True)
class Figures:
    """What became of the probes into some runs under one manager, and of the runs."""

    probes: str
    window: int
    manager: str
    places: dict[str, int]
    bill: float
    look_ups: float
    reuse: float
    rewrites: int
    peak: int
    happened: dict[str, int]

    def share(self, *places: str) -> float:
        """The share of the probes whose value was in one of these places."""
        return sum(self.places[place] for place in places) / sum(self.places.values())

    @property
    def searchable(self) -> float:
        """The share of what was not kept that the search finds."""
        return self.places["searchable"] / self.not_kept if self.not_kept else 1.0

    @property
    def by_chance(self) -> float:
        """The share of what was not kept that the search would show to anybody who asks for something else."""
        return self.happened.get(BY_CHANCE, 0) / self.not_kept if self.not_kept else 0.0

    @property
    def in_two_steps(self) -> float:
        """The share of what is lost that a second look-up brings back: by a reference in what the first one shows."""
        lost = self.places["lost"]
        return self.happened.get(IN_TWO_STEPS, 0) / lost if lost else 1.0

    @property
    def not_kept(self) -> int:
        """How many values the model was not sent."""
        return sum(self.places.values()) - self.places["kept"]


# Figures


def measure_narrow() -> list[Figures]:
    """holdfast, with a window of 32,000 tokens"""
    return measured(OURS, NARROW, ours)


def measure_wide() -> list[Figures]:
    """holdfast, with a window of 100,000 tokens"""
    return measured(OURS, WIDE, ours)


def measure_peers() -> list[Figures]:
    """strands' managers"""
    installed = version(STRANDS)
    if "--peers" in sys.argv or not PEERS.exists() or peers()["version"] != installed:
        figures = [
            asdict(each)
            for window in (NARROW, WIDE)
            for name in (SLIDING, AUTO)
            for each in measured(name, window, peer(name))
        ]
        known = {"version": installed, "measured": today(), "figures": figures}
        PEERS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    return [Figures(**each) for each in peers()["figures"]]


def peers() -> dict[str, Any]:
    """What is known of strands' managers, of which version, and since when."""
    known: dict[str, Any] = json.loads(PEERS.read_text(encoding="utf-8"))
    return known


def ours(name: str, number: int, window: int) -> recall_replay.Replayed:
    return recall_replay.replay(name, number, window, {})


def peer(policy: str) -> Replaying:
    return partial(peer_replay, policy=policy)


def peer_replay(name: str, number: int, window: int, *, policy: str) -> recall_replay.Replayed:
    # Strands takes a second to import, and is needed here only.
    import recall_peers

    return recall_peers.replay(name, number, window, policy)


def measured(manager: str, window: int, replaying: Replaying) -> list[Figures]:
    """Return the figures of all files, and of the strict probes into the first."""
    figures = []
    for name in NAMES:
        print(f"{manager}: {name}, {window:,} tokens …", file=sys.stderr)
        tallies = tallied(name, window, replaying)
        figures.append(summed(name, window, manager, tallies))
        if name == NAMES[0]:
            figures.append(summed(name, window, manager, tallies, "strict "))
    return figures


def tallied(name: str, window: int, replaying: Replaying) -> list[Counter[str]]:
    """Return the tally of each run of a file. Runs are lived through side by side, the longest first."""
    runs = recorded(name)
    longest_first = sorted(range(len(runs)), key=lambda number: -len(runs[number].messages))
    # A process that is forked while another thread holds a lock may wait for it forever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        return list(pool.map(partial(tally, replaying, name, window), longest_first))


def tally(replaying: Replaying, name: str, window: int, number: int) -> Counter[str]:
    """Live through one run again, and count."""
    replayed, whole = replaying(name, number, window), unmanaged(recorded(name)[number])
    counts = Counter({f"happened {what}": count for what, count in replayed.counts.items()})
    for probe, place in replayed.places.items():
        counts.update([place, f"strict {place}"] if probe.strict else [place])
    bill = replayed.bill
    counts.update(uncached=bill.uncached, cached=bill.cached, rewrites=bill.rewrites)
    counts["looked up"] = round(bill.looked_up)
    counts.update({"peak": bill.peak, "whole uncached": whole.uncached, "whole cached": whole.cached})
    return counts


def summed(name: str, window: int, manager: str, tallies: Iterable[Counter[str]], strict: str = "") -> Figures:
    total, peak = Counter[str](), 0
    for each in tallies:
        total.update(each)
        peak = max(peak, each["peak"])
    return Figures(
        probes=f"{name}, strict" if strict else name,
        window=window,
        manager=manager,
        places={place: total[f"{strict}{place}"] for place in PLACES},
        bill=round(cost(total) / cost(total, "whole "), 4),
        look_ups=round(total["looked up"] / cost(total, "whole "), 4),
        reuse=round(total["cached"] / (total["cached"] + total["uncached"]), 4),
        rewrites=total["rewrites"],
        peak=peak,
        happened={what.removeprefix("happened "): n for what, n in total.items() if what.startswith("happened ")},
    )


def cost(total: Counter[str], of: str = "") -> float:
    return UNCACHED * total[f"{of}uncached"] + CACHED * total[f"{of}cached"]


# Bars


def bars(figures: Sequence[Figures]) -> list[Row]:
    """Return what is asked for, and what came out."""
    of = {(each.probes, each.window, each.manager): each for each in figures}
    windows = (NARROW, WIDE)
    recalled = [row for name in NAMES for window in windows for row in recall_of(of[name, window, OURS])]
    beside = [recall_beside(of[NAMES[0], window, AUTO], of[NAMES[0], window, SLIDING]) for window in windows]
    # What is short has nothing to save: there, the bill is the price of the tools.
    return [
        *recalled,
        *beside,
        *(bill_of(of[NAMES[0], window, OURS], of[NAMES[0], window, AUTO]) for window in windows),
        *(look_ups_of(of[NAMES[0], window, OURS], of[NAMES[0], window, AUTO]) for window in windows),
    ]


def recall_of(own: Figures) -> list[Row]:
    found = own.share("kept", "searchable", "recoverable")
    chance = f"(by chance, asked in words of another run: {own.by_chance:.0%})"
    rows = [at_least(f"{where(own)}: kept, searchable or recoverable", FOUND, found)]
    if own.places["lost"]:
        rows.append(at_least(f"{where(own)}: brought back by two look-ups, of what is lost", 1.0, own.in_two_steps))
    return [*rows, at_least(f"{where(own)}: searchable, of what is not kept {chance}", SEARCHABLE, own.searchable)]


def recall_beside(auto: Figures, sliding: Figures) -> Row:
    measure = f'{where(auto)}: kept or recoverable under strands\' "auto", and under its sliding window'
    shares = ", ".join(f"{each.share('kept', 'recoverable'):.1%}" for each in (auto, sliding))
    return Row(measure, "none", shares, True)


def bill_of(own: Figures, auto: Figures) -> Row:
    met = own.bill <= auto.bill
    return Row(f'{where(own)}: the bill, against strands\' "auto"', f"≤ {auto.bill:.2f}", f"{own.bill:.2f}", met)


def look_ups_of(own: Figures, auto: Figures) -> Row:
    measure = f'{where(own)}: the bill with look-ups, and that of strands\' "auto", which brings back less'
    return Row(measure, "none", ", ".join(f"{each.bill + each.look_ups:.2f}" for each in (own, auto)), True)


def where(figures: Figures) -> str:
    return f"{figures.probes}, window of {figures.window:,}"


def at_least(measure: str, bar: float, share: float) -> Row:
    return Row(measure, f"≥ {bar:.0%}", f"{share:.1%}", share >= bar)


@dataclass(frozen=True, kw_only=True)
class RecallBenchmark(Benchmark):
    """A benchmark that measures `Figures`, shown as a table of places and one of bars."""

    def parser(self) -> argparse.ArgumentParser:
        """The options of the command."""
        parser = super().parser()
        parser.add_argument("--peers", action="store_true", help="measure strands again as well, for ten minutes")
        return parser

    def part(self, measured: list[Any]) -> dict[str, Any]:
        """What results.json says of it: the bars, where the values were, and when strands was measured."""
        part = super().part(bars(measured))
        known = peers()
        part["packages"][STRANDS] = f"{known['version']} (measured on {known['measured']})"
        runs = {name: len(recorded(name)) for name in NAMES}
        return {**part, "runs": runs, "places": [asdict(each) for each in measured]}


BENCHMARK = RecallBenchmark(
    name="recall",
    measures=(measure_narrow, measure_wide, measure_peers),
    packages=("bpe-openai", STRANDS),
    data=[DATA / f"{name}{part}.jsonl.gz" for name in NAMES for part in ("", ".probes")],
)

if __name__ == "__main__":
    BENCHMARK.run()
