"""A directory of artifacts on the host's file system, shared with any number of processes."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from os.path import normpath

from holdfast.errors import CorruptMetadataError, NotFoundError, StorageError
from holdfast.storage.faults import explained
from holdfast.storage.metadata import (
    LARGEST_METADATA,
    LEGACY_RECORD,
    Description,
    describe,
    describe_by_name,
    encode_sidecar,
    read_legacy_record,
    sidecar_name,
)
from holdfast.storage.names import describes, file_name, may_be_artifact, parse
from holdfast.storage.protocols import Entry, Part
from holdfast.storage.publishing import (
    lock_for_a_touch,
    make_private_directory,
    publish,
    replace_sidecar,
    supported,
    sweep,
)
from holdfast.storage.threads import WorkerThreads

__all__ = ["LocalDirectory"]

logger = logging.getLogger(__name__)

_THREADS = WorkerThreads(16, name="holdfast-files")
_QUICK_TO_WRITE = 64_000
_NAMES_TO_TRY = 1_000
_LISTING_STEP = 256
# Neither a symlink nor a named pipe in the directory may lead a reader elsewhere or make it wait.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_MISSING = "no such file: never stored here, deleted or evicted"
_A_LINK = "it is a symbolic link, which is not followed"
_NOT_REGULAR = "it is not a regular file"
_INCOMPLETE = "its content is not complete"
_NO_SUCH_FILE = {
    errno.ENOENT: _MISSING,
    errno.ENAMETOOLONG: _MISSING,
    errno.ELOOP: _A_LINK,
}


@dataclass(frozen=True)
class _LegacyRecord:
    """What `.metadata.json` said when its file was last read, or how it was damaged."""

    version: tuple[int, int, int] | None
    types: dict[str, str] = field(default_factory=dict)
    damage: str = ""


class LocalDirectory:
    """Artifacts as files. Blocking work runs in threads; see `publishing` for how a file comes in."""

    notes_uses = True

    def __init__(self, artifact_dir: str, *, fsync: bool, clock: Callable[[], float]) -> None:
        if not supported():
            raise StorageError("FileStorage needs a POSIX system; use InMemoryStorage or S3Storage here")
        self._given = normpath(artifact_dir)
        self._fsync = fsync
        self._clock = clock
        self._numbers = itertools.count(1)
        self._swept = False
        self._legacy = _LegacyRecord(version=None)

    async def is_at(self, folder: str) -> bool:
        """Say whether *folder* names this directory. It is untrusted, so only its text is looked at."""
        with explained(f"find {self._given}"):
            return await _THREADS.run(lambda: normpath(folder) in self._spellings())

    async def write(self, key: str, content: bytes, content_type: str) -> str:
        """Publish *content* under a name that no other process has or gets."""
        with explained(f"store in {self._given}"):
            # Durable writes stay apart: the disk commits what many threads wait for in one go.
            quick = len(content) <= _QUICK_TO_WRITE and not self._fsync
            run = _THREADS.run_together if quick else _THREADS.run
            return await run(self._write, key, content, content_type)

    async def read(self, name: str, start: int, end: int | None) -> Part:
        """Read a file by its name or stem, and count it as used."""
        with explained(f"read {name} in {self._given}"):
            return await _THREADS.run(self._read, name, start, end)

    async def inspect(self, name: str) -> Entry:
        """Describe a file by its name or stem, with its bare name as the reference."""
        with explained(f"inspect {name} in {self._given}"):
            return await _THREADS.run_together(self._inspect, name)

    async def touch(self, name: str, used_at: float, content_type: str | None) -> None:
        """Note a use of a file by its name or stem, and another content type."""
        with explained(f"touch {name} in {self._given}"):
            # In a thread of its own: it may have to wait for another that touches the same file.
            await _THREADS.run(self._touch, name, used_at, content_type)

    async def remove(self, name: str) -> None:
        """Remove a file."""
        with explained(f"remove {name} from {self._given}"):
            await _THREADS.run_together(self._remove, name)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield what is there, with bare names as references."""
        with explained(f"list {self._given}"):
            names = await _THREADS.run(self._names)
            for first in range(0, len(names), _LISTING_STEP):
                for entry in await _THREADS.run(self._entries_of, names[first : first + _LISTING_STEP]):
                    yield entry

    async def clear(self) -> None:
        """Remove every artifact, and what crashes left behind."""
        with explained(f"clear {self._given}"):
            await _THREADS.run(self._clear)

    @cached_property
    def _path(self) -> str:
        """The directory, independent of where the process goes. Asks the system, so only threads use it."""
        return os.path.abspath(self._given)

    def _spellings(self) -> tuple[str, str, str]:
        return self._given, self._path, os.path.realpath(self._path)

    def _write(self, key: str, content: bytes, content_type: str) -> str:
        self._sweep_once()
        sidecar = None if describes(key, content_type) else encode_sidecar(key, content_type, len(content))
        for number in itertools.islice(self._numbers, _NAMES_TO_TRY):
            name = file_name(int(self._clock() * 1000), number, key, content_type)
            try:
                publish(self._path, name, content, sidecar, fsync=self._fsync)
            except FileExistsError:
                continue
            except FileNotFoundError:
                make_private_directory(self._path, fsync=self._fsync)
            else:
                return name
        raise StorageError(f"cannot store in {self._given}: {_NAMES_TO_TRY} names in a row were taken or vanished")

    def _sweep_once(self) -> None:
        if not self._swept:
            make_private_directory(self._path, fsync=self._fsync)
            sweep(self._path, self._clock())
            self._swept = True

    def _read(self, name: str, start: int, end: int | None) -> Part:
        name = self._full_name(name)
        # Before the content is opened: whoever deletes removes the content first, so this is of the same life.
        description = self._describe(name)
        with self._opened(name) as descriptor:
            status = os.fstat(descriptor)
            if not _is_whole(status, description):
                raise NotFoundError(name, _INCOMPLETE)
            end = status.st_size if end is None else min(end, status.st_size)
            content = _read_fully(descriptor, start, end - start)
            self._mark_used(descriptor, description.stored_at)
        return Part(content, description.content_type, start, status.st_size)

    def _inspect(self, name: str) -> Entry:
        return self._entry(self._full_name(name))

    def _touch(self, name: str, used_at: float, content_type: str | None) -> None:
        name = self._full_name(name)
        with self._opened(name) as descriptor:
            lock_for_a_touch(descriptor)
            status, stored_at = os.fstat(descriptor), describe_by_name(name).stored_at
            if content_type is not None:
                self._change_type(name, content_type, status)
            if used_at > _last_used(status, stored_at):
                os.utime(descriptor, ns=(_nanoseconds(used_at), _nanoseconds(stored_at)))

    def _change_type(self, name: str, content_type: str, status: os.stat_result) -> None:
        description = self._describe(name)
        if not _is_whole(status, description):
            raise NotFoundError(name, _INCOMPLETE)
        if content_type == description.content_type:
            return
        sidecar = encode_sidecar(description.key, content_type, status.st_size)
        try:
            replace_sidecar(self._path, name, sidecar, fsync=self._fsync)
        except FileNotFoundError:
            raise NotFoundError(name, _MISSING) from None

    def _remove(self, name: str) -> None:
        """Remove a file, the content first: whoever reads meanwhile sees both files, or nothing."""
        path = os.path.join(self._path, name)
        if parse(name) is not None and _is_regular(path):
            for file in (path, os.path.join(self._path, sidecar_name(name))):
                with suppress(FileNotFoundError):
                    os.unlink(file)

    def _clear(self) -> None:
        for name in self._names():
            self._remove(name)
        if os.path.isdir(self._path):
            sweep(self._path, self._clock())

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._path) as listing:
                files = [entry.name for entry in listing if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return [name for name in files if may_be_artifact(name) and parse(name) is not None]

    def _entries_of(self, names: Iterable[str]) -> list[Entry]:
        entries = []
        for name in names:
            with suppress(NotFoundError):
                entries.append(self._entry(name))
        return entries

    def _entry(self, name: str) -> Entry:
        description = self._describe_at_least_by_name(name)
        status = self._status(name)
        if not _is_whole(status, description):
            raise NotFoundError(name, _INCOMPLETE)
        return Entry(
            name,
            description.key,
            description.content_type,
            status.st_size,
            description.stored_at,
            last_used=_last_used(status, description.stored_at),
        )

    def _describe_at_least_by_name(self, name: str) -> Description:
        """Describe for a look, where a damaged entry still has to be seen, counted and deleted."""
        try:
            return self._describe(name)
        except CorruptMetadataError as error:
            logger.warning("%s", error)
            return describe_by_name(name)

    def _status(self, name: str) -> os.stat_result:
        try:
            status = os.lstat(os.path.join(self._path, name))
        except FileNotFoundError:
            raise NotFoundError(name, _MISSING) from None
        if not stat.S_ISREG(status.st_mode):
            raise NotFoundError(name, _A_LINK if stat.S_ISLNK(status.st_mode) else _NOT_REGULAR)
        return status

    def _full_name(self, name: str) -> str:
        """Return the name of the one artifact that *name* is the name or the stem of."""
        if parse(name) is not None and os.path.lexists(os.path.join(self._path, name)):
            return name
        matches = [full for full in self._names() if full.rpartition(".")[0] == name]
        if len(matches) == 1:
            return matches[0]
        raise NotFoundError(name, f"{len(matches)} files are named so; add the extension" if matches else _MISSING)

    def _describe(self, name: str) -> Description:
        return describe(name, self._content_of(sidecar_name(name)), self._legacy_types, folder=self._path)

    def _legacy_types(self) -> dict[str, str]:
        """Return the types that an older tool recorded, read again only when its file changed."""
        path = os.path.join(self._path, LEGACY_RECORD)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return {}
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._legacy.version != version:
            self._legacy = self._load_legacy_record(path, version)
        if self._legacy.damage:
            raise CorruptMetadataError(self._legacy.damage)
        return self._legacy.types

    def _load_legacy_record(self, path: str, version: tuple[int, int, int]) -> _LegacyRecord:
        try:
            raw = self._content_of(LEGACY_RECORD)
            return _LegacyRecord(version, {} if raw is None else read_legacy_record(raw, path))
        except (CorruptMetadataError, PermissionError) as error:
            logger.warning("%s", error)
            return _LegacyRecord(version, damage=str(error))

    def _content_of(self, name: str) -> bytes | None:
        try:
            with self._opened(name) as descriptor:
                return _read_fully(descriptor, 0, min(os.fstat(descriptor).st_size, LARGEST_METADATA))
        except NotFoundError:
            return None

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        try:
            descriptor = os.open(os.path.join(self._path, name), _READ)
        except OSError as error:
            if error.errno not in _NO_SUCH_FILE:
                raise
            raise NotFoundError(name, _NO_SUCH_FILE[error.errno]) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotFoundError(name, _NOT_REGULAR)
            yield descriptor
        finally:
            os.close(descriptor)

    def _mark_used(self, descriptor: int, stored_at: float) -> None:
        try:
            os.utime(descriptor, ns=(_nanoseconds(self._clock()), _nanoseconds(stored_at)))
        except OSError as error:
            # What may only be read is still worth reading.
            logger.debug("cannot note a use in %s: %s", self._given, error)


def _is_whole(status: os.stat_result, description: Description) -> bool:
    return description.size is None or description.size == status.st_size


def _last_used(status: os.stat_result, stored_at: float) -> float:
    """Return the access time if it is ours: it is, once the modification time is the time of storing."""
    return status.st_atime_ns / 1e9 if status.st_mtime_ns == _nanoseconds(stored_at) else stored_at


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e6) * 1_000


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _read_fully(descriptor: int, start: int, length: int) -> bytes:
    if length <= 0:
        return b""
    content = os.pread(descriptor, length, start)
    while len(content) < length and (more := os.pread(descriptor, length - len(content), start + len(content))):
        content += more
    return content
