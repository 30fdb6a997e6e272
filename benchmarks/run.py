"""Every benchmark, one after the other, each in a process of its own; the figures go to results.json and the pages.

`make bench` runs all of them, `make bench ONLY="search tokens"` some. One that fails, or has no data, leaves its
earlier figures as they are, and the others go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from reporting import SKIPPED

# First what files are created for, and last: ext4 is slow to create files for minutes after thousands were deleted.
BENCHMARKS = (
    "storage",
    "tokens",
    "compression",
    "strands_turns",
    "offload",
    "search",
    "recall",
    "replay",
    "eviction",
)
FOLDER = Path(__file__).resolve().parent


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    """Run what is named, or all, and return the exit status: 1 if one failed."""
    parser = argparse.ArgumentParser(description="Run the benchmarks, and write the figures down.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; all if none is named"
    )
    named = parser.parse_args(arguments).names
    if unknown := [name for name in named if name not in BENCHMARKS]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    names = [name for name in BENCHMARKS if name in named or not named]
    outcomes = [told(f"[{number}/{len(names)}] {name}", folder / f"{name}.py") for number, name in enumerate(names, 1)]
    return summed_up(dict(zip(names, outcomes, strict=True)))


def told(label: str, script: Path) -> str:
    """Run one, and say what becomes of it."""
    print(f"{label} …", flush=True)
    began = time.monotonic()
    outcome = outcome_of(subprocess.run([sys.executable, str(script), "--write"]).returncode)
    kept = "" if outcome == "measured" else "; its earlier figures stay"
    print(f"{label}: {outcome} after {time.monotonic() - began:.0f} s{kept}\n", flush=True)
    return outcome


def outcome_of(status: int) -> str:
    return {0: "measured", SKIPPED: "skipped"}.get(status, f"failed (exit status {status})")


def summed_up(outcomes: dict[str, str]) -> int:
    for outcome in sorted(set(outcomes.values())):
        print(f"{outcome}: {', '.join(name for name, own in outcomes.items() if own == outcome)}")
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
