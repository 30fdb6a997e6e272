"""Where a value is for an agent under a manager: in what it is sent, one look-up away, two, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.agent_tools import AgentTool
from holdfast.errors import HoldfastError
from holdfast.hooks import Conversation
from holdfast.manager import ContextManager
from holdfast.replay.counts import Counts
from holdfast.replay.timeline import Request
from holdfast.replay.values import Use, holds

__all__ = ["Lookups", "kept"]

_SEARCHES = ("search_context", "search_offloaded_content")


def kept(use: Use, sent: Sequence[str]) -> bool:
    """Say whether a value is in what a model is sent. What it needs is mostly recent."""
    return any(holds(text, use.value) for text in reversed(sent))


class Lookups:
    """Looks for values as the agent of one conversation could. What is asked becomes no part of the conversation."""

    def __init__(self, manager: ContextManager, conversation: Conversation) -> None:
        self._manager = manager
        self._conversation = conversation
        tools = {tool.name: tool for tool in manager.agent_tools}
        self._search: AgentTool | None = next((tools[name] for name in _SEARCHES if name in tools), None)
        self._opens = "retrieve_offloaded_content" in tools
        self._texts: dict[str, str] = {}

    async def look_for(self, use: Use, request: Request) -> Counts:
        """Count where a value is that the model was not sent with *request*."""
        answer = await self._searched(use.query)
        if holds(answer, use.value):
            return self._found(request, answer)
        opened = await self._opened(await self._visible())
        if found := next((text for text in opened if holds(text, use.value)), None):
            return self._found(request, answer, found)
        named = [reference for reference in self._stored() if any(reference in text for text in opened)]
        further = await self._opened(named)
        return Counts(lost=1, second_lookup=int(any(holds(text, use.value) for text in further)))

    def _found(self, request: Request, *answers: str) -> Counts:
        """Count a look-up: one more request for each answer, which stands behind what was sent before.

        Of a content, a page is read: what stands behind a reference in view is asked for after a search in vain.
        """
        hold = self._manager.hold
        if hold is None:
            return Counts(lookup=1)
        read = sum(min(hold.estimator.text(answer), hold.answer_tokens) for answer in answers if answer)
        return Counts(lookup=1, lookup_cached=len(answers) * request.tokens, lookup_fresh=read)

    async def _searched(self, query: str) -> str:
        if self._search is None or self._manager.hold is None:
            return ""
        with self._manager.hold.turn.aside():
            return (await self._search.run(self._conversation, {"query": query})).text

    async def _visible(self) -> list[str]:
        hold = self._manager.hold
        if hold is None or not self._opens:
            return []
        return sorted(hold.known.visible_in(self._conversation.messages, hold.dialect_of(self._conversation)))

    def _stored(self) -> list[str]:
        return [] if self._manager.hold is None or not self._opens else self._manager.hold.known.stored

    async def _opened(self, references: Sequence[str]) -> list[str]:
        """Return all that paging through these contents would show. Each is read once."""
        return [text for reference in references if (text := await self._text(reference)) is not None]

    async def _text(self, reference: str) -> str | None:
        hold = self._manager.hold
        if hold is None or not await hold.retrieval.has(reference):
            return None
        if reference not in self._texts:
            try:
                content, _ = await self._manager.retrieve(reference)
            except HoldfastError:
                # What cannot be opened is not there for the agent either.
                return None
            self._texts[reference] = content.decode(errors="replace")
        return self._texts[reference]
