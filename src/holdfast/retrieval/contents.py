"""Stored contents, read as lines, in parts wherever the storage can."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from holdfast.batches import BATCH_TYPE, grouped, parted
from holdfast.errors import HoldfastError, NotFoundError, StorageAccessError, StorageError, StorageTimeoutError
from holdfast.media_types import essence, is_textual
from holdfast.patterns.lines import BLOCK_BYTES, LineIndex, LineWindow
from holdfast.references import HISTORY, KnownReferences
from holdfast.retrieval.unpacking import WORKERS, Unpacking
from holdfast.storage import Storage, SupportsInspect, SupportsRange
from holdfast.storage.protocols import offers

__all__ = ["WORKERS", "StoredContent", "StoredContents", "decoded", "is_text"]

_T = TypeVar("_T")

_MOST_INDEXES, _MOST_BYTES = 256, 32_000_000
_SAMPLE = 4_096


@dataclass(frozen=True)
class StoredContent:
    """What is known of a content. It holds the content itself only if that had to be read anyway.

    Messages out of batches are not stored as they are read: they are *made_of* these, a transcript of all of them.
    """

    reference: str
    content_type: str
    index: LineIndex
    is_text: bool
    made_of: tuple[str, ...] | None = None
    content: bytes | None = field(default=None, repr=False)


class StoredContents:
    """Opens contents by reference. Where lines are is found out once, and remembered for the latest 256 contents.

    The latest transcripts are kept whole, 32 MB of them: making one takes reading all its batches.
    Batches of messages are unpacked, unless they are *known* as anything else: what a tool gave, or a text claims, is
    no part of this conversation whatever it says of itself.
    """

    def __init__(self, storage: Storage, known: KnownReferences, timeout: float) -> None:
        self._storage = storage
        self._references = known
        self._unpacking = Unpacking(self._retrieved, known)
        self._timeout = timeout
        self._known: OrderedDict[str, StoredContent] = OrderedDict()

    async def open(self, reference: str) -> StoredContent:
        """Return what is known of a content. Raises KeyError if the reference leads to nothing."""
        if (known := self._known.get(reference)) is not None and await self._is_current(known):
            self._remember(known)
            return known
        content, content_type, made_of = await self._unpacked(reference)
        index = await WORKERS.run(LineIndex.of, content)
        known = StoredContent(reference, content_type, index, is_text(content, content_type), made_of)
        opened = replace(known, content=content)
        if made_of is None or made_of:
            self._remember(opened if made_of else known)
        return opened

    async def _is_current(self, known: StoredContent) -> bool:
        """Say whether nothing is gone of what a content is made of: then it is another one."""
        try:
            for group in grouped(known.made_of or ()):
                if not all(await asyncio.gather(*map(self.has, group))):
                    return False
        except StorageError:
            return False
        return True

    def _remember(self, known: StoredContent) -> None:
        self._known[known.reference] = known
        self._known.move_to_end(known.reference)
        kept = [each for each in self._known.values() if each.content is not None]
        size = sum(each.index.size for each in kept)
        while size > _MOST_BYTES:
            size -= kept[0].index.size
            del self._known[kept.pop(0).reference]
        if len(self._known) > _MOST_INDEXES:
            self._known.popitem(last=False)

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
        content, _, _ = await self._unpacked(opened.reference)
        return content

    async def stored(self, reference: str) -> tuple[bytes, str]:
        """Return a content and its type as the storage has it. Raises KeyError if the reference leads to nothing."""
        return await self._retrieved(reference)

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
        is_stored_so = opened.content is None and opened.made_of is None
        if is_stored_so and isinstance(self._storage, SupportsRange) and offers(self._storage, SupportsRange):
            part = await self._answered(self._storage.retrieve_range(opened.reference, start, end))
            return _checked(getattr(part, "content", None), end - start)
        return _checked((await self.whole(opened))[start:end], end - start)

    async def _unpacked(self, reference: str) -> tuple[bytes, str, tuple[str, ...] | None]:
        """Return a content, its type, and what batches it is made of; None if it is stored as it is."""
        name, number = parted(reference)
        try:
            content, content_type = await self._retrieved(name)
        except KeyError as error:
            # A storage may give references that only look like a part of something.
            if number:
                with suppress(KeyError):
                    return (*await self._retrieved(reference), None)
            self._check_number(reference)
            raise error
        if essence(content_type) == BATCH_TYPE and self._may_be_history(name):
            return await self._unpacking.unpacked(name, content, number)
        return (*((content, content_type) if not number else await self._retrieved(reference)), None)

    def _may_be_history(self, name: str) -> bool:
        return name not in self._references or self._references.tool_of(name) == HISTORY

    def _check_number(self, reference: str) -> None:
        """Raise if a message is asked for by anything else than its number."""
        name, _, asked = reference.rpartition("#")
        if parted(reference)[0] == reference and self._references.tool_of(name) == HISTORY:
            raise NotFoundError(
                reference, f"one number follows #, as in {name}#7 or {name}#7.2, and not {asked!r:.80}; ask one by one"
            )

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
            raise StorageTimeoutError(f"the storage did not answer within {self._timeout:g} seconds") from None
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


def is_text(content: bytes, content_type: str) -> bool:
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
