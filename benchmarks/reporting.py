"""What every benchmark here does: alternate the contenders, compare medians, print the table and write it down."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import results
from rich.console import Console
from rich.progress import Progress

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
# What a benchmark ends with that had nothing to measure, as in other test suites.
SKIPPED = 77


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, what is asked for, what came out."""

    measure: str
    bar: str
    result: str
    met: bool


def today() -> str:
    """The date, as figures are stamped with it."""
    return datetime.now(timezone.utc).date().isoformat()


async def longest_stall(work: Awaitable[object]) -> float:
    """How late, at worst, a task that wants to run every half millisecond did run."""
    task, longest, pause = asyncio.ensure_future(work), 0.0, 0.0005
    while not task.done():
        began = time.perf_counter()
        await asyncio.sleep(pause)
        longest = max(longest, time.perf_counter() - began - pause)
    await task
    return longest


def faster(measure: str, bar: float, ours: float, theirs: float) -> Row:
    """A row that asks for at least *bar* times the speed of another."""
    return Row(measure, f"≥ {bar:g}×", f"{theirs / ours:.1f}×", theirs / ours >= bar)


def at_most(measure: str, bar: float, ours: float, base: float) -> Row:
    """A row that allows at most *bar* times the time of another."""
    return Row(measure, f"≤ {bar:g}×", f"{ours / base:.2f}×", ours / base <= bar)


def alternating(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median over rounds for each contender; the rounds of all alternate, so they see the same machine."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            samples[name].append(measure())
    return {name: median(values) for name, values in samples.items()}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Measures, and what belongs to their figures: the packages beside Python, and the files that they are taken from.

    The figures are printed. With --write, they also replace those of *name* in results.json and in the pages that quote
    it. Without its *data*, a benchmark is skipped, but for one that works *without_data* and does not write.
    """

    name: str
    measures: Sequence[Callable[[], list[Any]]]
    packages: Sequence[str] = ()
    data: Sequence[Path] = ()
    without_data: bool = False

    def run(self) -> None:
        """Measure, print and write down."""
        write = self.parser().parse_args().write
        self._look_before(write)
        part = self.part(self._measured())
        print(results.as_markdown(part))
        if write:
            results.replace(self.name, part)

    def parser(self) -> argparse.ArgumentParser:
        """The options of the command."""
        parser = argparse.ArgumentParser(description=f"Measure {self.name}; see docs/performance.md.")
        parser.add_argument("--write", action="store_true", help="replace the figures in results.json and the pages")
        return parser

    def part(self, measured: list[Any]) -> dict[str, Any]:
        """What results.json says of this benchmark."""
        return {
            "command": f".venv/bin/python benchmarks/{self.name}.py --write",
            "measured": today(),
            "machine": f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}",
            "packages": {package: version(package) for package in self.packages},
            "rows": [asdict(row) for row in measured],
        }

    def _look_before(self, write: bool) -> None:
        """End here, rather than after minutes, if there is nothing to measure or no place for the figures."""
        missing = [str(path) for path in self.data if not path.exists()]
        if missing and (write or not self.without_data):
            print(f"no {', '.join(missing)}; recorded data is in the folder that HOLDFAST_DATA names", file=sys.stderr)
            sys.exit(SKIPPED)
        if write and self.name not in results.tables_in(results.PERFORMANCE.read_text(encoding="utf-8")):
            mark = f"{self.name} benchmark"
            sys.exit(f"docs/performance.md has no place for the table: put <!-- {mark} --> and <!-- /{mark} --> there")

    def _measured(self) -> list[Any]:
        rows: list[Any] = []
        with Progress(console=Console(stderr=True), transient=True) as progress:
            for measure in progress.track(self.measures, description="measuring"):
                progress.console.print(f"measuring {measure.__doc__} …", style="dim")
                rows += measure()
        return rows
