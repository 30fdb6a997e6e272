"""A query as the index understands it: any text at all, read as terms with weights."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import NamedTuple

from holdfast.search.database import Database
from holdfast.search.names import names_in
from holdfast.search.terms import parts_of, terms_of

__all__ = ["Query", "Sought", "understood", "weight_of"]

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
_HASH = re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{7,}")
_LENGTHS_OF_SHORT_HASHES = range(7, 13)
_LONG_NUMBER = re.compile("[0-9]{4}")
_NUMBER_OF_A_VERSION = re.compile(r"(v?)([0-9]+)")


class Sought(NamedTuple):
    """An FTS5 expression that leads to candidates. At most so many chunks match.

    Some are whole identifiers, or characters in a row; some are names, as the reader gave them.
    """

    expression: str
    frequency: int
    is_whole: bool = False
    is_name: bool = False


@dataclass(frozen=True)
class Query:
    """What is looked for: terms, beginnings of terms and neighbours, the rarer the heavier.

    *sought* are terms, beginnings and whole identifiers, the rarest first, without what every second chunk holds.
    """

    terms: Mapping[str, float]
    prefixes: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]
    sought: tuple[Sought, ...]
    missing: tuple[str, ...]
    ignored: int

    @property
    def everything(self) -> str:
        """The FTS5 expression for chunks that hold every term."""
        beginnings = [prefix for prefix in self.prefixes if prefix not in self.terms]
        return " AND ".join([*map(_whole, self.terms), *map(_beginning, beginnings)])

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The weights of terms and beginnings."""
        return {**self.prefixes, **self.terms}

    def weight(self, found: Iterable[str]) -> float:
        """Return the weights of terms and beginnings in sum."""
        return math.fsum(map(self.weights.__getitem__, found))


class _Reading(NamedTuple):
    """The words of a query in order, what else they may be looked for as, and identifiers by their words.

    *parts* are those that make up some of the words. *names* are identifiers that cannot be words of a language.
    """

    words: list[str]
    others: list[str]
    identifiers: list[tuple[str, ...]]
    parts: Mapping[str, Sequence[str]]
    names: frozenset[tuple[str, ...]]


def understood(text: str, database: Database) -> Query:
    """Read *text* as a query: the rarest of its terms, and beginnings of terms in place of those that nothing holds."""
    reading = _read(text[:_LONGEST_QUERY])
    distinct = list(dict.fromkeys(reading.words))
    asked = distinct[:_MOST_LOOKED_UP]
    frequencies = database.frequencies([*asked, *reading.others[:_MOST_LOOKED_UP]])
    shared = {term: _shared_beginning(term, database) for term in asked if not frequencies[term]}
    terms = _rarest((term, often) for term, often in frequencies.items() if often)
    prefixes = _rarest(chain(filter(None, shared.values()), _hashes(terms, database)))
    weights = {term: weight_of(often, database.chunks) for term, often in terms.items()}
    in_parts = {word for word, parts in reading.parts.items() if word in shared and _in_a_row(parts, terms, database)}
    return Query(
        terms=weights,
        prefixes={term: weight_of(often, database.chunks) for term, often in prefixes.items()},
        pairs={pair: weight for row in (reading.words, *reading.identifiers) for pair, weight in _pairs(row, weights)},
        sought=tuple(_sought(terms, prefixes, reading, database.chunks)),
        missing=tuple(term for term, found in shared.items() if not found and term not in in_parts),
        ignored=len(distinct) - len(shared) - sum(term in terms for term in distinct),
    )


def weight_of(frequency: int, chunks: int) -> float:
    """Return what it is worth to hold what so many of all *chunks* hold, as in BM25."""
    frequency = min(frequency, chunks)
    return math.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5))


def _read(text: str) -> _Reading:
    pieces = [(piece, found) for piece in text.split() if (found := terms_of(piece)).words]
    words = [word for _, found in pieces for word in found.words]
    parts = parts_of(text)
    spelled = {piece: list(_spellings(found.words, parts)) for piece, found in pieces}
    identifiers = list(dict.fromkeys(chain.from_iterable(spelled.values())))
    asked = set(words)
    others = dict.fromkeys(chain(*(found.hidden for _, found in pieces), *identifiers, *map(_short_forms, words)))
    return _Reading(
        words,
        [term for term in others if term not in asked],
        identifiers,
        parts,
        frozenset(chain.from_iterable(own for piece, own in spelled.items() if names_in([piece]))),
    )


def _spellings(words: Sequence[str], parts: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Give an identifier by its words, and these by their parts, and a version both with a *v* in front and without."""
    yield tuple(words)
    yield from (tuple(parts[word]) for word in words if word in parts)
    if len(words) > 1 and words[1].isdigit() and (number := _NUMBER_OF_A_VERSION.fullmatch(words[0])):
        yield (number[2] if number[1] else f"v{number[2]}", *words[1:])


def _short_forms(word: str) -> list[str]:
    """Return what people write for a long hash."""
    return [word[:length] for length in _LENGTHS_OF_SHORT_HASHES if length < len(word)] if _HASH.fullmatch(word) else []


def _shared_beginning(term: str, database: Database) -> tuple[str, int] | None:
    """Return the longest beginning of *term* that terms of the index share, and how often: `timeouts` is `timeout`.

    What has a digit is not cut: another number is another thing.
    """
    shortest = max(_SHORTEST_PREFIX, len(term) - _MOST_LETTERS_CUT_OFF, math.ceil(len(term) * _SHORTEST_SHARE))
    if any(map(str.isdigit, term)):
        shortest = max(shortest, len(term))
    beginnings = (term[:length] for length in range(len(term), shortest - 1, -1))
    return next(((part, often) for part in beginnings if (often := database.frequency_of_prefix(part))), None)


def _hashes(terms: Iterable[str], database: Database) -> Iterator[tuple[str, int]]:
    """Give terms that may be the beginning of a hash: some write it short, and others in full."""
    return ((term, database.frequency_of_prefix(term)) for term in terms if _HASH.fullmatch(term))


def _rarest(frequencies: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(sorted(frequencies, key=lambda item: item[1])[:_MOST_TERMS])


def _pairs(in_order: Sequence[str], weights: Mapping[str, float]) -> Iterator[tuple[tuple[str, str], float]]:
    for first, second in pairwise(in_order):
        if first in weights and second in weights:
            yield (first, second), min(weights[first], weights[second])


def _in_a_row(parts: Sequence[str], terms: Mapping[str, int], database: Database) -> bool:
    return all(part in terms for part in parts) and database.holds(_whole(" ".join(parts)))


def _sought(terms: Mapping[str, int], prefixes: Mapping[str, int], reading: _Reading, chunks: int) -> list[Sought]:
    rare = [term for term, often in terms.items() if weight_of(often, chunks) >= _COMMON]
    phrases = dict.fromkeys(phrase for words in reading.identifiers for phrase in _phrases(words, terms))
    frequencies = {phrase: min(map(terms.__getitem__, phrase)) for phrase in islice(phrases, _MOST_PHRASES)}
    names = reading.names
    sought = [
        *(Sought(_whole(" ".join(phrase)), often, True, phrase in names) for phrase, often in frequencies.items()),
        *(Sought(_whole(term), terms[term], is_name=_is_name(term, names)) for term in rare or terms),
        *(Sought(_beginning(prefix), often) for prefix, often in prefixes.items()),
    ]
    return sorted(sought, key=lambda each: each.frequency)


def _is_name(term: str, names: Collection[tuple[str, ...]]) -> bool:
    return (term,) in names or bool(_LONG_NUMBER.search(term))


def _phrases(words: Sequence[str], terms: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Give what must stand in a row: an identifier's words, and any two characters of a script without blanks."""
    if 1 < len(words) <= _LONGEST_PHRASE and all(word in terms for word in words):
        yield tuple(words)
    for first, second in pairwise(words):
        if len(first) == len(second) == 1 and not first.isascii() and first in terms and second in terms:
            yield first, second


def _whole(words_in_a_row: str) -> str:
    return f'"{words_in_a_row}"'


def _beginning(prefix: str) -> str:
    return f'"{prefix}" *'
