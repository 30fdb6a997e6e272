"""The tools of one conversation for what was offloaded from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from holdfast.agent_tools import AgentTool
from holdfast.media_types import is_textual
from holdfast.references import KnownReferences
from holdfast.retrieval.contents import StoredContents
from holdfast.retrieval.events import Retrieved, Searched
from holdfast.retrieval.indexing import Indexing
from holdfast.retrieval.retrieving import Retrieving
from holdfast.retrieval.searching import Searching
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
        on_event: Callable[[Retrieved | Searched], None],
    ) -> None:
        contents = StoredContents(storage, timeout)
        self._indexing = Indexing(contents, known)
        retrieving = Retrieving(contents, known, estimator=estimator, allowance=allowance, on_event=on_event)
        searching = Searching(contents, self._indexing, estimator=estimator, allowance=allowance, on_event=on_event)
        self.tools: tuple[AgentTool, ...] = (retrieving.tool, searching.tool)

    def stored(self, reference: str, content: bytes, content_type: str) -> None:
        """Say that something was stored, so that it can be searched for."""
        if is_textual(content_type):
            self._indexing.add(reference, content)

    def index_stored(self) -> None:
        """Begin to index what was stored, in the background."""
        self._indexing.begin()

    async def aclose(self) -> None:
        """Forget the search index."""
        await self._indexing.aclose()
