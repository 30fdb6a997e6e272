"""Eviction measured beside cachetools, beside strands-agents, and beside a storage that evicts nothing.

Every figure is a ratio, measured in one run on one machine: rounds of the contenders alternate, and the median counts.
Prints the table; with --write, the figures go to results.json and the pages as well. Leave five minutes between runs:
ext4 is slow to create files for that long after thousands were deleted, and a run ends by deleting its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from cachetools import LRUCache, TTLCache
from reporting import Benchmark, Row, alternating, at_most, faster

from holdfast import FileStorage, InMemoryStorage
from holdfast.eviction import EvictingStorage, in_chain, new_chain

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from strands.vended_plugins.context_offloader import storage as strands

ONE_KB, TEN_KB = os.urandom(1_000), os.urandom(10_000)
MANY, FEW = 100_000, 1_000
DAY = 86_400
KEYS = [f"tooluse_{number}" for number in range(2 * MANY)]


# Memory


class Cached:
    """The least that makes a storage of a cache."""

    def __init__(self, cache: MutableMapping[str, tuple[bytes, str]]) -> None:
        self._cache = cache

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        self._cache[key] = (content, content_type)
        return key

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        return self._cache[reference]


def in_memory(entries: int) -> EvictingStorage:
    return EvictingStorage(InMemoryStorage(evict_after_turns=None), max_entries=entries, ttl=DAY)


def ttl_cache(entries: int) -> Cached:
    return Cached(TTLCache(entries, DAY))


def lru_cache(entries: int) -> Cached:
    return Cached(LRUCache(entries))


def measure_memory() -> list[Row]:
    """storing and retrieving in memory, beside cachetools"""
    openers = {"ours": in_memory, "TTLCache": ttl_cache, "LRUCache": lru_cache}
    filling = alternating({name: filler(opener) for name, opener in openers.items()}, rounds=5)
    evicting = alternating({name: evicter(opener, MANY, MANY) for name, opener in openers.items()}, rounds=5)
    both = "store and retrieve in memory, with capacity and TTL"
    return [
        at_most(f"{both}, up to 100,000 entries, against a `TTLCache`", 4, filling["ours"], filling["TTLCache"]),
        at_most("… against an `LRUCache`", 4, filling["ours"], filling["LRUCache"]),
        at_most("… each store evicting one, against a `TTLCache`", 4, evicting["ours"], evicting["TTLCache"]),
        at_most("… each store evicting one, against an `LRUCache`", 4, evicting["ours"], evicting["LRUCache"]),
    ]


def measure_growth() -> list[Row]:
    """storing and retrieving among many and among few"""
    sizes = {"many": MANY, "few": FEW}
    medians = alternating({name: evicter(in_memory, size, 20_000) for name, size in sizes.items()}, rounds=9)
    return [at_most("… with 100,000 entries, against 1,000", 1.5, medians["many"], medians["few"])]


def filler(opener: Callable[[int], Any]) -> Callable[[], float]:
    """Times storing until the capacity is reached."""
    return lambda: asyncio.run(seconds_per_pair(opener(MANY), capacity=MANY, before=0, pairs=MANY))


def evicter(opener: Callable[[int], Any], capacity: int, pairs: int) -> Callable[[], float]:
    """Times storing after the capacity was reached."""
    return lambda: asyncio.run(seconds_per_pair(opener(capacity), capacity=capacity, before=capacity, pairs=pairs))


async def seconds_per_pair(storage: Any, *, capacity: int, before: int, pairs: int) -> float:
    """The processor time of a store and a retrieve, after *before* stores."""
    references = [await storage.store(key, ONE_KB) for key in KEYS[:before]]
    stores = list(zip(KEYS[before : before + pairs], looks(capacity, before, pairs), strict=True))
    gc.collect()
    began = time.process_time()
    for key, look in stores:
        references.append(await storage.store(key, ONE_KB))
        await storage.retrieve(references[look])
    seconds = (time.process_time() - began) / pairs
    await check(storage, references, capacity)
    return seconds


def looks(capacity: int, before: int, pairs: int) -> list[int]:
    """Which of the references to retrieve after each store: any of the last that surely are still there."""
    stored = range(before + 1, before + pairs + 1)
    return [total - 1 - total * 7_919 % min(total, capacity // 2) for total in stored]


async def check(storage: Any, references: Sequence[str], capacity: int) -> None:
    for reference in references[-capacity // 2 :]:
        assert await storage.retrieve(reference) == (ONE_KB, "text/plain")
    gone = references[:-capacity][:1]
    for reference in gone:
        try:
            await storage.retrieve(reference)
        except KeyError:
            continue
        raise AssertionError("the first one is still there, so nothing was evicted")


# Turns


def measure_turns() -> list[Row]:
    """a turn in which nothing leaves"""
    ours = EvictingStorage(InMemoryStorage(evict_after_turns=None), turns=1_000_000)
    theirs = strands.InMemoryStorage(evict_after_turns=1_000_000)
    asyncio.run(filled_with(ours, MANY))
    asyncio.run(filled_with(theirs, MANY))
    turns = count(1)
    medians = alternating(
        {
            "ours": lambda: seconds_per_turn(ours.advance_turn, 10_000),
            "strands": lambda: seconds_per_turn(lambda: theirs._evict(next(turns)), 10),
        },
        rounds=15,
    )
    measure = "a turn with 100,000 entries of which none leaves, against strands' InMemoryStorage"
    return [faster(measure, 20, medians["ours"], medians["strands"])]


async def filled_with(storage: Any, entries: int) -> None:
    for key in KEYS[:entries]:
        await storage.store(key, ONE_KB)


def seconds_per_turn(advance: Callable[[], None], turns: int) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(turns):
        advance()
    return (time.process_time() - began) / turns


# Files


def measure_files() -> list[Row]:
    """storing files"""
    with tempfile.TemporaryDirectory() as parent:
        folders = (Path(parent) / str(number) for number in count())
        below = {wrap.__name__: storer(wrap, folders, present=9_500) for wrap in (unwrapped, bounded, chained)}
        beyond = {wrap.__name__: storer(wrap, folders, present=10_000) for wrap in (unwrapped, bounded)}
        filling, evicting = alternating(below, rounds=9), alternating(beyond, rounds=9)
    store = "`FileStorage.store`, 10 KB, among 10,000 entries"
    bare = "against it without eviction"
    return [
        at_most(f"{store}, with capacity and TTL, {bare}", 1.5, filling["bounded"], filling["unwrapped"]),
        at_most(f"… each store evicting one, {bare}", 1.5, evicting["bounded"], evicting["unwrapped"]),
        at_most(f"… with turns and chains, {bare}", 1.5, filling["chained"], filling["unwrapped"]),
    ]


def unwrapped(inner: FileStorage) -> FileStorage:
    return inner


def bounded(inner: FileStorage) -> EvictingStorage:
    return EvictingStorage(inner, max_entries=10_000, ttl=DAY)


def chained(inner: FileStorage) -> EvictingStorage:
    return EvictingStorage(inner, turns=100, chains=True)


def storer(wrap: Callable[[FileStorage], Any], folders: Iterator[Path], *, present: int) -> Callable[[], float]:
    """Each round has a directory of its own: creating files where thousands were deleted is slow."""
    return lambda: asyncio.run(seconds_per_store(wrap(FileStorage(filled(next(folders), present)))))


def filled(folder: Path, entries: int) -> Path:
    """Make *folder* with empty artifacts in it, as a run a minute ago would have left them."""
    folder.mkdir()
    a_minute_ago = int(time.time() - 60) * 1_000
    for number in range(entries):
        (folder / f"{a_minute_ago}_{number}_tooluse_{number}_0.txt").touch()
    return folder


async def seconds_per_store(storage: Any, messages: int = 45) -> float:
    """The time of a store, ten for each message, once the storage knows what is there."""
    references = [await storage.store("tooluse_AbC123_0", TEN_KB)]
    await settled(storage)
    gc.collect()
    began = time.perf_counter()
    for _ in range(messages):
        references += await stored_for_a_message(storage)
    seconds = (time.perf_counter() - began) / (messages * 10)
    await settled(storage)
    for reference in references:
        assert await storage.retrieve(reference) == (TEN_KB, "text/plain")
    return seconds


async def stored_for_a_message(storage: Any) -> list[str]:
    """Ten results, of one chain and one turn where that counts."""
    with in_chain(new_chain()):
        references = [await storage.store("tooluse_AbC123_0", TEN_KB) for _ in range(10)]
    if isinstance(storage, EvictingStorage):
        storage.advance_turn()
    return references


async def settled(storage: Any) -> None:
    """Wait for what goes on in the background."""
    if isinstance(storage, EvictingStorage):
        await storage.aclose()


BENCHMARK = Benchmark(
    name="eviction",
    measures=(measure_memory, measure_growth, measure_turns, measure_files),
    packages=("cachetools", "strands-agents"),
)

if __name__ == "__main__":
    BENCHMARK.run()
