"""The tool with which an agent searches in everything that was offloaded."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.hooks import Conversation
from holdfast.previews.room import Room
from holdfast.references import KnownReferences
from holdfast.retrieval.contents import StoredContents, decoded
from holdfast.retrieval.events import Searched
from holdfast.retrieval.pages import fitted
from holdfast.search import ExcerptLine, Hit, SearchAnswer, SearchIndex
from holdfast.tokens import TokenEstimator

__all__ = ["SEARCH", "Searching"]

logger = logging.getLogger(__name__)

SEARCH = "search_offloaded_content"
_DESCRIPTION = (
    "Search in everything that was offloaded from this conversation. Give the words, names, numbers or identifiers you "
    "are looking for; the best matching passages come first, each with its reference and line numbers, which "
    "retrieve_offloaded_content opens."
)
_LIMIT, _MOST = 5, 50
_MOST_WAITING = 64_000_000
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
    """Keeps a search index over a conversation's contents. It is made while the model thinks, and used when asked."""

    def __init__(
        self,
        contents: StoredContents,
        known: KnownReferences,
        *,
        estimator: TokenEstimator,
        answer_tokens: Callable[[], int],
        on_event: Callable[[Searched], None],
    ) -> None:
        self._contents = contents
        self._known = known
        self._estimator = estimator
        self._answer_tokens = answer_tokens
        self._on_event = on_event
        self._index: SearchIndex | None = None
        self._waiting: OrderedDict[str, bytes] = OrderedDict()
        self._waiting_bytes = 0
        self._indexing: asyncio.Task[None] | None = None
        self._seen: set[str] = set()
        self.tool = AgentTool(SEARCH, _DESCRIPTION, _SCHEMA, self._handle)

    def add(self, reference: str, content: bytes) -> None:
        """Let a text be found. What waits too long in line is read from the storage again when it is needed."""
        self._waiting[reference] = content
        self._waiting_bytes += len(content)
        while self._waiting_bytes > _MOST_WAITING:
            _, oldest = self._waiting.popitem(last=False)
            self._waiting_bytes -= len(oldest)

    def index_waiting(self) -> None:
        """Begin to index what was added. This is a good moment for it: the model is about to be called."""
        if self._waiting and (self._indexing is None or self._indexing.done()):
            self._indexing = asyncio.create_task(self._index_in_the_background())

    async def aclose(self) -> None:
        """Forget the index. A later search makes a new one."""
        self._waiting.clear()
        self._waiting_bytes = 0
        await self._indexed()
        index, self._index = self._index, None
        self._seen.clear()
        if index is not None:
            await index.aclose()

    async def _handle(self, conversation: Conversation, arguments: Mapping[str, Any]) -> str:
        query, limit = _checked(arguments)
        await self._catch_up()
        answer = await self._opened().search(query, limit)
        hits = [hit for hit in answer.hits if await self._is_there(hit.reference)]
        self._on_event(Searched(query, tuple(dict.fromkeys(hit.reference for hit in hits))))
        return await fitted(partial(_written, answer, hits), self._answer_tokens(), self._estimator.text)

    def _opened(self) -> SearchIndex:
        if self._index is None:
            self._index = SearchIndex()
        return self._index

    async def _catch_up(self) -> None:
        """Index all that is known and was not indexed yet, after a restart also what only the storage still has."""
        await self._indexed()
        await self._index_waiting()
        for reference in [reference for reference in self._known if reference not in self._seen]:
            await self._index_stored(reference)

    async def _indexed(self) -> None:
        """Wait for what is being indexed. What another event loop began, and left, nobody waits for."""
        if self._indexing is not None and self._indexing.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([self._indexing])

    async def _index_in_the_background(self) -> None:
        try:
            await self._index_waiting()
        except HoldfastError as error:
            logger.warning("what was offloaded cannot be searched: %s", error)

    async def _index_waiting(self) -> None:
        while self._waiting:
            reference, content = self._waiting.popitem(last=False)
            self._waiting_bytes -= len(content)
            await self._index_text(reference, content)

    async def _index_stored(self, reference: str) -> None:
        self._seen.add(reference)
        try:
            opened = await self._contents.open(reference)
            if opened.is_text:
                await self._index_text(reference, await self._contents.whole(opened))
        except KeyError:
            self._known.forget(reference)

    async def _index_text(self, reference: str, content: bytes) -> None:
        self._seen.add(reference)
        await self._opened().add(reference, decoded(content), title=self._known.tool_of(reference))

    async def _is_there(self, reference: str) -> bool:
        """Say whether a content can still be opened; what cannot is forgotten."""
        if await self._contents.has(reference):
            return True
        self._known.forget(reference)
        await self._opened().remove([reference])
        return False


async def _written(answer: SearchAnswer, hits: list[Hit], room: Room) -> str:
    shown: list[str] = []
    for hit in hits:
        passage = _passage(hit)
        if not room.take(passage):
            break
        shown.append(passage)
    if hits and not shown:
        shown = room.take_head(_passage(hits[0]).split("\n"))
    return "\n".join([*shown, _told(answer, len(shown))])


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


def _told(answer: SearchAnswer, shown: int) -> str:
    """Return how much there is, and what was not looked at."""
    if shown:
        told = [f"{shown:,} of {answer.total_matching:,} matching passages, the best first"]
    else:
        told = ["Nothing matches; try other words, or a pattern with retrieve_offloaded_content"]
    if answer.missing:
        told.append(f"found nowhere: {', '.join(answer.missing[:_MOST_MISSING])}")
    if answer.ignored:
        told.append(f"{answer.ignored:,} further words of this long query were not looked for")
    if answer.uncovered:
        told.append(f"{answer.uncovered:,} of the oldest contents are not covered by the search")
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
