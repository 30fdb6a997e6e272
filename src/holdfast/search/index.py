"""The search index of one conversation: what was added is found again by its words, until it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.search.answers import Hit, SearchAnswer
from holdfast.search.chunks import chunks_of
from holdfast.search.database import Database
from holdfast.search.queries import Query, understood
from holdfast.search.ranking import Place, best_places, excerpt_of
from holdfast.storage.checks import require_positive
from holdfast.storage.threads import WorkerThreads

__all__ = ["SearchIndex"]

T = TypeVar("T")

# One for all indexes: most of the work holds the interpreter lock, so more threads would finish nothing sooner.
_THREAD = WorkerThreads(1, name="holdfast-search")
_CHARACTERS_AT_ONCE = 100_000
_CANDIDATES = 50
_MOST_HITS = 50
# Counted for each content, so that a million tiny ones are bounded too.
_OVERHEAD = 1_000


@dataclass(frozen=True)
class _Document:
    number: int
    reference: str
    title: str
    labels: Mapping[str, str]
    size: int


class SearchIndex:
    """Full-text search over what was added, in memory, gone when it is closed.

    It holds up to *max_bytes* of text, where each content counts for 1,000 bytes more, and takes as much memory, or of
    words that hardly repeat up to six times as much.
    Beyond that, what was added first leaves, and every answer says how many contents it does not cover. The work is
    done in a thread, in small steps: a search waits for one step of an `add` and not for its end.
    """

    def __init__(self, *, max_bytes: int = 64_000_000) -> None:
        require_positive("max_bytes", max_bytes)
        self._max_bytes = max_bytes
        self._database = Database()
        self._numbers = count(1)
        self._documents: dict[str, _Document] = {}
        self._uncovered: dict[str, None] = {}
        self._leaving: list[_Document] = []
        self._size = 0
        self._lock: tuple[asyncio.AbstractEventLoop | None, asyncio.Lock] = (None, asyncio.Lock())
        self._closed = False

    @property
    def references(self) -> tuple[str, ...]:
        """What a search covers, in the order in which it was added."""
        return tuple(self._documents)

    @property
    def uncovered(self) -> tuple[str, ...]:
        """What was added and is not covered: it left to keep the bound, is too large, or is still on its way in."""
        return tuple(self._uncovered)

    def holds(self, reference: str) -> bool:
        """Return whether a search covers the content of *reference*."""
        return reference in self._documents

    async def add(self, reference: str, text: str, *, title: str = "", labels: Mapping[str, str] | None = None) -> None:
        """Make *text* findable, in place of what was added under the same reference before.

        It is found once this returns, by its own words and, at its beginning, by those of *title*, such as the name of
        the tool that returned it. *labels* come back with its hits.
        """
        _check_strings(reference=reference, text=text, title=title)
        labels = MappingProxyType(_checked_labels(labels or {}))
        async with self._writing():
            size = await self._run(_size_of, title, text)
            self._drop(reference)
            self._uncovered[reference] = None
            if size <= self._max_bytes:
                await self._write(_Document(next(self._numbers), reference, title, labels, size), text)
            await self._purge()

    def _writing(self) -> asyncio.Lock:
        """Return the lock of this event loop: what waits for another's would wait for ever."""
        loop = asyncio.get_running_loop()
        if self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        return self._lock[1]

    async def remove(self, references: Iterable[str]) -> None:
        """Forget these contents, for good: they are neither found nor counted as not covered. Unknown ones are fine."""
        leaving = [references] if isinstance(references, str) else list(references)
        async with self._writing():
            self._check_open()
            for reference in leaving:
                self._drop(reference)
                self._uncovered.pop(reference, None)
            await self._purge()

    async def search(
        self, query: str, limit: int = 5, *, within: Collection[str] | None = None, excerpt_characters: int = 400
    ) -> SearchAnswer:
        """Find the places that match *query* best, in all contents or only *within* those of some references.

        A query is any text. Its words are looked for one by one; places that hold more of them, rarer ones, more in one
        line and more in a row come first.
        """
        _check_strings(query=query)
        require_positive("excerpt_characters", excerpt_characters)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST_HITS:
            raise InvalidValueError(f"limit must be a number from 1 to {_MOST_HITS}, got {limit!r:.80}")
        self._check_open()
        chosen = self.references if within is None else [name for name in dict.fromkeys(within) if self.holds(name)]
        uncovered = self.uncovered if within is None else self._uncovered.keys() & set(within)
        documents = {self._documents[name].number: self._documents[name] for name in chosen}
        if not documents:
            return SearchAnswer(hits=(), total_matching=0, uncovered=len(uncovered))
        return await self._run(_search, self._database, query, documents, limit, excerpt_characters, len(uncovered))

    async def aclose(self) -> None:
        """Give the memory back. Closing again is fine; anything else is an error from now on."""
        if not self._closed:
            self._closed = True
            self._documents.clear()
            await _THREAD.run(self._database.close)

    async def _write(self, document: _Document, text: str) -> None:
        while self._size + document.size > self._max_bytes:
            oldest = next(iter(self._documents))
            self._drop(oldest)
            self._uncovered[oldest] = None
        await self._purge()
        # Until it is whole it may have to leave again: a cancelled call must leave nothing behind.
        self._leaving.append(document)
        chunks = chunks_of(text)
        while await self._run(self._database.write, document.number, document.title, chunks):
            pass
        self._leaving.remove(document)
        self._documents[document.reference] = document
        self._size += document.size
        del self._uncovered[document.reference]

    def _drop(self, reference: str) -> None:
        if document := self._documents.pop(reference, None):
            self._size -= document.size
            self._leaving.append(document)

    async def _purge(self) -> None:
        while self._leaving:
            document = self._leaving[0]
            while await self._run(self._database.purge, document.number, document.title):
                pass
            self._leaving.remove(document)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        self._check_open()
        return await _THREAD.run(function, *args)

    def _check_open(self) -> None:
        if self._closed:
            raise HoldfastError("this search index is closed; build a new one")


def _size_of(*texts: str) -> int:
    parts = (text[at : at + _CHARACTERS_AT_ONCE] for text in texts for at in range(0, len(text), _CHARACTERS_AT_ONCE))
    return _OVERHEAD + sum(len(part.encode("utf-8", "surrogatepass")) for part in parts)


def _search(
    database: Database, text: str, documents: Mapping[int, _Document], limit: int, characters: int, uncovered: int
) -> SearchAnswer:
    database.choose(documents)
    query = understood(text, database)
    candidates = max(_CANDIDATES, 2 * limit)
    numbers = database.best(query.anything, candidates) + database.best(query.everything, candidates)
    titles = {number: document.title for number, document in documents.items()}
    places = best_places(query, database.read(dict.fromkeys(numbers)), titles, limit)
    return SearchAnswer(
        hits=tuple(_hit(query, place, documents[place.stored.document], characters) for place in places),
        total_matching=database.count(query.anything),
        missing=query.missing,
        ignored=query.ignored,
        uncovered=uncovered,
    )


def _hit(query: Query, place: Place, document: _Document, characters: int) -> Hit:
    chunk = place.stored.chunk
    return Hit(
        reference=document.reference,
        title=document.title,
        labels=document.labels,
        first_line=chunk.line,
        last_line=chunk.last_line,
        first_column=chunk.column,
        start_character=chunk.start,
        end_character=chunk.end,
        excerpt=excerpt_of(query, chunk, characters),
        score=round(place.score, 3),
    )


def _check_strings(**arguments: object) -> None:
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise InvalidTypeError(f"{name} must be a string, got {type(value).__name__}")


def _checked_labels(labels: Mapping[str, str]) -> dict[str, str]:
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidTypeError(
                f"labels must be strings with names that are strings, got {name!r:.40}: {value!r:.40}"
            )
    return dict(labels)
