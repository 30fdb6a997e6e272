"""Candidates in the order of their best lines, and what to show of them.

For BM25 a chunk is a bag of words. Whether the words that were asked for stand in one line, and in a row, decides here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from holdfast.search.answers import ExcerptLine
from holdfast.search.chunks import Chunk
from holdfast.search.database import StoredChunk
from holdfast.search.queries import Query
from holdfast.search.terms import plain, terms_of

__all__ = ["Place", "best_places", "excerpt_of"]

# Shares of a line's own weight, chosen on real tool outputs; halved or doubled, each changes little.
_IN_A_ROW = 0.3
_ELSEWHERE_IN_THE_CHUNK = 0.3
_LENGTH = 0.02
_LINES_ALIKE = 0.01
_ALIKE = 0.95
_LONGEST_LINE_SHOWN = 200


class Place(NamedTuple):
    """A chunk that matches, or two that stand next to each other."""

    score: float
    stored: StoredChunk
    chunks: int = 1

    def with_neighbour(self, other: StoredChunk) -> Place | None:
        """Return the place that covers *other* too, or None if it is no neighbour or the place is large enough."""
        first, second = sorted([self.stored, other])
        if self.chunks > 1 or first.document != second.document or second.number - first.number != 1:
            return None
        return Place(self.score, first._replace(chunk=first.chunk.joined_with(second.chunk)), 2)


class _LineScore(NamedTuple):
    score: float
    found: frozenset[str]


def best_places(query: Query, candidates: Iterable[StoredChunk], titles: Mapping[int, str], limit: int) -> list[Place]:
    """Return up to *limit* places, the best first. Candidates next to each other are one place."""
    scored = ((_score(query, stored.chunk, titles[stored.document]), stored) for stored in candidates)
    places: list[Place] = []
    for score, stored in sorted(scored, key=lambda pair: -pair[0]):
        if not _joins(places, stored):
            if len(places) == limit:
                break
            places.append(Place(score, stored))
    return places


def _joins(places: list[Place], stored: StoredChunk) -> bool:
    for index, place in enumerate(places):
        if wider := place.with_neighbour(stored):
            places[index] = wider
            return True
    return False


def _score(query: Query, chunk: Chunk, title: str) -> float:
    text = chunk.text if chunk.start else f"{title}\n{chunk.text}"
    lines = [line for line in (_line_score(query, line) for line in _promising_lines(query, text)) if line.found]
    if not lines:
        return 0.0
    best = max(line.score for line in lines)
    alike = sum(line.score >= _ALIKE * best for line in lines)
    together = _weight(query, frozenset().union(*(line.found for line in lines)))
    return best * (1 + _LINES_ALIKE * math.log(alike)) + _ELSEWHERE_IN_THE_CHUNK * together


def _promising_lines(query: Query, text: str) -> list[str]:
    text = plain(text)
    wanted = (*query.terms, *query.prefixes)
    lines = zip(text.split("\n"), text.casefold().split("\n"), strict=True)
    return [line for line, folded in lines if any(map(folded.__contains__, wanted))]


def _line_score(query: Query, line: str) -> _LineScore:
    words, hidden = terms_of(line)
    distinct = {*words, *hidden}
    found = frozenset((query.terms.keys() & distinct).union(_beginnings(query, distinct)))
    if not found:
        return _LineScore(0.0, found)
    in_a_row = sum(query.pairs[pair] for pair in query.pairs.keys() & set(pairwise(words)))
    score = _weight(query, found) + _IN_A_ROW * in_a_row
    return _LineScore(score * (1 - _LENGTH * math.log(1 + len(words))), found)


def _beginnings(query: Query, words: Iterable[str]) -> Iterator[str]:
    if query.prefixes:
        beginnings = tuple(query.prefixes)
        starting = [word for word in words if word.startswith(beginnings)]
        yield from (prefix for prefix in beginnings if any(word.startswith(prefix) for word in starting))


def _weight(query: Query, found: Iterable[str]) -> float:
    return sum(query.terms.get(term) or query.prefixes[term] for term in found)


def excerpt_of(query: Query, chunk: Chunk, characters: int) -> tuple[ExcerptLine, ...]:
    """Return the best lines of *chunk* and those around the best, in order, with up to so many *characters*."""
    longest = min(characters, _LONGEST_LINE_SHOWN)
    lines = [_shown(query, line, longest) for line in _lines(chunk) if line.text.strip()]
    scores = {line: _line_score(query, line.text).score for line in lines}
    best = max(lines, key=lambda line: scores[line]).number if lines else 0
    chosen: list[ExcerptLine] = []
    for line in sorted(lines, key=lambda line: (-scores[line], abs(line.number - best))):
        if (characters := characters - len(line.text)) < 0:
            break
        chosen.append(line)
    return tuple(sorted(chosen, key=lambda line: line.number))


def _lines(chunk: Chunk) -> Iterator[ExcerptLine]:
    column = chunk.column
    for number, text in enumerate(chunk.text.split("\n"), start=chunk.line):
        part = bool(column) or (chunk.goes_on and number == chunk.last_line)
        yield ExcerptLine(number, column, text.rstrip("\r"), part)
        column = 0


def _shown(query: Query, line: ExcerptLine, longest: int) -> ExcerptLine:
    """Return the line, or the best part of one that is too long to be shown."""
    if len(line.text) <= longest:
        return line
    step = max(longest // 2, 1)
    parts = {start: line.text[start : start + longest] for start in range(0, len(line.text) - step, step)}
    best = max(parts, key=lambda start: _line_score(query, parts[start]).score)
    return ExcerptLine(line.number, line.column + best, parts[best], part=True)
