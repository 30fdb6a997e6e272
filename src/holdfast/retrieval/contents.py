"""Stored contents, read as lines, in parts wherever the storage can."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import HoldfastError, StorageAccessError
from holdfast.media_types import is_textual
from holdfast.patterns.lines import BLOCK_BYTES, LineIndex, LineWindow
from holdfast.storage import Storage, SupportsInspect, SupportsRange
from holdfast.storage.protocols import offers
from holdfast.storage.threads import WorkerThreads

__all__ = ["WORKERS", "StoredContent", "StoredContents", "decoded"]

WORKERS = WorkerThreads(4, name="holdfast-retrieval")
"""Where contents are searched and parsed: whatever a model asks for, the event loop goes on."""

_T = TypeVar("_T")

_MOST_INDEXES = 256
_SAMPLE = 4_096


@dataclass(frozen=True)
class StoredContent:
    """What is known of a content. It holds the content itself only if that had to be read anyway."""

    reference: str
    content_type: str
    index: LineIndex
    is_text: bool
    content: bytes | None = field(default=None, repr=False)


class StoredContents:
    """Opens contents by reference. Where lines are is found out once, and remembered for the latest 256 contents."""

    def __init__(self, storage: Storage, timeout: float) -> None:
        self._storage = storage
        self._timeout = timeout
        self._known: OrderedDict[str, StoredContent] = OrderedDict()

    async def open(self, reference: str) -> StoredContent:
        """Return what is known of a content. Raises KeyError if the reference leads to nothing."""
        if (known := self._known.get(reference)) is not None:
            self._known.move_to_end(reference)
            return known
        content, content_type = await self._retrieved(reference)
        index = await WORKERS.run(LineIndex.of, content)
        known = StoredContent(reference, content_type, index, _is_text(content, content_type))
        self._known[reference] = known
        if len(self._known) > _MOST_INDEXES:
            self._known.popitem(last=False)
        return StoredContent(reference, content_type, index, known.is_text, content)

    async def has(self, reference: str) -> bool:
        """Say whether a content is there, without counting it as used. A storage that cannot tell is believed."""
        if not (isinstance(self._storage, SupportsInspect) and offers(self._storage, SupportsInspect)):
            return True
        try:
            await self._answered(self._storage.inspect(reference))
        except KeyError:
            self._known.pop(reference, None)
            return False
        return True

    async def whole(self, opened: StoredContent) -> bytes:
        """Return all of a content."""
        if opened.content is not None:
            return opened.content
        content, _ = await self._retrieved(opened.reference)
        return content

    async def lines(self, opened: StoredContent, first: int, last: int, most_bytes: int) -> list[str]:
        """Return the lines from *first* to *last* that end within *most_bytes*: none if the first does not."""
        window = opened.index.window_for(first, last)
        end = min(window.end, window.start + BLOCK_BYTES + most_bytes)
        part = await self._part(opened, window.start, end)
        return await WORKERS.run(_lines_in, part, window, first, last, end < window.end)

    async def bytes_of(self, opened: StoredContent, first: int, last: int) -> bytes:
        """Return all from line *first* to line *last*, without the last one's end."""
        window = opened.index.window_for(first, last)
        part = await self._part(opened, window.start, window.end)
        return await WORKERS.run(_bytes_in, part, window, first, last)

    async def _part(self, opened: StoredContent, start: int, end: int) -> bytes:
        if opened.content is None and isinstance(self._storage, SupportsRange) and offers(self._storage, SupportsRange):
            part = await self._answered(self._storage.retrieve_range(opened.reference, start, end))
            return _checked(getattr(part, "content", None), end - start)
        return _checked((await self.whole(opened))[start:end], end - start)

    async def _retrieved(self, reference: str) -> tuple[bytes, str]:
        match await self._answered(self._storage.retrieve(reference)):
            case (bytes(content), str(content_type)):
                return content, content_type
            case other:
                raise StorageAccessError(f"the storage returned {type(other).__name__} instead of bytes and their type")

    async def _answered(self, answer: Awaitable[_T]) -> _T:
        """Return what the storage answers; whatever it raises otherwise is told as a StorageError."""
        try:
            return await asyncio.wait_for(answer, self._timeout)
        except asyncio.TimeoutError:
            raise StorageAccessError(f"the storage did not answer within {self._timeout:g} seconds") from None
        except (HoldfastError, KeyError):
            raise
        except Exception as error:
            # A storage may be anybody's, and the model is to be told that it failed, not the agent to stop.
            raise StorageAccessError(f"the storage failed: {error!r:.300}") from error


def decoded(content: bytes) -> str:
    """Return text for the eyes of a model: what is no UTF-8 is shown as such."""
    return content.decode("utf-8", "replace")


def _checked(part: object, size: int) -> bytes:
    if not isinstance(part, bytes) or len(part) != size:
        raise StorageAccessError(f"the storage did not return the {size:,} bytes that it was asked for")
    return part


def _bytes_in(part: bytes, window: LineWindow, first: int, last: int) -> bytes:
    start, end = window.bounds(part, first, last)
    return part[start - window.start : end - window.start].removesuffix(b"\n").removesuffix(b"\r")


def _lines_in(part: bytes, window: LineWindow, first: int, last: int, is_cut: bool) -> list[str]:
    start, end = window.bounds(part, first, last)
    lines = part[start - window.start : end - window.start].split(b"\n")
    # After the last line feed stands nothing, or the beginning of a line that was not read to its end.
    if is_cut or not lines[-1]:
        lines.pop()
    return [decoded(line.removesuffix(b"\r")) for line in lines]


def _is_text(content: bytes, content_type: str) -> bool:
    """Say whether a content is read as lines: by its type, or else by how it begins."""
    if is_textual(content_type):
        return True
    if content_type.startswith(("image/", "audio/", "video/", "application/pdf")) or b"\0" in content[:_SAMPLE]:
        return False
    try:
        # A character may be cut at the end of the sample.
        content[:_SAMPLE].decode()
    except UnicodeDecodeError as error:
        return error.start > _SAMPLE - 4
    return True
