"""The tools of one conversation for what was offloaded from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.media_types import is_textual
from holdfast.references import KnownReferences
from holdfast.retrieval.contents import StoredContents
from holdfast.retrieval.events import RetrievalEvent
from holdfast.retrieval.indexing import Indexing, Waiting
from holdfast.retrieval.retrieving import Retrieving
from holdfast.retrieval.searching import Searching
from holdfast.search import SearchAnswer
from holdfast.storage import Storage
from holdfast.tokens import TokenEstimator
from holdfast.turns import Allowance

__all__ = ["Retrieval"]


class Retrieval:
    """Reads one storage for one conversation, whose references are *known*.

    *allowance* says how many tokens the next answer may have, and is told how many it has. The storage has *timeout*
    seconds for each of its own.
    """

    def __init__(
        self,
        storage: Storage,
        known: KnownReferences,
        *,
        estimator: TokenEstimator,
        allowance: Callable[[], AbstractContextManager[Allowance]],
        timeout: float,
        on_event: Callable[[RetrievalEvent], None],
        covers_history: bool = False,
        embedder: Any = None,
    ) -> None:
        self._contents = contents = StoredContents(storage, known, timeout)
        self._indexing = Indexing(contents, known, embedder, on_event=on_event)
        retrieving = Retrieving(contents, known, estimator=estimator, allowance=allowance, on_event=on_event)
        self._searching = Searching(
            contents,
            self._indexing,
            estimator=estimator,
            allowance=allowance,
            on_event=on_event,
            covers_history=covers_history,
        )
        self.tools: tuple[AgentTool, ...] = (retrieving.tool, self._searching.tool)
        self.names = frozenset(tool.name for tool in self.tools)

    def note(self, reference: str, content: bytes, content_type: str) -> None:
        """Say that something was stored, so that it can be searched for."""
        if is_textual(content_type):
            self._indexing.add(reference, Waiting(content, content_type))

    async def has(self, reference: str) -> bool:
        """Say whether a content is there, without counting it as used. A storage that cannot tell is believed."""
        return await self._contents.has(reference)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return a content and its type; of a batch of messages, what can be read of it. Raises KeyError if unknown."""
        opened = await self._contents.open(reference)
        return await self._contents.whole(opened), opened.content_type

    async def stored(self, reference: str) -> tuple[bytes, str]:
        """Return a content and its type as the storage has it. Raises KeyError if the reference leads to nothing."""
        return await self._contents.stored(reference)

    async def search(self, query: str, limit: int = 8) -> SearchAnswer:
        """Return the best passages of all that was stored, the best first."""
        return await self._searching.search(query, limit)

    def index_stored(self) -> None:
        """Begin to index what was stored, in the background."""
        self._indexing.begin()

    async def aclose(self) -> None:
        """Forget the search index."""
        await self._indexing.aclose()
