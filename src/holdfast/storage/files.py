"""Contents kept as files, on the host or through a sandbox."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from holdfast.checks import check_flag
from holdfast.errors import InvalidTypeError, InvalidValueError, NotFoundError
from holdfast.storage.checks import check_range, check_reference, check_store, check_touch
from holdfast.storage.local_directory import LocalDirectory
from holdfast.storage.names import may_be_artifact
from holdfast.storage.protocols import Entry, Part
from holdfast.storage.sandbox_directory import Sandbox, SandboxDirectory, is_the_host

__all__ = ["FileStorage"]


class _Directory(Protocol):
    """A flat directory of artifacts. It is only ever given bare names, or stems, of their form."""

    notes_uses: bool

    async def is_at(self, folder: str) -> bool: ...

    async def write(self, key: str, content: bytes, content_type: str) -> str: ...

    async def read(self, name: str, start: int, end: int | None) -> Part: ...

    async def inspect(self, name: str) -> Entry: ...

    async def touch(self, name: str, used_at: float, content_type: str | None) -> None: ...

    async def remove(self, name: str) -> None: ...

    def entries(self) -> AsyncIterator[Entry]: ...

    async def clear(self) -> None: ...


class FileStorage:
    """Keeps contents as files in one directory, which other processes may use at the same time.

    A content appears whole or not at all. With *fsync* it is on the disk when `store` returns. References have the
    form of *artifact_dir*: relative stays relative, absolute stays absolute. A relative one is taken from where the
    process is at its first use, and stays there. With a *sandbox*, all reading and writing goes through it, unless it
    is the host under another name.
    """

    def __init__(
        self,
        artifact_dir: str | os.PathLike[str] = "./artifacts",
        *,
        sandbox: Sandbox | None = None,
        fsync: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(artifact_dir, (str, os.PathLike)):
            raise InvalidTypeError(f"artifact_dir must be a path, got {type(artifact_dir).__name__}")
        self._artifact_dir = os.fspath(artifact_dir)
        if not isinstance(self._artifact_dir, str) or not self._artifact_dir or "\0" in self._artifact_dir:
            raise InvalidValueError(f"artifact_dir must be a path such as './artifacts', got {artifact_dir!r}")
        check_flag("fsync", fsync)
        self._sandbox = sandbox
        self._fsync = fsync
        self._clock = clock
        self._directory = self._open_directory()

    @property
    def clock(self) -> Callable[[], float]:
        """Where times come from: seconds since the epoch."""
        return self._clock

    @property
    def notes_uses(self) -> bool:
        """Whether `retrieve` writes down the use for other processes. A sandbox has no place for it."""
        return self._directory.notes_uses

    def for_sandbox(self, sandbox: Sandbox) -> FileStorage:
        """Return this storage bound to *sandbox*; one that already has a sandbox keeps it and returns itself."""
        if self._sandbox is not None:
            return self
        return FileStorage(self._artifact_dir, sandbox=sandbox, fsync=self._fsync, clock=self._clock)

    def _open_directory(self) -> _Directory:
        if self._sandbox is None or is_the_host(self._sandbox):
            return LocalDirectory(self._artifact_dir, fsync=self._fsync, clock=self._clock)
        if self._fsync:
            raise InvalidValueError("fsync=True is for the host's disk; a sandbox offers no fsync. Drop one of the two")
        return SandboxDirectory(self._artifact_dir, self._sandbox, clock=self._clock)

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Write a file and return its path, such as ``./artifacts/1763236334512_1_key.txt``."""
        check_store(key, content, content_type)
        return self._reference(await self._directory.write(key, content, content_type))

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type. A bare file name, with or without its extension, does as well."""
        part = await self._read(reference, 0, None)
        return part.content, part.content_type

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Read a part of a file without reading the rest."""
        check_range(start, end)
        return await self._read(reference, start, end)

    async def inspect(self, reference: str) -> Entry:
        """Return what is known of one file, under the path that `store` returned. Takes what `retrieve` takes."""
        name = await self._name_in(reference)
        try:
            entry = await self._directory.inspect(name)
        except NotFoundError as error:
            raise NotFoundError(reference, error.reason) from None
        return replace(entry, reference=self._reference(entry.reference))

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Note a use, and another content type if one is given. In a sandbox, the content type only."""
        check_touch(used_at, content_type)
        with suppress(NotFoundError):
            await self._directory.touch(await self._name_in(reference), used_at, content_type)

    async def delete(self, reference: str) -> None:
        """Remove one file. Quiet if there is none, or none of this directory."""
        with suppress(NotFoundError):
            await self._directory.remove(await self._name_in(reference))

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield an entry for every artifact in the directory, whichever process wrote it."""
        async for entry in self._directory.entries():
            yield replace(entry, reference=self._reference(entry.reference))

    async def clear(self) -> None:
        """Remove every artifact. Files of other kinds, and the directory itself, stay."""
        await self._directory.clear()

    async def _read(self, reference: str, start: int, end: int | None) -> Part:
        name = await self._name_in(reference)
        try:
            return await self._directory.read(name, start, end)
        except NotFoundError as error:
            raise NotFoundError(reference, error.reason) from None

    def _reference(self, name: str) -> str:
        return os.path.join(self._artifact_dir, name)

    async def _name_in(self, reference: str) -> str:
        folder, name = os.path.split(check_reference(reference))
        if folder and folder != self._artifact_dir and not await self._directory.is_at(folder):
            raise NotFoundError(reference, f"it is outside {self._artifact_dir}, which is all this storage may read")
        if not may_be_artifact(name):
            raise NotFoundError(reference, "nothing stored here is named so; pass exactly what store() returned")
        return name
