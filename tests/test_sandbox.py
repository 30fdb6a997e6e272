from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from own_contract import OwnStorageContract

from holdfast import FileStorage, NotFoundError, StorageError
from holdfast.errors import CorruptMetadataError, StorageAccessError
from holdfast.testing import FakeClock


class SmallSandbox:
    """The four operations that every sandbox has, over a dictionary."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    async def write_file(self, path: str, content: bytes) -> None:
        self.files[path] = content

    async def read_text(self, path: str) -> str:
        return (await self.read_file(path)).decode()

    async def write_text(self, path: str, content: str) -> None:
        await self.write_file(path, content.encode())


@dataclass
class FileInfo:
    name: str
    is_dir: bool | None = None
    size: int | None = None


class LargeSandbox(SmallSandbox):
    """One that can also remove and list files, as strands' can."""

    async def remove_file(self, path: str) -> None:
        if path not in self.files:
            raise FileNotFoundError(path)
        del self.files[path]

    async def list_files(self, path: str) -> list[FileInfo]:
        names = [name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")]
        if not names:
            raise FileNotFoundError(path)
        return [FileInfo(name) for name in names] + [FileInfo("1_1_folder.txt", is_dir=True)]


class TestContract(OwnStorageContract):
    @pytest.fixture
    def storage(self) -> FileStorage:
        return FileStorage("/workspace/artifacts", sandbox=LargeSandbox())


@pytest.fixture
def sandbox() -> SmallSandbox:
    return SmallSandbox()


async def test_everything_goes_through_the_sandbox(sandbox, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = FileStorage("./artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content", "application/json")
    assert sandbox.files[reference] == b"content"
    assert reference.startswith("./artifacts/")
    assert await storage.retrieve(reference) == (b"content", "application/json")
    assert list(tmp_path.iterdir()) == []


async def test_for_sandbox_binds_a_new_storage(sandbox):
    storage = FileStorage("artifacts")
    bound = storage.for_sandbox(sandbox)
    assert bound is not storage
    reference = await bound.store("key", b"content")
    assert list(sandbox.files) == [f"artifacts/.{reference.split('/')[-1]}.meta", reference]


async def test_a_storage_that_has_a_sandbox_keeps_it(sandbox):
    storage = FileStorage("artifacts", sandbox=sandbox)
    assert storage.for_sandbox(SmallSandbox()) is storage


async def test_names_and_stems_lead_there_too(sandbox):
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key.with.dots", b"content", "application/json")
    name = reference.rpartition("/")[2]
    for spelling in (name, name.removesuffix(".json"), f"./artifacts/{name}"):
        assert await storage.retrieve(spelling) == (b"content", "application/json")


async def test_a_write_that_broke_off_is_not_seen(sandbox):
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content")
    sandbox.files[reference] = b"cont"
    with pytest.raises(NotFoundError, match="not complete"):
        await storage.retrieve(reference)


async def test_another_storage_on_the_same_sandbox_reads_it(sandbox):
    reference = await FileStorage("artifacts", sandbox=sandbox).store("a/b", b"content", "text/x-odd")
    again = FileStorage("artifacts", sandbox=sandbox)
    assert await again.retrieve(reference) == (b"content", "text/x-odd")


async def test_a_record_of_an_older_tool_is_read(sandbox):
    sandbox.files["artifacts/1700000000000_1_call.md"] = b"old"
    sandbox.files["artifacts/.metadata.json"] = json.dumps({"1700000000000_1_call.md": "text/x-markdown"}).encode()
    storage = FileStorage("artifacts", sandbox=sandbox)
    assert await storage.retrieve("1700000000000_1_call.md") == (b"old", "text/x-markdown")


async def test_what_a_sandbox_wrote_the_host_reads_and_the_other_way_round(tmp_path):
    class HostSandbox(SmallSandbox):
        async def read_file(self, path: str) -> bytes:
            return await asyncio.to_thread(Path(path).read_bytes)

        async def write_file(self, path: str, content: bytes) -> None:
            await asyncio.to_thread(Path(path).write_bytes, content)

    host, sandboxed = FileStorage(tmp_path), FileStorage(tmp_path, sandbox=HostSandbox())
    for writer, reader in ((host, sandboxed), (sandboxed, host)):
        for kind in ("text/plain", "text/x-odd"):
            assert await reader.retrieve(await writer.store("a/b", b"content", kind)) == (b"content", kind)
    broken_off = await sandboxed.store("key", b"content")
    Path(broken_off).write_bytes(b"con")
    with pytest.raises(NotFoundError, match="not complete"):
        await host.retrieve(broken_off)
    assert broken_off not in [entry.reference async for entry in host.entries()]


async def test_what_a_small_sandbox_cannot_do_is_said(sandbox):
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content")
    with pytest.raises(StorageError, match="remove_file, which SmallSandbox lacks"):
        await storage.delete(reference)
    with pytest.raises(StorageError, match="list_files, which SmallSandbox lacks"):
        await storage.clear()


async def test_a_sandbox_that_fails_to_write_is_a_clear_error():
    class FullSandbox(SmallSandbox):
        async def write_file(self, path: str, content: bytes) -> None:
            if not path.endswith(".meta"):
                raise OSError("no room in the sandbox")
            await super().write_file(path, content)

    storage = FileStorage("artifacts", sandbox=FullSandbox())
    with pytest.raises(StorageAccessError, match="cannot store in artifacts of the sandbox: no room"):
        await storage.store("key", b"content")


async def test_a_failed_write_leaves_nothing_behind_where_files_can_be_removed():
    class FullSandbox(LargeSandbox):
        async def write_file(self, path: str, content: bytes) -> None:
            self.files[path] = content[:2]
            if not path.endswith(".meta"):
                raise OSError("no room in the sandbox")

    sandbox = FullSandbox()
    with pytest.raises(StorageAccessError):
        await FileStorage("artifacts", sandbox=sandbox).store("key", b"content")
    assert sandbox.files == {}


async def test_any_extension_is_found_by_its_stem_where_files_can_be_listed():
    storage = FileStorage("artifacts", sandbox=LargeSandbox())
    reference = await storage.store("key", b"content", "image/svg+xml")
    assert await storage.retrieve(reference.removesuffix(".svg_xml")) == (b"content", "image/svg+xml")


async def test_a_damaged_sidecar_is_a_clear_error_and_stays_listed():
    sandbox = LargeSandbox()
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content")
    sandbox.files[f"artifacts/.{reference.rpartition('/')[2]}.meta"] = b"\xff\xfe"
    with pytest.raises(CorruptMetadataError, match="is damaged"):
        await storage.retrieve(reference)
    assert [entry.reference async for entry in storage.entries()] == [reference]


async def test_a_touch_writes_the_type_through_the_sandbox_and_no_time(sandbox):
    clock = FakeClock(now=1_000.0)
    storage = FileStorage("artifacts", sandbox=sandbox, clock=clock)
    reference = await storage.store("a/b", b"content")
    await storage.touch(reference.removesuffix(".txt"), 2_000.0, "text/x-new")
    entry = await FileStorage("artifacts", sandbox=sandbox).inspect(reference)
    assert (entry.reference, entry.key, entry.content_type, entry.size) == (reference, "a/b", "text/x-new", 7)
    assert (entry.stored_at, entry.last_used) == (1_000.0, 1_000.0)
    assert len(sandbox.files) == 2


async def test_a_touch_that_changes_no_type_writes_nothing(sandbox):
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content", "text/x-odd")
    sandbox.write_text = None
    for content_type in (None, "text/x-odd"):
        await storage.touch(reference, 5_000_000_000.0, content_type)


async def test_a_content_deleted_in_the_middle_of_a_touch_takes_the_sidecar_with_it():
    class DeletingSandbox(LargeSandbox):
        async def write_text(self, path: str, content: str) -> None:
            self.files.pop(reference, None)
            await super().write_text(path, content)

    sandbox = DeletingSandbox()
    reference = ""
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content")
    await storage.touch(reference, 0.0, "text/x-new")
    assert sandbox.files == {}


async def test_a_write_that_broke_off_is_neither_inspected_nor_touched(sandbox):
    storage = FileStorage("artifacts", sandbox=sandbox)
    reference = await storage.store("key", b"content")
    sandbox.files[reference] = b"cont"
    before = dict(sandbox.files)
    with pytest.raises(NotFoundError, match="not complete"):
        await storage.inspect(reference)
    await storage.touch(reference, 0.0, "text/x-new")
    assert sandbox.files == before


def test_what_is_no_sandbox_is_refused():
    with pytest.raises(TypeError, match="needs async read_file, write_file, read_text and write_text"):
        FileStorage("artifacts", sandbox=object())


def test_a_sandbox_cannot_fsync(sandbox):
    with pytest.raises(ValueError, match="a sandbox offers no fsync"):
        FileStorage("artifacts", sandbox=sandbox, fsync=True)
