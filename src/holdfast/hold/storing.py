"""Contents are stored together within a time limit, or none of them is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.errors import StorageAccessError, StorageError, StorageTimeoutError
from holdfast.eviction import in_chain, new_chain
from holdfast.storage import Storage, SupportsDelete
from holdfast.storage.protocols import offers

__all__ = ["Content", "Storing"]

logger = logging.getLogger(__name__)

# How much longer than allowed a store that was given up may go on before it is cancelled, its outcome unknown.
_PATIENCE = 10


class Content(NamedTuple):
    """What is to be stored, as `Storage.store` takes it."""

    key: str
    content: bytes
    content_type: str


class Storing:
    """Stores what belongs together, in one chain of eviction, and takes it back if any of it fails."""

    def __init__(self, storage: Storage, timeout: float) -> None:
        self._storage = storage
        self._timeout = timeout
        self._withdrawals: set[asyncio.Task[None]] = set()

    async def store(self, contents: Iterable[Content]) -> list[str]:
        """Return a reference for each content, in their order.

        Raises if any cannot be stored in time; then, and if this is cancelled, the others are deleted again.
        """
        stores: list[asyncio.Future[str]] = []
        try:
            with in_chain(new_chain()):
                for content in contents:
                    stores.append(asyncio.ensure_future(self._storage.store(*content)))
            await self._in_time(stores)
            return [_reference_of(store) for store in stores]
        except BaseException:
            self._withdraw(stores)
            raise

    async def delete(self, references: Iterable[str]) -> None:
        """Delete what is not needed after all. What cannot be deleted is logged."""
        for reference in references:
            await self._delete(reference)

    def take_back(self, references: Sequence[str]) -> None:
        """Delete what is not needed after all, in the background: whoever is cancelled leaves nothing behind."""
        self._begin(self.delete(references))

    async def aclose(self) -> None:
        """Wait until what was not stored as a whole is deleted, for as long as the storage has for an answer."""
        own = [task for task in self._withdrawals if task.get_loop() is asyncio.get_running_loop()]
        _, late = await asyncio.wait(own, timeout=self._timeout) if own else ((), ())
        for task in late:
            task.cancel()
        if late:
            logger.warning("what was not stored as a whole may be left in the storage: it did not answer in time")
        await asyncio.gather(*late, return_exceptions=True)

    async def _in_time(self, stores: Sequence[asyncio.Future[str]]) -> None:
        done, pending = await asyncio.wait(stores, timeout=self._timeout, return_when=asyncio.FIRST_EXCEPTION)
        for store in done:
            _reference_of(store)
        if pending:
            raise StorageTimeoutError(f"the storage took longer than {self._timeout:g} seconds")

    def _withdraw(self, stores: Sequence[asyncio.Future[str]]) -> None:
        if stores:
            self._begin(self._delete_stored(stores))

    def _begin(self, deleting: Coroutine[Any, Any, None]) -> None:
        withdrawal = asyncio.create_task(deleting)
        self._withdrawals.add(withdrawal)
        withdrawal.add_done_callback(self._withdrawals.discard)

    async def _delete_stored(self, stores: Sequence[asyncio.Future[str]]) -> None:
        # A store that is cancelled may still succeed without anybody knowing its reference. So it is waited for.
        try:
            await asyncio.wait(stores, timeout=self._timeout * _PATIENCE)
        finally:
            stored = [store.result() for store in stores if _was_stored(store)]
            _give_up([store for store in stores if not store.done()])
        await self.delete(stored)

    async def _delete(self, reference: str) -> None:
        if not (isinstance(self._storage, SupportsDelete) and offers(self._storage, SupportsDelete)):
            logger.warning("%r is left in the storage: it cannot delete", reference)
            return
        try:
            await asyncio.wait_for(self._storage.delete(reference), self._timeout)
        except Exception as error:
            # A storage may be anybody's, and raise anything; the next content is to be deleted all the same.
            logger.warning("%r is left in the storage: it could not be deleted: %r", reference, error)


def _reference_of(store: asyncio.Future[str]) -> str:
    if store.cancelled():
        raise StorageAccessError("the storage gave up")
    reference = store.result()
    if not isinstance(reference, str) or not reference:
        raise StorageError(f"the storage returned {reference!r:.80} instead of a reference")
    return reference


def _give_up(stores: Sequence[asyncio.Future[str]]) -> None:
    for store in stores:
        store.cancel()
    if stores:
        logger.warning("%d contents may be left in the storage: it never answered", len(stores))


def _was_stored(store: asyncio.Future[str]) -> bool:
    try:
        return store.done() and bool(_reference_of(store))
    except Exception:
        # Why it failed was told to whoever stored it.
        return False
