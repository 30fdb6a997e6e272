"""The contract of a storage, as tests. A backend's own test file is a fixture and its quirks:

    class TestMyStorage(StorageContract):
        @pytest.fixture
        def storage(self, tmp_path):
            return MyStorage(tmp_path)

What a backend does not offer (delete, entries, ranges, inspect, touch, clear) is skipped. A wrapper that has a verb in
its class, but not for every storage that it wraps, names the verb in `lacks`:

    class TestMyWrapper(StorageContract):
        lacks = (SupportsTouch,)
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.storage import (
    Entry,
    Storage,
    SupportsClear,
    SupportsDelete,
    SupportsEntries,
    SupportsInspect,
    SupportsRange,
    SupportsTouch,
)

__all__ = ["StorageContract"]

CONTENTS = {
    "empty": b"",
    "one byte": b"\0",
    "text": "grüße, 世界 🌍\r\n".encode(),
    "every byte": bytes(range(256)) * 5,
    "a megabyte": b"0123456789abcdef" * 65_536,
}

CONTENT_TYPES = (
    "text/plain",
    "text/html",
    "application/json",
    "image/png",
    "application/octet-stream",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "image/svg+xml",
    "text/plain; charset=utf-8",
    'text/plain; title="a; b"',
)

KEYS = {
    "plain": "tooluse_1_0",
    "dots": "..",
    "climbing": "../../../etc/passwd",
    "absolute": "/etc/passwd",
    "backslashes": "..\\..\\windows",
    "NUL": "a\0b",
    "newline": "a\nb\r\n",
    "blank": " ",
    "reserved on Windows": "CON",
    "trailing dot": "name.",
    "hidden": ".metadata.json",
    "scheme": "s3://bucket/key",
    "percent": "%2e%2e%2f",
    "other scripts": "ключ-键-🔑",
    "half a surrogate pair": "\ud83d",
    "long": "x" * 10_000,
    "long in bytes": "界" * 300,
}

STRAY_REFERENCES = {
    "empty": "",
    "plain": "nothing-here",
    "dot": ".",
    "dots": "..",
    "climbing": "../../../etc/passwd",
    "absolute": "/etc/passwd",
    "file URL": "file:///etc/passwd",
    "encoded": "%2e%2e/%2e%2e/etc/passwd",
    "NUL": "a\0b",
    "newline": "1_1_a\nb.txt",
    "half a surrogate pair": "1_1_\ud83d.txt",
    "memory": "mem_0_x",
    "file name": "1_1_x.txt",
    "stem": "1_1_x",
    "other bucket": "s3://elsewhere/1_1_x",
    "huge": "x" * 1_000_000,
}

BAD_CONTENT_TYPES = {
    "empty": "",
    "no slash": "text",
    "no subtype": "text/",
    "no type": "/plain",
    "a blank": "text plain",
    "header injection": "text/plain\r\nx-evil: 1",
    "not ASCII": "téxt/plain",
    "long": "text/" + "x" * 5_000,
}


def by_name(table: dict[str, Any]) -> dict[str, Any]:
    """Parametrise over a table's values, with its keys as test ids."""
    return {"argvalues": list(table.values()), "ids": list(table)}


@pytest.mark.asyncio
class StorageContract:
    """What every storage promises. Subclass it and override the fixture `storage`."""

    lacks: tuple[type, ...] = ()

    @pytest.fixture
    def storage(self) -> Storage:
        """An empty storage."""
        raise NotImplementedError("override the fixture `storage`")

    async def test_is_a_storage(self, storage: Storage) -> None:
        assert isinstance(storage, Storage)

    @pytest.mark.parametrize("content", **by_name(CONTENTS))
    async def test_content_comes_back_unchanged(self, storage: Storage, content: bytes) -> None:
        reference = await storage.store("key", content)
        for _ in range(2):
            found = await storage.retrieve(reference)
            assert found == (content, "text/plain")
            assert [type(part) for part in found] == [bytes, str]

    @pytest.mark.parametrize("content_type", CONTENT_TYPES)
    async def test_content_type_comes_back_unchanged(self, storage: Storage, content_type: str) -> None:
        reference = await storage.store("key", b"content", content_type)
        assert await storage.retrieve(reference) == (b"content", content_type)

    @pytest.mark.parametrize("key", **by_name(KEYS))
    async def test_any_key_can_be_stored(self, storage: Storage, key: str) -> None:
        reference = await storage.store(key, b"content")
        assert await storage.retrieve(reference) == (b"content", "text/plain")
        assert reference.isprintable()

    async def test_a_reference_is_a_string_that_is_not_the_content(self, storage: Storage) -> None:
        reference = await storage.store("key", b"x" * 100_000)
        assert isinstance(reference, str)
        assert 0 < len(reference) < 1_000

    async def test_a_key_used_again_gets_a_reference_of_its_own(self, storage: Storage) -> None:
        first, second = await storage.store("key", b"first"), await storage.store("key", b"second")
        assert first != second
        assert await storage.retrieve(first) == (b"first", "text/plain")
        assert await storage.retrieve(second) == (b"second", "text/plain")

    async def test_many_stores_at_once_stay_apart(self, storage: Storage) -> None:
        contents = [str(number).encode() for number in range(50)]
        references = await asyncio.gather(*(storage.store("key", content) for content in contents))
        assert len(set(references)) == len(contents)
        found = await asyncio.gather(*map(storage.retrieve, references))
        assert [content for content, _ in found] == contents
        if isinstance(storage, SupportsEntries):
            assert {entry.reference async for entry in storage.entries()} == set(references)

    @pytest.mark.parametrize("reference", **by_name(STRAY_REFERENCES))
    async def test_a_stray_reference_is_not_found(self, storage: Storage, reference: str) -> None:
        await storage.store("key", b"content")
        with pytest.raises(KeyError):
            await storage.retrieve(reference)

    @pytest.mark.parametrize("reference", [None, 7, b"key"])
    async def test_a_reference_that_is_no_string_is_refused(self, storage: Storage, reference: Any) -> None:
        with pytest.raises((KeyError, TypeError)):
            await storage.retrieve(reference)

    @pytest.mark.parametrize("content", ["text", None, 7, {"json": 1}, bytearray(b"x"), memoryview(b"x")])
    async def test_content_that_is_not_bytes_is_refused(self, storage: Storage, content: Any) -> None:
        with pytest.raises(TypeError):
            await storage.store("key", content)
        await self.assert_empty(storage)

    async def test_an_empty_key_is_refused(self, storage: Storage) -> None:
        with pytest.raises(ValueError):
            await storage.store("", b"content")
        await self.assert_empty(storage)

    @pytest.mark.parametrize("content_type", **by_name(BAD_CONTENT_TYPES))
    async def test_what_is_no_mime_type_is_refused(self, storage: Storage, content_type: str) -> None:
        with pytest.raises(ValueError):
            await storage.store("key", b"content", content_type)
        await self.assert_empty(storage)

    async def test_deleted_content_is_gone(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsDelete):
            pytest.skip("this storage cannot delete")
        gone, kept = await storage.store("key", b"gone"), await storage.store("key", b"kept")
        await storage.delete(gone)
        with pytest.raises(KeyError):
            await storage.retrieve(gone)
        if isinstance(storage, SupportsRange):
            with pytest.raises(KeyError):
                await storage.retrieve_range(gone, 0, 1)
        assert await storage.retrieve(kept) == (b"kept", "text/plain")

    async def test_deleting_again_is_quiet(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsDelete):
            pytest.skip("this storage cannot delete")
        reference = await storage.store("key", b"content")
        await storage.delete(reference)
        await storage.delete(reference)
        await self.assert_empty(storage)

    @pytest.mark.parametrize("reference", **by_name(STRAY_REFERENCES))
    async def test_deleting_a_stray_reference_harms_nothing(self, storage: Storage, reference: str) -> None:
        if not isinstance(storage, SupportsDelete):
            pytest.skip("this storage cannot delete")
        kept = await storage.store("key", b"content")
        await storage.delete(reference)
        assert await storage.retrieve(kept) == (b"content", "text/plain")

    async def test_entries_tell_what_is_held(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsEntries):
            pytest.skip("this storage cannot list")
        stored = {
            await storage.store(key, b"x" * size, content_type): (key, content_type, size)
            for size, (key, content_type) in enumerate(
                [("a", "text/plain"), ("b/ü", "text/x-odd; a=b"), ("c", "image/png")]
            )
        }
        entries = [entry async for entry in storage.entries()]
        assert {e.reference: (e.key, e.content_type, e.size) for e in entries} == stored
        assert all(entry.stored_at <= entry.last_used for entry in entries)

    @pytest.mark.parametrize("key", **by_name({name: key for name, key in KEYS.items() if len(key) < 100}))
    async def test_entries_give_back_the_very_key(self, storage: Storage, key: str) -> None:
        if not isinstance(storage, SupportsEntries):
            pytest.skip("this storage cannot list")
        await storage.store(key, b"content")
        assert [entry.key async for entry in storage.entries()] == [key]

    async def test_retrieving_counts_as_use(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsEntries):
            pytest.skip("this storage cannot list")
        reference = await storage.store("key", b"content")
        before = await only_entry(storage)
        await storage.retrieve(reference)
        after = await only_entry(storage)
        assert after.last_used >= before.last_used
        assert after.stored_at == before.stored_at

    async def test_inspecting_tells_what_entries_tell(self, storage: Storage) -> None:
        inspecting = self.inspecting(storage)
        references = [
            await storage.store(key, b"content", content_type)
            for key, content_type in (("a", "text/plain"), ("b/ü", "text/x-odd; a=b"))
        ]
        inspected = [await inspecting.inspect(reference) for reference in references]
        assert [(e.reference, e.key, e.content_type, e.size) for e in inspected] == [
            (references[0], "a", "text/plain", 7),
            (references[1], "b/ü", "text/x-odd; a=b", 7),
        ]
        if isinstance(storage, SupportsEntries):
            listed = {entry.reference: entry async for entry in storage.entries()}
            assert listed == {entry.reference: entry for entry in inspected}

    async def test_inspecting_is_no_use(self, storage: Storage) -> None:
        inspecting = self.inspecting(storage)
        reference = await storage.store("key", b"content")
        await storage.retrieve(reference)
        before = await inspecting.inspect(reference)
        assert await inspecting.inspect(reference) == before
        if isinstance(storage, SupportsEntries):
            assert await only_entry(storage) == before

    @pytest.mark.parametrize("reference", **by_name(STRAY_REFERENCES))
    async def test_inspecting_a_stray_reference_finds_nothing(self, storage: Storage, reference: str) -> None:
        inspecting = self.inspecting(storage)
        await storage.store("key", b"content")
        with pytest.raises(KeyError):
            await inspecting.inspect(reference)

    async def test_what_was_deleted_can_be_inspected_no_more(self, storage: Storage) -> None:
        inspecting = self.inspecting(storage)
        if not isinstance(storage, SupportsDelete):
            pytest.skip("this storage cannot delete")
        reference = await storage.store("key", b"content")
        await storage.delete(reference)
        with pytest.raises(KeyError):
            await inspecting.inspect(reference)

    @pytest.mark.parametrize("content_type", CONTENT_TYPES)
    async def test_a_touch_changes_the_content_type_and_nothing_else(self, storage: Storage, content_type: str) -> None:
        touching = self.touching(storage)
        for key, given in (("key", "text/plain"), ("odd/key", "text/x-odd")):
            reference = await storage.store(key, b"content", given)
            await touching.touch(reference, 0.0, content_type)
            assert await storage.retrieve(reference) == (b"content", content_type)
            if isinstance(storage, SupportsEntries):
                (entry,) = [entry async for entry in storage.entries() if entry.reference == reference]
                assert (entry.key, entry.content_type, entry.size) == (key, content_type, 7)

    async def test_a_touch_without_a_content_type_leaves_it(self, storage: Storage) -> None:
        touching = self.touching(storage)
        reference = await storage.store("odd/key", b"content", "text/x-odd; a=b")
        await touching.touch(reference, 5_000_000_000.0)
        assert await storage.retrieve(reference) == (b"content", "text/x-odd; a=b")

    async def test_a_touch_moves_the_last_use_forward_never_back(self, storage: Storage) -> None:
        """A storage may have no place for it; then the last use stays what it was."""
        touching, inspecting = self.touching(storage), self.inspecting(storage)
        reference = await storage.store("key", b"content")
        stored = await inspecting.inspect(reference)
        await touching.touch(reference, 0.0)
        assert await inspecting.inspect(reference) == stored
        await touching.touch(reference, stored.stored_at + 1_000)
        touched = await inspecting.inspect(reference)
        assert touched.stored_at == stored.stored_at
        assert touched.last_used in (pytest.approx(stored.stored_at + 1_000, abs=0.001), stored.last_used)
        await touching.touch(reference, stored.stored_at + 500, "text/x-odd")
        assert (await inspecting.inspect(reference)).last_used == touched.last_used

    @pytest.mark.parametrize("reference", **by_name(STRAY_REFERENCES))
    async def test_touching_a_stray_reference_is_quiet(self, storage: Storage, reference: str) -> None:
        touching = self.touching(storage)
        kept = await storage.store("key", b"content")
        await touching.touch(reference, 5_000_000_000.0, "text/x-odd")
        assert await storage.retrieve(kept) == (b"content", "text/plain")
        if isinstance(storage, SupportsEntries):
            assert (await only_entry(storage)).reference == kept

    async def test_touching_what_was_deleted_brings_nothing_back(self, storage: Storage) -> None:
        touching = self.touching(storage)
        if not isinstance(storage, SupportsDelete):
            pytest.skip("this storage cannot delete")
        reference = await storage.store("key", b"content")
        await storage.delete(reference)
        await touching.touch(reference, 5_000_000_000.0, "text/x-odd")
        with pytest.raises(KeyError):
            await storage.retrieve(reference)
        await self.assert_empty(storage)

    async def test_touches_and_reads_at_once_do_not_disturb_each_other(self, storage: Storage) -> None:
        touching = self.touching(storage)
        reference = await storage.store("key", b"content")
        kinds = [f"text/x-{number}" for number in range(10)]
        found, _ = await asyncio.gather(
            asyncio.gather(*(storage.retrieve(reference) for _ in kinds)),
            asyncio.gather(*(touching.touch(reference, 0.0, kind) for kind in kinds)),
        )
        assert all(content == b"content" and kind in {"text/plain", *kinds} for content, kind in found)
        assert (await storage.retrieve(reference))[1] in kinds

    @pytest.mark.parametrize("used_at", [-1.0, float("nan"), float("inf"), 1e300])
    async def test_what_is_no_time_is_refused(self, storage: Storage, used_at: float) -> None:
        touching = self.touching(storage)
        reference = await storage.store("key", b"content")
        with pytest.raises(ValueError):
            await touching.touch(reference, used_at)

    @pytest.mark.parametrize("content_type", **by_name(BAD_CONTENT_TYPES))
    async def test_a_touch_with_what_is_no_mime_type_is_refused(self, storage: Storage, content_type: str) -> None:
        touching = self.touching(storage)
        reference = await storage.store("key", b"content")
        with pytest.raises(ValueError):
            await touching.touch(reference, 0.0, content_type)
        assert await storage.retrieve(reference) == (b"content", "text/plain")

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            (0, 0),
            (0, 1),
            (0, 10),
            (3, 7),
            (9, 10),
            (10, 10),
            (0, 99),
            (9, 99),
            (10, 99),
            (50, 99),
            (3, 2**70),
            (2**70, 2**70 + 1),
        ],
    )
    async def test_a_range_is_a_slice(self, storage: Storage, start: int, end: int) -> None:
        if not isinstance(storage, SupportsRange):
            pytest.skip("this storage cannot read ranges")
        reference = await storage.store("key", b"0123456789", "application/json")
        part = await storage.retrieve_range(reference, start, end)
        assert part.content == b"0123456789"[start:end]
        assert (part.content_type, part.start, part.total_size) == ("application/json", start, 10)
        assert part.end == start + len(part.content)

    async def test_a_range_of_nothing_is_nothing(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsRange):
            pytest.skip("this storage cannot read ranges")
        part = await storage.retrieve_range(await storage.store("key", b""), 0, 10)
        assert (part.content, part.total_size) == (b"", 0)

    @pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 4), (0, -1)])
    async def test_an_impossible_range_is_refused(self, storage: Storage, start: int, end: int) -> None:
        if not isinstance(storage, SupportsRange):
            pytest.skip("this storage cannot read ranges")
        reference = await storage.store("key", b"0123456789")
        with pytest.raises(ValueError):
            await storage.retrieve_range(reference, start, end)

    async def test_a_range_of_a_stray_reference_is_not_found(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsRange):
            pytest.skip("this storage cannot read ranges")
        with pytest.raises(KeyError):
            await storage.retrieve_range("1_1_x.txt", 0, 1)

    async def test_clear_forgets_everything(self, storage: Storage) -> None:
        if not isinstance(storage, SupportsClear):
            pytest.skip("this storage cannot clear")
        references = [await storage.store("key", b"content", kind) for kind in ("text/plain", "text/x-odd")]
        await storage.clear()
        await storage.clear()
        for reference in references:
            with pytest.raises(KeyError):
                await storage.retrieve(reference)
        await self.assert_empty(storage)
        again = await storage.store("key", b"after")
        assert await storage.retrieve(again) == (b"after", "text/plain")

    def inspecting(self, storage: Storage) -> SupportsInspect:
        """Return the storage if it can inspect; else skip the test."""
        if SupportsInspect in self.lacks or not isinstance(storage, SupportsInspect):
            pytest.skip("this storage cannot inspect")
        return storage

    def touching(self, storage: Storage) -> SupportsTouch:
        """Return the storage if it can touch; else skip the test."""
        if SupportsTouch in self.lacks or not isinstance(storage, SupportsTouch):
            pytest.skip("this storage cannot touch")
        return storage

    async def assert_empty(self, storage: Storage) -> None:
        """Check that nothing is held, as far as the storage can tell."""
        if isinstance(storage, SupportsEntries):
            assert [entry async for entry in storage.entries()] == []


async def only_entry(storage: SupportsEntries) -> Entry:
    """Return the one entry that a storage holds."""
    (entry,) = [entry async for entry in storage.entries()]
    return entry
