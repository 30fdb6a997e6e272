"""How well lines match a query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from holdfast.search.queries import Query
from holdfast.search.terms import terms_of

__all__ = ["LineScore", "LineScores"]

# Shares of a line's own weight, chosen on real tool outputs; halved or doubled, each changes little.
_IN_A_ROW = 0.3
_LENGTH = 0.02
# Searches in one conversation come upon the same lines again and again. A longer line is read anew.
_LINES_REMEMBERED, _LONGEST_REMEMBERED = 4_096, 500


class LineScore(NamedTuple):
    """How well a line matches, and the terms and beginnings that it holds."""

    score: float
    found: frozenset[str]


_NOTHING = LineScore(0.0, frozenset())


class LineScores(dict[str, LineScore]):
    """The scores of lines, by the weight of what they hold, more of it in a row, and little else.

    A line is looked at once: the same one often comes again, in copies of a passage and when it is shown.
    """

    def __init__(self, query: Query) -> None:
        super().__init__()
        self.query = query

    def __missing__(self, line: str) -> LineScore:
        scored = self[line] = _score(self.query, line)
        return scored


def _score(query: Query, line: str) -> LineScore:
    words, distinct = (_remembered if len(line) <= _LONGEST_REMEMBERED else _read)(line)
    found = frozenset(chain(query.terms.keys() & distinct, _beginnings(query, distinct)))
    if not found:
        return _NOTHING
    score = query.weight(found)
    if len(found) > 1:
        score += _IN_A_ROW * math.fsum(map(query.pairs.__getitem__, query.pairs.keys() & set(pairwise(words))))
    return LineScore(score * (1 - _LENGTH * math.log(1 + len(words))), found)


def _read(line: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the words of a line in order, and all terms in it."""
    words, hidden = terms_of(line)
    return tuple(words), frozenset(chain(words, hidden))


_remembered = lru_cache(_LINES_REMEMBERED)(_read)


def _beginnings(query: Query, words: Iterable[str]) -> Iterator[str]:
    if query.prefixes:
        beginnings = tuple(query.prefixes)
        starting = [word for word in words if word.startswith(beginnings)]
        yield from (prefix for prefix in beginnings if any(word.startswith(prefix) for word in starting))
