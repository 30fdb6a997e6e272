"""The tool with which an agent searches in everything that was offloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import Conversation
from holdfast.previews.room import Room
from holdfast.retrieval.contents import StoredContents
from holdfast.retrieval.events import Searched
from holdfast.retrieval.indexing import Indexing
from holdfast.retrieval.pages import fitted, fitting
from holdfast.search import ExcerptLine, Hit, SearchAnswer
from holdfast.tokens import TokenEstimator
from holdfast.turns import Allowance

__all__ = ["SEARCH", "Searching"]

SEARCH = "search_offloaded_content"
_DESCRIPTION = (
    "Search in everything that was offloaded from this conversation. Give the words, names, numbers or identifiers you "
    "are looking for; the best matching passages come first, each with its reference and line numbers, which "
    "retrieve_offloaded_content opens."
)
_LIMIT, _MOST = 5, 50
_MOST_MISSING = 5
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for, in a few telling words."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": _MOST,
            "default": _LIMIT,
            "description": "How many passages to show at most.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


class Searching:
    """Answers with passages of all that was offloaded."""

    def __init__(
        self,
        contents: StoredContents,
        indexing: Indexing,
        *,
        estimator: TokenEstimator,
        allowance: Callable[[], AbstractContextManager[Allowance]],
        on_event: Callable[[Searched], None],
    ) -> None:
        self._contents = contents
        self._indexing = indexing
        self._estimator = estimator
        self._allowance = allowance
        self._on_event = on_event
        self.tool = AgentTool(SEARCH, _DESCRIPTION, _SCHEMA, self._handle)

    async def _handle(self, conversation: Conversation, arguments: Mapping[str, Any]) -> str:
        query, limit = _checked(arguments)
        answer = await self._indexing.search(query, limit)
        hits = [hit for hit in answer.hits if await self._is_there(hit.reference)]
        self._on_event(Searched(query, tuple(dict.fromkeys(hit.reference for hit in hits))))
        with self._allowance() as allowance:
            text = await fitted(partial(_written, answer, hits), allowance.tokens, self._estimator.text)
            allowance.used = self._estimator.text(text)
        return text

    async def _is_there(self, reference: str) -> bool:
        """Say whether a content can still be opened; what cannot is forgotten."""
        if await self._contents.has(reference):
            return True
        await self._indexing.forget(reference)
        return False


async def _written(answer: SearchAnswer, hits: list[Hit], room: Room) -> str:
    shown = room.take_all(map(_passage, hits))
    if hits and not shown:
        shown = [fitting(_passage(hits[0]), room)]
    return "\n".join([*shown, _told(answer, len(shown), len(hits))])


def _passage(hit: Hit) -> str:
    source = f" (from {hit.title})" if hit.title else ""
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


def _told(answer: SearchAnswer, shown: int, there: int) -> str:
    """Return how much there is, and what was not looked at."""
    if shown:
        told = [f"{shown:,} of {max(answer.total_matching, shown):,} matching passages, the best first"]
    else:
        told = ["Nothing matches; try other words, or a pattern with retrieve_offloaded_content"]
    if shown < there:
        told.append(f"{there - shown:,} more did not fit; ask for what is special about the one you mean")
    if gone := len(answer.hits) - there:
        told.append(f"{gone:,} of the best are of contents that were evicted")
    if answer.missing:
        told.append(f"found nowhere: {', '.join(answer.missing[:_MOST_MISSING])}")
    if answer.ignored:
        told.append(f"{answer.ignored:,} further words of this long query were not looked for")
    if answer.uncovered:
        told.append(f"{answer.uncovered:,} contents are not covered by the search, which is bounded")
    return f"[{'; '.join(told)}]"


def _checked(arguments: Mapping[str, Any]) -> tuple[str, int]:
    unknown = [name for name in arguments if name not in ("query", "limit")]
    if unknown:
        raise InvalidValueError(f"unknown argument {unknown[0]!r:.80}; allowed are query, limit")
    query, limit = arguments.get("query"), arguments.get("limit")
    if not isinstance(query, str) or not query.strip():
        raise InvalidTypeError("query must be the words to look for")
    limit = _LIMIT if limit is None else limit
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
        raise InvalidValueError(f"limit must be a number from 1 to {_MOST}, got {limit!r:.80}")
    return query, limit
