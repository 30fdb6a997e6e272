"""What is right after a restart, a crash, and beside another process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from holdfast import EvictingStorage, FileStorage, ScopedStorage
from holdfast.errors import EvictedError, NotFoundError, StorageAccessError
from holdfast.eviction import Chains, LeastRecentlyUsed, TimeToLive, TurnsToLive
from holdfast.testing import FakeClock


async def keys(storage) -> list[str]:
    return sorted([entry.key async for entry in storage.entries()])


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["files", "scope over files", "s3"])
def open_inner(request, tmp_path, clock):
    """A function that opens one persistent store anew, as a restarted process would."""
    if request.param == "s3":
        open_s3 = request.getfixturevalue("open_s3")
        return lambda: open_s3(prefix=f"agents/{tmp_path.name}", clock=clock)
    if request.param == "files":
        return lambda: FileStorage(tmp_path, clock=clock)
    return lambda: ScopedStorage(FileStorage(tmp_path, clock=clock), "session")


async def test_age_survives_a_restart(open_inner, clock):
    async with EvictingStorage(open_inner(), ttl=10) as before:
        old = await before.store("old", b"1")
        clock.advance(6)
        young = await before.store("young", b"2")
    clock.advance(6)
    async with EvictingStorage(open_inner(), ttl=10) as after:
        assert await after.retrieve(young) == (b"2", "text/plain")
        with pytest.raises(NotFoundError):
            await after.retrieve(old)
        assert await keys(after) == ["young"]
    assert await keys(open_inner()) == ["young"]


async def test_the_order_of_use_survives_a_restart(open_inner, clock):
    async with EvictingStorage(open_inner(), max_entries=3) as before:
        references = {}
        for key in "abc":
            references[key] = await before.store(key, b"x")
            clock.advance(1)
        await before.retrieve(references["a"])
        clock.advance(1)
        await before.retrieve_range(references["b"], 0, 1)
        clock.advance(1)
    async with EvictingStorage(open_inner(), max_entries=3) as after:
        await after.store("d", b"x")
        assert await keys(after) == ["a", "b", "d"]
    assert await keys(open_inner()) == ["a", "b", "d"]


async def test_idle_time_survives_a_restart(open_inner, clock):
    idle = TimeToLive(seconds=10, since="use")
    async with EvictingStorage(open_inner(), idle) as before:
        used, unused = await before.store("used", b"1"), await before.store("unused", b"2")
        clock.advance(8)
        await before.retrieve(used)
    clock.advance(8)
    async with EvictingStorage(open_inner(), idle) as after:
        assert await keys(after) == ["used"]
        with pytest.raises(EvictedError):
            await after.retrieve(unused)


async def test_turns_survive_a_restart(open_inner):
    async with EvictingStorage(open_inner(), turns=3) as before:
        used, unused = await before.store("used", b"1"), await before.store("unused", b"2")
        for _ in range(3):
            before.advance_turn()
        await before.retrieve(used)
    async with EvictingStorage(open_inner(), turns=3) as after:
        await after.store("new", b"3")
        assert await keys(after) == ["new", "unused", "used"]
        after.advance_turn()
        assert await keys(after) == ["new", "used"]
        with pytest.raises(EvictedError, match="more than 3 turns"):
            await after.retrieve(unused)
    async with EvictingStorage(open_inner(), turns=3) as last:
        for _ in range(3):
            last.advance_turn()
        assert await keys(last) == ["new", "used"]
        last.advance_turn()
        assert await keys(last) == []


async def test_a_conversation_that_counts_its_turns_is_believed(open_inner):
    async with EvictingStorage(open_inner(), turns=3) as before:
        before.advance_turn(to=7)
        await before.store("old", b"1")
        before.advance_turn(to=9)
        await before.store("younger", b"2")
    async with EvictingStorage(open_inner(), turns=3) as after:
        after.advance_turn(to=11)
        await after.store("new", b"3")
        assert await keys(after) == ["new", "younger"]
        with pytest.raises(ValueError, match="to must be a positive integer, got 0"):
            after.advance_turn(to=0)


async def test_chains_survive_a_restart(open_inner, clock):
    policies = [Chains(), TimeToLive(seconds=10)]
    async with EvictingStorage(open_inner(), *policies) as before:
        parent = await before.store("parent", b"1")
        await before.store("alone", b"2")
        clock.advance(6)
    async with EvictingStorage(open_inner(), *policies) as between:
        await between.store("child", b"3", parent=parent)
        clock.advance(6)
        assert await keys(between) == ["child", "parent"]
    async with EvictingStorage(open_inner(), *policies) as after:
        assert await keys(after) == ["child", "parent"]
        clock.advance(6)
        assert await keys(after) == []


async def test_contents_come_back_as_they_were_given(open_inner):
    options = {"turns": 5, "chains": True, "max_entries": 9}
    async with EvictingStorage(open_inner(), **options) as before:
        parent = await before.store("parent", b"1", "text/csv; charset=utf-8")
        child = await before.store("child", b"2", "image/png", parent=parent)
        before.advance_turn()
        await before.retrieve(child)
    async with EvictingStorage(open_inner(), **options) as after:
        assert await after.retrieve(parent) == (b"1", "text/csv; charset=utf-8")
        assert await after.retrieve(child) == (b"2", "image/png")
        assert {entry.content_type async for entry in after.entries()} == {"text/csv; charset=utf-8", "image/png"}


async def test_what_is_stored_before_the_listing_is_known_counts_in_the_right_turn(open_inner):
    async with EvictingStorage(open_inner(), turns=3) as before:
        for _ in range(50):
            before.advance_turn()
        await before.store("old", b"1")
    async with EvictingStorage(open_inner(), turns=3) as early:
        await early.store("early", b"2")
    async with EvictingStorage(open_inner(), turns=3) as after:
        assert await keys(after) == ["early", "old"]


async def test_an_entry_that_another_process_uses_is_not_evicted(open_inner, clock):
    idle = TimeToLive(seconds=10, since="use")
    async with EvictingStorage(open_inner(), idle) as one, EvictingStorage(open_inner(), idle) as other:
        reference = await one.store("shared", b"1")
        clock.advance(8)
        assert await other.retrieve(reference) == (b"1", "text/plain")
        await other.aclose()
        clock.advance(8)
        one.advance_turn()
        await one.aclose()
        assert await one.retrieve(reference) == (b"1", "text/plain")
        clock.advance(11)
        assert await keys(one) == []
        await one.aclose()
        with pytest.raises(NotFoundError):
            await other.retrieve(reference)


async def test_instead_of_what_another_process_uses_the_next_one_leaves(open_inner, clock):
    async with EvictingStorage(open_inner(), max_entries=2) as one:
        references = []
        for key in "ab":
            references.append(await one.store(key, b"x"))
            clock.advance(1)
        async with EvictingStorage(open_inner(), max_entries=2) as other:
            await other.retrieve(references[0])
        clock.advance(1)
        await one.store("c", b"x")
        await one.aclose()
        assert await keys(one) == ["a", "c"]


async def test_two_processes_that_evict_one_store_do_not_fight(open_inner, clock):
    async with (
        EvictingStorage(open_inner(), max_entries=10) as one,
        EvictingStorage(open_inner(), max_entries=10) as two,
    ):
        for number in range(20):
            clock.advance(1)
            stored = await asyncio.gather(one.store(f"one_{number}", b"x"), two.store(f"two_{number}", b"x"))
            assert await one.retrieve(stored[0]) == (b"x", "text/plain")
            assert await two.retrieve(stored[1]) == (b"x", "text/plain")
        await one.sweep()
        await two.sweep()
        assert len(await keys(one)) == len(await keys(two)) == 10


async def test_what_another_process_stored_is_found_and_bounded(open_inner):
    async with EvictingStorage(open_inner(), max_entries=3) as one:
        await one.store("mine", b"x")
        async with EvictingStorage(open_inner(), max_entries=30) as two:
            theirs = [await two.store(f"theirs_{number}", b"x") for number in range(5)]
        assert await one.retrieve(theirs[0]) == (b"x", "text/plain")
        await one.sweep()
        assert len(await keys(one)) == 3


async def test_listing_that_fails_is_told_and_tried_again(tmp_path, caplog):
    class Failing(FileStorage):
        failures = 2

        async def entries(self):
            if self.failures:
                self.failures -= 1
                raise StorageAccessError("injected fault")
            async for entry in super().entries():
                yield entry

    await FileStorage(tmp_path).store("old", b"1")
    storage = EvictingStorage(Failing(tmp_path), max_entries=1)
    for key in "abc":
        reference = await storage.store(key, b"x")
        assert await storage.retrieve(reference) == (b"x", "text/plain")
        await storage.aclose()
    with pytest.raises(StorageAccessError, match="injected fault"):
        await keys(storage)
    assert await keys(storage) == ["c"]
    assert (
        "cannot list what is stored, so what other processes stored is not evicted yet: injected fault" in caplog.text
    )


async def test_a_store_does_not_wait_for_a_long_listing(tmp_path):
    listing = asyncio.Event()

    class Slow(FileStorage):
        async def entries(self):
            await listing.wait()
            async for entry in super().entries():
                yield entry

    old = await FileStorage(tmp_path).store("old", b"1")
    storage = EvictingStorage(Slow(tmp_path), max_entries=1)
    reference = await storage.store("new", b"2")
    assert await storage.retrieve(reference) == (b"2", "text/plain")
    # Rather served than waited for: what an earlier process stored, as long as nobody knows what is too much.
    assert await storage.retrieve(old) == (b"1", "text/plain")
    await storage.retrieve(reference)
    listing.set()
    await storage.aclose()
    assert await keys(storage) == ["new"]


@pytest.mark.parametrize("name", ["99999999999999_1_future.txt", "0_1_past.txt"])
async def test_odd_times_in_names_harm_nobody(tmp_path, clock, name):
    (tmp_path / name).write_bytes(b"x")
    async with EvictingStorage(FileStorage(tmp_path, clock=clock), ttl=10, max_entries=2) as storage:
        a = await storage.store("a", b"1")
        assert "a" in await keys(storage)
        assert await storage.retrieve(a) == (b"1", "text/plain")
        clock.advance(11)
        assert await keys(storage) == []


# --- crashes


class Crash(BaseException):
    """The process dies."""


class CrashingStorage:
    """Dies before its n-th step, and is dead from then on; what was done stays done."""

    def __init__(self, inner, steps):
        self.inner, self.steps = inner, steps
        self.clock, self.notes_uses = inner.clock, inner.notes_uses

    def step(self):
        self.steps -= 1
        if self.steps < 0:
            raise Crash

    async def store(self, key, content, content_type="text/plain"):
        self.step()
        return await self.inner.store(key, content, content_type)

    async def retrieve(self, reference):
        self.step()
        return await self.inner.retrieve(reference)

    async def delete(self, reference):
        self.step()
        await self.inner.delete(reference)

    async def inspect(self, reference):
        self.step()
        return await self.inner.inspect(reference)

    async def touch(self, reference, used_at, content_type=None):
        self.step()
        await self.inner.touch(reference, used_at, content_type)

    async def entries(self):
        self.step()
        async for entry in self.inner.entries():
            yield entry


async def live_until_the_crash(storage, clock):
    """Store three chains, of which two fit; yield the key of each content that was acknowledged."""
    for chain in ("a1 a2 a3", "b1 b2", "c1 c2"):
        parent = None
        for key in chain.split():
            parent = await storage.store(key, b"x", parent=parent)
            yield key
        clock.advance(1)
    await storage.aclose()


@pytest.fixture
def the_dead_are_buried():
    """Tasks of a dead process report themselves when they are collected: here, and not in some later test."""
    yield
    gc.collect()


@pytest.mark.usefixtures("the_dead_are_buried")
@pytest.mark.parametrize("steps", range(30))
async def test_a_crash_between_any_two_steps_leaves_no_half_chain_and_loses_no_live_entry(tmp_path, clock, steps):
    policies = [Chains(), LeastRecentlyUsed(max_entries=5)]
    crashing = EvictingStorage(CrashingStorage(FileStorage(tmp_path, clock=clock), steps), *policies, retry_delays=())
    stored = set()
    with contextlib.suppress(Crash):
        async for key in live_until_the_crash(crashing, clock):
            stored.add(key)
    await asyncio.wait([asyncio.create_task(asyncio.sleep(0.05))])
    async with EvictingStorage(FileStorage(tmp_path, clock=clock), *policies) as after:
        await after.sweep()
        kept = set(await keys(after))
    oldest = {"a1", "a2", "a3"} & stored
    assert kept in (stored, stored - oldest)
    assert len(kept) <= 5
    assert kept == set(await keys(FileStorage(tmp_path, clock=clock)))


FOREVER = """
import asyncio, sys
from holdfast import EvictingStorage, FileStorage
from holdfast.eviction import in_chain, new_chain

async def main():
    storage = EvictingStorage(FileStorage(sys.argv[1]), max_entries=12, chains=True)
    number = 0
    while True:
        number += 1
        with in_chain(new_chain()):
            for part in range(4):
                await storage.store(f"chain{number}_{part}", b"x" * 1_000)
        if number == 10:
            print("running", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", range(4))
def test_a_killed_process_leaves_whole_chains_and_no_leak(tmp_path, moment):
    with subprocess.Popen([sys.executable, "-c", FOREVER, tmp_path], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.03 * moment)
        os.kill(process.pid, signal.SIGKILL)
    found = asyncio.run(swept(EvictingStorage(FileStorage(tmp_path), max_entries=12, chains=True)))
    assert len(found) <= 12
    chains = Counter(key.partition("_")[0] for key in found)
    being_stored = max(chains, key=lambda chain: int(chain.removeprefix("chain")))
    assert {count for chain, count in chains.items() if chain != being_stored} <= {4}
    assert len([path for path in tmp_path.iterdir() if not path.name.startswith(".")]) == len(found)


async def swept(storage) -> list[str]:
    async with storage:
        await storage.sweep()
        return await keys(storage)


async def test_the_turns_of_one_conversation_do_not_reach_another_s_entries(tmp_path):
    shared = FileStorage(tmp_path)
    one, two = (EvictingStorage(ScopedStorage(shared, name), TurnsToLive(turns=2)) for name in ("one", "two"))
    in_one, in_two = await one.store("a", b"1"), await two.store("b", b"2")
    for _ in range(5):
        one.advance_turn()
    with pytest.raises(EvictedError):
        await one.retrieve(in_one)
    assert await two.retrieve(in_two) == (b"2", "text/plain")
    await one.aclose()
    await two.aclose()
    assert await keys(shared) == ["b"]
