"""An embedder from outside: called in small batches, off the event loop, and never trusted."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from holdfast.checks import is_async
from holdfast.errors import InvalidTypeError
from holdfast.search.vectors import normalised
from holdfast.storage.threads import WorkerThreads

__all__ = ["Embedder", "Embedding"]

logger = logging.getLogger(__name__)

Vector: TypeAlias = Sequence[float]
Embedder: TypeAlias = (
    "Callable[[Sequence[str]], Sequence[Vector]] | Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]"
)
# Of their own: a model that takes its time must not keep a search by words waiting.
_THREADS = WorkerThreads(2, name="holdfast-embedder")
_LONGEST_WAIT = 30.0
# Of a search: an agent waits for it, and words may answer.
_LONGEST_WAIT_FOR_A_QUERY = 3.0
_REST = 30.0
_LONGEST_DIMENSION = 100_000
# Of failures: an embedder may make up classes as it goes.
_MOST_KINDS = 8


class Embedding:
    """Asks an embedder for vectors.

    One that fails is complained about once for each kind of failure, until it works again: in the log, and to
    *on_failure*. After a query that failed, none is put to it for 30 seconds of *clock*.
    """

    def __init__(
        self,
        embedder: Embedder,
        on_failure: Callable[[Exception], object] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(embedder):
            raise InvalidTypeError(
                f"embedder must be a function that takes texts and returns their vectors, got {type(embedder).__name__}"
            )
        self._embedder = embedder
        self._dimension = 0
        self._complained: set[str] = set()
        self._clock = clock
        self._rests_until = -math.inf
        self.on_failure = on_failure

    async def of(self, texts: Sequence[str]) -> list[array[float]] | None:
        """Return the vectors of *texts*, or None if the embedder fails or returns anything else."""
        return await self._within(_LONGEST_WAIT, texts)

    async def of_query(self, text: str) -> array[float] | None:
        """Return the vector of a query, or None if the embedder fails, does not answer soon, or rests since it did."""
        if self._clock() < self._rests_until:
            return None
        vectors = await self._within(_LONGEST_WAIT_FOR_A_QUERY, [text])
        if vectors is None:
            self._rests_until = self._clock() + _REST
            return None
        return vectors[0]

    async def _within(self, seconds: float, texts: Sequence[str]) -> list[array[float]] | None:
        try:
            vectors = await asyncio.wait_for(self._asked(list(texts)), seconds)
            checked = await _THREADS.run(_checked, vectors, len(texts), self._dimension)
        except Exception as error:  # it is not ours, and the search must go on without it
            self._complain(error)
            return None
        self._dimension = len(checked[0])
        self._complained.clear()
        return checked

    async def _asked(self, texts: list[str]) -> Any:
        call: Callable[[list[str]], Any] = self._embedder
        answer = call(texts) if is_async(call) else await _THREADS.run(call, texts)
        return await answer if inspect.isawaitable(answer) else answer

    def _complain(self, error: Exception) -> None:
        kind = type(error).__name__
        if kind in self._complained or len(self._complained) >= _MOST_KINDS:
            return
        self._complained.add(kind)
        logger.warning("the embedder fails, and the search goes by words alone: %s: %s", kind, error)
        if self.on_failure is not None:
            self.on_failure(error)


def _checked(vectors: Any, count: int, dimension: int) -> list[array[float]]:
    """Return vectors of one length. Raises ValueError or TypeError for anything else."""
    if len(vectors) != count:
        raise ValueError(f"it must return one vector for each text, and returned {len(vectors)} for {count}")
    lengths = {dimension or len(vectors[0]), *map(len, vectors)}
    if len(lengths) > 1 or not 1 <= max(lengths) <= _LONGEST_DIMENSION:
        raise ValueError(f"its vectors must be of one length, and are of {sorted(lengths)[:5]}")
    return [normalised(vector) for vector in vectors]
