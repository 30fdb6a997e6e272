"""Audits of stores: what they find, what they leave alone, and what a repair mends."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import FileStorage
from holdfast.errors import StorageAccessError
from holdfast.storage.audit import Finding
from holdfast.storage.audit_files import audit_directory, find_leftovers, find_misfits, repair_directory, role_of
from holdfast.storage.audit_s3 import audit_bucket

NOW = time.time()
LATER = NOW + 7_200
NAME = "1700000000000_1_key.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    folder.mkdir()
    return folder


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def findings_in(folder: Path, now: float = LATER) -> list[Finding]:
    return [finding async for checked in audit_directory(str(folder), now) for finding in checked.findings]


async def kinds_in(folder: Path, now: float = LATER) -> list[tuple[str, str, bool]]:
    return [(finding.name, finding.kind, finding.fixable) for finding in await findings_in(folder, now)]


async def repaired(folder: Path, now: float = LATER) -> list[Finding]:
    return await repair_directory(str(folder), await findings_in(folder, now), now)


@contextmanager
def living_writer(part: Path) -> Iterator[None]:
    """Another process that holds *part*, and dies in the end."""
    script = (
        "import fcntl, sys; file = open(sys.argv[1], 'wb'); fcntl.flock(file, fcntl.LOCK_EX);"
        "file.write(b'half'); file.flush(); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, part]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"locked\n"
        yield
        writer.stdin.close()


def failing(*_, **__):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


async def store_oddly(folder: Path, content: bytes = b"0123456789") -> tuple[Path, Path]:
    """Store something that needs a sidecar, and return both paths."""
    path = Path(await FileStorage(folder).store("odd/key", content, "text/csv; charset=utf-8"))
    return path, path.with_name(f".{path.name}.meta")


class TestAWholeStore:
    async def test_has_no_findings(self, folder):
        storage = FileStorage(folder)
        await storage.store("plain", b"")
        await storage.touch(await storage.store("touched", b"x"), NOW, "text/plain; charset=utf-8")
        await store_oddly(folder)
        (folder / "README").write_text("a neighbour")
        (folder / "subdirectory").mkdir()
        checked = [checked async for checked in audit_directory(str(folder), LATER)]
        assert [finding for each in checked for finding in each.findings] == []
        roles = sorted(each.role for each in checked)
        assert roles == ["entry"] * 3 + ["neighbour"] * 2 + ["trace"] * 2

    async def test_is_left_as_it_was_by_an_audit_and_a_repair(self, folder):
        storage = FileStorage(folder, clock=lambda: NOW - 1_000_000)
        reference = await storage.store("key", b"content")
        await storage.retrieve(reference)
        before = os.lstat(reference)
        assert await repaired(folder) == []
        assert (os.lstat(reference).st_atime_ns, os.lstat(reference).st_mtime_ns) == (
            before.st_atime_ns,
            before.st_mtime_ns,
        )
        assert (await storage.inspect(reference)).last_used == pytest.approx(NOW - 1_000_000)

    async def test_of_strands_agents_is_whole_too(self, folder):
        (folder / "1700000000000_1_key.x-odd").write_bytes(b"x")
        (folder / ".metadata.json").write_text('{"1700000000000_1_key.x-odd": "application/x-odd"}')
        assert await findings_in(folder) == []

    async def test_that_is_not_there_is_an_error(self, folder):
        with pytest.raises(StorageAccessError, match="cannot check"):
            await findings_in(folder / "typo")
        assert not (folder / "typo").exists()


class TestLeftovers:
    async def test_of_a_dead_writer_are_found_and_removed(self, folder):
        (folder / f".{NAME}.part").write_bytes(b"hal")
        (folder / f".{NAME}.meta").write_text("{}")
        assert await kinds_in(folder) == [(f".{NAME}.part", "leftover", True)]
        assert await repaired(folder) == []
        assert contents_of(folder) == {}

    async def test_of_a_living_writer_are_not_touched(self, folder):
        part, beside = folder / f".{NAME}.part", folder / f".{NAME}.meta"
        leftover = Finding(part.name, "leftover", "the writer of this part died", fixable=True)
        with living_writer(part):
            beside.write_text("{}")
            os.utime(beside, (0, 0))
            assert await findings_in(folder) == []
            assert await repair_directory(str(folder), [leftover], LATER) == []
            assert contents_of(folder) == {part.name: b"half", beside.name: b"{}"}
        assert await findings_in(folder) == [leftover]

    async def test_that_describe_nothing_are_found_after_an_hour(self, folder):
        path, sidecar = await store_oddly(folder)
        path.unlink()
        assert await findings_in(folder, NOW) == []
        assert await kinds_in(folder, LATER) == [(sidecar.name, "leftover", True)]
        assert await repaired(folder) == []
        assert contents_of(folder) == {}

    async def test_are_found_without_reading_a_content(self, folder):
        _, sidecar = await store_oddly(folder)
        sidecar.write_text("{")
        (folder / f".{NAME}.part").write_bytes(b"hal")
        assert [finding.name for finding in await find_leftovers(str(folder), LATER)] == [f".{NAME}.part"]

    async def test_include_contents_that_were_never_completed_but_no_others_of_a_wrong_size(self, folder):
        incomplete, _ = await store_oddly(folder)
        longer, _ = await store_oddly(folder)
        await store_oddly(folder)
        incomplete.write_bytes(b"01234")
        longer.write_bytes(b"0123456789 and more")
        assert await find_leftovers(str(folder), NOW) == []
        found = await find_leftovers(str(folder), LATER)
        assert [(finding.name, finding.kind) for finding in found] == [(incomplete.name, "incomplete")]
        assert await repair_directory(str(folder), found, LATER) == []
        assert not incomplete.exists()
        assert longer.exists()

    @pytest.mark.parametrize("name", [".hidden", ".x.part", ".x.meta", "notes.part", f"{NAME}.part", f".{NAME}.tmp"])
    async def test_are_only_what_storing_leaves(self, folder, name):
        (folder / name).write_bytes(b"somebody's")
        os.utime(folder / name, (0, 0))
        assert role_of(name) != "trace"
        assert await find_leftovers(str(folder), LATER) == []
        await repaired(folder)
        assert contents_of(folder) == {name: b"somebody's"}

    async def test_that_resist_remain(self, folder, monkeypatch):
        (folder / f".{NAME}.part").write_bytes(b"hal")
        monkeypatch.setattr(os, "unlink", failing)
        assert [finding.name for finding in await repaired(folder)] == [f".{NAME}.part"]


class TestDamage:
    @pytest.mark.parametrize("sidecar", ["", "{", "[]", '{"key": 1}', "\0" * 50])
    async def test_of_a_sidecar_is_found_and_the_content_saved(self, folder, sidecar):
        path, beside = await store_oddly(folder)
        beside.write_text(sidecar)
        assert await kinds_in(folder) == [(path.name, "damaged", True)]
        assert await repaired(folder) == []
        assert await FileStorage(folder).retrieve(path.name) == (b"0123456789", "text/csv")

    async def test_of_a_fresh_sidecar_may_be_a_sandbox_at_work(self, folder):
        path, beside = await store_oddly(folder)
        beside.write_text("{")
        assert await kinds_in(folder, NOW) == [(path.name, "damaged", False)]
        assert len(await repaired(folder, NOW)) == 1
        assert beside.exists()

    async def test_is_a_sidecar_of_which_no_storage_reads_the_end(self, folder, monkeypatch):
        path, beside = await store_oddly(folder)
        monkeypatch.setattr("holdfast.storage.audit_files.LARGEST_METADATA", beside.stat().st_size - 1)
        assert await kinds_in(folder) == [(path.name, "damaged", True)]

    async def test_is_not_a_long_key(self, folder):
        storage = FileStorage(folder)
        reference = await storage.store("k" * 100_000, b"content")
        assert await repaired(folder) == await findings_in(folder) == []
        assert (await storage.inspect(reference)).key == "k" * 100_000

    @pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
    async def test_is_not_what_is_no_sidecar(self, folder, make):
        storage = FileStorage(folder)
        path = Path(await storage.store("key", b"content"))
        make(path.with_name(f".{path.name}.meta"))
        assert await findings_in(folder) == []
        assert await storage.retrieve(path.name) == (b"content", "text/plain")

    async def test_of_an_older_tools_record_is_told_and_left(self, folder):
        (folder / "1700000000000_1_key.x-odd").write_bytes(b"x")
        (folder / NAME).write_bytes(b"x")
        (folder / ".metadata.json").write_text("{")
        expected = [(".metadata.json", "damaged", False), ("1700000000000_1_key.x-odd", "unknown type", False)]
        assert await kinds_in(folder) == expected
        assert len(await repaired(folder)) == 2
        assert (folder / ".metadata.json").exists()

    async def test_that_makes_a_content_unreadable_is_found(self, folder, monkeypatch):
        await store_oddly(folder)
        monkeypatch.setattr(os, "open", failing)
        found = await findings_in(folder)
        assert [(finding.kind, finding.fixable) for finding in found] == [("unreadable", False)] * 2
        assert "Input/output error" in found[0].what

    async def test_that_resists_remains(self, folder, monkeypatch, caplog):
        _, beside = await store_oddly(folder)
        beside.write_text("{")
        monkeypatch.setattr(os, "unlink", failing)
        assert [finding.kind for finding in await repaired(folder)] == ["damaged"]
        assert "cannot mend" in caplog.text

    async def test_that_was_mended_meanwhile_stays_mended(self, folder):
        _, beside = await store_oddly(folder)
        whole = beside.read_bytes()
        beside.write_text("{")
        found = await findings_in(folder)
        beside.write_bytes(whole)
        assert await repair_directory(str(folder), found, LATER) == []
        assert beside.read_bytes() == whole


class TestSizes:
    async def test_a_content_that_was_never_completed_is_removed(self, folder):
        path, _ = await store_oddly(folder)
        path.write_bytes(b"01234")
        assert await kinds_in(folder) == [(path.name, "incomplete", True)]
        assert await repaired(folder) == []
        assert contents_of(folder) == {}

    async def test_a_content_that_may_still_grow_stays(self, folder):
        path, _ = await store_oddly(folder)
        path.write_bytes(b"01234")
        assert await kinds_in(folder, NOW) == [(path.name, "incomplete", False)]
        assert len(await repaired(folder, NOW)) == 1
        assert path.read_bytes() == b"01234"

    async def test_a_content_that_is_too_long_is_told_and_stays(self, folder):
        path, _ = await store_oddly(folder)
        path.write_bytes(b"0123456789 and more")
        assert await kinds_in(folder) == [(path.name, "damaged", False)]
        (remaining,) = await repaired(folder)
        assert "`holdfast store rm` removes it" in remaining.what
        assert path.exists()

    async def test_contents_of_a_wrong_size_are_found_without_reading_a_content(self, folder, monkeypatch):
        path, _ = await store_oddly(folder)
        await store_oddly(folder)
        path.write_bytes(b"01234")
        monkeypatch.setattr("holdfast.storage.audit_files._read_through", failing)
        assert [(each.name, each.size) for each in await find_misfits(str(folder), NOW)] == [(path.name, 5)]


class TestTypes:
    async def test_that_nothing_tells_are_found(self, folder):
        (folder / "1700000000000_1_key.x-odd").write_bytes(b"x")
        assert await kinds_in(folder) == [("1700000000000_1_key.x-odd", "unknown type", False)]


class TestNeighbours:
    async def test_with_names_of_entries_are_not_followed(self, folder, tmp_path):
        (tmp_path / "secret").write_text("secret")
        (folder / NAME).symlink_to(tmp_path / "secret")
        (folder / "1700000000000_2_key.txt").mkdir()
        os.mkfifo(folder / "1700000000000_3_key.txt")
        checked = [checked async for checked in audit_directory(str(folder), LATER)]
        assert {each.role for each in checked} == {"neighbour"}

    async def test_with_names_that_are_no_text_are_counted(self, folder):
        (folder / os.fsdecode(b"1700000000000_1_\xff.txt")).write_bytes(b"x")
        checked = [checked async for checked in audit_directory(str(folder), LATER)]
        assert [each.role for each in checked] == ["neighbour"]


async def test_a_writer_that_works_beside_an_audit_loses_nothing(folder):
    storage = FileStorage(folder)
    references = [await storage.store("odd/key", b"x" * 100) for _ in range(50)]
    async for checked in audit_directory(str(folder), LATER):
        assert checked.findings == ()
        references.append(await storage.store("odd/key", b"y"))
        await storage.delete(references.pop(0))
    assert sorted([entry.reference async for entry in storage.entries()]) == sorted(references)


class TestS3:
    @pytest.fixture
    def where(self, s3_server, bucket, open_s3, boto_session):
        prefix = open_s3.keywords["prefix"]
        options = {"boto_session": boto_session, "endpoint_url": s3_server.endpoint_url}
        return (bucket, prefix), options

    @pytest.fixture
    def put(self, client, bucket, open_s3):
        return lambda name, **options: client.put_object(
            Bucket=bucket, Key=f"{open_s3.keywords['prefix']}/{name}", **options
        )

    async def test_a_whole_store_has_no_findings(self, open_s3, where):
        storage = open_s3()
        references = [await storage.store(key, b"", "text/plain; charset=utf-8") for key in ("a", "b/ü")]
        checked = [checked async for checked in audit_bucket(*where[0], **where[1])]
        assert sorted(each.name for each in checked) == sorted(references)
        assert [each for each in checked if each.findings or each.role != "entry"] == []

    async def test_what_others_put_there_is_looked_at(self, where, put):
        put("1700000000000_1_empty", ContentType="text/plain")
        put("1700000000000_2_typeless", Body=b"x", ContentType="binary/octet-stream")
        put("1700000000000_3_key", Body=b"x", ContentType="text/plain", Metadata={"holdfast-key": "%ff"})
        put("README", Body=b"x")
        checked = [checked async for checked in audit_bucket(*where[0], **where[1])]
        kinds = [finding.kind for each in checked for finding in each.findings]
        assert kinds == ["empty", "unknown type", "damaged"]
        assert [each.name.rpartition("/")[2] for each in checked if each.role == "neighbour"] == ["README"]

    async def test_what_cannot_be_read_is_found(self, open_s3, where, monkeypatch):
        from botocore.exceptions import ClientError

        from holdfast.storage.s3_bucket import Bucket

        def refuse(*_):
            raise ClientError({"Error": {"Code": "InvalidObjectState", "Message": "archived"}}, "GetObject")

        await open_s3().store("key", b"x")
        monkeypatch.setattr(Bucket, "get_range", refuse)
        checked = [checked async for checked in audit_bucket(*where[0], **where[1])]
        assert [finding.kind for each in checked for finding in each.findings] == ["unreadable"]
        assert "archived" in checked[0].findings[0].what
