"""Offloading and retrieval measured beside strands-agents, and beside the extract that offloading cannot do without.

Stalls and patterns that hang others have limits; all else is a ratio, measured in one run on one machine: rounds of the
contenders alternate, and the median counts. The rows of benchmarks/needles.py follow, where its data is at hand. Prints
the tables; with --write, which needs that data, the figures go to results.json and the pages as well.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from random import Random
from statistics import median
from typing import Any

import needles
from contents import csv_text, json_text, log
from reporting import Benchmark, Row, alternating, at_most, faster, longest_stall

from holdfast import ContextOffloader, InMemoryStorage
from holdfast.defaults import PREVIEW_TOKENS
from holdfast.extracts import extract
from holdfast.hooks import AfterToolCall, BeforeModelCall, Conversation

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from strands.vended_plugins.context_offloader import storage as strands
    from strands.vended_plugins.context_offloader.search import _search_content

FIFTY_MB, ONE_MB = 50_000_000, 1_000_000


# What both can be asked

Retrieve = Callable[..., Awaitable[str]]
Contender = Callable[[bytes], Awaitable[Retrieve]]


async def ours(content: bytes) -> Retrieve:
    """The retrieval tool of a new conversation, which knows nothing of *content* yet."""
    storage, conversation = InMemoryStorage(), Conversation([])
    reference = await storage.store("bench", content)
    offloader = ContextOffloader(storage)
    tool = offloader.tools[0]

    async def retrieve(**arguments: Any) -> str:
        # Each in a turn of its own: the answers of one turn share its room.
        await offloader.before_model_call(BeforeModelCall(conversation))
        answer = await tool.run(conversation, {"reference": reference, **arguments})
        assert not answer.is_error, answer.text
        return answer.text

    return retrieve


async def theirs(content: bytes) -> Retrieve:
    """What the retrieval tool of strands does."""
    storage = strands.InMemoryStorage()
    reference = await storage.store("bench", content)

    async def retrieve(**arguments: Any) -> str:
        found, _ = await storage.retrieve(reference)
        return _search_content(found.decode("utf-8"), **arguments)

    return retrieve


# Patterns that hang others

HANGING = (r"((a+))+$", r"(a|aa)+$", r"(\w+\s?)*$", r"(a+)+$")
# The last line is one that each of them matches.
ALMOST = "a" * 40 + "!\naaa"
PATIENCE = 3
STRANDS = """
import sys, warnings
warnings.simplefilter("ignore")
from strands.vended_plugins.context_offloader.search import _search_content
print("ready", flush=True)
print(_search_content(sys.argv[1], pattern=sys.stdin.read()))
"""


def measure_hanging_patterns() -> list[Row]:
    """patterns that hang others"""
    return [hanging_pattern(pattern) for pattern in HANGING]


def hanging_pattern(pattern: str) -> Row:
    milliseconds = 1_000 * median(asyncio.run(seconds_to_match(pattern)) for _ in range(9))
    written = pattern.replace("|", r"\|")
    measure = f"`{written}` on 41 characters (strands: {strands_with(pattern)})"
    return Row(measure, "< 50 ms", f"{milliseconds:.1f} ms", milliseconds < 50)


async def seconds_to_match(pattern: str) -> float:
    retrieve = await ours(ALMOST.encode())
    began = time.perf_counter()
    answer = await retrieve(pattern=pattern)
    seconds = time.perf_counter() - began
    assert "2> aaa" in answer, answer
    return seconds


def strands_with(pattern: str) -> str:
    """What becomes of a pattern in strands, in a process that can be ended."""
    command, pipe = [sys.executable, "-c", STRANDS, ALMOST], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        child.stdout.readline()
        try:
            answer, _ = child.communicate(pattern, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            return f"> {PATIENCE} s"
    return "finds nothing, as it takes it literally" if answer.startswith("No matches") else "as fast"


# Searching a large text

# A word; a pattern that begins with one, by which the lines to look at are found sooner; and one that does not.
PATTERNS = (r"reset", r"ERROR .* gave up after \d+ ms", r"\d{4} ms: \w+ reset")


def measure_searches() -> list[Row]:
    """searching a large text, beside strands"""
    return [row for pattern in PATTERNS for row in search_rows(pattern, log(FIFTY_MB).encode())]


def search_rows(pattern: str, content: bytes) -> list[Row]:
    medians = alternating(
        {
            "ours": lambda: asyncio.run(seconds_to_search(ours, content, pattern)),
            "strands": lambda: asyncio.run(seconds_to_search(theirs, content, pattern)),
            "stall": lambda: asyncio.run(stall_while_searching(ours, content, pattern)),
            "strands stall": lambda: asyncio.run(stall_while_searching(theirs, content, pattern)),
            "idle": lambda: asyncio.run(longest_stall(asyncio.sleep(0.3))),
        },
        rounds=5,
    )
    measure = f"searching 50 MB of log for `{pattern}`, seen for the first time, against strands"
    return [at_most(measure, 1, medians["ours"], medians["strands"]), stall_row(medians)]


def stall_row(medians: dict[str, float]) -> Row:
    longest, idle, of_strands = (medians[name] * 1_000 for name in ("stall", "idle", "strands stall"))
    measure = f"… the longest event-loop stall meanwhile (strands: {of_strands:,.0f} ms)"
    return Row(measure, "≤ 20 ms", f"{longest:.1f} ms (doing nothing: {idle:.1f} ms)", longest <= 20)


async def seconds_to_search(contender: Contender, content: bytes, pattern: str) -> float:
    retrieve = await contender(content)
    gc.collect()
    began = time.perf_counter()
    answer = await retrieve(pattern=pattern)
    seconds = time.perf_counter() - began
    assert "connection reset by peer" in answer, answer
    return seconds


async def stall_while_searching(contender: Contender, content: bytes, pattern: str) -> float:
    retrieve = await contender(content)
    gc.collect()
    return await longest_stall(retrieve(pattern=pattern))


# Reading lines of a large text

READS, LINES = 20, 40


def measure_reads() -> list[Row]:
    """reading lines of a large text, beside strands"""
    content = log(FIFTY_MB).encode()
    medians = alternating(
        {
            "ours": lambda: asyncio.run(seconds_to_read(ours, content)),
            "strands": lambda: asyncio.run(seconds_to_read(theirs, content)),
        },
        rounds=5,
    )
    measure = f"{READS} reads of {LINES} lines each, all over 50 MB, seen for the first time, against strands"
    return [faster(measure, 20, medians["ours"], medians["strands"])]


async def seconds_to_read(contender: Contender, content: bytes) -> float:
    retrieve, chance = await contender(content), Random(6)
    starts = [chance.randrange(1, content.count(b"\n") - LINES) for _ in range(READS)]
    gc.collect()
    began = time.perf_counter()
    answers = [await retrieve(line_range=[start, start + LINES - 1]) for start in starts]
    seconds = time.perf_counter() - began
    assert all(answer.count("[worker-") == LINES for answer in answers)
    return seconds


# Offloading


def measure_offloading() -> list[Row]:
    """offloading a result, beside its extract"""
    texts = {"log": log(ONE_MB), "JSON": json_text(ONE_MB), "CSV": csv_text(ONE_MB)}
    medians = {kind: offloading(text) for kind, text in texts.items()}
    worst = max(medians, key=lambda kind: medians[kind]["offload"] / medians[kind]["extract"])
    others = ", ".join(f"{kind} {each['offload'] / each['extract']:.2f}×" for kind, each in medians.items())
    measure = f"offloading a result of 1 MB into memory, against its extract and one copy, the worst kind ({others})"
    return [at_most(measure, 2, medians[worst]["offload"], medians[worst]["extract"])]


def offloading(text: str) -> dict[str, float]:
    return alternating(
        {"offload": lambda: asyncio.run(seconds_to_offload(text)), "extract": lambda: seconds_to_extract(text)},
        rounds=15,
    )


async def seconds_to_offload(text: str) -> float:
    offloader, conversation = ContextOffloader(InMemoryStorage()), Conversation([])
    result = {"toolUseId": "t1", "status": "success", "content": [{"text": text}]}
    event = AfterToolCall(conversation, "read", "t1", result)
    gc.collect()
    began = time.perf_counter()
    await offloader.after_tool_call(event)
    seconds = time.perf_counter() - began
    assert event.result is not result, "it was not offloaded"
    return seconds


def seconds_to_extract(text: str) -> float:
    gc.collect()
    began = time.perf_counter()
    extract(text, PREVIEW_TOKENS)
    text.encode()
    return time.perf_counter() - began


BENCHMARK = Benchmark(
    name="offload",
    measures=(
        measure_hanging_patterns,
        measure_searches,
        measure_reads,
        measure_offloading,
        *([needles.measure_needles] if needles.DATA.exists() else ()),
    ),
    packages=("strands-agents", "google-re2"),
    data=(needles.DATA / "manifest.json", needles.DATA / "needles.jsonl"),
    without_data=True,
)

if __name__ == "__main__":
    BENCHMARK.run()
    if needles.DATA.exists():
        needles.tell_by_kind()
