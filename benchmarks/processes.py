"""How long a command takes on so many cores, and how much memory it needs with all processes that it starts.

Linux only: memory is each process's own, with its part of what it shares with others (PSS), as /proc tells it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PSS = re.compile(rb"^Pss:\s+(\d+) kB$", re.MULTILINE)
# In /proc/PID/stat, counted behind the name of the program, which may hold anything but ends with the last bracket.
SESSION = 3


@dataclass(frozen=True)
class Used:
    """What a command took: seconds, and the most bytes of memory at any moment that was looked at."""

    seconds: float
    peak_bytes: int


def used_by(command: Sequence[str], *, cores: int = 2, pause: float = 0.05) -> Used:
    """Run *command* on so many cores at most, and look at its memory all the while. It has to succeed."""
    began, peak = time.perf_counter(), 0
    with started(command, cores) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(memory_of, processes_of(process.pid))))
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=pause)
        seconds = time.perf_counter() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return Used(seconds, peak)


@contextmanager
def started(command: Sequence[str], cores: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, by which those that it starts are known. What is left of them is killed."""
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL) as process:
        try:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:cores])
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def processes_of(session: int) -> Iterator[Path]:
    """The processes of a session, as folders of /proc."""
    for folder in PROC.glob("[0-9]*"):
        # A process may end while one looks at it.
        with suppress(OSError):
            _, _, fields = (folder / "stat").read_bytes().rpartition(b")")
            if int(fields.split()[SESSION]) == session:
                yield folder


def memory_of(process: Path) -> int:
    """The bytes that a process needs; none if it has ended."""
    with suppress(OSError):
        if found := PSS.search((process / "smaps_rollup").read_bytes()):
            return int(found[1]) * 1_024
    return 0
