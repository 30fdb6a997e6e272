"""What a search index knows of the contents in it, without their texts: which are covered, and which leave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count, islice

from holdfast.search.additions import Addition

__all__ = ["Document", "Documents"]


@dataclass(frozen=True, eq=False)
class Document:
    """A content by its number in the database; *size* is what it counts for."""

    number: int
    reference: str
    title: str
    labels: Mapping[str, str]
    size: int
    is_echo: bool


class Documents:
    """Contents by reference and by number. What leaves is covered no more at once, and is purged in its own time."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._covered: dict[str, Document] = {}
        self._leaving: dict[int, Document] = {}
        self.by_number: dict[int, Document] = {}
        self.echoes: set[int] = set()
        self.uncovered: dict[str, None] = {}
        self.size = 0
        self._grown: dict[int, int] = {}

    def __contains__(self, reference: str) -> bool:
        return reference in self._covered

    @property
    def references(self) -> tuple[str, ...]:
        """What is covered, in the order in which it was added."""
        return tuple(self._covered)

    def leaving(self, most: int) -> list[Document]:
        """Return up to so many of those that have to be purged."""
        return list(islice(self._leaving.values(), most))

    def among(self, references: Collection[str]) -> dict[int, Document]:
        """Return those of *references* that are covered, by number."""
        found = (self._covered.get(reference) for reference in dict.fromkeys(references))
        return {document.number: document for document in found if document}

    def enter(self, addition: Addition, size: int) -> Document:
        """Begin to take a content in. Until it is whole it counts as leaving: a call may be cancelled at any time."""
        number, is_echo = next(self._numbers), addition.is_echo
        document = Document(number, addition.reference, addition.title, addition.labels, size, is_echo)
        self._leaving[number] = document
        if is_echo:
            self.echoes.add(number)
        return document

    def settle(self, documents: Iterable[Document]) -> None:
        """Cover contents that are whole now."""
        for document in documents:
            if self._leaving.pop(document.number, None) is None:
                # Somebody purged it meanwhile, and so not all of it is there.
                self._leaving[document.number] = document
                continue
            self._covered[document.reference] = self.by_number[document.number] = document
            self.size += document.size
            self.uncovered.pop(document.reference, None)

    def grow(self, number: int, size: int) -> None:
        """Let a content count for more than it did. One that has left meanwhile is fine."""
        if number in self.by_number:
            self._grown[number] = self._grown.get(number, 0) + size
            self.size += size

    def drop(self, reference: str) -> None:
        """Let a content leave. An unknown one is fine."""
        if document := self._covered.pop(reference, None):
            del self.by_number[document.number]
            self.size -= document.size + self._grown.pop(document.number, 0)
            self._leaving[document.number] = document

    def make_room(self, most: int) -> None:
        """Let contents leave, those that were added first, until the others take no more than *most* bytes."""
        while self.size > most and self._covered:
            oldest = next(iter(self._covered))
            self.drop(oldest)
            self.uncovered[oldest] = None

    def forget(self, documents: Iterable[Document]) -> None:
        """Forget what has left."""
        for document in documents:
            self._leaving.pop(document.number, None)
            self.echoes.discard(document.number)

    def clear(self) -> None:
        """Cover nothing any more."""
        self._covered.clear()
        self.by_number.clear()
