"""A directory of artifacts inside a sandbox, reached only by the sandbox's own file operations."""

from __future__ import annotations

import itertools
import os
import posixpath
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from holdfast.errors import InvalidTypeError, NotFoundError, StorageError
from holdfast.storage.faults import explained
from holdfast.storage.metadata import (
    LEGACY_RECORD,
    Description,
    describe,
    encode_sidecar,
    read_legacy_record,
    sidecar_name,
)
from holdfast.storage.names import file_name, known_extensions, parse
from holdfast.storage.protocols import Entry, Part

__all__ = ["Sandbox", "SandboxDirectory"]

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


class SandboxDirectory:
    """Artifacts in a sandbox. It has no rename, so a sidecar written first tells a whole content from a part."""

    def __init__(self, artifact_dir: str, sandbox: Sandbox, *, clock: Callable[[], float]) -> None:
        if not isinstance(sandbox, Sandbox):
            raise InvalidTypeError(
                "a sandbox needs async read_file, write_file, read_text and write_text, "
                f"and {type(sandbox).__name__} lacks some of them"
            )
        self._path = artifact_dir
        self._sandbox = sandbox
        self._clock = clock
        # Nothing can be created exclusively in a sandbox, so writers start their numbers far apart.
        self._numbers = itertools.count(int.from_bytes(os.urandom(5), "big"))

    async def is_at(self, folder: str) -> bool:
        """Say whether *folder* names this directory. It is untrusted, so only its text is looked at."""
        return posixpath.normpath(folder) == posixpath.normpath(self._path)

    async def write(self, key: str, content: bytes, content_type: str) -> str:
        """Write sidecar, then content. The entry exists from the moment its content is whole."""
        name = file_name(int(self._clock() * 1000), next(self._numbers), key, content_type)
        sidecar = encode_sidecar(key, content_type, len(content))
        with explained(f"store in {self._path} of the sandbox"):
            await self._sandbox.write_text(self._at(sidecar_name(name)), sidecar)
            await self._sandbox.write_file(self._at(name), content)
        return name

    async def read(self, name: str, start: int, end: int | None) -> Part:
        """Read a file by its name or stem."""
        name, content = await self._find(name)
        description = await self._describe(name)
        if description.size not in (None, len(content)):
            raise NotFoundError(name, "its content is not complete")
        return Part(content[start:end], description.content_type, start, len(content))

    async def remove(self, name: str) -> None:
        """Remove a file by its name or stem."""
        remove_file = self._optional("remove_file")
        name, _ = await self._find(name)
        with explained(f"remove {name} from the sandbox"):
            for path in (name, sidecar_name(name)):
                with suppress(*_ABSENT):
                    await remove_file(self._at(path))

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield what is there, with bare names as references. A sandbox tells no time of use but the first."""
        for name in await self._names():
            with suppress(NotFoundError):
                content = await self._content(name)
                about = await self._describe(name)
                if about.size in (None, len(content)):
                    yield Entry(name, about.key, about.content_type, len(content), about.stored_at, about.stored_at)

    async def clear(self) -> None:
        """Remove every artifact."""
        for name in await self._names():
            with suppress(NotFoundError):
                await self.remove(name)

    def _at(self, name: str) -> str:
        return posixpath.join(self._path, name)

    def _optional(self, operation: str) -> Any:
        """Return an operation that not every sandbox has."""
        method = getattr(self._sandbox, operation, None)
        if method is None:
            raise StorageError(f"this needs a sandbox with {operation}, which {type(self._sandbox).__name__} lacks")
        return method

    async def _names(self) -> list[str]:
        list_files = self._optional("list_files")
        with explained(f"list {self._path} of the sandbox"):
            try:
                listing = await list_files(self._path)
            except _ABSENT:
                return []
        return [info.name for info in listing if not info.is_dir and parse(info.name) is not None]

    async def _find(self, name: str) -> tuple[str, bytes]:
        candidates = [name] if parse(name) else []
        for candidate in candidates + [f"{name}.{extension}" for extension in known_extensions()]:
            with suppress(NotFoundError):
                return candidate, await self._content(candidate)
        raise NotFoundError(name, "no such file in the sandbox: never stored there, or deleted")

    async def _content(self, name: str) -> bytes:
        with explained(f"read {name} in the sandbox"):
            try:
                return await self._sandbox.read_file(self._at(name))
            except _ABSENT:
                raise NotFoundError(name, "no such file in the sandbox: never stored there, or deleted") from None

    async def _describe(self, name: str) -> Description:
        sidecar = await self._text(sidecar_name(name))
        legacy = await self._text(LEGACY_RECORD) if sidecar is None else None
        description = describe(
            name,
            sidecar,
            lambda: {} if legacy is None else read_legacy_record(legacy, self._at(LEGACY_RECORD)),
        )
        if description is None:
            raise NotFoundError(name, "nothing stored here has a name of this form")
        return description

    async def _text(self, name: str) -> str | None:
        with explained(f"read {name} in the sandbox"):
            try:
                return await self._sandbox.read_text(self._at(name))
            except _ABSENT:
                return None
