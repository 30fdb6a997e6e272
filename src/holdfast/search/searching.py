"""One search from the query to the answer. Plain blocking code, for the thread of the database."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from holdfast.search.answers import Hit, SearchAnswer
from holdfast.search.candidates import candidates_for
from holdfast.search.database import Database, StoredChunk
from holdfast.search.documents import Document
from holdfast.search.excerpts import excerpt_of
from holdfast.search.lines import LineScores
from holdfast.search.names import names_near
from holdfast.search.queries import understood
from holdfast.search.ranking import Place, Ranked, fused, places_of, ranked
from holdfast.search.vectors import Vectors

__all__ = ["Search"]

_CANDIDATES = 100


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is asked, and of which *documents*, which may leave while it runs; *all_of_them* if there are no others.

    Those that are *echoes* are found after all others. *vector* is that of the query, where there are others to compare
    it with.
    """

    text: str
    limit: int
    excerpt_characters: int
    documents: Mapping[int, Document]
    all_of_them: bool
    echoes: Collection[int]
    uncovered: int
    vector: array[float] | None = None

    def answered(self, database: Database, vectors: Vectors) -> SearchAnswer:
        """Return the answer."""
        query = understood(self.text, database)
        candidates = candidates_for(query, database, self._wanted(database), self.echoes, self._most)
        documents: dict[int, Document] = {}
        chunks = list(self._read(candidates.numbers, database, documents))
        lines = LineScores(query)
        ordered = list(self._ranked(lines, chunks, documents, candidates.whole))
        if self.vector:
            near = vectors.nearest(self.vector, self._most, self._wanted(database))
            ordered = fused(ordered, self._read(near, database, documents), candidates.exact)
            ordered.sort(key=lambda found: documents[found.stored.document].is_echo)
        places = places_of(ordered, self.limit)
        return SearchAnswer(
            hits=tuple(self._hit(lines, place, documents[place.stored.document]) for place in places),
            total_matching=candidates.total,
            missing=query.missing,
            ignored=query.ignored,
            uncovered=self.uncovered,
            names=names_near(self.text, (found.stored.chunk.text for found in ordered)),
        )

    @property
    def _most(self) -> int:
        return max(_CANDIDATES, 2 * self.limit)

    def _wanted(self, database: Database) -> Callable[[int], bool] | None:
        """Return what says whether a chunk may be found; None if all may be."""
        return None if self.all_of_them else lambda number: database.document_of(number) in self.documents

    def _ranked(
        self,
        lines: LineScores,
        chunks: Iterable[StoredChunk],
        documents: Mapping[int, Document],
        whole: Mapping[int, float],
    ) -> Iterator[Ranked]:
        """Give chunks, the best first, and behind them those of echoes: what these show is nothing new."""
        titled = [(stored, documents[stored.document]) for stored in chunks]
        for is_echo in (False, True):
            those = ((stored, document.title) for stored, document in titled if document.is_echo is is_echo)
            yield from ranked(lines, those, whole)

    def _read(
        self, numbers: Iterable[int], database: Database, documents: dict[int, Document]
    ) -> Iterable[StoredChunk]:
        """Give chunks, without those of documents that leave just now, and write down the documents of the others."""
        for stored in database.read(numbers):
            if document := self.documents.get(stored.document):
                documents[stored.document] = document
                yield stored

    def _hit(self, lines: LineScores, place: Place, document: Document) -> Hit:
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
            excerpt=excerpt_of(lines, chunk, self.excerpt_characters),
            score=round(place.score, 6),
        )
