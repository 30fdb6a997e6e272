"""The SQLite side of a search index: postings of terms, and the chunks themselves in compressed blocks.

Plain blocking code, for one thread at a time. Measured in docs/decisions/0012-search-inside-sqlite.md.
"""

from __future__ import annotations

import json
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

__all__ = ["Database", "StoredChunk"]

# Chunks share a block with their neighbours: alone they would take half as much again.
_CHUNKS_IN_A_BLOCK = 4
_BLOCKS_IN_A_STEP = 16
_BEYOND_EVERY_LETTER = "\U0010ffff"
_SCHEMA = """
PRAGMA page_size = 16384;
CREATE VIRTUAL TABLE terms USING fts5(text, content='', tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row');
CREATE TABLE blocks (id INTEGER PRIMARY KEY, document INTEGER NOT NULL, chunks BLOB NOT NULL);
CREATE INDEX blocks_by_document ON blocks (document);
CREATE TABLE chosen (document INTEGER PRIMARY KEY);
"""
_MATCHING = f"""
FROM terms JOIN blocks ON blocks.id = terms.rowid / {_CHUNKS_IN_A_BLOCK}
WHERE terms MATCH ? AND blocks.document IN (SELECT document FROM chosen)
"""
_REMEMBER = "INSERT INTO terms (rowid, text) VALUES (?, ?)"
# A table without content of its own must be told what it forgets.
_FORGET = "INSERT INTO terms (terms, rowid, text) VALUES ('delete', ?, ?)"


class StoredChunk(NamedTuple):
    """A chunk, the document it belongs to, and its number: neighbours in a text have neighbouring numbers."""

    number: int
    document: int
    chunk: Chunk


class Database:
    """One database in memory. Documents are numbers with a title here; what they stand for is the caller's affair."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        try:
            self._connection("SELECT fts5(?)")  # prepared and never run: an index may be built on an event loop
        except sqlite3.OperationalError as error:
            raise HoldfastError(
                "search needs SQLite with the FTS5 extension, and the SQLite of this Python "
                f"({sqlite3.sqlite_version}) was built without it; use a Python that has it, or leave search out"
            ) from error
        self._has_tables = False
        self._blocks = 0
        self.chunks = 0
        self._chosen: tuple[int, ...] = ()

    def write(self, document: int, title: str, chunks: Iterator[Chunk]) -> bool:
        """Add the next *chunks* of a document, a step's worth. Return whether there were any.

        The first chunk of a text is found by the words of its *title* too.
        """
        blocks = list(_blocks(chunks))
        with self._transaction():
            for block in blocks:
                self._blocks += 1
                stored = (self._blocks, document, _packed(block))
                self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?)", stored)
                self._connection.executemany(_REMEMBER, _rows(self._blocks, block, title))
                self.chunks += len(block)
        return bool(blocks)

    def purge(self, document: int, title: str) -> bool:
        """Take out chunks of a document, a step's worth. Return whether there were any."""
        with self._transaction():
            select = "SELECT id, chunks FROM blocks WHERE document = ? LIMIT ?"
            found = self._connection.execute(select, (document, _BLOCKS_IN_A_STEP)).fetchall()
            for number, packed in found:
                block = _unpacked(packed)
                self._connection.executemany(_FORGET, _rows(number, block, title))
                self._connection.execute("DELETE FROM blocks WHERE id = ?", (number,))
                self.chunks -= len(block)
        return bool(found)

    def choose(self, documents: Iterable[int]) -> None:
        """Let the next questions be about these documents only."""
        chosen = tuple(sorted(documents))
        if chosen != self._chosen:
            with self._transaction():
                self._connection.execute("DELETE FROM chosen")
                self._connection.executemany("INSERT INTO chosen VALUES (?)", ((document,) for document in chosen))
            self._chosen = chosen

    def frequency(self, term: str) -> int:
        """Return how many chunks hold *term*."""
        row = self._connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
        return row[0] if row else 0

    def frequency_of_prefix(self, prefix: str) -> int:
        """Return how often chunks hold terms that begin with *prefix*."""
        bounds = (prefix, prefix + _BEYOND_EVERY_LETTER)
        # Beyond some, it makes no difference how many there are; and there may be millions.
        select = "SELECT sum(doc) FROM (SELECT doc FROM vocabulary WHERE term >= ? AND term < ? LIMIT 1000)"
        return self._connection.execute(select, bounds).fetchone()[0] or 0

    def count(self, expression: str) -> int:
        """Return how many chosen chunks match. An empty expression matches none."""
        return next(self._select("count(*)", expression)) if expression else 0

    def best(self, expression: str, limit: int) -> list[int]:
        """Return the numbers of the chosen chunks that match best, by BM25. An empty expression matches none."""
        return list(self._select("terms.rowid", expression, f"ORDER BY rank LIMIT {limit}")) if expression else []

    def read(self, numbers: Iterable[int]) -> Iterator[StoredChunk]:
        """Give the chunks with these numbers."""
        blocks: dict[int, tuple[int, list[Chunk]]] = {}
        for number in numbers:
            block, place = divmod(number, _CHUNKS_IN_A_BLOCK)
            if block not in blocks:
                blocks[block] = self._block(block)
            document, chunks = blocks[block]
            yield StoredChunk(number, document, chunks[place])

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def _block(self, number: int) -> tuple[int, list[Chunk]]:
        select = "SELECT document, chunks FROM blocks WHERE id = ?"
        document, packed = self._connection.execute(select, (number,)).fetchone()
        return document, _unpacked(packed)

    def _select(self, column: str, expression: str, order: str = "") -> Iterator[int]:
        return (value for (value,) in self._connection.execute(f"SELECT {column} {_MATCHING} {order}", (expression,)))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self._has_tables:
            self._connection.executescript(_SCHEMA)
            self._has_tables = True
        self._connection.execute("BEGIN")
        with self._connection:
            yield


def _blocks(chunks: Iterator[Chunk]) -> Iterator[list[Chunk]]:
    for _ in range(_BLOCKS_IN_A_STEP):
        if block := list(islice(chunks, _CHUNKS_IN_A_BLOCK)):
            yield block


def _rows(block: int, chunks: Sequence[Chunk], title: str) -> Iterator[tuple[int, str]]:
    for number, chunk in enumerate(chunks, start=block * _CHUNKS_IN_A_BLOCK):
        yield number, searchable(chunk.text if chunk.start else f"{title}\n{chunk.text}")


def _packed(chunks: Sequence[Chunk]) -> bytes:
    # Lone surrogates are no UTF-8, and yet a text may hold them.
    return zlib.compress(json.dumps(chunks, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _unpacked(packed: bytes) -> list[Chunk]:
    return [Chunk(*chunk) for chunk in json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))]
