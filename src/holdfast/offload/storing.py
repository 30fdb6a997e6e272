"""Contents are stored together within a time limit, or none of them is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from holdfast.errors import StorageAccessError, StorageError
from holdfast.eviction import in_chain, new_chain
from holdfast.offload.plans import Storable
from holdfast.storage import Storage, SupportsDelete
from holdfast.storage.protocols import offers

__all__ = ["Storing"]

logger = logging.getLogger(__name__)

# How much longer than allowed a store that was given up may go on before it is cancelled, its outcome unknown.
_PATIENCE = 10


class Storing:
    """Stores what belongs together, in one chain of eviction, and takes it back if any of it fails."""

    def __init__(self, storage: Storage, timeout: float) -> None:
        self._storage = storage
        self._timeout = timeout
        self._withdrawals: set[asyncio.Task[None]] = set()

    async def store(self, contents: Iterable[tuple[str, Storable]]) -> list[str]:
        """Return a reference for each content with its key, in their order.

        Raises if any cannot be stored in time; then, and if this is cancelled, the others are deleted again.
        """
        stores: list[asyncio.Future[str]] = []
        try:
            with in_chain(new_chain()):
                for key, storable in contents:
                    store = self._storage.store(key, storable.content, storable.content_type)
                    stores.append(asyncio.ensure_future(store))
            await self._in_time(stores)
            return [_reference_of(store) for store in stores]
        except BaseException:
            self._withdraw(stores)
            raise

    async def delete(self, references: Iterable[str]) -> None:
        """Delete what is not needed after all. What cannot be deleted is logged."""
        for reference in references:
            await self._delete(reference)

    async def aclose(self) -> None:
        """Wait until what was not stored as a whole is deleted."""
        own = [task for task in self._withdrawals if task.get_loop() is asyncio.get_running_loop()]
        await asyncio.gather(*own)

    async def _in_time(self, stores: Sequence[asyncio.Future[str]]) -> None:
        done, pending = await asyncio.wait(stores, timeout=self._timeout, return_when=asyncio.FIRST_EXCEPTION)
        for store in done:
            _reference_of(store)
        if pending:
            raise StorageAccessError(f"the storage took longer than {self._timeout:g} seconds")

    def _withdraw(self, stores: Sequence[asyncio.Future[str]]) -> None:
        if stores:
            withdrawal = asyncio.create_task(self._delete_stored(stores))
            self._withdrawals.add(withdrawal)
            withdrawal.add_done_callback(self._withdrawals.discard)

    async def _delete_stored(self, stores: Sequence[asyncio.Future[str]]) -> None:
        # A store that is cancelled may still succeed without anybody knowing its reference. So it is waited for.
        done, pending = await asyncio.wait(stores, timeout=self._timeout * _PATIENCE)
        for store in pending:
            store.cancel()
        if pending:
            logger.warning("%d contents may be left in the storage: it never answered", len(pending))
        await self.delete(store.result() for store in done if _was_stored(store))

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


def _was_stored(store: asyncio.Future[str]) -> bool:
    try:
        return bool(_reference_of(store))
    except Exception:
        # Why it failed was told to whoever stored it.
        return False
