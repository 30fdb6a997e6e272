"""The SQLite side of a search index: postings of terms, and the chunks themselves in compressed blocks.

Plain blocking code, for one thread at a time. Measured in docs/decisions/0012-search-inside-sqlite.md.
"""

from __future__ import annotations

import json
import math
import sqlite3
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.search.chunks import Chunk
from holdfast.search.terms import searchable

__all__ = ["Block", "Database", "Purged", "StoredChunk", "Written", "blocks_of"]

# Chunks share a block with their neighbours: alone they would take half as much again.
_CHUNKS_IN_A_BLOCK = 4
_CHUNKS_IN_A_STEP = 64
_BEYOND_EVERY_LETTER = "\U0010ffff"
_SCHEMA = """
PRAGMA page_size = 16384;
CREATE VIRTUAL TABLE terms USING fts5(text, content='', tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row');
CREATE TABLE blocks (id INTEGER PRIMARY KEY, document INTEGER NOT NULL, chunks BLOB NOT NULL);
CREATE INDEX blocks_by_document ON blocks (document);
"""
_REMEMBER = "INSERT INTO terms (rowid, text) VALUES (?, ?)"
# A table without content of its own must be told what it forgets.
_FORGET = "INSERT INTO terms (terms, rowid, text) VALUES ('delete', ?, ?)"
# SQLite walks through all chunks with a term to count them. How common a common one is does not change from one search
# to the next.
_COMMON = 200
_MOST_REMEMBERED = 2_000
_SHARE_OF_NEW_CHUNKS = 0.05


class StoredChunk(NamedTuple):
    """A chunk, the document it belongs to, and its number: neighbours in a text have neighbouring numbers."""

    number: int
    document: int
    chunk: Chunk


class Block(NamedTuple):
    """A few neighbouring chunks of a document. The first chunk of a text is found by the words of its title too."""

    document: int
    title: str
    chunks: list[Chunk]


class Written(NamedTuple):
    """The numbers of the chunks that were added in a step, and whether there are no more to add."""

    numbers: list[int]
    all_of_them: bool


class Purged(NamedTuple):
    """How many documents are gone altogether, and the numbers of the chunks that are."""

    documents: int
    chunks: list[int]


def blocks_of(document: int, title: str, chunks: Iterator[Chunk]) -> Iterator[Block]:
    """Give the *chunks* of a text as blocks."""
    while block := list(islice(chunks, _CHUNKS_IN_A_BLOCK)):
        yield Block(document, title, block)


class Database:
    """One database in memory. Documents are numbers with a title here; what they stand for is the caller's affair."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        closing = weakref.finalize(self, self._connection.close)
        closing.atexit = False  # at the end of the process a thread may still write: SQLite would crash
        try:
            self._connection("SELECT fts5(?)")  # prepared and never run: an index may be built on an event loop
        except sqlite3.OperationalError as error:
            raise HoldfastError(
                "search needs SQLite with the FTS5 extension, and the SQLite of this Python "
                f"({sqlite3.sqlite_version}) was built without it; use a Python that has it, or leave search out"
            ) from error
        self._has_tables = False
        self._blocks = 0
        self._documents: dict[int, int] = {}
        self._common: dict[str, int] = {}
        self._chunks_then = 0
        self.chunks = 0

    def write(self, blocks: Iterator[Block]) -> Written:
        """Add the next of *blocks*, a step's worth."""
        numbers: list[int] = []
        with self._transaction():
            while len(numbers) < _CHUNKS_IN_A_STEP:
                if (block := next(blocks, None)) is None:
                    return Written(numbers, all_of_them=True)
                numbers += self._write(block)
        return Written(numbers, all_of_them=False)

    def purge(self, documents: Iterable[tuple[int, str]]) -> Purged:
        """Take out chunks of documents with their titles, a step's worth: some documents, or a part of the first."""
        chunks: list[int] = []
        gone = 0
        with self._transaction():
            for document, title in documents:
                chunks += self._purge(document, title, _CHUNKS_IN_A_STEP - len(chunks))
                if len(chunks) >= _CHUNKS_IN_A_STEP:
                    break
                gone += 1
        return Purged(gone, chunks)

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """Return how many chunks hold each of *terms*; of common ones about how many."""
        self._forget_what_changed()
        unknown = [term for term in terms if term not in self._common]
        select = f"SELECT term, doc FROM vocabulary WHERE term IN ({', '.join('?' * len(unknown))})"
        found = dict(self._connection.execute(select, unknown)) if self._has_tables else {}
        if len(self._common) < _MOST_REMEMBERED:
            self._common.update((term, often) for term, often in found.items() if often >= _COMMON)
        return {term: found.get(term) or self._common.get(term, 0) for term in terms}

    def frequency_of_prefix(self, prefix: str) -> int:
        """Return how often chunks hold terms that begin with *prefix*."""
        if not self._has_tables:
            return 0
        bounds = (prefix, prefix + _BEYOND_EVERY_LETTER)
        # Beyond some, it makes no difference how many there are; and there may be millions.
        select = "SELECT sum(doc) FROM (SELECT doc FROM vocabulary WHERE term >= ? AND term < ? LIMIT 1000)"
        return self._connection.execute(select, bounds).fetchone()[0] or 0

    def holding(self, expression: str) -> list[int]:
        """Return the numbers of all chunks that match."""
        # In one row: a row for each would let go of the interpreter lock as often.
        select = "SELECT group_concat(rowid) FROM terms WHERE terms MATCH ?"
        numbers: list[int] = json.loads(f"[{self._connection.execute(select, (expression,)).fetchone()[0] or ''}]")
        return numbers

    def holds(self, expression: str) -> bool:
        """Return whether any chunk matches."""
        select = "SELECT EXISTS (SELECT 1 FROM terms WHERE terms MATCH ?)"
        return bool(self._connection.execute(select, (expression,)).fetchone()[0])

    def ranked(self, expression: str, limit: int) -> list[int]:
        """Return the numbers of the chunks that match best, by BM25."""
        select = f"SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY rank LIMIT {limit}"
        return [number for (number,) in self._connection.execute(select, (expression,))]

    def document_of(self, number: int) -> int | None:
        """Return the document of a chunk, or None if it has left."""
        return self._documents.get(number // _CHUNKS_IN_A_BLOCK)

    def read(self, numbers: Iterable[int]) -> Iterator[StoredChunk]:
        """Give the chunks with these numbers, without those that have left."""
        blocks: dict[int, list[Chunk]] = {}
        for number in numbers:
            block, place = divmod(number, _CHUNKS_IN_A_BLOCK)
            if (document := self._documents.get(block)) is not None:
                if block not in blocks:
                    blocks[block] = self._block(block)
                yield StoredChunk(number, document, blocks[block][place])

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def _write(self, block: Block) -> list[int]:
        self._blocks += 1
        stored = (self._blocks, block.document, _packed(block.chunks))
        rows = list(_rows(self._blocks, block.chunks, block.title))
        self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?)", stored)
        self._connection.executemany(_REMEMBER, rows)
        self._documents[self._blocks] = block.document
        self.chunks += len(rows)
        return [number for number, _ in rows]

    def _purge(self, document: int, title: str, most: int) -> list[int]:
        """Take out about so many chunks of a document, or all, and return their numbers."""
        select = "SELECT id, chunks FROM blocks WHERE document = ? LIMIT ?"
        found = self._connection.execute(select, (document, math.ceil(most / _CHUNKS_IN_A_BLOCK))).fetchall()
        rows = [row for block, packed in found for row in _rows(block, _unpacked(packed), title)]
        self._connection.executemany(_FORGET, rows)
        for block, _ in found:
            self._connection.execute("DELETE FROM blocks WHERE id = ?", (block,))
            del self._documents[block]
        self.chunks -= len(rows)
        return [number for number, _ in rows]

    def _forget_what_changed(self) -> None:
        if abs(self.chunks - self._chunks_then) > _SHARE_OF_NEW_CHUNKS * self._chunks_then:
            self._common.clear()
            self._chunks_then = self.chunks

    def _block(self, number: int) -> list[Chunk]:
        return _unpacked(self._connection.execute("SELECT chunks FROM blocks WHERE id = ?", (number,)).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self._has_tables:
            self._connection.executescript(_SCHEMA)
            self._has_tables = True
        self._connection.execute("BEGIN")
        with self._connection:
            yield


def _rows(block: int, chunks: Sequence[Chunk], title: str) -> Iterator[tuple[int, str]]:
    for number, chunk in enumerate(chunks, start=block * _CHUNKS_IN_A_BLOCK):
        yield number, searchable(chunk.text if chunk.start else f"{title}\n{chunk.text}")


def _packed(chunks: Sequence[Chunk]) -> bytes:
    # Lone surrogates are no UTF-8, and yet a text may hold them.
    return zlib.compress(json.dumps(chunks, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _unpacked(packed: bytes) -> list[Chunk]:
    return [Chunk(*chunk) for chunk in json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))]
