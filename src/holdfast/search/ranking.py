"""Candidates in the order in which they are worth reading.

For BM25 a chunk is a bag of words. Whether the words that were asked for stand in one line, and in a row, decides here;
and what the better ones show already counts for less in the others: five copies of one passage answer no more than one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from holdfast.search.database import StoredChunk
from holdfast.search.lines import LineScores
from holdfast.search.queries import Query
from holdfast.search.terms import plain

__all__ = ["Place", "Ranked", "fused", "places_of", "ranked"]

# A share of a line's own weight, chosen on real tool outputs; halved or doubled, it changes little.
_LINES_ALIKE = 0.01
_ALIKE = 0.95
# How much a term counts once more that a better chunk has shown.
_SHOWN_ALREADY = 0.5
# Of reciprocal rank fusion, as its authors chose it.
_RANKS_THAT_MATTER_LITTLE = 60


class Ranked(NamedTuple):
    """A chunk, and what it adds to those before it."""

    score: float
    stored: StoredChunk


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


class _Match(NamedTuple):
    score: float
    weight: float
    found: frozenset[str]
    stored: StoredChunk


def ranked(
    lines: LineScores, candidates: Iterable[tuple[StoredChunk, str]], whole: Mapping[int, float]
) -> Iterator[Ranked]:
    """Give chunks with their titles, the best chunk first. What was shown before counts for less and less.

    *whole* are the weights of identifiers that they hold as a whole.
    """
    matches = [_match(lines, stored, title, whole.get(stored.number, 0.0)) for stored, title in candidates]
    weights = dict(lines.query.weights)
    waiting = [(-match.score, order) for order, match in enumerate(matches)]
    heapify(waiting)
    while waiting:
        promised, order = waiting[0]
        match = matches[order]
        score = -match.score * _share(match, weights)
        if score > promised:
            heapreplace(waiting, (score, order))
            continue
        heappop(waiting)
        yield Ranked(-score, match.stored)
        weights.update((term, weights[term] * _SHOWN_ALREADY) for term in match.found)


def fused(by_words: Iterable[Ranked], by_meaning: Iterable[StoredChunk], exact: Mapping[int, float]) -> list[Ranked]:
    """Return both as one, the best first: what is high up in either list, and higher what is in both.

    What holds a name of the query or its rarest term, by the weights in *exact*, comes before all that only ranks well.
    """
    chunks: dict[int, StoredChunk] = {}
    scores = defaultdict(float, exact)
    for ranking in ([stored for _, stored in by_words], by_meaning):
        for rank, stored in enumerate(ranking, start=1):
            chunks[stored.number] = stored
            scores[stored.number] += 1 / (_RANKS_THAT_MATTER_LITTLE + rank)
    return [Ranked(scores[number], chunks[number]) for number in sorted(chunks, key=lambda number: -scores[number])]


def places_of(chunks: Iterable[Ranked], limit: int) -> list[Place]:
    """Return up to *limit* places, the best first. Chunks next to each other are one place."""
    places: list[Place] = []
    for score, stored in chunks:
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


def _share(match: _Match, weights: Mapping[str, float]) -> float:
    """Return how much of what a chunk holds is new."""
    return math.fsum(map(weights.__getitem__, match.found)) / match.weight if match.found else 1.0


def _match(scores: LineScores, stored: StoredChunk, title: str, whole: float) -> _Match:
    text = stored.chunk.text if stored.chunk.start else f"{title}\n{stored.chunk.text}"
    lines = [scores[line] for line in _promising_lines(scores.query, text)]
    found = frozenset().union(*(line.found for line in lines))
    if not found:
        return _Match(0.0, 0.0, found, stored)
    best, weight = max(line.score for line in lines), scores.query.weight(found)
    alike = sum(line.score >= _ALIKE * best for line in lines)
    score = best * (1 + _LINES_ALIKE * math.log(alike)) + weight + whole
    return _Match(score, weight, found, stored)


def _promising_lines(query: Query, text: str) -> Iterator[str]:
    text = plain(text)
    folded = text.casefold()
    held = [term for term in query.weights if term in folded]
    lines = zip(text.split("\n"), folded.split("\n"), strict=True)
    return (line for line, folded in lines if any(map(folded.__contains__, held)))
