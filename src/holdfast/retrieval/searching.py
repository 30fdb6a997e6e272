"""The tool with which an agent searches in everything that left the window."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.dialects.wires import as_mapping
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError, StorageError
from holdfast.hooks import Conversation
from holdfast.retrieval.answers import SHORTEST_EXCERPT, excerpt_characters, written
from holdfast.retrieval.contents import WORKERS, StoredContents
from holdfast.retrieval.events import RetrievalFailed, Searched, SearchFailed
from holdfast.retrieval.indexing import Indexing
from holdfast.retrieval.pages import fitted
from holdfast.search import Hit, SearchAnswer
from holdfast.search.names import names_in
from holdfast.tokens import TokenEstimator
from holdfast.turns import Allowance

__all__ = ["SEARCH", "SEARCH_HISTORY", "Searching"]

SEARCH = "search_offloaded_content"
SEARCH_HISTORY = "search_context"
_OFFLOADED = "everything that was offloaded from this conversation"
_HISTORY = "everything of this conversation that is no longer in view: offloaded tool results and earlier messages"
_DESCRIPTION = (
    "Search in {what}. Give the words, names, numbers or identifiers you are looking for; the best matching passages "
    "come first, each with its reference and line numbers, which retrieve_offloaded_content opens."
)
_LIMIT, _MOST = 8, 50
# Passages beside each other become one, so that with more of them the best are wider.
_BREADTH = 2
# What is gone is found out when it is found, and makes room for others: so often, then it has to do.
_ROUNDS = 3
# A message may hold itself.
_MOST_VALUES = 200_000
_WHOLE = re.compile(r"\s*[0-9]{1,9}\s*")
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
        on_event: Callable[[Searched | SearchFailed | RetrievalFailed], None],
        covers_history: bool = False,
    ) -> None:
        self._contents = contents
        self._indexing = indexing
        self._estimator = estimator
        self._allowance = allowance
        self._on_event = on_event
        name, what = (SEARCH_HISTORY, _HISTORY) if covers_history else (SEARCH, _OFFLOADED)
        self.tool = AgentTool(name, _DESCRIPTION.format(what=what), _SCHEMA, self._handle)

    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Return the best passages, first one of each content. What can no longer be opened is only counted, as `gone`.

        What could not be read counts as `uncovered`.
        """
        answer = await self._told(*_checked({"query": query, "limit": limit}), SHORTEST_EXCERPT, tool="")
        return replace(answer, uncovered=answer.uncovered + self._indexing.unread + self._indexing.damaged)

    async def _handle(self, conversation: Conversation, arguments: Mapping[str, Any]) -> str:
        query, limit = _checked({**arguments, "limit": _whole(arguments.get("limit"))})
        with self._allowance() as allowance:
            allowance.used = 0
            found = await self._told(query, limit, excerpt_characters(allowance.tokens, limit), tool=self.tool.name)
            seen = await WORKERS.run(names_in, list(_texts_in(conversation.messages)))
            answer = replace(found, names=tuple(name for name in found.names if name not in seen))
            write = partial(written, answer, self._indexing.unread, self._indexing.damaged)
            text = await fitted(write, allowance.tokens, self._estimator.text)
            allowance.used = self._estimator.text(text)
        return text

    async def _told(self, query: str, limit: int, excerpt_characters: int, *, tool: str) -> SearchAnswer:
        """Return what is found, after whoever listens was told."""
        began = time.perf_counter()
        try:
            answer = await self._found(query, limit, excerpt_characters)
        except HoldfastError as error:
            self._on_event(SearchFailed(query, error))
            raise
        references = tuple(dict.fromkeys(hit.reference for hit in answer.hits))
        self._on_event(Searched(query, references, time.perf_counter() - began, tool))
        return answer

    async def _found(self, query: str, limit: int, excerpt_characters: int) -> SearchAnswer:
        gone, looked_at = 0, limit
        for _ in range(_ROUNDS):
            await self._indexing.catch_up()
            answer = await self._indexing.search(query, min(_BREADTH * looked_at, _MOST), excerpt_characters)
            best = answer.hits[:looked_at]
            hits, unsure = await self._those_there(best)
            gone += len(best) - len(hits)
            if len(hits) >= min(limit, len(best)):
                break
            looked_at = _MOST
        return replace(answer, hits=_spread(hits[:limit]), gone=gone, unsure=unsure)

    async def _those_there(self, hits: Sequence[Hit]) -> tuple[list[Hit], str]:
        """Return those that can still be opened, and why of some nobody knows: these are shown too."""
        stored = list(dict.fromkeys(map(_stored_as, hits)))
        there = dict(zip(stored, await asyncio.gather(*map(self._is_there, stored)), strict=True))
        unsure = [(name, said) for name, said in there.items() if isinstance(said, StorageError)]
        if unsure:
            self._on_event(RetrievalFailed(*unsure[0]))
        return [hit for hit in hits if there[_stored_as(hit)]], f"{unsure[0][1]}" if unsure else ""

    async def _is_there(self, reference: str) -> bool | StorageError:
        """Say whether a content can still be opened; what cannot is forgotten. An error if the storage cannot tell."""
        try:
            if await self._contents.has(reference):
                return True
        except StorageError as error:
            return error
        await self._indexing.forget(reference)
        return False


def _texts_in(messages: Iterable[Any]) -> Iterator[str]:
    """Yield what messages say, in whatever dialect."""
    waiting = list(messages)
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif (mapping := as_mapping(value)) is not None:
            waiting.extend(mapping.values())


def _stored_as(hit: Hit) -> str:
    """Return the reference under which the storage has it: a message is stored with others."""
    return hit.labels.get("batch", hit.reference)


def _spread(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits with the best one of each content first: one leads to all of it."""
    best = {hit.reference: hit for hit in reversed(hits)}
    firsts = [hit for hit in hits if best[hit.reference] is hit]
    return (*firsts, *(hit for hit in hits if best[hit.reference] is not hit))


def _whole(limit: object) -> object:
    """Return a number that a model wrote as a text or a fraction."""
    if isinstance(limit, float) and limit.is_integer():
        return int(limit)
    return int(limit) if isinstance(limit, str) and _WHOLE.fullmatch(limit) else limit


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
