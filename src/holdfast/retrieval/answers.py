"""What an agent is told of a search: passages, the names near them, and what the reader must know to judge them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.retrieval.pages import NOTES, fitting
from holdfast.retrieval.room import Room
from holdfast.search import ExcerptLine, Hit, SearchAnswer

__all__ = ["SHORTEST_EXCERPT", "excerpt_characters", "written"]

SHORTEST_EXCERPT = 400
"""Characters of an excerpt: a few lines."""

_LONGEST_EXCERPT = 1_200
_MOST_MISSING, _LONGEST_MISSING = 5, 60
_CHARACTERS_PER_TOKEN, _TOKENS_OF_A_HEADING = 3, 30
# The rest is for names, of which many say where to look next in little room.
_SHARE_OF_PASSAGES, _CHARACTERS_OF_NAMES, _FEWEST_OF_NAMES = 0.6, 4_000, 400
_NAMES = "names near these words, here and in the next best passages (search for one to see where)"


def excerpt_characters(tokens: int, limit: int) -> int:
    """Return how long excerpts may be for so many to fit into an answer."""
    each = (tokens - NOTES) * _SHARE_OF_PASSAGES / limit - _TOKENS_OF_A_HEADING
    return min(max(int(each * _CHARACTERS_PER_TOKEN), SHORTEST_EXCERPT), _LONGEST_EXCERPT)


async def written(answer: SearchAnswer, unread: int, damaged: int, room: Room) -> str:
    """Write an answer into *room*; so many contents were *unread* or *damaged*."""
    hits = answer.hits
    missing = room.take_all(_missing(answer))
    shown = room.within(_SHARE_OF_PASSAGES, lambda part: part.take_all(map(_passage, hits)))
    if hits and not shown:
        shown = [fitting(_passage(hits[0]), room)]
    told = "; ".join([*_counts(answer, len(shown)), *_left_out(answer, unread, damaged)])
    named = _named(answer.names, "\n".join(shown), room)
    return _encodable("\n".join([*missing, *shown, *named, f"[{told}]"]))


def _missing(answer: SearchAnswer) -> list[str]:
    """Return what is to be known before anything else: that these passages are not what was asked for."""
    if not (answer.missing and answer.hits):
        return []
    return [f"[found nowhere: {_terms(answer.missing)}; these passages hold other words of the query]"]


def _named(names: Iterable[str], shown: str, room: Room) -> list[str]:
    """Return a line with as many of *names* as fit, without those that can be seen already; no longer than *shown*."""
    most = len(shown) + min(room.left * _CHARACTERS_PER_TOKEN, _CHARACTERS_OF_NAMES, max(len(shown), _FEWEST_OF_NAMES))
    seen = shown
    for name in names:
        if name not in seen and len(seen) + len(name) < most:
            seen += f", {name}"
    line = f"{_NAMES}: {seen[len(shown) + 2 :]}"
    return [line] if len(seen) > len(shown) and room.take(line) else []


def _encodable(text: str) -> str:
    """Return *text* without the halves of characters that no provider takes."""
    return text.encode("utf-8", "replace").decode()


def _passage(hit: Hit) -> str:
    what = hit.labels.get("what") or (f"from {hit.title}" if hit.title else "")
    source = f" ({what})" if what else ""
    return "\n".join([f"{hit.reference}{source}, {_place(hit)}:", *map(_quoted, hit.excerpt)])


def _place(hit: Hit) -> str:
    if hit.first_line < hit.last_line:
        return f"lines {hit.first_line:,}–{hit.last_line:,}"
    if all(line.column == 0 and not line.part for line in hit.excerpt):
        return f"line {hit.first_line:,}"
    first, last = hit.first_column + 1, hit.first_column + hit.end_character - hit.start_character
    return f"line {hit.first_line:,}, characters {first:,}–{last:,}"


def _quoted(line: ExcerptLine) -> str:
    before, after = "…" if line.column else "", "…" if line.part else ""
    return f"  {line.number}: {before}{line.text}{after}"


def _counts(answer: SearchAnswer, shown: int) -> list[str]:
    """Return how much there is."""
    there = len(answer.hits)
    if shown:
        told = [f"{shown:,} of {max(answer.total_matching, shown):,} matching passages, the best first"]
    else:
        told = ["Nothing matches; try other words, or a pattern with retrieve_offloaded_content"]
        told += [f"found nowhere: {_terms(answer.missing)}"] if answer.missing else []
    if shown < there:
        told.append(f"{there - shown:,} more did not fit; ask for what is special about the one you mean")
    if answer.gone:
        told.append(f"{answer.gone:,} of the best are of contents that were evicted")
    if answer.unsure:
        told.append(f"whether these can be opened just now is not known: {answer.unsure:.200}")
    return told


def _left_out(answer: SearchAnswer, unread: int, damaged: int) -> list[str]:
    """Return what was not looked at."""
    told: list[str] = []
    if answer.ignored:
        told.append(f"{answer.ignored:,} further words of this long query were not looked for")
    if answer.uncovered:
        told.append(
            f"{_contents(answer.uncovered)} not covered by the search, which is bounded; "
            "open a reference that you know with a pattern"
        )
    if unread:
        contents = "1 content" if unread == 1 else f"{unread:,} contents"
        told.append(f"{contents} could not be read just now; search again later")
    if damaged:
        told.append(f"{_contents(damaged)} damaged, so not all of it can be found")
    return told


def _contents(count: int) -> str:
    return "1 content is" if count == 1 else f"{count:,} contents are"


def _terms(missing: Sequence[str]) -> str:
    return ", ".join(map(_shortened, missing[:_MOST_MISSING]))


def _shortened(term: str) -> str:
    return term if len(term) <= _LONGEST_MISSING else f"{term[: _LONGEST_MISSING - 1]}…"
