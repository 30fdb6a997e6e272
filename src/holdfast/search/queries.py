"""A query as the index understands it: any text at all, read as terms with weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.search.database import Database
from holdfast.search.terms import terms_of

__all__ = ["Query", "understood"]

_LONGEST_QUERY = 20_000
_MOST_LOOKED_UP = 256
_MOST_TERMS = 32
_MOST_PHRASES = 32
_LONGEST_PHRASE = 32
_SHORTEST_PREFIX = 4
_MOST_LETTERS_CUT_OFF = 4
_SHORTEST_SHARE = 0.7
# The weight of a term that every second chunk holds. BM25 gives nothing for more common ones.
_COMMON = math.log(2)


@dataclass(frozen=True)
class Query:
    """What is looked for: terms, beginnings of terms and neighbours, the rarer the heavier, and whole phrases."""

    terms: Mapping[str, float]
    prefixes: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]
    phrases: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: int

    @property
    def anything(self) -> str:
        """The FTS5 expression for chunks that hold any of it that is not common; empty if there is nothing to find."""
        rare = [term for term, weight in self.terms.items() if weight >= _COMMON]
        return " OR ".join([*map(_quoted, rare or self.terms), *map(_quoted, self.phrases), *self._prefixes])

    @property
    def everything(self) -> str:
        """The FTS5 expression for chunks that hold every term; empty if there is nothing to find."""
        return " AND ".join([*map(_quoted, self.terms), *self._prefixes])

    @property
    def _prefixes(self) -> list[str]:
        return [f"{_quoted(prefix)} *" for prefix in self.prefixes]


def understood(text: str, database: Database) -> Query:
    """Read *text* as a query: the rarest of its terms, and beginnings of terms in place of those that nothing holds."""
    pieces = [found for piece in text[:_LONGEST_QUERY].split() if (found := terms_of(piece).words)]
    in_order = [word for piece in pieces for word in piece]
    distinct = list(dict.fromkeys(in_order))
    asked = {term: database.frequency(term) for term in distinct[:_MOST_LOOKED_UP]}
    beginnings = {term: _beginning(term, database) for term, frequency in asked.items() if not frequency}
    terms = _rarest(((term, frequency) for term, frequency in asked.items() if frequency), database)
    return Query(
        terms=terms,
        prefixes=_rarest((found for found in beginnings.values() if found), database),
        pairs=dict(_pairs(in_order, terms)),
        phrases=tuple(dict.fromkeys(phrase for piece in pieces for phrase in _phrases(piece, terms)))[:_MOST_PHRASES],
        missing=tuple(term for term, found in beginnings.items() if not found),
        ignored=len(distinct) - len(beginnings) - len(terms),
    )


def _beginning(term: str, database: Database) -> tuple[str, int] | None:
    """Return the longest beginning of *term* that terms of the index share, and how often: `timeouts` is `timeout`."""
    shortest = max(_SHORTEST_PREFIX, len(term) - _MOST_LETTERS_CUT_OFF, math.ceil(len(term) * _SHORTEST_SHARE))
    beginnings = (term[:length] for length in range(len(term), shortest - 1, -1))
    return next(((part, often) for part in beginnings if (often := database.frequency_of_prefix(part))), None)


def _rarest(frequencies: Iterable[tuple[str, int]], database: Database) -> dict[str, float]:
    weights = {term: _weight(frequency, database.chunks) for term, frequency in frequencies}
    return dict(sorted(weights.items(), key=lambda item: -item[1])[:_MOST_TERMS])


def _weight(frequency: int, chunks: int) -> float:
    frequency = min(frequency, chunks)
    return math.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5))


def _pairs(in_order: Sequence[str], weights: Mapping[str, float]) -> Iterator[tuple[tuple[str, str], float]]:
    for first, second in pairwise(in_order):
        if first in weights and second in weights:
            yield (first, second), min(weights[first], weights[second])


def _phrases(piece: Sequence[str], terms: Mapping[str, float]) -> Iterator[str]:
    """Give what must stand in a row: an identifier's words, and any two characters of a script without blanks."""
    if 1 < len(piece) <= _LONGEST_PHRASE and all(word in terms for word in piece):
        yield " ".join(piece)
    for first, second in pairwise(piece):
        if len(first) == len(second) == 1 and not first.isascii() and first in terms and second in terms:
            yield f"{first} {second}"


def _quoted(words_in_a_row: str) -> str:
    return f'"{words_in_a_row}"'
