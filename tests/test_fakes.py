from __future__ import annotations

import asyncio

import pytest

from holdfast import FileStorage, InMemoryStorage
from holdfast.errors import StorageAccessError
from holdfast.testing import FakeClock, FlakyStorage, SlowStorage, StorageContract


class TestContractOfAFlakyStorageThatNeverFails(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path) -> FlakyStorage:
        return FlakyStorage(FileStorage(tmp_path), fail_on=())


class TestContractOfASlowStorage(StorageContract):
    @pytest.fixture
    def storage(self) -> SlowStorage:
        return SlowStorage(InMemoryStorage(), seconds=60, sleep=FakeClock().sleep)


async def test_a_flaky_storage_fails_the_chosen_calls_before_they_happen():
    inner = InMemoryStorage()
    storage = FlakyStorage(inner, fail_on={1, 3})
    with pytest.raises(StorageAccessError, match="injected fault"):
        await storage.store("key", b"lost")
    reference = await storage.store("key", b"kept")
    with pytest.raises(StorageAccessError):
        await storage.retrieve(reference)
    assert await storage.retrieve(reference) == (b"kept", "text/plain")
    assert len([entry async for entry in inner.entries()]) == 1


async def test_a_flaky_storage_can_lose_the_answer_instead():
    inner = InMemoryStorage()
    storage = FlakyStorage(inner, fail_on={1}, error=lambda: TimeoutError("too late"), lose_answers=True)
    with pytest.raises(TimeoutError):
        await storage.store("key", b"stored all the same")
    assert len([entry async for entry in inner.entries()]) == 1


async def test_a_slow_storage_takes_its_time_and_lets_others_run():
    clock = FakeClock(now=0.0)
    storage = SlowStorage(InMemoryStorage(), seconds=2.5, sleep=clock.sleep)
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "ran")
    await storage.store("key", b"content")
    assert clock.now == 2.5
    assert others == ["ran"]
