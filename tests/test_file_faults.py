"""Disks that fill up, permissions that vanish, writers that are killed, crowds."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import FileStorage, NotFoundError
from holdfast.errors import StorageAccessError, StorageFullError

MEGABYTE = 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def start(script: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def failing_after(function, calls_that_pass, error_number):
    calls = iter(range(1_000))

    def fail(*args):
        if next(calls) < calls_that_pass:
            return function(*args)
        raise OSError(error_number, os.strerror(error_number))

    return fail


async def assert_holds_only(folder: Path, reference: str, content: bytes) -> None:
    storage = FileStorage(folder)
    assert [entry.reference async for entry in storage.entries()] == [reference]
    assert (await storage.retrieve(reference))[0] == content
    assert len(list(folder.iterdir())) == 1


class TestAFullDisk:
    @pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EDQUOT])
    async def test_costs_a_clear_error_and_nothing_else(self, folder, monkeypatch, error_number):
        storage = FileStorage(folder)
        before = await storage.store("before", b"content")
        for operation, calls_that_pass in (("open", 0), ("write", 0), ("write", 1), ("rename", 0)):
            with monkeypatch.context() as patch:
                function = failing_after(getattr(os, operation), calls_that_pass, error_number)
                patch.setattr(os, operation, in_worker_threads(function, getattr(os, operation)))
                with pytest.raises(StorageFullError, match=r"cannot store in .*free some space") as caught:
                    await storage.store("odd/key", b"content", "text/x-odd")
            assert caught.value.errno == error_number
            await assert_holds_only(folder, before, b"content")

    async def test_a_directory_that_cannot_be_synced_is_no_success(self, folder, monkeypatch):
        storage = FileStorage(folder, fsync=True)
        before = await storage.store("before", b"content")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing_after(os.fsync, 1, errno.EIO))
            with pytest.raises(StorageAccessError):
                await storage.store("key", b"content")
        await assert_holds_only(folder, before, b"content")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
    async def test_on_a_real_file_system_of_one_megabyte(self, tmp_path):
        with small_file_system(tmp_path / "small") as mount:
            storage = FileStorage(mount / "artifacts")
            before = await storage.store("before", b"x" * 500_000)
            with pytest.raises(StorageFullError):
                await storage.store("large", bytes(2 * MEGABYTE))
            await assert_holds_only(mount / "artifacts", before, b"x" * 500_000)
            assert await storage.store("after", b"y" * 100_000)


def in_worker_threads(function, original):
    """Leave the event loop's own calls alone."""

    def call(*args):
        return (function if threading.current_thread().name.startswith("holdfast") else original)(*args)

    return call


@contextlib.contextmanager
def small_file_system(mount: Path) -> Iterator[Path]:
    mount.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mount], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a small file system; the injected fault is tested above")
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


class TestADirectoryThatCannotBe:
    async def test_under_a_file(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageAccessError, match="a file is in the way"):
            await FileStorage(tmp_path / "file" / "artifacts").store("key", b"content")

    async def test_in_place_of_a_file(self, tmp_path):
        (tmp_path / "artifacts").write_text("mine")
        with pytest.raises(StorageAccessError, match="a file is in the way"):
            await FileStorage(tmp_path / "artifacts").store("key", b"content")
        assert (tmp_path / "artifacts").read_text() == "mine"

    async def test_where_the_system_allows_none(self):
        with pytest.raises(StorageAccessError, match="cannot store in /proc/artifacts"):
            await FileStorage("/proc/artifacts").store("key", b"content")

    async def test_nothing_is_created_by_looking(self, folder):
        storage = FileStorage(folder)
        with pytest.raises(NotFoundError):
            await storage.retrieve("1_1_key.txt")
        assert [entry async for entry in storage.entries()] == []
        await storage.clear()
        assert not folder.exists()


LOSES_ITS_PERMISSION = """
    import asyncio, os, sys
    from holdfast import FileStorage, StorageError
    from holdfast.errors import StorageAccessError

    folder = sys.argv[1]
    if os.geteuid() == 0:
        os.chown(os.path.dirname(folder), 65534, 65534)
        os.setuid(65534)

    async def main():
        storage = FileStorage(folder)
        kept = await storage.store("key", b"content")
        for mode in (0o500, 0o000):
            os.chmod(folder, mode)
            try:
                await storage.store("key", b"more")
            except StorageAccessError as error:
                print(error)
        try:
            await storage.retrieve(kept)
        except StorageAccessError as error:
            print(error)
        os.chmod(folder, 0o500)
        print((await storage.retrieve(kept))[0].decode())
        os.chmod(folder, 0o700)
        print(len(os.listdir(folder)))

    asyncio.run(main())
"""


def test_a_permission_that_vanished_is_named_and_harms_nothing(tmp_path_factory):
    parent = tmp_path_factory.mktemp("permissions")
    for directory in (parent, *list(parent.parents)[:2]):
        directory.chmod(0o755)
    process = start(LOSES_ITS_PERMISSION, parent / "artifacts")
    lines = process.communicate(timeout=60)[0].splitlines()
    assert len(lines) == 5, lines
    for line in lines[:3]:
        assert "Permission denied" in line
        assert "check the owner and the mode" in line
    assert lines[3:] == ["content", "1"]


WRITES_UNTIL_KILLED = """
    import asyncio, itertools, sys, time, zlib
    from holdfast import FileStorage

    async def main():
        # A clock of tenths of a second makes processes want the same names.
        storage = FileStorage(sys.argv[1], fsync=sys.argv[2] == "durable", clock=lambda: time.time() // 0.1 / 10)
        async def write(writer):
            for number in itertools.count():
                content = f"{writer}-{number}-".encode() * (1 + 997 * number % 40_000 // 7)
                kind = ("text/plain", "text/x-odd")[number % 2]
                reference = await storage.store(f"key/{writer}" if number % 3 else "key", content, kind)
                print(reference, kind, len(content), zlib.crc32(content), flush=True)
        await asyncio.gather(*map(write, range(4)))

    asyncio.run(main())
"""


@pytest.mark.extended
@pytest.mark.parametrize("durable", ["durable", "fast"])
def test_killed_writers_lose_nothing_they_had_announced_and_show_nothing_else(folder, durable):
    """100 rounds over both cases: each SIGKILL falls somewhere in the middle of four concurrent stores."""
    chance = random.Random(durable)
    announced: dict[str, tuple[str, int, int]] = {}
    for _ in range(25):
        with start(WRITES_UNTIL_KILLED, folder, durable) as one, start(WRITES_UNTIL_KILLED, folder, durable) as other:
            announced |= announced_before_the_kill(one, chance) | announced_before_the_kill(other, chance)
        unannounced = asyncio.run(references_in(folder)) - announced.keys()
        # Stored, then killed before the announcement: at most one for each of the four writers of a process.
        assert len(unannounced) <= 8
        for reference in unannounced:
            assert asyncio.run(is_whole(folder, reference))
            asyncio.run(FileStorage(folder).delete(reference))
    asyncio.run(assert_as_announced(folder, announced))
    asyncio.run(FileStorage(folder).store("last", b"sweeps"))
    assert not [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def announced_before_the_kill(process, chance: random.Random) -> dict[str, tuple[str, int, int]]:
    first = process.stdout.readline()
    time.sleep(chance.uniform(0, 0.05))
    process.send_signal(signal.SIGKILL)
    lines = [first, *process.stdout.read().splitlines(keepends=True)]
    return dict(parsed(line) for line in lines if line.endswith("\n"))


async def references_in(folder: Path) -> set[str]:
    return {entry.reference async for entry in FileStorage(folder).entries()}


async def is_whole(folder: Path, reference: str) -> bool:
    """The writer repeats one word, so a part of a content would end in the middle of it."""
    content, _ = await FileStorage(folder).retrieve(reference)
    word = b"-".join(content.split(b"-", 2)[:2]) + b"-"
    return bool(content) and content == word * (len(content) // len(word))


async def assert_as_announced(folder: Path, announced: dict[str, tuple[str, int, int]]) -> None:
    storage = FileStorage(folder)
    for reference, expected in announced.items():
        content, kind = await storage.retrieve(reference)
        assert (kind, len(content), zlib.crc32(content)) == expected


def parsed(line: str) -> tuple[str, tuple[str, int, int]]:
    reference, kind, size, checksum = line.split()
    return reference, (kind, int(size), int(checksum))


STORES_250 = """
    import asyncio, json, sys
    from holdfast import FileStorage

    async def main():
        storage, writer = FileStorage(sys.argv[1]), sys.argv[2]
        async def store(number):
            kind = ("text/plain", "application/json", "text/x-odd; charset=utf-8")[number % 3]
            content = f"{writer}:{number}"
            return await storage.store("same/key" if number % 2 else "same", content.encode(), kind), content, kind
        print(json.dumps(await asyncio.gather(*map(store, range(250)))))

    asyncio.run(main())
"""


async def test_a_crowd_of_processes_shares_one_directory(folder):
    crowd = await asyncio.to_thread(lambda: [start(STORES_250, folder, writer) for writer in range(8)])
    outputs = await asyncio.to_thread(lambda: [process.communicate(timeout=120)[0] for process in crowd])
    stored = [tuple(entry) for output in outputs for entry in json.loads(output)]
    assert len({reference for reference, _, _ in stored}) == 2_000
    storage = FileStorage(folder)
    for reference, content, kind in stored:
        assert await storage.retrieve(reference) == (content.encode(), kind)
    entries = [entry async for entry in storage.entries()]
    assert {(entry.reference, entry.content_type) for entry in entries} == {(ref, kind) for ref, _, kind in stored}
    assert {entry.key for entry in entries} == {"same", "same/key"}
