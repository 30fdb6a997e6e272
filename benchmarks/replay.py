"""`holdfast replay` over all recorded runs of coding agents under three policies: its time, and its memory.

Runs the command on two cores, as a user would, over swe.jsonl.gz below HOLDFAST_DATA, or ../shared/data. Memory is
that of all its processes together, looked at twenty times a second. Linux only. Prints the table; with --write, the
figures go to results.json and the pages as well.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

from processes import used_by
from reporting import DATA, Benchmark, Row

RUNS = DATA / "swe.jsonl.gz"
POLICIES = ("none", "auto", "summarize")
SECONDS, BYTES = 60, 1_000_000_000


def measure_replay() -> list[Row]:
    """replaying recorded runs under three policies"""
    with gzip.open(RUNS) as lines:
        count = sum(1 for _ in lines)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "out.json"
        used = used_by(command(written))
        assert json.loads(written.read_bytes()), "nothing was written"
    measure = f"`holdfast replay` of {count} recorded runs, under {', '.join(POLICIES)}, on two cores"
    return [
        Row(measure, f"< {SECONDS} s", f"{used.seconds:.0f} s", used.seconds < SECONDS),
        Row("… the memory of all its processes", "< 1 GB", f"{used.peak_bytes / 1e6:.0f} MB", used.peak_bytes < BYTES),
    ]


def command(written: Path) -> list[str]:
    holdfast = Path(sys.executable).with_name("holdfast")
    policies = [word for policy in POLICIES for word in ("--policy", policy)]
    return [str(holdfast), "replay", str(RUNS), *policies, "--json", str(written)]


BENCHMARK = Benchmark(
    name="replay",
    measures=(measure_replay,),
    data=(RUNS, Path("/proc/self/smaps_rollup")),
)

if __name__ == "__main__":
    BENCHMARK.run()
