"""Storage measured beside strands-agents, and beside the least that Python itself needs.

Every figure is a ratio, or a limit, measured in one run on one machine: rounds of the contenders alternate, and the
median counts. Prints the table; with --write, the figures go to results.json and the pages as well. Leave five
minutes between runs: ext4 is slow to create files for that long after thousands were deleted, and a run ends by
deleting its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import boto3
from reporting import Benchmark, Row, alternating, at_most, faster, longest_stall

from holdfast import FileStorage, S3Storage
from holdfast.testing.relay import delaying_relay
from holdfast.testing.seaweed import S3Server, seaweedfs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from strands.vended_plugins.context_offloader import storage as strands

TEN_KB, HUNDRED_KB, HUNDRED_MB = os.urandom(10_000), os.urandom(100_000), os.urandom(100_000_000)
ROUNDS = 9


# Files


def measure_files() -> list[Row]:
    """storing files"""
    with tempfile.TemporaryDirectory() as folder:
        medians = alternating(storers(Path(folder)), rounds=25)
    store = "`FileStorage.store`, 10 KB, 10,000 entries present"
    single, batch, bare = medians["ours"], medians["ours, 8 at once"], medians["bare"]
    return [
        faster(f"{store}, one after another, against strands' FileStorage", 30, single, medians["strands"]),
        faster("… 8 at once, against strands' FileStorage", 30, batch, medians["strands"]),
        at_most("… one after another, against 100 entries present", 1.3, single, medians["ours among 100"]),
        at_most("… one after another, against a bare temp-file and rename loop", 2, single, bare),
        at_most("… 8 at once, against a bare temp-file and rename loop", 2, batch, bare),
    ]


def storers(parent: Path) -> dict[str, Callable[[], float]]:
    """All but strands share one directory, filled once: a file system is slower in some places than in others."""
    theirs = strands_files(filled(parent / "theirs", 10_000))
    shared = filled(parent / "shared", 10_000)
    ours = FileStorage(shared)
    os.sync()
    return {
        "ours": lambda: seconds_per_store(ours, 96),
        "ours, 8 at once": lambda: seconds_per_store(ours, 96, at_once=8),
        "ours among 100": lambda: seconds_per_store(FileStorage(filled(parent / f"{time.time_ns()}", 100)), 96),
        "bare": lambda: seconds_per_bare_store(shared, 96),
        "strands": lambda: seconds_per_store(theirs, 8),
    }


def filled(folder: Path, entries: int) -> Path:
    """Make *folder* with empty artifacts in it, as an earlier run would have left them."""
    folder.mkdir()
    for number in range(entries):
        (folder / f"1700000000000_{number}_tooluse_{number}_0.txt").touch()
    return folder


def strands_files(folder: Path) -> strands.FileStorage:
    types = {path.name: "text/plain" for path in folder.iterdir()}
    (folder / ".metadata.json").write_text(json.dumps(types))
    return strands.FileStorage(str(folder))


def seconds_per_store(storage: Any, count: int, *, at_once: int = 1) -> float:
    async def store(times: int) -> None:
        for _ in range(times):
            await storage.store("tooluse_AbC123_0", TEN_KB)

    async def run() -> float:
        await store(5)
        began = time.perf_counter()
        await asyncio.gather(*(store(count // at_once) for _ in range(at_once)))
        return (time.perf_counter() - began) / count

    return asyncio.run(run())


def seconds_per_bare_store(folder: Path, count: int) -> float:
    names = [f"{time.time_ns()}_tooluse_AbC123_0" for _ in range(count)]
    began = time.perf_counter()
    for name in names:
        with open(folder / f"{name}.tmp", "wb") as file:
            file.write(TEN_KB)
        os.replace(folder / f"{name}.tmp", folder / f"{name}.txt")
    return (time.perf_counter() - began) / count


# The event loop


def measure_stalls() -> list[Row]:
    """stalls of the event loop"""
    medians = alternating({"ours": stall_with_holdfast, "nothing": stall_with_nothing}, rounds=5)
    longest = medians["ours"] * 1_000
    result = f"{longest:.1f} ms (doing nothing: {medians['nothing'] * 1_000:.1f} ms)"
    return [Row("longest event-loop stall while storing and retrieving 100 MB", "≤ 5 ms", result, longest <= 5)]


def stall_with_holdfast() -> float:
    async def store_and_retrieve() -> None:
        storage = FileStorage(folder)
        reference = await storage.store("large", HUNDRED_MB)
        found, _ = await storage.retrieve(reference)
        kept.append(found)

    kept: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(longest_stall(store_and_retrieve()))


def stall_with_nothing() -> float:
    return asyncio.run(longest_stall(asyncio.sleep(0.3)))


# S3


def measure_s3() -> list[Row]:
    """uploads to S3"""
    with tempfile.TemporaryDirectory() as folder, seaweedfs(Path(folder)) as server:
        server.create_bucket("bench")
        near = alternating(uploaders(server, server.port), rounds=5)
        with delaying_relay("127.0.0.1", server.port, 0.020) as port:
            far = alternating(uploaders(server, port), rounds=5)
    upload = "`S3Storage.store`, 100 KB, 32 at once, against strands' S3Storage on the same server"
    return [
        faster(f"{upload}, on loopback", 1.4, near["ours"], near["strands"]),
        faster("… with 20 ms of latency", 12, far["ours"], far["strands"]),
    ]


def uploaders(server: S3Server, port: int) -> dict[str, Callable[[], float]]:
    endpoint = f"http://127.0.0.1:{port}"
    session = boto3.Session(server.access_key, server.secret_key, region_name=server.region)
    ours = S3Storage("bench", "ours", session, endpoint_url=endpoint)
    with environment(AWS_ENDPOINT_URL_S3=endpoint):
        theirs = strands.S3Storage("bench", "theirs", session)
    return {
        "ours": lambda: seconds_per_upload(ours, 192),
        "strands": lambda: seconds_per_upload(theirs, 64),
    }


def seconds_per_upload(storage: Any, count: int) -> float:
    async def run() -> float:
        turn = asyncio.Semaphore(32)

        async def upload() -> None:
            async with turn:
                await storage.store("tooluse_AbC123_0", HUNDRED_KB)

        await asyncio.gather(*(upload() for _ in range(32)))
        began = time.perf_counter()
        await asyncio.gather(*(upload() for _ in range(count)))
        return (time.perf_counter() - began) / count

    return asyncio.run(run())


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


# Importing


def measure_import() -> list[Row]:
    """importing holdfast"""
    milliseconds = median(import_milliseconds() for _ in range(ROUNDS))
    return [
        Row(
            "`import holdfast`, by `python -X importtime`",
            "≤ 60 ms",
            f"{milliseconds:.1f} ms",
            milliseconds <= 60,
        )
    ]


def import_milliseconds() -> float:
    command = [sys.executable, "-X", "importtime", "-c", "import holdfast"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    cumulative = re.search(r"\|\s+(\d+) \| holdfast$", report, re.MULTILINE)
    assert cumulative is not None, report
    return int(cumulative[1]) / 1_000


BENCHMARK = Benchmark(
    name="storage",
    measures=(measure_files, measure_stalls, measure_s3, measure_import),
    packages=("strands-agents",),
)

if __name__ == "__main__":
    BENCHMARK.run()
