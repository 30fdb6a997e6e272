from __future__ import annotations

import time
import traceback
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_contract import OwnStorageContract

from holdfast import FileStorage, InMemoryStorage, NotFoundError, ScopedStorage, StorageError
from holdfast.errors import EvictedError
from holdfast.storage import Entry, Part, Storage
from holdfast.testing import FakeClock, FlakyStorage, storage_machine


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
        with pytest.raises(NotFoundError, match="it was not stored in the scope"):
            await stranger.inspect(reference)
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
    for storage in (ours, inner):
        with pytest.raises(ValueError, match="must not have parameters that begin with 'holdfast-'"):
            await storage.store("key", b"content", "text/plain; holdfast-scope=theirs")
    assert [entry async for entry in theirs.entries()] == []


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
    with pytest.raises(StorageError, match="Minimal cannot inspect, so a scope of it cannot either"):
        await storage.inspect(reference)
    with pytest.raises(StorageError, match="Minimal cannot touch, so a scope of it cannot either"):
        await storage.touch(reference, 0.0)
    with pytest.raises(StorageError, match="Minimal cannot delete"):
        async with storage:
            pytest.fail("the scope could not be cleared in the end")
    assert (storage.clock, storage.notes_uses, storage.inner) == (time.time, False, minimal)


async def test_a_scope_may_be_as_long_as_a_content_type_can_carry():
    storage = ScopedStorage(ScopedStorage(ScopedStorage(InMemoryStorage(), "x" * 200), "y" * 200), "😀" * 30)
    assert await storage.retrieve(await storage.store("key", b"content")) == (b"content", "text/plain")
    with pytest.raises(ValueError, match="too long once percent-encoded"):
        ScopedStorage(InMemoryStorage(), "😀" * 200)


@pytest.mark.parametrize("scope", ["", None, 7, "x" * 201])
def test_a_scope_needs_a_name(scope):
    with pytest.raises(ValueError, match="scope must be a string of 1 to 200 characters"):
        ScopedStorage(InMemoryStorage(), scope)


async def test_touching_another_scopes_content_is_quiet_and_changes_nothing(tmp_path):
    inner = FileStorage(tmp_path)
    ours, theirs = ScopedStorage(inner, "ours"), ScopedStorage(inner, "theirs")
    reference = await ours.store("key", b"content")
    before = await inner.inspect(reference)
    await theirs.touch(reference, 5_000_000_000.0, "text/x-theirs")
    assert await inner.inspect(reference) == before


async def test_a_touched_content_stays_in_its_scope(tmp_path):
    inner = FileStorage(tmp_path)
    reference = await ScopedStorage(inner, "ours").store("key", b"content")
    await ScopedStorage(inner, "ours").touch(reference, 5_000_000_000.0, "text/x-new")
    again = FileStorage(tmp_path)
    assert (await again.inspect(reference)).content_type == "text/x-new; holdfast-scope=ours"
    entry = await ScopedStorage(again, "ours").inspect(reference)
    assert (entry.content_type, entry.last_used) == ("text/x-new", 5_000_000_000.0)
    with pytest.raises(NotFoundError):
        await ScopedStorage(again, "theirs").inspect(reference)


def test_a_scope_has_the_clock_of_what_it_wraps(tmp_path):
    inner = FileStorage(tmp_path, clock=FakeClock())
    scoped = ScopedStorage(ScopedStorage(inner, "tenant"), "session")
    assert scoped.clock is inner.clock
    assert scoped.notes_uses
    assert not hasattr(scoped, "advance_turn")
    with pytest.raises(AttributeError):
        scoped.inner = inner


class Evicting(InMemoryStorage):
    """A storage that tells the story of what it evicted, as tombstones do."""

    def __init__(self) -> None:
        super().__init__()
        self.stories: dict[str, EvictedError] = {}

    async def evict(self, references: Collection[str], because: str) -> None:
        for reference in references:
            entry = await self.inspect(reference)
            await self.delete(reference)
            kind = entry.content_type
            quoted = kind if len(kind) <= 60 else f"{kind[:60]}…"
            self.stories[reference] = EvictedError(
                reference, f"gone because {because}; it was {quoted}", entry.key, kind, entry.size, 1.0, 2.0, because
            )

    def told(self, reference: str) -> None:
        if reference in self.stories:
            raise self.stories[reference]

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        self.told(reference)
        return await super().retrieve(reference)

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        self.told(reference)
        return await super().retrieve_range(reference, start, end)

    async def inspect(self, reference: str) -> Entry:
        self.told(reference)
        return await super().inspect(reference)


@pytest.mark.parametrize("kind", ["text/plain", "text/x-long; a=this-one-is-cut-within-its-mark", f"text/{'x' * 90}"])
async def test_only_its_own_scope_is_told_the_story_of_an_eviction(kind):
    inner = Evicting()
    ours, theirs = ScopedStorage(inner, "ours"), ScopedStorage(inner, "theirs")
    reference = await ours.store("secret/key", b"content", kind)
    await ours.clear()
    for ask in (ours.retrieve, lambda ref: ours.retrieve_range(ref, 0, 1), ours.inspect):
        with pytest.raises(EvictedError, match="the scope 'ours' was cleared") as caught:
            await ask(reference)
        story = caught.value
        assert (story.key, story.content_type, story.size, story.stored_at) == ("secret/key", kind, 7, 1.0)
        assert (story.evicted_at, story.because) == (2.0, "the scope 'ours' was cleared")
        assert "holdfast" not in str(story)
    for ask in (theirs.retrieve, lambda ref: theirs.retrieve_range(ref, 0, 1), theirs.inspect):
        with pytest.raises(NotFoundError, match="it was not stored in the scope 'theirs'") as caught:
            await ask(reference)
        assert not isinstance(caught.value, EvictedError)
        assert "secret/key" not in "".join(traceback.format_exception(caught.value))
    await theirs.delete(reference)
    await theirs.clear()


async def test_nested_scopes_tell_each_other_nothing():
    inner = Evicting()
    tenant = ScopedStorage(inner, "tenant")
    reference = await ScopedStorage(tenant, "session-1").store("key", b"content", "text/csv")
    await tenant.clear()
    with pytest.raises(EvictedError) as caught:
        await ScopedStorage(tenant, "session-1").retrieve(reference)
    assert caught.value.content_type == "text/csv"
    with pytest.raises(NotFoundError, match="it was not stored in the scope 'session-2'"):
        await ScopedStorage(tenant, "session-2").retrieve(reference)


class TestAScopeAsAContext:
    async def fail_in(self, scope: ScopedStorage) -> None:
        async with scope as session:
            await session.store("key", b"content")
            raise ZeroDivisionError

    async def test_it_is_cleared_at_the_end(self, inner):
        kept = await inner.store("key", b"kept")
        async with ScopedStorage(inner, "session-7") as session:
            reference = await session.store("key", b"content")
            assert await session.retrieve(reference) == (b"content", "text/plain")
        assert [entry.reference async for entry in inner.entries()] == [kept]

    async def test_it_is_cleared_after_an_exception_too(self, inner):
        with pytest.raises(ZeroDivisionError):
            await self.fail_in(ScopedStorage(inner, "session-7"))
        assert [entry async for entry in inner.entries()] == []

    async def test_a_clear_that_fails_hides_no_exception(self, tmp_path, caplog):
        inner = FlakyStorage(FileStorage(tmp_path), fail_on={2})
        with pytest.raises(ZeroDivisionError):
            await self.fail_in(ScopedStorage(inner, "session-7"))
        assert "cannot clear the scope 'session-7'" in caplog.text

    async def test_a_clear_that_fails_alone_is_an_error(self, tmp_path):
        inner = FlakyStorage(FileStorage(tmp_path), fail_on={2})
        with pytest.raises(StorageError, match="injected fault"):
            async with ScopedStorage(inner, "session-7") as session:
                await session.store("key", b"content")
