"""A search index over a conversation's contents, made while the model thinks."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from holdfast.errors import HoldfastError
from holdfast.references import KnownReferences
from holdfast.retrieval.contents import WORKERS, StoredContents, decoded
from holdfast.search import SearchAnswer, SearchIndex

__all__ = ["Indexing"]

logger = logging.getLogger(__name__)

_MOST_WAITING = 64_000_000


class Indexing:
    """Indexes what was stored, in the background; what nobody got around to is indexed when somebody searches."""

    def __init__(self, contents: StoredContents, known: KnownReferences) -> None:
        self._contents = contents
        self._known = known
        self._index: SearchIndex | None = None
        self._indexed: set[str] = set()
        self._waiting: OrderedDict[str, bytes] = OrderedDict()
        self._waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, reference: str, content: bytes) -> None:
        """Let a text be found. What waits too long in line is read from the storage again when it is needed."""
        self._waiting[reference] = content
        self._waiting_bytes += len(content)
        while self._waiting_bytes > _MOST_WAITING:
            self._take()

    def begin(self) -> None:
        """Begin to index what was added. This is a good moment for it: the model is about to be called."""
        if self._waiting and self._own_task() is None:
            self._task = asyncio.create_task(self._index_in_the_background())

    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Search in all that is known, after a restart also in what only the storage still has."""
        while (task := self._own_task()) is not None:
            await asyncio.wait([task])
        # A task of its own, so that another search waits for it and a search that is given up does not stop it.
        self._task = asyncio.create_task(self._catch_up())
        await asyncio.shield(self._task)
        return await self._opened().search(query, limit)

    async def forget(self, reference: str) -> None:
        """Let a content that is gone be found no more."""
        self._known.forget(reference)
        await self._opened().remove([reference])

    async def aclose(self) -> None:
        """Forget the index. A later search makes a new one."""
        self._waiting.clear()
        self._waiting_bytes = 0
        if (task := self._own_task()) is not None:
            await asyncio.wait([task])
        index, self._index = self._index, None
        self._indexed.clear()
        if index is not None:
            await index.aclose()

    def _own_task(self) -> asyncio.Task[None] | None:
        """Return what is under way in this event loop. What another loop began, and left, nobody waits for."""
        task = self._task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task

    def _opened(self) -> SearchIndex:
        if self._index is None:
            self._index = SearchIndex()
        return self._index

    def _take(self) -> tuple[str, bytes]:
        reference, content = self._waiting.popitem(last=False)
        self._waiting_bytes -= len(content)
        return reference, content

    async def _index_in_the_background(self) -> None:
        try:
            await self._index_waiting()
        except HoldfastError as error:
            logger.warning("what was offloaded cannot be searched: %s", error)

    async def _catch_up(self) -> None:
        await self._index_waiting()
        await self._remove_forgotten()
        for reference in [reference for reference in self._known if reference not in self._indexed]:
            await self._index_stored(reference)

    async def _index_waiting(self) -> None:
        while self._waiting:
            reference, content = self._take()
            if reference in self._known:
                await self._index_text(reference, content)

    async def _remove_forgotten(self) -> None:
        forgotten = [reference for reference in self._indexed if reference not in self._known]
        if forgotten:
            await self._opened().remove(forgotten)
            self._indexed.difference_update(forgotten)

    async def _index_stored(self, reference: str) -> None:
        try:
            opened = await self._contents.open(reference)
            if opened.is_text:
                await self._index_text(reference, await self._contents.whole(opened))
            self._indexed.add(reference)
        except KeyError:
            self._known.forget(reference)

    async def _index_text(self, reference: str, content: bytes) -> None:
        text = await WORKERS.run(decoded, content)
        await self._opened().add(reference, text, title=self._known.tool_of(reference))
        # Not before: what is interrupted here is read from the storage the next time.
        self._indexed.add(reference)
