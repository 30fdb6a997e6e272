"""Looking at files without using them, and writing down uses and content types."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from holdfast import FileStorage, NotFoundError
from holdfast.errors import CorruptMetadataError, StorageAccessError, StorageFullError
from holdfast.testing import FakeClock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class TestInspecting:
    async def test_any_spelling_leads_to_the_reference_that_store_gave(self, folder, tmp_path):
        storage = FileStorage(folder)
        path = Path(reference := await storage.store("key.with.dots", b"content", "application/json"))
        link = tmp_path / "link"
        link.symlink_to(folder)
        for spelling in (reference, path.name, path.stem, str(folder / path.stem), f"{folder}/./{path.name}"):
            assert (await storage.inspect(spelling)).reference == reference
        assert (await FileStorage(link).inspect(reference)).reference == str(link / path.name)

    async def test_it_finds_nothing_for_the_same_reasons_as_retrieve(self, folder, tmp_path):
        storage = FileStorage(folder)
        path = Path(await storage.store("key", b"one"))
        path.with_suffix(".json").write_bytes(b"two")
        broken_off = Path(await storage.store("odd/key", b"content"))
        broken_off.write_bytes(b"con")
        (folder / "1_1_link.txt").symlink_to(path)
        os.mkfifo(folder / "1_1_pipe.txt")
        (folder / "1_1_folder.txt").mkdir()
        for reference in (
            path.stem,
            str(broken_off),
            "1_1_link.txt",
            "1_1_pipe.txt",
            "1_1_folder.txt",
            "1_1_nothing.txt",
            "../1_1_x.txt",
            "notes.txt",
            "",
        ):
            reasons = set()
            for ask in (storage.retrieve, storage.inspect):
                with pytest.raises(NotFoundError) as caught:
                    await ask(reference)
                reasons.add(str(caught.value))
            assert len(reasons) == 1

    async def test_it_leaves_the_files_times_alone(self, folder):
        storage = FileStorage(folder)
        path = Path(await storage.store("key", b"content"))
        before = path.stat()
        await storage.inspect(str(path))
        after = path.stat()
        assert (after.st_atime_ns, after.st_mtime_ns) == (before.st_atime_ns, before.st_mtime_ns)

    async def test_a_damaged_entry_is_described_as_it_is_listed(self, folder):
        storage = FileStorage(folder)
        reference = await storage.store("odd/key", b"content", "text/x-odd")
        (folder / f".{Path(reference).name}.meta").write_bytes(b"{")
        assert [await storage.inspect(reference)] == [entry async for entry in storage.entries()]


class TestTouching:
    async def test_a_restart_sees_the_last_use_and_the_content_type(self, folder):
        clock = FakeClock(now=5_000.0)
        reference = await FileStorage(folder, clock=clock).store("key", b"content")
        await FileStorage(folder).touch(reference, 5_060.5, "text/plain; turn=3")
        entry = await FileStorage(folder).inspect(reference)
        assert (entry.stored_at, entry.last_used) == (5_000.0, 5_060.5)
        assert (entry.key, entry.content_type, entry.size) == ("key", "text/plain; turn=3", 7)
        assert await FileStorage(folder).retrieve(reference) == (b"content", "text/plain; turn=3")

    async def test_any_spelling_that_retrieve_takes_will_do(self, folder):
        storage = FileStorage(folder)
        path = Path(await storage.store("key", b"content"))
        for number, spelling in enumerate((path.name, path.stem, str(path))):
            await storage.touch(spelling, 0.0, f"text/x-{number}")
            assert (await storage.retrieve(str(path)))[1] == f"text/x-{number}"

    async def test_a_type_that_is_there_already_is_not_written(self, folder):
        storage = FileStorage(folder)
        plain, odd = await storage.store("key", b"content"), await storage.store("a/b", b"content", "text/x-odd")
        before = {path.name: path.stat().st_ino for path in folder.iterdir()}
        await storage.touch(plain, 5_000_000_000.0, "text/plain")
        await storage.touch(odd, 5_000_000_000.0, "text/x-odd")
        assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
        assert {entry.last_used async for entry in storage.entries()} == {5_000_000_000.0}

    async def test_deleting_afterwards_leaves_nothing_behind(self, folder):
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        await storage.touch(reference, 0.0, "text/x-odd")
        assert len(names_in(folder)) == 2
        await storage.delete(reference)
        assert names_in(folder) == set()

    async def test_what_it_writes_is_private(self, folder):
        storage = FileStorage(folder)
        await storage.touch(await storage.store("key", b"content"), 0.0, "text/x-odd")
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}

    async def test_what_an_older_tool_recorded_gives_way_and_stays(self, folder):
        folder.mkdir()
        (folder / "1700000000000_1_call.md").write_bytes(b"old")
        record = json.dumps({"1700000000000_1_call.md": "text/x-markdown"})
        (folder / ".metadata.json").write_text(record)
        storage = FileStorage(folder)
        await storage.touch("1700000000000_1_call.md", 0.0, "text/x-new")
        assert await storage.retrieve("1700000000000_1_call.md") == (b"old", "text/x-new")
        assert (folder / ".metadata.json").read_text() == record

    async def test_a_damaged_sidecar_is_not_painted_over(self, folder):
        storage = FileStorage(folder)
        reference = await storage.store("odd/key", b"content", "text/x-odd")
        sidecar = folder / f".{Path(reference).name}.meta"
        sidecar.write_bytes(b"{")
        await storage.touch(reference, 5_000_000_000.0)
        assert (await storage.inspect(reference)).last_used == 5_000_000_000.0
        with pytest.raises(CorruptMetadataError):
            await storage.touch(reference, 0.0, "text/x-new")
        assert sidecar.read_bytes() == b"{"

    async def test_links_and_pipes_are_left_alone(self, folder, tmp_path):
        storage = FileStorage(folder)
        await storage.store("key", b"content")
        secret = tmp_path / "1_1_secret.txt"
        secret.write_text("secret")
        before = secret.stat()
        (folder / "1_1_link.txt").symlink_to(secret)
        os.mkfifo(folder / "1_1_pipe.txt")
        for reference in ("1_1_link.txt", "1_1_pipe.txt", str(secret), f"../{secret.name}"):
            await asyncio.wait_for(storage.touch(reference, 5_000_000_000.0, "text/x-odd"), timeout=5)
        assert secret.stat() == before
        assert not [name for name in names_in(folder) if name.endswith(".meta")]

    async def test_when_durable_the_order_is_write_fsync_rename_fsync_directory(self, folder, monkeypatch):
        storage = FileStorage(folder, fsync=True)
        reference = await storage.store("key", b"content")
        calls = []
        for name in ("fsync", "rename"):
            monkeypatch.setattr(os, name, recorder(name, getattr(os, name), calls))
        await storage.touch(reference, 0.0, "text/x-odd")
        assert calls == ["fsync file", "rename", "fsync directory"]


def recorder(name, function, calls):
    def record(*args):
        kind = "" if name == "rename" else " directory" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else " file"
        calls.append(name + kind)
        return function(*args)

    return record


class TestFaults:
    @pytest.mark.parametrize("operation", ["open", "write", "rename"])
    async def test_a_full_disk_costs_a_clear_error_and_nothing_else(self, folder, monkeypatch, operation):
        storage = FileStorage(folder)
        reference = await storage.store("odd/key", b"content", "text/x-odd")
        before = names_in(folder)
        with monkeypatch.context() as patch:
            patch.setattr(os, operation, full_when_writing(getattr(os, operation)))
            with pytest.raises(StorageFullError, match=r"cannot touch .*free some space"):
                await storage.touch(reference, 0.0, "text/x-new")
        assert names_in(folder) == before
        assert await storage.retrieve(reference) == (b"content", "text/x-odd")

    async def test_a_use_that_cannot_be_noted_is_said(self, folder, monkeypatch):
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")

        def refuse(*args, **options):
            raise PermissionError(errno.EPERM, "refused")

        monkeypatch.setattr(os, "utime", refuse)
        with pytest.raises(StorageAccessError, match=r"cannot touch .*check the owner"):
            await storage.touch(reference, 5_000_000_000.0)

    async def test_a_crash_in_the_middle_is_swept_and_the_old_type_stays(self, folder):
        reference = await FileStorage(folder).store("odd/key", b"content", "text/x-odd")
        part = folder / f".{Path(reference).name}.part"
        part.write_bytes(b'{"key": "odd')
        storage = FileStorage(folder)
        assert await storage.retrieve(reference) == (b"content", "text/x-odd")
        await storage.store("key", b"sweeps")
        assert not part.exists()
        assert await storage.retrieve(reference) == (b"content", "text/x-odd")

    async def test_what_a_crash_left_does_not_stop_the_next_touch(self, folder):
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        (folder / f".{Path(reference).name}.part").write_bytes(b'{"key": "odd')
        await storage.touch(reference, 0.0, "text/x-new")
        assert await storage.retrieve(reference) == (b"content", "text/x-new")
        assert len(names_in(folder)) == 2

    async def test_a_content_deleted_in_the_middle_takes_the_new_sidecar_with_it(self, folder, monkeypatch):
        storage = FileStorage(folder)
        reference = await storage.store("odd/key", b"content", "text/x-odd")
        rename = os.rename

        def rename_after_a_delete(source, target):
            for path in folder.iterdir():
                if not path.name.endswith(".part"):
                    path.unlink()
            rename(source, target)

        monkeypatch.setattr(os, "rename", rename_after_a_delete)
        await storage.touch(reference, 0.0, "text/x-new")
        assert names_in(folder) == set()

    async def test_a_process_that_never_lets_go_is_a_clear_error(self, folder, monkeypatch):
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        fcntl.flock(held := os.open(reference, os.O_RDONLY), fcntl.LOCK_EX)
        with pytest.raises(StorageAccessError, match="cannot touch"):
            await storage.touch(reference, 0.0, "text/x-new")
        assert await storage.retrieve(reference) == (b"content", "text/plain")
        os.close(held)


def full_when_writing(function):
    """Fail as a full disk does, in worker threads, on whatever creates, writes or renames."""

    def call(*args):
        reads = function is os_open and not args[1] & os.O_CREAT
        if reads or not threading.current_thread().name.startswith("holdfast"):
            return function(*args)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return call


os_open = os.open


class TestCrowds:
    async def test_touching_what_is_being_deleted_leaves_nothing_behind(self, folder):
        storage, other = FileStorage(folder), FileStorage(folder)
        for number in range(100):
            reference = await storage.store("odd/key", b"content", "text/x-odd")
            await asyncio.gather(
                *(storage.touch(reference, 5_000_000_000.0 + n, f"text/x-{n}") for n in range(number % 4)),
                other.delete(reference),
                other.touch(reference, 0.0, "text/x-other"),
            )
            assert names_in(folder) == set()

    async def test_touching_what_is_being_cleared_leaves_nothing_behind(self, folder):
        storage, other = FileStorage(folder), FileStorage(folder)
        references = [await storage.store("key", b"content") for _ in range(100)]
        await asyncio.gather(*(storage.touch(ref, 0.0, "text/x-odd") for ref in references), other.clear())
        assert names_in(folder) == set()

    async def test_a_reader_sees_one_type_or_the_other(self, folder):
        storage, other = FileStorage(folder), FileStorage(folder)
        reference = await storage.store("key", b"content")
        kinds = {f"text/x-{'long' * number}" for number in range(1, 50)}

        async def touch_all():
            for kind in kinds:
                await other.touch(reference, 0.0, kind)

        touching = asyncio.create_task(touch_all())
        while not touching.done():
            content, kind = await storage.retrieve(reference)
            assert content == b"content"
            assert kind in kinds | {"text/plain"}
        await touching

    async def test_of_many_processes_the_latest_use_stays(self, folder):
        script = """
            import asyncio, random, sys
            from holdfast import FileStorage
            async def main():
                storage, chance = FileStorage(sys.argv[1]), random.Random(sys.argv[3])
                times = chance.sample(range(5_000_000_000, 5_000_100_000), 300)
                for first in range(0, 300, 30):
                    await asyncio.gather(*(
                        storage.touch(sys.argv[2], at, f"text/x-{at}" if at % 3 == 0 else None)
                        for at in times[first:first + 30]
                    ))
                print(max(times))
            asyncio.run(main())
        """
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        crowd = await asyncio.to_thread(lambda: [start(script, folder, reference, seed) for seed in range(4)])
        outputs = await asyncio.to_thread(lambda: [process.communicate(timeout=60)[0] for process in crowd])
        assert (await storage.inspect(reference)).last_used == max(map(int, outputs))
        assert len(names_in(folder)) == 2

    @pytest.mark.extended
    async def test_killed_touchers_break_nothing(self, folder):
        script = """
            import asyncio, itertools, sys
            from holdfast import FileStorage
            async def main():
                storage = FileStorage(sys.argv[1])
                print("begun", flush=True)
                for number in itertools.count():
                    await storage.touch(sys.argv[2], 5_000_000_000.0 + number, f"text/x-{'long' * (number % 50)}a")
            asyncio.run(main())
        """
        storage = FileStorage(folder)
        reference = await storage.store("key", b"content")
        for round_number in range(15):
            with await asyncio.to_thread(start, script, folder, reference) as process:
                await asyncio.to_thread(process.stdout.readline)
                await asyncio.sleep(0.001 * round_number)
                process.send_signal(signal.SIGKILL)
            content, kind = await storage.retrieve(reference)
            assert content == b"content"
            assert kind == "text/plain" or kind.startswith("text/x-")
        await FileStorage(folder).store("key", b"sweeps")
        assert not [name for name in names_in(folder) if name.endswith(".part")]


def test_only_the_host_notes_uses(folder):
    class Sandbox:
        async def read_file(self, path): ...
        async def write_file(self, path, content): ...
        async def read_text(self, path): ...
        async def write_text(self, path, content): ...

    clock = FakeClock()
    host = FileStorage(folder, clock=clock)
    assert host.notes_uses
    assert host.clock is clock
    assert not host.for_sandbox(Sandbox()).notes_uses
    assert host.for_sandbox(Sandbox()).clock is clock
