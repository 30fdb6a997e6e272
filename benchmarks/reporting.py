"""What every benchmark here does: alternate the contenders, compare medians, print the table and quote it in README."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import Progress

README = Path(__file__).parent.parent / "README.md"


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, what is asked for, what came out."""

    measure: str
    bar: str
    result: str
    met: bool


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


@dataclass(frozen=True)
class Benchmark:
    """Measures, where their figures go, and the packages whose versions belong to them.

    Without options, the figures go to a file that git ignores. With --readme, they go to *results*, and to README
    between ``<!-- mark -->`` and ``<!-- /mark -->``.
    """

    measures: Sequence[Callable[[], list[Row]]]
    results: Path
    mark: str
    packages: Sequence[str]

    def run(self) -> None:
        """Measure, print and write down."""
        table = self.as_table(rows := self._measured())
        print(table)
        quoted = "--readme" in sys.argv
        path = self.results if quoted else self.results.with_suffix(".latest.json")
        figures = {"machine": self.machine, "rows": [asdict(row) for row in rows]}
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if quoted:
            self._quote_in_readme(table)

    @property
    def machine(self) -> str:
        """What the figures were measured with."""
        parts = [f"Python {platform.python_version()}", f"{os.cpu_count()} cores"]
        return ", ".join([*parts, *(f"{package} {version(package)}" for package in self.packages)])

    def as_table(self, rows: list[Row]) -> str:
        """The table as Markdown, as README quotes it."""
        lines = ["| measure | bar | measured |", "|---|---|---|"]
        lines += [f"| {row.measure} | {row.bar} | {row.result}{'' if row.met else ' (missed)'} |" for row in rows]
        return "\n".join([*lines, "", f"({self.machine})"])

    def _measured(self) -> list[Row]:
        rows: list[Row] = []
        with Progress(console=Console(stderr=True), transient=True) as progress:
            for measure in progress.track(self.measures, description="measuring"):
                progress.console.print(f"measuring {measure.__doc__} …", style="dim")
                rows += measure()
        return rows

    def _quote_in_readme(self, table: str) -> None:
        begin, end = f"<!-- {self.mark} -->\n", f"<!-- /{self.mark} -->"
        before, found, rest = README.read_text(encoding="utf-8").partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found and found_end):
            sys.exit(f"README has no place for the table: put {begin.strip()} and {end} there, each on its own line")
        README.write_text(f"{before}{begin}{table}\n{end}{after}", encoding="utf-8")
