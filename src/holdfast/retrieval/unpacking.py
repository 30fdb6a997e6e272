"""Messages out of stored batches: all that left up to one of them, or a message by its number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from holdfast.batches import Batch, Missing, all_of, back_from, batches_up_to, holds, holds_whole, part_of, transcript
from holdfast.batches.chains import Link
from holdfast.errors import InvalidValueError, NotFoundError, StorageError
from holdfast.references import HISTORY, KnownReferences
from holdfast.storage.threads import WorkerThreads

__all__ = ["WORKERS", "Unpacked", "Unpacking"]

WORKERS = WorkerThreads(4, name="holdfast-retrieval")
"""Where contents are searched and parsed: whatever a model asks for, the event loop goes on."""


class Unpacked(NamedTuple):
    """What is read of batches, and its type. It stays the same as long as all that it is *made_of* is there."""

    content: bytes
    content_type: str
    made_of: tuple[str, ...] = ()


class Unpacking:
    """Reads batches with *retrieve*, which raises KeyError for what is gone. What they name is known from then on."""

    def __init__(self, retrieve: Callable[[str], Awaitable[tuple[bytes, str]]], known: KnownReferences) -> None:
        self._retrieve = retrieve
        self._known = known

    async def unpacked(self, name: str, content: bytes, number: str) -> Unpacked:
        """Return what is asked of the batch *name*, for reading: all of it if *number* is empty.

        Raises NotFoundError if there is no such message, DamagedContentError if it is damaged, and what the storage
        says if it may be in a batch that cannot be read just now.
        """
        batch = await self._read(content)
        if number:
            return Unpacked(*await self._part(name, batch, number))
        links, earlier = await batches_up_to(name, batch, self._batch)
        text = await WORKERS.run(transcript, links, earlier)
        return Unpacked(text, "text/plain", _made_of(links))

    async def _part(self, name: str, batch: Batch, number: str) -> tuple[bytes, str]:
        """Return a message or a part of it, from as far back as it has to be looked for."""
        unread: StorageError | None = None
        async for earlier, there in back_from(name, batch, self._batch):
            if isinstance(there, Missing):
                unread = unread or there.error
            elif await WORKERS.run(holds, there, number):
                return await self._all_of(earlier, there, number)
        if unread is not None and not batch.has_lost(number):
            raise unread
        raise NotFoundError(f"{name}#{number}", _why_not_found(name, batch, number))

    async def _all_of(self, name: str, batch: Batch, number: str) -> tuple[bytes, str]:
        """Return a message or a part of it as it was before anything was left out; if that is gone, what was left."""
        if (place := all_of(batch, number)) is not None:
            there = await self._batch(place[0])
            if isinstance(there, Missing) and there.error is not None:
                raise there.error
            if isinstance(there, Batch) and holds_whole(there, place[1]):
                return await WORKERS.run(part_of, place[0], there, place[1])
        return await WORKERS.run(part_of, name, batch, number)

    async def _batch(self, reference: str) -> Batch | Missing:
        """Return a batch, or why there is none."""
        try:
            content, _ = await self._retrieve(reference)
            return await self._read(content)
        except KeyError:
            return Missing("is not stored any more")
        except InvalidValueError:
            return Missing("is damaged and cannot be shown")
        except StorageError as error:
            return Missing(f"cannot be read just now: {error}", error)

    async def _read(self, content: bytes) -> Batch:
        batch = await WORKERS.run(Batch.read, content)
        for earlier in batch.before:
            self._known.learn(earlier, HISTORY)
        return batch


def _made_of(links: Sequence[Link]) -> tuple[str, ...]:
    """Return the batches that a transcript is of; none if there may be more the next time."""
    if any(isinstance(there, Missing) and there.error is not None for _, there in links):
        return ()
    return tuple(name for name, there in links if isinstance(there, Batch))


def _why_not_found(name: str, batch: Batch, number: str) -> str:
    if batch.has_lost(number):
        return "it could not be stored when it left, and is lost"
    message = number.partition(".")[0]
    return f"message {message} is not among those that left with {name} or before it and are still stored"
