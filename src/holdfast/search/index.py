"""The search index of one conversation: what was added is found again by its words, until it leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.search.additions import Addition, groups_of, size_of
from holdfast.search.answers import SearchAnswer
from holdfast.search.chunks import chunks_of
from holdfast.search.database import Database, blocks_of
from holdfast.search.documents import Document, Documents
from holdfast.search.embedding import Embedder, Embedding
from holdfast.search.locks import LockOfLoops
from holdfast.search.meanings import Meanings
from holdfast.search.searching import Search
from holdfast.search.vectors import Vectors
from holdfast.storage.checks import require_positive
from holdfast.storage.threads import WorkerThreads

__all__ = ["SearchIndex"]

T = TypeVar("T")

# One for all indexes: most of the work holds the interpreter lock, so more threads would finish nothing sooner.
_THREAD = WorkerThreads(1, name="holdfast-search")
_MOST_HITS = 50
_DOCUMENTS_AT_ONCE = 64
# So many characters are counted in less time than it takes to wake a thread.
_LARGE = 100_000


class SearchIndex:
    """Full-text search over what was added, in memory, gone when it is closed.

    It holds up to *max_bytes* of text, where each content counts for 1,000 bytes more, and takes as much memory, or of
    words that hardly repeat up to six times as much.
    Beyond that, what was added first leaves, and every answer says how many contents it does not cover. The work is
    done in a thread, in small steps: a search waits for one step of an `add` and not for its end.

    With an *embedder*, what is near in meaning is found too. It takes a list of texts and returns a vector for each,
    and may be async. It is called in the background for what was added, and once in each search. Its vectors count
    toward *max_bytes*. While it fails, a search goes by words alone.
    """

    def __init__(self, *, max_bytes: int = 64_000_000, embedder: Embedder | Embedding | None = None) -> None:
        require_positive("max_bytes", max_bytes)
        self._max_bytes = max_bytes
        self._database = Database()
        self._documents = Documents()
        self._vectors = Vectors()
        self._meanings: Meanings | None = None
        if embedder is not None:
            embedding = embedder if isinstance(embedder, Embedding) else Embedding(embedder)
            self._meanings = Meanings(embedding, self._vectors, self._database, run=self._run, grow=self._grow)
        self._writing = LockOfLoops()
        self._closed = False

    @property
    def references(self) -> tuple[str, ...]:
        """What a search covers, in the order in which it was added."""
        return self._documents.references

    @property
    def uncovered(self) -> tuple[str, ...]:
        """What was added and is not covered: it left to keep the bound, is too large, or is still on its way in."""
        return tuple(self._documents.uncovered)

    def holds(self, reference: str) -> bool:
        """Return whether a search covers the content of *reference*."""
        return reference in self._documents

    async def add(self, reference: str, text: str, *, title: str = "", labels: Mapping[str, str] | None = None) -> None:
        """Make *text* findable, in place of what was added under the same reference before.

        It is found once this returns, by its own words and, at its beginning, by those of *title*, such as the name of
        the tool that returned it. *labels* come back with its hits.
        """
        await self.add_all([Addition(reference, text, title, labels or {})])

    async def add_all(self, additions: Iterable[Addition]) -> None:
        """Make many contents findable, like `add` and much faster. They are found one after the other.

        If it is cancelled, those that are not findable yet are as if they had not been given, or count as not covered.
        """
        async with self._writing:
            self._check_open()
            for group in groups_of(additions, self._max_bytes):
                await self._add(group)

    async def remove(self, references: Iterable[str]) -> None:
        """Forget these contents, for good: they are neither found nor counted as not covered. Unknown ones are fine."""
        leaving = [references] if isinstance(references, str) else list(references)
        async with self._writing:
            self._check_open()
            for reference in leaving:
                self._documents.drop(reference)
                self._documents.uncovered.pop(reference, None)
            await self._purge()

    async def search(
        self, query: str, limit: int = 5, *, within: Collection[str] | None = None, excerpt_characters: int = 400
    ) -> SearchAnswer:
        """Find the places that match *query* best, in all contents or only *within* those of some references.

        A query is any text. Its words are looked for one by one; places that hold more of them, rarer ones, more in one
        line and more in a row come first, and what a better place shows already counts for less.
        """
        _check_search(query, limit, excerpt_characters)
        self._check_open()
        known = self._documents
        documents = known.by_number if within is None else known.among(within)
        uncovered = len(known.uncovered if within is None else known.uncovered.keys() & set(within))
        if not documents:
            return SearchAnswer(hits=(), total_matching=0, uncovered=uncovered)
        search = Search(
            text=query,
            limit=limit,
            excerpt_characters=excerpt_characters,
            documents=documents,
            all_of_them=within is None and not known.leaving(1),
            echoes=known.echoes,
            uncovered=uncovered,
            vector=await self._meanings.vector_of(query) if self._meanings else None,
        )
        return await self._run(search.answered, self._database, self._vectors)

    async def settled(self) -> None:
        """Wait until everything that was added has its vectors, as far as the embedder gives them."""
        if self._meanings:
            await self._meanings.settled()

    async def aclose(self) -> None:
        """Give the memory back. Closing again is fine; anything else is an error from now on."""
        if not self._closed:
            self._closed = True
            self._documents.clear()
            if self._meanings:
                await self._meanings.aclose()
            await _THREAD.run(self._database.close)

    async def _add(self, group: Sequence[Addition]) -> None:
        sizes = await self._run(_sizes_of, group) if len(group[0].text) > _LARGE else _sizes_of(group)
        for addition in group:
            self._documents.drop(addition.reference)
            self._documents.uncovered[addition.reference] = None
        fitting = [(addition, size) for addition, size in zip(group, sizes, strict=True) if size <= self._max_bytes]
        self._documents.make_room(self._max_bytes - sum(size for _, size in fitting))
        await self._purge()
        entered = {self._documents.enter(addition, size): addition.text for addition, size in fitting}
        numbers = await self._write(entered)
        self._documents.settle(entered)
        if self._meanings:
            self._meanings.expect(numbers)

    async def _write(self, texts: Mapping[Document, str]) -> list[int]:
        each = (blocks_of(document.number, document.title, chunks_of(text)) for document, text in texts.items())
        blocks = chain.from_iterable(each)
        numbers: list[int] = []
        all_of_them = False
        while not all_of_them:
            written, all_of_them = await self._run(self._database.write, blocks)
            numbers += written
        return numbers

    async def _purge(self) -> None:
        while leaving := self._documents.leaving(_DOCUMENTS_AT_ONCE):
            gone = await self._run(_purged, self._database, self._vectors, leaving)
            self._documents.forget(leaving[:gone])

    async def _grow(self, numbers: Iterable[int], size: int) -> None:
        """Count vectors, each of so many bytes, for the documents that they belong to."""
        for number in numbers:
            self._documents.grow(number, size)
        if self._documents.size > self._max_bytes:
            async with self._writing:
                self._documents.make_room(self._max_bytes)
                await self._purge()

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        self._check_open()
        return await _THREAD.run(function, *args)

    def _check_open(self) -> None:
        if self._closed:
            raise HoldfastError("this search index is closed; build a new one")


def _check_search(query: object, limit: object, excerpt_characters: object) -> None:
    if not isinstance(query, str):
        raise InvalidTypeError(f"query must be a string, got {type(query).__name__}")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST_HITS:
        raise InvalidValueError(f"limit must be a number from 1 to {_MOST_HITS}, got {limit!r:.80}")
    require_positive("excerpt_characters", excerpt_characters)


def _sizes_of(additions: Iterable[Addition]) -> list[int]:
    return [size_of(addition) for addition in additions]


def _purged(database: Database, vectors: Vectors, documents: Iterable[Document]) -> int:
    """Take out documents, a step's worth, and return how many are gone now."""
    gone, chunks = database.purge([(document.number, document.title) for document in documents])
    for number in chunks:
        vectors.discard(number)
    return gone
