from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest
from own_contract import OwnStorageContract

from holdfast import FileStorage, NotFoundError
from holdfast.errors import CorruptMetadataError
from holdfast.testing import FakeClock, storage_machine


class TestContract(OwnStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> FileStorage:
        return FileStorage(tmp_path / "artifacts")


class TestContractWhenDurable(OwnStorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> FileStorage:
        return FileStorage(tmp_path / "artifacts", fsync=True)


class TestAgainstADictionary:
    def test_steps(self, tmp_path: Path):
        machine = storage_machine(lambda: FileStorage(tmp_path), survives_reopening=True)
        machine.TestCase().runTest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


class TestReferences:
    async def test_a_relative_directory_gives_relative_references(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        reference = await FileStorage("./artifacts").store("tooluse_1", b"content")
        assert re.fullmatch(r"\./artifacts/\d+_1_tooluse_1\.txt", reference)
        assert Path(reference).read_bytes() == b"content"

    async def test_an_absolute_directory_gives_absolute_references(self, folder):
        reference = await FileStorage(str(folder)).store("tooluse_1", b"content")
        assert Path(reference).parent == folder
        assert Path(reference).read_bytes() == b"content"

    async def test_a_trailing_slash_changes_nothing(self, folder):
        reference = await FileStorage(f"{folder}/").store("key", b"content")
        assert "//" not in reference
        assert await FileStorage(folder).retrieve(reference) == (b"content", "text/plain")

    @pytest.mark.parametrize(
        ("content_type", "extension"),
        [
            ("text/plain", "txt"),
            ("text/plain; charset=utf-8", "txt"),
            ("application/json", "json"),
            ("image/png", "png"),
            ("application/pdf", "pdf"),
            ("application/vnd.ms-excel", "vnd-ms-excel"),
        ],
    )
    async def test_the_extension_comes_from_the_content_type(self, folder, content_type, extension):
        reference = await FileStorage(folder).store("key", b"", content_type)
        assert reference.endswith(f"_key.{extension}")

    async def test_file_names_and_stems_lead_there_too(self, folder):
        storage = FileStorage(folder)
        path = Path(await storage.store("key.with.dots", b"content", "application/json"))
        for reference in (path.name, path.stem, str(folder / path.stem), f"{folder}/./{path.name}"):
            assert await storage.retrieve(reference) == (b"content", "application/json")

    async def test_only_a_whole_name_deletes(self, folder):
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        await storage.delete(reference.removesuffix(".txt"))
        assert await storage.retrieve(reference) == (b"content", "text/plain")

    async def test_a_stem_of_two_files_is_not_guessed(self, folder):
        storage = FileStorage(folder)
        path = Path(await storage.store("key", b"one"))
        path.with_suffix(".json").write_bytes(b"two")
        with pytest.raises(NotFoundError, match="2 files are named so; add the extension"):
            await storage.retrieve(path.stem)

    async def test_another_spelling_of_the_directory_is_understood(self, folder, tmp_path):
        folder.mkdir()
        link = tmp_path / "link"
        link.symlink_to(folder)
        reference = await FileStorage(folder).store("key", b"content")
        through_link = FileStorage(link)
        assert await through_link.retrieve(reference) == (b"content", "text/plain")
        assert await FileStorage(folder).retrieve(Path(reference).name) == (b"content", "text/plain")

    async def test_a_process_that_moves_keeps_its_directory(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        storage = FileStorage("artifacts")
        before = await storage.store("key", b"before")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        after = await storage.store("key", b"after")
        assert await storage.retrieve(before) == (b"before", "text/plain")
        assert await storage.retrieve(after) == (b"after", "text/plain")
        assert not (tmp_path / "elsewhere" / "artifacts").exists()

    @pytest.mark.parametrize("artifact_dir", [None, 7, b"artifacts"])
    def test_a_directory_is_a_path(self, artifact_dir):
        with pytest.raises(TypeError, match="artifact_dir must be a path"):
            FileStorage(artifact_dir)

    @pytest.mark.parametrize("artifact_dir", ["", "a\0b"])
    def test_a_directory_needs_a_name(self, artifact_dir):
        with pytest.raises(ValueError, match="artifact_dir must be a path"):
            FileStorage(artifact_dir)


class TestStayingInside:
    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        path = tmp_path / "1_1_secret.txt"
        path.write_text("secret")
        return path

    async def test_no_spelling_leads_outside(self, folder, secret):
        storage = FileStorage(folder)
        await storage.store("key", b"content")
        for reference in (
            str(secret),
            f"../{secret.name}",
            f"{folder}/../{secret.name}",
            f"{folder}/sub/../../{secret.name}",
            f"./{secret.name}",
            f"{folder}/./../{secret.name}",
            f"{folder}\\..\\{secret.name}",
            f"file://{secret}",
        ):
            with pytest.raises(NotFoundError):
                await storage.retrieve(reference)
            await storage.delete(reference)
        assert secret.read_text() == "secret"

    async def test_symbolic_links_are_not_followed(self, folder, secret):
        storage = FileStorage(folder)
        await storage.store("key", b"content")
        (folder / "1_1_link.txt").symlink_to(secret)
        with pytest.raises(NotFoundError, match="symbolic link"):
            await storage.retrieve("1_1_link.txt")
        assert len([entry async for entry in storage.entries()]) == 1
        await storage.clear()
        assert secret.read_text() == "secret"

    async def test_a_link_in_place_of_a_sidecar_is_not_followed(self, folder, tmp_path):
        storage = FileStorage(folder)
        name = Path(await storage.store("key", b"content")).name
        forged = tmp_path / "forged"
        forged.write_text(json.dumps({"key": "forged", "content_type": "text/forged", "size": 7}))
        (folder / f".{name}.meta").symlink_to(forged)
        assert await storage.retrieve(name) == (b"content", "text/plain")

    async def test_a_named_pipe_is_no_trap(self, folder):
        storage = FileStorage(folder)
        await storage.store("key", b"content")
        os.mkfifo(folder / "1_1_pipe.txt")
        with pytest.raises(NotFoundError, match="not a regular file"):
            await asyncio.wait_for(storage.retrieve("1_1_pipe.txt"), timeout=5)

    async def test_files_of_others_are_neither_read_nor_listed_nor_cleared(self, folder):
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
        (folder / ".env").write_text("TOKEN=1")
        storage = FileStorage(folder)
        await storage.store("key", b"content")
        for reference in ("notes.txt", "notes", ".env", str(folder / ".env")):
            with pytest.raises(NotFoundError):
                await storage.retrieve(reference)
        assert len([entry async for entry in storage.entries()]) == 1
        await storage.clear()
        assert {path.name for path in folder.iterdir()} == {"notes.txt", ".env"}

    async def test_directories_and_files_are_private(self, tmp_path):
        folder = tmp_path / "new" / "deeper" / "artifacts"
        reference = await FileStorage(folder).store("odd/key", b"content", "text/x-odd")
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent, folder.parent.parent)}
        assert set(modes.values()) == {0o700}
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        assert Path(reference).parent == folder


class TestMetadata:
    async def test_it_survives_a_restart(self, folder):
        odd = await FileStorage(folder).store("a/b", b"1", "text/x-odd; charset=utf-8")
        plain = await FileStorage(folder).store("plain", b"2", "application/json")
        again = FileStorage(folder)
        assert await again.retrieve(odd) == (b"1", "text/x-odd; charset=utf-8")
        assert await again.retrieve(plain) == (b"2", "application/json")
        assert {entry.key async for entry in again.entries()} == {"a/b", "plain"}

    async def test_no_file_is_written_twice_as_entries_grow(self, folder):
        storage = FileStorage(folder)
        for number in range(20):
            await storage.store(f"odd/{number}", b"content", "text/x-odd")
        before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
        for number in range(20):
            await storage.store(f"odd/{number}", b"content", "text/x-odd")
        assert {path: path.stat().st_mtime_ns for path in before} == before

    async def test_a_name_that_says_it_all_needs_no_second_file(self, folder):
        storage = FileStorage(folder)
        await storage.store("tooluse_1_0", b"content", "application/json")
        assert len(list(folder.iterdir())) == 1

    async def test_deleting_leaves_nothing_behind(self, folder):
        storage = FileStorage(folder)
        await storage.delete(await storage.store("odd/key", b"content", "text/x-odd"))
        assert list(folder.iterdir()) == []

    async def test_times_come_from_the_clock_and_survive_a_restart(self, folder):
        clock = FakeClock(now=5_000.0)
        storage = FileStorage(folder, clock=clock)
        reference = await storage.store("key", b"content")
        clock.advance(60)
        await storage.retrieve(reference)
        (entry,) = [entry async for entry in FileStorage(folder).entries()]
        assert (entry.stored_at, entry.last_used) == (5_000.0, 5_060.0)

    async def test_a_damaged_sidecar_is_a_clear_error_and_harms_no_other_entry(self, folder):
        storage = FileStorage(folder)
        damaged = await storage.store("odd/key", b"content", "text/x-odd")
        whole = await storage.store("key", b"content")
        sidecar = folder / f".{Path(damaged).name}.meta"
        for nonsense in (b"", b"{", b"[]", b"\xff\xfe", b'{"key": 1}', b"[" * 100_000):
            sidecar.write_bytes(nonsense)
            with pytest.raises(CorruptMetadataError, match="remove it to have types taken from file extensions"):
                await storage.retrieve(damaged)
            assert await storage.retrieve(whole) == (b"content", "text/plain")
            listed = {entry.reference: entry.content_type async for entry in storage.entries()}
            assert listed == {damaged: "application/octet-stream", whole: "text/plain"}
        sidecar.unlink()
        assert await storage.retrieve(damaged) == (b"content", "application/octet-stream")


class TestDirectoriesOfOlderTools:
    """As strands-agents writes them: plain files, and one .metadata.json for all."""

    @pytest.fixture
    def written(self, folder: Path) -> Path:
        folder.mkdir()
        for name in ("1700000000000_1_call.txt", "1700000000000_2_call.vnd.ms-excel"):
            (folder / name).write_bytes(b"old")
        types = {
            "1700000000000_1_call.txt": "text/x-log",
            "1700000000000_2_call.vnd.ms-excel": "application/vnd.ms-excel",
        }
        (folder / ".metadata.json").write_text(json.dumps(types))
        return folder

    async def test_its_content_types_are_read(self, written):
        storage = FileStorage(written)
        assert await storage.retrieve("1700000000000_1_call.txt") == (b"old", "text/x-log")
        assert await storage.retrieve("1700000000000_2_call.vnd.ms-excel") == (
            b"old",
            "application/vnd.ms-excel",
        )

    async def test_it_is_never_written(self, written):
        before = (written / ".metadata.json").read_bytes()
        storage = FileStorage(written)
        new = await storage.store("new/key", b"new", "text/x-odd")
        assert await storage.retrieve(new) == (b"new", "text/x-odd")
        await storage.clear()
        assert (written / ".metadata.json").read_bytes() == before

    async def test_what_is_added_to_it_later_is_seen(self, written):
        storage = FileStorage(written)
        await storage.retrieve("1700000000000_1_call.txt")
        (written / "1700000000000_3_call.bin").write_bytes(b"later")
        types = json.loads((written / ".metadata.json").read_text()) | {"1700000000000_3_call.bin": "text/x-later"}
        (written / ".metadata.json").write_text(json.dumps(types))
        assert await storage.retrieve("1700000000000_3_call.bin") == (b"later", "text/x-later")

    async def test_when_truncated_only_what_it_alone_knew_is_an_error(self, written, caplog):
        record = written / ".metadata.json"
        record.write_bytes(record.read_bytes()[:-20])
        storage = FileStorage(written)
        with pytest.raises(CorruptMetadataError, match=r"\.metadata\.json is damaged .*restore .*or remove it"):
            await storage.retrieve("1700000000000_2_call.vnd.ms-excel")
        assert await storage.retrieve("1700000000000_1_call.txt") == (b"old", "text/plain")
        assert await storage.retrieve(await storage.store("odd/key", b"new", "text/x-odd")) == (
            b"new",
            "text/x-odd",
        )
        assert caplog.text.count("is damaged") == 1

    async def test_when_empty_it_is_damaged_too(self, written):
        (written / ".metadata.json").write_bytes(b"")
        with pytest.raises(CorruptMetadataError):
            await FileStorage(written).retrieve("1700000000000_2_call.vnd.ms-excel")

    async def test_when_damaged_its_entries_are_still_listed(self, written):
        (written / ".metadata.json").write_bytes(b"{")
        assert len([entry async for entry in FileStorage(written).entries()]) == 2

    async def test_names_as_long_as_a_file_system_allows_are_read(self, written):
        name = f"1700000000000_3_{'x' * 235}.txt"
        assert len(name) == 255
        (written / name).write_bytes(b"long")
        storage = FileStorage(written)
        assert await storage.retrieve(name) == (b"long", "text/plain")
        assert name in [Path(entry.reference).name async for entry in storage.entries()]

    async def test_types_in_it_that_are_no_types_do_no_harm(self, written):
        (written / ".metadata.json").write_text(json.dumps({"1700000000000_1_call.txt": {"not": "a type"}}))
        assert await FileStorage(written).retrieve("1700000000000_1_call.txt") == (
            b"old",
            "application/octet-stream",
        )


class TestLeftovers:
    """What a crashed writer leaves behind."""

    async def leave(self, folder: Path) -> None:
        await FileStorage(folder).store("key", b"content")
        (folder / ".1700000000000_1_dead.txt.part").write_bytes(b"hal")
        (folder / ".1700000000000_1_dead.txt.meta").write_bytes(b"{")
        os.utime(folder / ".1700000000000_1_dead.txt.meta", (0, 0))

    async def test_they_are_invisible(self, folder):
        await self.leave(folder)
        storage = FileStorage(folder)
        assert len([entry async for entry in storage.entries()]) == 1
        for reference in (
            "1700000000000_1_dead.txt",
            "1700000000000_1_dead",
            ".1700000000000_1_dead.txt.part",
            "1700000000000_1_dead.txt.part",
        ):
            with pytest.raises(NotFoundError):
                await storage.retrieve(reference)

    async def test_they_are_removed_when_someone_writes_next(self, folder):
        await self.leave(folder)
        await FileStorage(folder).store("key", b"content")
        assert len(list(folder.iterdir())) == 2

    async def test_the_part_of_a_published_name_takes_nothing_with_it(self, folder):
        """Left by a second writer, who wanted the same name and died before it saw that the name was taken."""
        reference = await FileStorage(folder).store("odd/key", b"content", "text/x-odd")
        (folder / f".{Path(reference).name}.part").write_bytes(b"")
        again = FileStorage(folder)
        await again.store("key", b"sweeps")
        assert await again.retrieve(reference) == (b"content", "text/x-odd")
        assert not (folder / f".{Path(reference).name}.part").exists()

    async def test_what_resists_is_logged_and_stops_nobody(self, folder, caplog):
        (folder / ".1700000000000_1_odd.txt.part").mkdir(parents=True)
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        assert "cannot clean up what a crash left of 1700000000000_1_odd.txt" in caplog.text
        assert await storage.retrieve(reference) == (b"content", "text/plain")

    async def test_names_that_are_no_text_stop_nobody(self, folder):
        storage = FileStorage(folder)
        await storage.store("key", b"content")
        (folder / os.fsdecode(b"1700000000000_1_\xff.txt")).write_bytes(b"odd")
        assert len([entry async for entry in storage.entries()]) == 1

    async def test_clear_removes_them(self, folder):
        await self.leave(folder)
        await FileStorage(folder).clear()
        assert list(folder.iterdir()) == []

    async def test_what_a_living_writer_works_on_stays(self, folder, monkeypatch):
        begun, go_on = threading.Event(), threading.Event()
        write = os.write

        def slow_write(descriptor, content):
            if bytes(content) == b"slow":
                begun.set()
                assert go_on.wait(10)
            return write(descriptor, content)

        monkeypatch.setattr(os, "write", slow_write)
        slow = asyncio.create_task(FileStorage(folder).store("odd/key", b"slow", "text/x-odd"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        await FileStorage(folder).store("key", b"other")
        go_on.set()
        reference = await slow
        assert await FileStorage(folder).retrieve(reference) == (b"slow", "text/x-odd")

    async def test_a_directory_removed_meanwhile_is_made_again(self, folder):
        storage = FileStorage(folder)
        first = Path(await storage.store("key", b"content"))
        first.unlink()
        folder.rmdir()
        assert await storage.retrieve(await storage.store("key", b"again")) == (b"again", "text/plain")


class TestDurability:
    async def test_the_order_is_write_fsync_rename_fsync_directory(self, folder, monkeypatch):
        folder.mkdir()
        calls = []
        for name in ("write", "fsync", "rename"):
            monkeypatch.setattr(os, name, recorder(name, getattr(os, name), calls))
        await FileStorage(folder, fsync=True).store("key", b"content")
        assert calls == ["write file", "fsync file", "rename", "fsync directory"]

    async def test_a_sidecar_is_on_the_disk_before_its_content_appears(self, folder, monkeypatch):
        folder.mkdir()
        calls = []
        for name in ("write", "fsync", "rename"):
            monkeypatch.setattr(os, name, recorder(name, getattr(os, name), calls))
        await FileStorage(folder, fsync=True).store("odd/key", b"content", "text/x-odd")
        assert calls == ["write file", "fsync file", "write file", "fsync file", "rename", "fsync directory"]

    async def test_without_it_nothing_is_synced(self, folder, monkeypatch):
        calls = []
        monkeypatch.setattr(os, "fsync", recorder("fsync", os.fsync, calls))
        await FileStorage(folder).store("key", b"content")
        assert calls == []


def recorder(name, function, calls):
    def record(*args):
        kind = "" if name == "rename" else " directory" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else " file"
        # The event loop wakes itself up by writing to a pipe or socket, which is none of ours.
        if name == "rename" or not stat.S_ISSOCK(os.fstat(args[0]).st_mode):
            calls.append(name + kind)
        return function(*args)

    return record


async def test_two_storages_never_take_the_same_name(folder):
    clock = FakeClock()
    storages = [FileStorage(folder, clock=clock) for _ in range(4)]
    contents = [f"{number}-{which}".encode() for number in range(25) for which in range(4)]
    references = await asyncio.gather(*(storages[i % 4].store("key", content) for i, content in enumerate(contents)))
    assert len(set(references)) == 100
    assert [(await storages[0].retrieve(reference))[0] for reference in references] == contents


async def test_a_large_store_does_not_delay_a_reader_of_another_entry(folder):
    storage = FileStorage(folder)
    reference = await storage.store("small", b"content")
    large = asyncio.create_task(storage.store("large", bytes(400_000_000)))
    assert await storage.retrieve(reference) == (b"content", "text/plain")
    assert not large.done()
    await large
