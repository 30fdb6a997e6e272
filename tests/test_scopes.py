from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_contract import OwnStorageContract

from holdfast import FileStorage, InMemoryStorage, NotFoundError, ScopedStorage, StorageError
from holdfast.storage import Storage
from holdfast.testing import storage_machine


class TestContractInMemory(OwnStorageContract):
    @pytest.fixture
    def storage(self) -> ScopedStorage:
        return ScopedStorage(InMemoryStorage(), "tenant-7")


class TestContractOnFiles(OwnStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> ScopedStorage:
        return ScopedStorage(FileStorage(tmp_path), "tenant/7 – ü")


class TestContractOnS3(OwnStorageContract):
    @pytest.fixture
    def storage(self, open_s3) -> ScopedStorage:
        return ScopedStorage(open_s3(), "tenant-7")


class TestContractNested(OwnStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> ScopedStorage:
        return ScopedStorage(ScopedStorage(FileStorage(tmp_path), "tenant-7"), "session-1")


_shared = InMemoryStorage(evict_after_turns=None)
TestAgainstADictionary = storage_machine(lambda: ScopedStorage(_shared, "a"), survives_reopening=True).TestCase


@pytest.fixture(params=["memory", "files", "s3"])
def inner(request, tmp_path) -> Storage:
    if request.param == "memory":
        return InMemoryStorage()
    return FileStorage(tmp_path) if request.param == "files" else request.getfixturevalue("open_s3")()


async def test_what_one_scope_stored_another_cannot_have(inner):
    ours, theirs = ScopedStorage(inner, "ours"), ScopedStorage(inner, "theirs")
    reference = await ours.store("key", b"secret")
    for stranger in (theirs, ScopedStorage(ours, "nested"), ScopedStorage(inner, "our")):
        with pytest.raises(NotFoundError, match="it was not stored in the scope"):
            await stranger.retrieve(reference)
        with pytest.raises(NotFoundError):
            await stranger.retrieve_range(reference, 0, 3)
        await stranger.delete(reference)
        await stranger.clear()
        assert [entry async for entry in stranger.entries()] == []
    assert await ours.retrieve(reference) == (b"secret", "text/plain")
    assert [entry.reference async for entry in ours.entries()] == [reference]


async def test_clearing_a_scope_touches_nothing_else(inner):
    ours, theirs = ScopedStorage(inner, "ours"), ScopedStorage(inner, "theirs")
    await ours.store("key", b"1")
    kept, unscoped = await theirs.store("key", b"2"), await inner.store("key", b"3")
    await ours.clear()
    assert [entry async for entry in ours.entries()] == []
    assert await theirs.retrieve(kept) == (b"2", "text/plain")
    assert await inner.retrieve(unscoped) == (b"3", "text/plain")


async def test_what_was_stored_outside_a_scope_is_not_in_it(inner):
    reference = await inner.store("key", b"unscoped")
    with pytest.raises(NotFoundError):
        await ScopedStorage(inner, "ours").retrieve(reference)


async def test_a_content_type_cannot_smuggle_an_entry_into_another_scope(inner):
    ours, theirs = ScopedStorage(inner, "ours"), ScopedStorage(inner, "theirs")
    smuggled = "text/plain; holdfast-scope=theirs"
    reference = await ours.store("key", b"content", smuggled)
    with pytest.raises(NotFoundError):
        await theirs.retrieve(reference)
    assert await ours.retrieve(reference) == (b"content", smuggled)


async def test_a_scope_survives_a_restart(tmp_path):
    reference = await ScopedStorage(FileStorage(tmp_path), "ours").store("key", b"content", "text/csv")
    again = FileStorage(tmp_path)
    assert await ScopedStorage(again, "ours").retrieve(reference) == (b"content", "text/csv")
    with pytest.raises(NotFoundError):
        await ScopedStorage(again, "theirs").retrieve(reference)


@given(ours=st.text(min_size=1, max_size=30), theirs=st.text(min_size=1, max_size=30))
async def test_no_two_scopes_are_taken_for_one(ours, theirs):
    inner = InMemoryStorage()
    reference = await ScopedStorage(inner, ours).store("key", b"content")
    if ours == theirs:
        assert await ScopedStorage(inner, theirs).retrieve(reference) == (b"content", "text/plain")
        return
    with pytest.raises(NotFoundError):
        await ScopedStorage(inner, theirs).retrieve(reference)


class Minimal:
    """A storage with nothing but the two required methods."""

    def __init__(self) -> None:
        self.inner = InMemoryStorage()

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        return await self.inner.store(key, content, content_type)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        return await self.inner.retrieve(reference)


async def test_a_minimal_storage_can_be_scoped_too():
    minimal = Minimal()
    storage = ScopedStorage(minimal, "ours")
    reference = await storage.store("key", b"content")
    assert await storage.retrieve(reference) == (b"content", "text/plain")
    assert (await storage.retrieve_range(reference, 1, 3)).content == b"on"
    with pytest.raises(NotFoundError):
        await ScopedStorage(minimal, "theirs").retrieve(reference)
    with pytest.raises(StorageError, match="Minimal cannot delete, so a scope of it cannot either"):
        await storage.delete(reference)
    with pytest.raises(StorageError, match="Minimal cannot"):
        await storage.clear()


async def test_a_scope_may_be_as_long_as_a_content_type_can_carry():
    storage = ScopedStorage(ScopedStorage(ScopedStorage(InMemoryStorage(), "x" * 200), "y" * 200), "😀" * 30)
    assert await storage.retrieve(await storage.store("key", b"content")) == (b"content", "text/plain")
    with pytest.raises(ValueError, match="too long once percent-encoded"):
        ScopedStorage(InMemoryStorage(), "😀" * 200)


@pytest.mark.parametrize("scope", ["", None, 7, "x" * 201])
def test_a_scope_needs_a_name(scope):
    with pytest.raises(ValueError, match="scope must be a string of 1 to 200 characters"):
        ScopedStorage(InMemoryStorage(), scope)
