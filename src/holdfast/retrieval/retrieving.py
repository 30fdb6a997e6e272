"""The tool with which an agent reads what was offloaded."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.agent_tools import AgentTool, ToolAnswer
from holdfast.batches import BATCH_TYPE, parted
from holdfast.errors import (
    EvictedError,
    HoldfastError,
    InvalidTypeError,
    InvalidValueError,
    NotFoundError,
    StorageError,
)
from holdfast.hooks import Conversation
from holdfast.media_types import essence
from holdfast.references import HISTORY, KnownReferences
from holdfast.retrieval.contents import StoredContent, StoredContents
from holdfast.retrieval.data_pages import path_page, rows_page
from holdfast.retrieval.events import RetrievalFailed, Retrieved
from holdfast.retrieval.match_pages import matches_writer
from holdfast.retrieval.media import media_block
from holdfast.retrieval.pages import fitted, lines_page, whole_or_page, window_page
from holdfast.retrieval.requests import SCHEMA, Request
from holdfast.retrieval.room import Room
from holdfast.tokens import TokenEstimator
from holdfast.turns import Allowance

__all__ = ["RETRIEVE", "Retrieving"]

RETRIEVE = "retrieve_offloaded_content"
_DESCRIPTION = (
    "Read what left this conversation: a large result of a tool, of which you see an extract and a reference, "
    "or earlier messages, by the reference in their place. Ask for what you need: a pattern for matching lines with "
    "their surroundings, a line_range, a json_path in JSON, columns and where for rows of CSV, TSV and JSON lines, or "
    "characters inside a huge line. Without any of these it returns the whole content, or its first page. An answer "
    "says what part it is, how much there is, and how to go on."
)
# An image or a document cannot be paged: it is shown whole up to this size, or not at all.
_MEDIA_TOKENS = 8_000


class Retrieving:
    """Answers what a model asks of stored contents, each time within so many tokens."""

    def __init__(
        self,
        contents: StoredContents,
        known: KnownReferences,
        *,
        estimator: TokenEstimator,
        allowance: Callable[[], AbstractContextManager[Allowance]],
        on_event: Callable[[Retrieved | RetrievalFailed], None],
    ) -> None:
        self._contents = contents
        self._known = known
        self._estimator = estimator
        self._allowance = allowance
        self._on_event = on_event
        self.tool = AgentTool(RETRIEVE, _DESCRIPTION, SCHEMA, self._handle)

    async def _handle(self, conversation: Conversation, arguments: Mapping[str, Any]) -> ToolAnswer:
        request = self._as_known(Request.read(arguments), arguments)
        began = time.perf_counter()
        with self._allowance() as allowance:
            allowance.used = 0
            answer = await self._told(request, allowance.tokens)
            allowance.used = sum(map(self._estimator.block, answer.blocks))
        seconds = time.perf_counter() - began
        self._on_event(Retrieved(request.reference, tuple(arguments), allowance.used, not answer.is_error, seconds))
        return answer

    def _as_known(self, request: Request, arguments: Mapping[str, Any]) -> Request:
        """Return the request with the reference as it was given, if it is known with all that stands around it."""
        given = str(arguments["reference"]).strip()
        return replace(request, reference=given) if parted(given)[0] in self._known else request

    async def _told(self, request: Request, tokens: int) -> ToolAnswer:
        """Return what is found. Whoever listens is told of what went wrong, other than what a model asked for."""
        try:
            return await self._found(request, tokens)
        except HoldfastError as error:
            if isinstance(error, StorageError) or not isinstance(error, (InvalidValueError, InvalidTypeError)):
                self._on_event(RetrievalFailed(request.reference, error))
            raise

    async def _found(self, request: Request, tokens: int) -> ToolAnswer:
        try:
            opened = await self._contents.open(request.reference)
            if not opened.is_text:
                return await self._shown(opened, request, tokens)
            return ToolAnswer(await fitted(await self._writer(opened, request), tokens, self._estimator.text))
        except KeyError as error:
            return ToolAnswer(await self._not_found(request.reference, error), is_error=True)

    async def _writer(self, opened: StoredContent, request: Request) -> Callable[[Room], Awaitable[str]]:
        if request.pattern is not None:
            return await matches_writer(self._contents, opened, request)
        return partial(self._page, opened, request)

    async def _page(self, opened: StoredContent, request: Request, room: Room) -> str:
        if request.json_path is not None:
            return await path_page(self._contents, opened, request, room)
        if request.asks_for_rows:
            return await rows_page(self._contents, opened, request, room)
        if not opened.index.lines:
            return "[The content is empty.]"
        if request.characters is not None:
            return await window_page(self._contents, opened, request.line_range, request.characters, room)
        if request.line_range is not None:
            return await lines_page(self._contents, opened, request.line_range, room)
        return await whole_or_page(self._contents, opened, room)

    async def _shown(self, opened: StoredContent, request: Request, tokens: int) -> ToolAnswer:
        """Return an image or a document as such, if it may be shown."""
        if request != Request(reference=request.reference):
            raise InvalidValueError(f"{opened.content_type} has no lines; ask for it with its reference alone")
        media = media_block(await self._contents.whole(opened), opened.content_type, opened.reference)
        about = f"{essence(opened.content_type)}, {opened.index.size:,} bytes"
        if media is None:
            raise InvalidValueError(f"this is {about}, which can be neither read as text nor shown")
        size = self._estimator.block(media)
        if size > max(tokens, _MEDIA_TOKENS):
            raise InvalidValueError(
                f"this is {about}, about {size:,} tokens, more than the {max(tokens, _MEDIA_TOKENS):,} that one answer "
                "may have, and it has no lines to ask for; use another tool to take out the part you need"
            )
        return ToolAnswer(f"[{about}]", media=(media,))

    async def _not_found(self, reference: str, error: KeyError) -> str:
        """Return why there is nothing, and what there is instead."""
        self._known.forget(reference)
        # Half a character could not be sent to any model.
        reference = reference[:200].encode("utf-8", "replace").decode()
        reason = error.reason if isinstance(error, NotFoundError) else "nothing is stored under it"
        if isinstance(error, EvictedError):
            return f"{reference} is gone: {reason}. {_without(error)}"
        closest = [known for known in self._known.closest_to(reference) if await self._contents.has(known)]
        if not closest:
            return f"There is no content {reference}: {reason}. Nothing of this conversation is offloaded now."
        named = ", ".join(known + self._source_of(known) for known in closest)
        return f"There is no content {reference}: {reason}. References of this conversation: {named}."

    def _source_of(self, reference: str) -> str:
        tool_name = self._known.tool_of(reference)
        if tool_name == HISTORY:
            return " (earlier messages)"
        return f" (from {tool_name})" if tool_name else ""


def _without(error: EvictedError) -> str:
    """Return how to go on without what was evicted."""
    if essence(error.content_type) == BATCH_TYPE:
        return (
            "These messages cannot be read any more; go on with what is in view, or ask the user for what is missing."
        )
    return "If it is a tool's result that you need, call the tool again."
