"""What the chunks of an index mean, as vectors of an embedder, made in the background."""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from holdfast.search.database import Database, StoredChunk
from holdfast.search.embedding import Embedding
from holdfast.search.vectors import Vectors

__all__ = ["Meanings"]

_CHUNKS_AT_ONCE = 32
_LONGEST_QUERY = 20_000
# Of an embedder that fails for ever. The oldest fall out, and are found by words.
_MOST_WAITING = 100_000


class Meanings:
    """Gives each chunk its vector, a batch after the other. Chunks that wait for theirs are found by words.

    *run* calls a function in the thread of the database, and *grow* is told how much each vector takes of a document.
    """

    def __init__(
        self,
        embedding: Embedding,
        vectors: Vectors,
        database: Database,
        *,
        run: Callable[..., Awaitable[Any]],
        grow: Callable[[Sequence[int], int], Awaitable[None]],
    ) -> None:
        self._embedding = embedding
        self._vectors = vectors
        self._database = database
        self._run = run
        self._grow = grow
        self._waiting: deque[int] = deque(maxlen=_MOST_WAITING)
        self._task: asyncio.Task[None] | None = None

    def expect(self, numbers: Iterable[int]) -> None:
        """Let chunks have their vectors soon, and those that still wait since the embedder failed."""
        self._waiting.extend(numbers)
        if self._waiting and self._own_task() is None:
            self._task = asyncio.create_task(self._work())

    async def vector_of(self, query: str) -> array[float] | None:
        """Return the vector of *query*, or None where there is nothing to compare, or nothing to compare it with."""
        if not len(self._vectors) or not query.strip():
            return None
        return await self._embedding.of_query(query[:_LONGEST_QUERY])

    async def settled(self) -> None:
        """Wait until no chunk waits for its vector, or the embedder fails."""
        self.expect(())
        if task := self._own_task():
            await asyncio.wait([task])

    async def aclose(self) -> None:
        """Leave it at what there is."""
        self._waiting.clear()
        if task := self._own_task():
            task.cancel()
            await asyncio.wait([task])

    def _own_task(self) -> asyncio.Task[None] | None:
        """Return what is under way in this event loop. What another loop began, and left, nobody waits for."""
        task = self._task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task

    async def _work(self) -> None:
        while numbers := list(islice(self._waiting, _CHUNKS_AT_ONCE)):
            chunks: list[StoredChunk] = await self._run(_read, self._database, numbers)
            vectors = await self._embedding.of([stored.chunk.text for stored in chunks]) if chunks else []
            if vectors is None:
                # Others may fare better, and these too, the next time that something is added.
                self._waiting.rotate(-len(numbers))
                return
            kept = await self._run(self._keep, chunks, vectors)
            self._done(numbers)
            await self._grow(kept, self._vectors.size_of_one)

    def _done(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if self._waiting and self._waiting[0] == number:
                self._waiting.popleft()

    def _keep(self, chunks: Sequence[StoredChunk], vectors: Sequence[array[float]]) -> list[int]:
        """Keep the vectors of chunks that have not left meanwhile. Return the documents of these."""
        documents = []
        for (number, document, _), vector in zip(chunks, vectors, strict=True):
            if self._database.document_of(number) is not None and number not in self._vectors:
                self._vectors.add(number, vector)
                documents.append(document)
        return documents


def _read(database: Database, numbers: Sequence[int]) -> list[StoredChunk]:
    return list(database.read(numbers))
