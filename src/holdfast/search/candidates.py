"""The chunks that are worth a closer look: those that hold the most, and the rarest, of what is looked for.

What is rare decides. So the postings of common terms are not read where there are enough others, and a search costs
what its query costs, however much there is in the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import nlargest
from typing import NamedTuple

from holdfast.search.database import Database
from holdfast.search.queries import Query, weight_of

__all__ = ["Candidates", "candidates_for"]

_MOST_POSTINGS = 12_000
_FEW = 3


class Candidates(NamedTuple):
    """The numbers of chunks, how many there are in all that hold anything, and the weights of whole identifiers.

    *exact* are the weights of the query's names, and of its rarest terms, as long as only a few chunks hold these.
    """

    numbers: list[int]
    total: int
    whole: Mapping[int, float]
    exact: Mapping[int, float]


def candidates_for(
    query: Query, database: Database, is_wanted: Callable[[int], bool] | None, echoes: Collection[int], limit: int
) -> Candidates:
    """Return up to *limit* chunks, the best first, of those that are wanted: None means all.

    Those of the documents that are *echoes* come after all others.
    """
    held, whole, exact = _weighed(query, database)
    if is_wanted:
        held = {number: weight for number, weight in held.items() if is_wanted(number)}
    repeated = {number: held[number] for number in held if database.document_of(number) in echoes} if echoes else {}
    original = {number: held[number] for number in held if number not in repeated} if repeated else held
    best = _best(original, query, database, limit)
    best += _best(repeated, query, database, limit - len(best))
    return Candidates(best, len(held), whole, exact)


def _best(held: Mapping[int, float], query: Query, database: Database, limit: int) -> list[int]:
    best = nlargest(limit, held, key=held.__getitem__)
    if not best or len(held) <= limit or held[best[0]] > held[best[-1]]:
        return best
    # They hold the same. How often they do, and how much else there is in them, BM25 weighs.
    ranked = [number for number in database.ranked(query.everything, 2 * limit) if number in held]
    return [*dict.fromkeys([*ranked, *best])][:limit]


def _weighed(query: Query, database: Database) -> tuple[dict[int, float], dict[int, float], dict[int, float]]:
    """Return the weights, by number, of all that chunks hold, of the whole identifiers, and of what is exact."""
    held: dict[int, float] = {}
    whole: dict[int, float] = {}
    exact: dict[int, float] = {}
    left = _MOST_POSTINGS
    for expression, frequency, is_whole, is_name in query.sought:
        if held and frequency > left:
            break
        numbers = database.holding(expression)
        left -= len(numbers)
        weight = weight_of(len(numbers), database.chunks)
        _add(held, numbers, weight)
        if is_whole:
            _add(whole, numbers, weight)
        if is_name or len(exact.keys() | numbers) <= _FEW:
            _add(exact, numbers, weight)
    return held, whole, exact


def _add(weights: dict[int, float], numbers: Iterable[int], weight: float) -> None:
    for number in numbers:
        weights[number] = weights.get(number, 0.0) + weight
