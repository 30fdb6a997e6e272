"""A directory of artifacts inside a sandbox, reached only by the sandbox's own file operations."""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from holdfast.errors import CorruptMetadataError, InvalidTypeError, NotFoundError, StorageError
from holdfast.storage.faults import explained
from holdfast.storage.metadata import (
    LEGACY_RECORD,
    Description,
    describe,
    describe_by_name,
    encode_sidecar,
    read_legacy_record,
    sidecar_name,
)
from holdfast.storage.names import file_name, known_extensions, parse
from holdfast.storage.protocols import Entry, Part

__all__ = ["Sandbox", "SandboxDirectory", "is_the_host"]

logger = logging.getLogger(__name__)

_HOSTS = {"strands.sandbox.not_a_sandbox_local_environment.NotASandboxLocalEnvironment"}
_MISSING = "no such file in the sandbox: never stored there, or deleted"
# What sandboxes raise for a file that is not there; dictionary-backed ones raise KeyError.
_ABSENT = (FileNotFoundError, KeyError)


@runtime_checkable
class Sandbox(Protocol):
    """What a sandbox must offer. One that also has `remove_file` and `list_files` can delete and list."""

    async def read_file(self, path: str) -> bytes:
        """Return a file's bytes, or raise FileNotFoundError."""
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file and the directories above it."""
        ...

    async def read_text(self, path: str) -> str:
        """Return a file's text, or raise FileNotFoundError."""
        ...

    async def write_text(self, path: str, content: str) -> None:
        """Write a text file and the directories above it."""
        ...


def is_the_host(sandbox: Sandbox) -> bool:
    """Say whether a "sandbox" only passes on to this machine's own files, as the default one of strands-agents does.

    Going there directly keeps files private, writes atomic and the event loop free, which that one does not.
    """
    kind = type(sandbox)
    return f"{kind.__module__}.{kind.__qualname__}" in _HOSTS


class SandboxDirectory:
    """Artifacts in a sandbox. It has no rename, so a sidecar written first tells a whole content from a part."""

    notes_uses = False

    def __init__(self, artifact_dir: str, sandbox: Sandbox, *, clock: Callable[[], float]) -> None:
        if not isinstance(sandbox, Sandbox):
            raise InvalidTypeError(
                "a sandbox needs async read_file, write_file, read_text and write_text, "
                f"and {type(sandbox).__name__} lacks some of them"
            )
        self._path = artifact_dir
        self._sandbox = sandbox
        self._clock = clock

    async def is_at(self, folder: str) -> bool:
        """Say whether *folder* names this directory. It is untrusted, so only its text is looked at."""
        return posixpath.normpath(folder) == posixpath.normpath(self._path)

    async def write(self, key: str, content: bytes, content_type: str) -> str:
        """Write sidecar, then content. The entry exists from the moment its content is whole."""
        # Nothing can be created exclusively in a sandbox, so the number is one that nobody else will choose.
        number = int.from_bytes(os.urandom(5), "big")
        name = file_name(int(self._clock() * 1000), number, key, content_type)
        sidecar = encode_sidecar(key, content_type, len(content))
        with explained(f"store in {self._path} of the sandbox"):
            try:
                await self._sandbox.write_text(self._at(sidecar_name(name)), sidecar)
                await self._sandbox.write_file(self._at(name), content)
            except OSError:
                await self._discard(name)
                raise
        return name

    async def read(self, name: str, start: int, end: int | None) -> Part:
        """Read a file by its name or stem."""
        name, content = await self._find(name)
        description = _of_the_whole(content, name, await self._describe(name))
        return Part(content[start:end], description.content_type, start, len(content))

    async def inspect(self, name: str) -> Entry:
        """Describe a file by its name or stem, with its bare name as the reference. Reads it, for its size."""
        name, content = await self._find(name)
        about = _of_the_whole(content, name, await self._describe_at_least_by_name(name))
        return Entry(name, about.key, about.content_type, len(content), about.stored_at, about.stored_at)

    async def touch(self, name: str, used_at: float, content_type: str | None) -> None:
        """Note another content type of a file by its name or stem. There is no place for the time of a use."""
        if content_type is None:
            return
        name, content = await self._find(name)
        about = _of_the_whole(content, name, await self._describe(name))
        if content_type != about.content_type:
            await self._rewrite_sidecar(name, encode_sidecar(about.key, content_type, len(content)))

    async def remove(self, name: str) -> None:
        """Remove a file."""
        remove_file = self._optional("remove_file")
        if parse(name) is None:
            return
        with explained(f"remove {name} from the sandbox"):
            for path in (name, sidecar_name(name)):
                with suppress(*_ABSENT):
                    await remove_file(self._at(path))

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield what is there, with bare names as references. A sandbox tells no time of use but the first."""
        for info in await self._listing():
            with suppress(NotFoundError):
                about = await self._describe_at_least_by_name(info.name)
                size = info.size if info.size is not None else len(await self._content(info.name))
                if about.size in (None, size):
                    yield Entry(info.name, about.key, about.content_type, size, about.stored_at, about.stored_at)

    async def clear(self) -> None:
        """Remove every artifact."""
        for info in await self._listing():
            await self.remove(info.name)

    def _at(self, name: str) -> str:
        return posixpath.join(self._path, name)

    def _optional(self, operation: str) -> Any:
        """Return an operation that not every sandbox has."""
        method = getattr(self._sandbox, operation, None)
        if method is None:
            raise StorageError(f"this needs a sandbox with {operation}, which {type(self._sandbox).__name__} lacks")
        return method

    async def _listing(self) -> list[Any]:
        list_files = self._optional("list_files")
        with explained(f"list {self._path} of the sandbox"):
            try:
                listing = await list_files(self._path)
            except _ABSENT:
                return []
        return [info for info in listing if not info.is_dir and parse(info.name) is not None]

    async def _find(self, name: str) -> tuple[str, bytes]:
        """Return name and content of the artifact that *name* is the name or the stem of."""
        if parse(name) is not None:
            with suppress(NotFoundError):
                return name, await self._content(name)
        for candidate in await self._names_with_stem(name):
            with suppress(NotFoundError):
                return candidate, await self._content(candidate)
        raise NotFoundError(name, _MISSING)

    async def _names_with_stem(self, stem: str) -> list[str]:
        """Ask the sandbox, if it lists files; else guess."""
        if hasattr(self._sandbox, "list_files"):
            return [info.name for info in await self._listing() if info.name.rpartition(".")[0] == stem]
        return [f"{stem}.{extension}" for extension in known_extensions()]

    async def _discard(self, name: str) -> None:
        """Remove what a failed write left, where the sandbox can; else its sidecar gives it away as incomplete."""
        with suppress(StorageError, OSError):
            await self.remove(name)

    async def _rewrite_sidecar(self, name: str, sidecar: str) -> None:
        with explained(f"touch {name} in the sandbox"):
            await self._sandbox.write_text(self._at(sidecar_name(name)), sidecar)
        try:
            await self._content(name)
        except NotFoundError:
            await self._discard(name)

    async def _content(self, name: str) -> bytes:
        with explained(f"read {name} in the sandbox"):
            try:
                return await self._sandbox.read_file(self._at(name))
            except _ABSENT:
                raise NotFoundError(name, _MISSING) from None

    async def _describe(self, name: str) -> Description:
        sidecar = await self._text(sidecar_name(name))
        record = await self._text(LEGACY_RECORD) if sidecar is None else None
        return describe(
            name,
            sidecar,
            lambda: {} if record is None else read_legacy_record(record, self._at(LEGACY_RECORD)),
            folder=self._path,
        )

    async def _describe_at_least_by_name(self, name: str) -> Description:
        """Describe for a listing, where a damaged entry still has to be seen, counted and deleted."""
        try:
            return await self._describe(name)
        except CorruptMetadataError as error:
            logger.warning("%s", error)
            return describe_by_name(name)

    async def _text(self, name: str) -> str | None:
        with explained(f"read {name} in the sandbox"):
            try:
                return await self._sandbox.read_text(self._at(name))
            except _ABSENT:
                return None
            except UnicodeDecodeError:
                return "not text, so it will be found to be damaged"


def _of_the_whole(content: bytes, name: str, description: Description) -> Description:
    if description.size not in (None, len(content)):
        raise NotFoundError(name, "its content is not complete")
    return description
