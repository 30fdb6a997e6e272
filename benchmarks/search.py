"""Search in a conversation of 10,000 messages beside a bare query of SQLite's FTS5: its time, and what it finds.

Runs over the recorded runs below HOLDFAST_DATA, or ../shared/data. Without them, the messages are made up, and only the
times are measured. Each query is put to both contenders in turn, some rounds long; its median counts. Prints the
table; with --write, which needs the runs, the figures go to results.json and the pages as well.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from random import Random
from statistics import mean, median
from typing import Any, NamedTuple

from reporting import DATA, Benchmark, Row, at_most

from holdfast.search import Addition, SearchIndex
from holdfast.search.chunks import chunks_of

MESSAGES, QUERIES_OF_A_KIND, ROUNDS, PASSAGES = 10_000, 75, 3, 5
WORD = re.compile(r"\w+")


class Message(NamedTuple):
    """What a message says, calls of tools included."""

    title: str
    text: str


class Probe(NamedTuple):
    """A value that an agent used at some message, long after it had seen it, and the words with which it did."""

    run: str
    at: int
    value: str
    words: str


# Conversations


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """The lines of a file, if it is at hand."""
    if (path := DATA / name).exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@cache
def runs() -> dict[str, list[Message]]:
    return {run["id"]: [read(message) for message in run["messages"]] for run in recorded("swe.jsonl.gz")}


def read(message: dict[str, Any]) -> Message:
    calls = (f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls") or ())
    parts = [message["content"] or "", *calls]
    return Message(message.get("name") or message["role"], "\n".join(filter(None, parts)))


@cache
def probes() -> list[Probe]:
    entries = recorded("swe.probes.jsonl.gz")
    return [Probe(entry["trace"], entry["at"], entry["value"], entry["query_hint"]) for entry in entries]


@cache
def conversation() -> list[Message]:
    """The messages of many runs as if they were one."""
    messages = (message for run in runs().values() for message in run)
    return list(islice(messages, MESSAGES)) or list(made_up(Random(7)))


def made_up(chance: Random) -> Iterator[Message]:
    """Messages as long as recorded ones, of words with the frequencies of a natural language, and of identifiers."""
    vocabulary = ["".join(chance.choices("abcdefghiklmnoprstuvw", k=chance.randint(2, 10))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    for number in range(MESSAGES):
        words = chance.choices(vocabulary, weights, k=int(chance.paretovariate(0.9) * 8) % 5_000 + 5)
        words += [f"src/{word}/item_{chance.randrange(50_000)}.py" for word in words[::20]]
        lines = (" ".join(words[start : start + 12]) for start in range(0, len(words), 12))
        yield Message("read_file" if number % 2 else "assistant", "\n".join(lines))


# Queries


@cache
def queries() -> list[str]:
    """A rare word; rare and common words; what an agent said; some words in a row."""
    chance = Random(1)
    often = Counter(word for message in conversation() for word in set(WORD.findall(message.text.lower())))
    rare = [word for word, count in often.items() if count <= 3 and len(word) > 5]
    common = [word for word, _ in often.most_common(800) if len(word) > 2]
    said = [probe.words for probe in probes()] or [message.text for message in conversation()]
    kinds: list[Callable[[], str]] = [
        lambda: chance.choice(rare),
        lambda: mixed(chance, rare, common),
        lambda: stretch(chance, said, 10, 20),
        lambda: stretch(chance, [message.text for message in conversation()], 3, 6),
    ]
    made = [kind() for kind in kinds for _ in range(QUERIES_OF_A_KIND)]
    return [query for query in made if WORD.search(query)]


def mixed(chance: Random, rare: Sequence[str], common: Sequence[str]) -> str:
    number = chance.randint(3, 8)
    some = chance.randint(1, number - 1)
    return " ".join(chance.sample([*chance.sample(rare, some), *chance.sample(common, number - some)], number))


def stretch(chance: Random, texts: Sequence[str], least: int, most: int) -> str:
    words = chance.choice(texts)[:5_000].split()
    start = chance.randrange(max(1, len(words) - most))
    return " ".join(words[start : start + chance.randint(least, most)])


# Contenders


class Bare:
    """One FTS5 table with a text in each row, and one query."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
        self.add_all(texts)

    def add_all(self, texts: Iterable[str]) -> None:
        rows = ((text.encode("utf-8", "replace").decode(),) for text in texts)
        self._connection.executemany("INSERT INTO t VALUES (?)", rows)
        self._connection.commit()

    def search(self, query: str) -> list[int]:
        """The numbers of the best texts, from 1."""
        select = "SELECT rowid, snippet(t, 0, '', '', '…', 32) FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?"
        expression = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(query)))
        return [number for number, _ in self._connection.execute(select, (expression, PASSAGES))]


def additions(messages: Sequence[Message], first: int = 0) -> Iterator[Addition]:
    return (Addition(f"{number}", text, title) for number, (title, text) in enumerate(messages, start=first))


# Times


class Seconds(NamedTuple):
    """How long a query took."""

    ours: float
    bare: float


def measure_times() -> list[Row]:
    """searches in a long conversation"""
    measured = asyncio.run(timed())
    (middle, bare_middle), (high, bare_high) = (
        [sorted(contender)[int(share * len(measured))] for contender in zip(*measured, strict=True)]
        for share in (0.5, 0.95)
    )
    measure = (
        f"search in a conversation of {len(conversation()):,} {'recorded' if runs() else 'made-up'} messages, 95th "
        f"percentile of {len(measured)} queries ({high * 1_000:.0f} ms), against a bare query of FTS5 "
        f"({bare_high * 1_000:.0f} ms)"
    )
    median = f"… the median query ({middle * 1_000:.1f} ms), against that of FTS5 ({bare_middle * 1_000:.1f} ms)"
    return [at_most(measure, 3, high, bare_high), Row(median, "none", f"{middle / bare_middle:.1f}×", True)]


async def timed() -> list[Seconds]:
    bare, index = Bare(message.text for message in conversation()), SearchIndex()
    await index.add_all(additions(conversation()))
    assert not index.uncovered
    rounds = [[await once(query, index, bare) for query in queries()] for _ in range(ROUNDS)]
    await index.aclose()
    return [Seconds(*map(median, zip(*of_one, strict=True))) for of_one in zip(*rounds, strict=True)]


async def once(query: str, index: SearchIndex, bare: Bare) -> Seconds:
    began = time.perf_counter()
    bare.search(query)
    between = time.perf_counter()
    await index.search(query, PASSAGES)
    return Seconds(time.perf_counter() - between, between - began)


# What is found


def measure_finds() -> list[Row]:
    """values that agents used again, long after they had seen them"""
    if not probes():
        return []
    outcomes = asyncio.run(found())
    share, bare_share = (mean(each) for each in zip(*outcomes, strict=True))
    measure = (
        f"of {len(outcomes):,} values that agents used again, those that the first {PASSAGES} passages hold, searched "
        f"with the words of the agent (the first {PASSAGES} chunks of FTS5: {bare_share:.1%})"
    )
    return [Row(measure, f"> {bare_share:.1%}", f"{share:.1%}", share > bare_share)]


async def found() -> list[tuple[bool, bool]]:
    """Whether the passages hold the value, ours and those of a bare query, for each probe."""
    by_run: dict[str, list[Probe]] = defaultdict(list)
    for probe in probes():
        by_run[probe.run].append(probe)
    return [outcome for run, own in by_run.items() for outcome in await found_in(runs()[run], own)]


async def found_in(messages: Sequence[Message], own: Iterable[Probe]) -> list[tuple[bool, bool]]:
    """Look for each value in what came before it was used."""
    index, bare, done, chunks, outcomes = SearchIndex(), Bare(()), 0, list[str](), []
    for probe in sorted(own, key=lambda probe: probe.at):
        await index.add_all(additions(messages[done : probe.at], first=done))
        new = [chunk.text for message in messages[done : probe.at] for chunk in chunks_of(message.text)]
        bare.add_all(new)
        chunks += new
        done = probe.at
        hits = (await index.search(probe.words, PASSAGES)).hits
        passages = [messages[int(hit.reference)].text[hit.start_character : hit.end_character] for hit in hits]
        theirs = [chunks[number - 1] for number in bare.search(probe.words)]
        outcomes.append((holds(passages, probe), holds(theirs, probe)))
    await index.aclose()
    return outcomes


def holds(passages: Iterable[str], probe: Probe) -> bool:
    return any(probe.value in passage for passage in passages)


BENCHMARK = Benchmark(
    name="search",
    measures=(measure_times, measure_finds),
    data=(DATA / "swe.jsonl.gz", DATA / "swe.probes.jsonl.gz"),
    without_data=True,
)

if __name__ == "__main__":
    BENCHMARK.run()
