"""What eviction is for: five ways to run agents, with real parts."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import FileStorage, InMemoryStorage, NotFoundError, S3Storage, ScopedStorage
from holdfast.errors import EvictedError, TooLargeError
from holdfast.eviction import EvictingStorage, Eviction, TimeToLive, TurnsToLive, in_chain, new_chain
from holdfast.storage import Storage
from holdfast.testing import FakeClock

HOUR, DAY = 3_600, 86_400

pytestmark = pytest.mark.extended


async def references_in(storage: Storage) -> set[str]:
    return {entry.reference async for entry in storage.entries()}


class TestAnAgentThatRunsForHours:
    SCRIPT = """
        import asyncio, json
        from pathlib import Path

        from holdfast import InMemoryStorage
        from holdfast.eviction import EvictingStorage

        LIMIT = 64_000_000

        def resident_bytes():
            status = Path("/proc/self/status").read_text()
            return int(status.partition("VmRSS:")[2].split()[0]) * 1024

        async def main():
            inner = InMemoryStorage(evict_after_turns=None)
            storage = EvictingStorage(inner, max_bytes=LIMIT)
            stored, when_full = 0, None
            for number in range(100_000):
                content = b"%09d." % number * (100 + number * 7919 % 1_900)
                reference = await storage.store(f"tooluse_{number}", content)
                stored += len(content)
                if when_full is None and stored > LIMIT:
                    when_full = resident_bytes()
            at_the_end = resident_bytes()
            assert (await storage.retrieve(reference))[0] == content
            held = [entry.size async for entry in inner.entries()]
            print(json.dumps([stored, when_full, at_the_end, sum(held), max(held)]))

        asyncio.run(main())
    """

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells resident memory so exactly")
    def test_memory_stays_flat_over_100_000_stores(self):
        command = [sys.executable, "-c", textwrap.dedent(self.SCRIPT)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert answer.returncode == 0, answer.stderr[-3_000:]
        stored, when_full, at_the_end, held, largest = json.loads(answer.stdout)
        assert stored > 15 * 64_000_000
        assert 64_000_000 - largest <= held <= 64_000_000
        assert at_the_end - when_full < 16_000_000


class TestServerlessWithAFixedBudget:
    async def test_neither_limit_is_exceeded_and_the_latest_stays(self):
        inner = InMemoryStorage(evict_after_turns=None)
        storage = EvictingStorage(inner, max_entries=10, max_bytes=20_000)
        for number in range(200):
            reference = await storage.store(f"call-{number}", b"x" * (100 + number * 997 % 5_000))
            sizes = [entry.size async for entry in inner.entries()]
            assert len(sizes) <= 10
            assert sum(sizes) <= 20_000
            assert reference in await references_in(inner)

    async def test_what_is_larger_than_the_budget_is_refused_at_no_cost(self, tmp_path):
        for inner in (InMemoryStorage(), FileStorage(tmp_path)):
            evicted: list[Eviction] = []
            async with EvictingStorage(inner, max_entries=10, max_bytes=20_000, on_evict=evicted.append) as storage:
                before = {await storage.store(f"call-{number}", b"x" * 2_000) for number in range(10)}
                content = b"y" * 20_001
                with pytest.raises(TooLargeError, match="20,001 bytes, but the limit is 10 entries or 20,000 bytes"):
                    await storage.store("large", content)
                assert len(content) == 20_001
                assert evicted == []
                assert await references_in(inner) == before
                for reference in before:
                    assert await storage.retrieve(reference) == (b"x" * 2_000, "text/plain")

    async def test_after_a_refusal_the_rest_works_on(self):
        storage = EvictingStorage(InMemoryStorage(), max_entries=10, max_bytes=20_000)
        first = await storage.store("first", b"x" * 15_000)
        with pytest.raises(TooLargeError):
            await storage.store("large", b"y" * 20_001)
        assert await storage.retrieve(first) == (b"x" * 15_000, "text/plain")
        whole = await storage.store("as much as may be", b"z" * 20_000)
        assert await references_in(storage) == {whole}
        with pytest.raises(EvictedError, match="least recently used of more than 10 entries or 20,000 bytes"):
            await storage.retrieve(first)


SESSIONS, CALLS = 200, 2


@pytest.fixture(params=["memory", "files"])
def shared(request, tmp_path) -> Storage:
    return InMemoryStorage(evict_after_turns=None) if request.param == "memory" else FileStorage(tmp_path)


class TestAServerOf200Sessions:
    async def test_ended_ones_leave_nothing_and_live_ones_lose_nothing(self, shared):
        evicting = EvictingStorage(shared, max_entries=2 * SESSIONS * CALLS, ttl=HOUR)
        may_end = asyncio.Event()
        live: list[str] = []
        all_of: dict[int, list[str]] = {}

        async def session(number: int) -> None:
            async with ScopedStorage(evicting, f"session-{number}") as storage:
                contents = await self.calls(storage, number)
                all_of[number] = list(contents)
                if number % 2:
                    live.extend(contents)
                    await may_end.wait()
                await self.check(storage, contents)

        sessions = [asyncio.create_task(session(number)) for number in range(SESSIONS)]
        await asyncio.gather(*sessions[::2])
        assert await references_in(shared) == set(live)
        may_end.set()
        await asyncio.gather(*sessions)
        assert await references_in(shared) == await references_in(evicting) == set()
        for number, references in all_of.items():
            with pytest.raises(EvictedError, match=f"the scope 'session-{number}' was cleared"):
                await ScopedStorage(evicting, f"session-{number}").retrieve(references[0])
            with pytest.raises(NotFoundError, match="it was not stored in the scope 'stranger'"):
                await ScopedStorage(evicting, "stranger").retrieve(references[0])
        await evicting.aclose()

    async def test_each_may_count_its_own_turns(self, shared, caplog):
        may_end = asyncio.Event()
        live: list[str] = []

        async def session(number: int) -> None:
            scope = ScopedStorage(shared, f"session-{number}")
            async with scope, EvictingStorage(scope, TurnsToLive(turns=3)) as storage:
                storage.bind(asyncio.current_task())
                old = await self.calls(storage, number)
                for _ in range(4 if number % 4 else 3):
                    storage.advance_turn()
                fresh = await self.calls(storage, number)
                await storage.aclose()
                kept = fresh if number % 4 else old | fresh
                for reference in old.keys() - kept.keys():
                    with pytest.raises(EvictedError, match="nobody stored or read it for more than 3 turns"):
                        await storage.retrieve(reference)
                if number % 2:
                    live.extend(kept)
                    await may_end.wait()
                await self.check(storage, kept)

        sessions = [asyncio.create_task(session(number)) for number in range(SESSIONS)]
        await asyncio.gather(*sessions[::2])
        assert await references_in(shared) == set(live)
        may_end.set()
        await asyncio.gather(*sessions)
        assert await references_in(shared) == set()
        assert caplog.records == []

    async def test_one_that_fails_leaves_nothing_either(self, shared):
        evicting = EvictingStorage(shared, max_bytes=1_000_000)
        kept = await ScopedStorage(evicting, "another").store("call", b"content")

        async def failing_session() -> None:
            async with ScopedStorage(evicting, "failing") as storage:
                await self.calls(storage, 1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await failing_session()
        assert await references_in(shared) == {kept}

    async def calls(self, storage: Storage, session: int) -> dict[str, bytes]:
        contents = [f"result {call} of session {session}".encode() for call in range(CALLS)]
        # Providers repeat ids: every session has a call of the same name.
        references = await asyncio.gather(*(storage.store("tooluse_1", content) for content in contents))
        return dict(zip(references, contents, strict=True))

    async def check(self, storage: Storage, contents: dict[str, bytes]) -> None:
        for reference, content in contents.items():
            assert await storage.retrieve(reference) == (content, "text/plain")


class TestThousandsOfResultsOnS3:
    EACH_HOUR = 10

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock(now=1_700_000_000.0)

    @pytest.fixture
    def prefix(self, tmp_path) -> str:
        return f"agents-{tmp_path.name}"

    @pytest.fixture
    def objects(self, client, bucket, prefix) -> Callable[[], int]:
        """Counts what the bucket holds, without holdfast."""
        listing = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
        return lambda: sum(page["KeyCount"] for page in listing)

    @pytest.fixture
    def start(self, open_s3, clock, prefix) -> Callable[..., EvictingStorage]:
        """Opens the bucket as a new process would."""
        return lambda policy, **options: EvictingStorage(open_s3(prefix=prefix, clock=clock), policy, **options)

    async def work(self, storage: EvictingStorage, clock: FakeClock, hours: int) -> list[str]:
        references: list[str] = []
        for _ in range(hours):
            stores = (storage.store(f"call-{call}", b"result") for call in range(self.EACH_HOUR))
            references += await asyncio.gather(*stores)
            clock.advance(HOUR)
        return references

    async def test_the_bucket_holds_a_days_worth_whatever_the_day(self, start, clock, objects):
        a_days_worth = 24 * self.EACH_HOUR
        evicted: list[Eviction] = []
        for _ in range(2):
            storage = start(TimeToLive(seconds=DAY), on_evict=evicted.append)
            for _ in range(4):
                latest = await self.work(storage, clock, hours=12)
                await storage.aclose()
                assert len(latest) <= await asyncio.to_thread(objects) <= a_days_worth + self.EACH_HOUR
            assert await storage.retrieve(latest[-1]) == (b"result", "text/plain")
            # The clock went on, so reading evicted; the next process shall not find what is just being deleted.
            await storage.aclose()
        clock.advance(DAY)
        await storage.sweep()
        assert len({eviction.reference for eviction in evicted}) == len(evicted) == 2 * 4 * 12 * self.EACH_HOUR
        assert {eviction.because for eviction in evicted} == {"it was stored more than 86400 seconds before"}
        assert await asyncio.to_thread(objects) == 0

    async def test_a_restart_finds_what_became_too_old_meanwhile(self, start, clock, objects):
        before = await self.work(start(TimeToLive(seconds=DAY)), clock, hours=12)
        clock.advance(DAY - 6 * HOUR)
        storage = start(TimeToLive(seconds=DAY))
        latest = await self.work(storage, clock, hours=1)
        await storage.sweep()
        assert await asyncio.to_thread(objects) == 5 * self.EACH_HOUR + len(latest)
        assert await storage.retrieve(before[-1]) == (b"result", "text/plain")

    async def test_a_restart_finds_all_of_a_backlog_of_more_than_one_page(self, start, clock, objects):
        """S3 lists a thousand at a time."""
        backlog = await self.store_at_once(start(TimeToLive(seconds=DAY)), 1_050)
        assert await asyncio.to_thread(objects) == len(backlog) == 1_050
        clock.advance(DAY + HOUR)
        evicted: list[Eviction] = []
        storage = start(TimeToLive(seconds=DAY), on_evict=evicted.append)
        latest = await self.work(storage, clock, hours=1)
        await storage.aclose()
        assert {eviction.reference for eviction in evicted} == set(backlog)
        assert await asyncio.to_thread(objects) == len(latest)

    async def store_at_once(self, storage: EvictingStorage, number: int) -> list[str]:
        return await asyncio.gather(*(storage.store(f"call-{call}", b"result") for call in range(number)))

    async def test_what_was_read_yesterday_survives_a_restart(self, start, clock, objects):
        policy = TimeToLive(seconds=DAY, since="use")
        storage = start(policy)
        read, forgotten = (await self.work(storage, clock, hours=1))[:2]
        clock.advance(20 * HOUR)
        assert await storage.retrieve(read) == (b"result", "text/plain")
        await storage.aclose()

        clock.advance(20 * HOUR)
        storage = start(policy)
        await storage.sweep()
        assert await references_in(storage) == {read}
        assert await storage.retrieve(read) == (b"result", "text/plain")
        with pytest.raises(EvictedError, match="it was last used more than 86400 seconds before"):
            await storage.retrieve(forgotten)
        assert await asyncio.to_thread(objects) == 1
        await storage.aclose()

        clock.advance(DAY + HOUR)
        await start(policy).sweep()
        assert await asyncio.to_thread(objects) == 0


class TestAChainOfTenCalls:
    @pytest.fixture(params=["memory", "files", "a scope of memory", "a scope of files", "s3"])
    def inner(self, request, tmp_path) -> Storage:
        if request.param == "s3":
            storage: S3Storage = request.getfixturevalue("open_s3")()
            return storage
        backend = FileStorage(tmp_path) if "files" in request.param else InMemoryStorage(evict_after_turns=None)
        return ScopedStorage(backend, "session-1") if "scope" in request.param else backend

    async def ten_calls(self, storage: EvictingStorage) -> list[str]:
        """Three parallel calls; one that reads a result of theirs; a nested agent with four; one on its answer."""

        async def call(message: str, arguments: object = None) -> str:
            with in_chain(message, arguments=arguments):
                return await storage.store("tooluse_1", b"result")

        async def nested_agent(arguments: object) -> list[str]:
            with in_chain(new_chain(), arguments=arguments):
                steps = [asyncio.create_task(call(new_chain())) for _ in range(4)]
                return [*await asyncio.gather(*steps), await storage.store("tooluse_1", b"answer")]

        message = new_chain()
        references = await asyncio.gather(*(call(message) for _ in range(3)))
        storage.advance_turn()
        references.append(await call(new_chain(), {"path": references[1], "lines": [1, 20]}))
        storage.advance_turn()
        references += await nested_agent({"task": f"Compare it with {references[3]}, please."})
        storage.advance_turn()
        return [*references, await call(new_chain(), {"inputs": [{"name": references[-1]}]})]

    async def test_it_leaves_as_one_while_the_next_topic_stays_whole(self, inner, caplog):
        evicted: list[Eviction] = []
        storage = EvictingStorage(inner, turns=5, chains=True, on_evict=evicted.append)
        finished = await self.ten_calls(storage)
        assert len(set(finished)) == 10
        storage.advance_turn()
        current = await self.ten_calls(storage)
        assert evicted == []

        storage.advance_turn()
        storage.advance_turn()
        assert {eviction.reference for eviction in evicted} == set(finished)
        await storage.aclose()
        assert await references_in(inner) == await references_in(storage) == set(current)
        for reference in finished:
            with pytest.raises(EvictedError, match="nobody stored or read it for more than 5 turns"):
                await storage.retrieve(reference)
        for reference in current:
            await storage.retrieve(reference)
        assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []

    async def test_one_look_at_any_of_it_keeps_all_of_it(self, inner):
        storage = EvictingStorage(inner, turns=5, chains=True)
        chain = await self.ten_calls(storage)
        for reference in chain[::3]:
            for _ in range(5):
                storage.advance_turn()
            await storage.retrieve(reference)
        assert await references_in(storage) == set(chain)
        await storage.aclose()

    async def test_capacity_takes_the_finished_one_whole(self, inner):
        async with EvictingStorage(inner, max_entries=15, chains=True) as storage:
            finished = await self.ten_calls(storage)
            current = await self.ten_calls(storage)
            assert await references_in(storage) == set(current)
        assert await references_in(inner) == set(current)
        assert not set(finished) & set(current)

    async def test_deleting_any_of_it_deletes_it_whole(self, inner):
        storage = EvictingStorage(inner, chains=True)
        finished, current = await self.ten_calls(storage), await self.ten_calls(storage)
        await storage.delete(finished[4])
        assert await references_in(inner) == set(current)

    async def test_a_restart_changes_none_of_it(self, tmp_path):
        before = EvictingStorage(FileStorage(tmp_path), turns=5, chains=True)
        finished = await self.ten_calls(before)
        before.advance_turn()
        current = await self.ten_calls(before)
        await before.aclose()

        storage = EvictingStorage(FileStorage(tmp_path), turns=5, chains=True)
        await storage.sweep()
        assert await references_in(storage) == {*finished, *current}
        storage.advance_turn()
        storage.advance_turn()
        await storage.aclose()
        assert await references_in(FileStorage(tmp_path)) == set(current)

    async def test_what_is_visible_in_the_conversation_keeps_its_chain(self, inner):
        storage = EvictingStorage(inner, turns=5, chains=True)
        finished = await self.ten_calls(storage)
        storage.set_live({finished[0]})
        for _ in range(10):
            storage.advance_turn()
        assert await references_in(storage) == set(finished)
        storage.set_live(())
        await storage.aclose()
        assert await references_in(inner) == set()
