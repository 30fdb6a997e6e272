"""Where a value is for an agent under a manager: in what it is sent, one look-up away, further off, or nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.errors import HoldfastError
from holdfast.hooks import Conversation
from holdfast.manager import ContextManager
from holdfast.replay.counts import Counts
from holdfast.replay.timeline import Request
from holdfast.replay.values import MASK, Use, holds

__all__ = ["Lookups", "kept"]

_SEARCHES = ("search_context", "search_offloaded_content")
_TELLING = re.compile(r"\w{4,}")
# As much as patterns may have without RE2, so that figures are the same wherever a replay runs.
_LONGEST_PATTERN = 200


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
        self._retrieve: AgentTool | None = tools.get("retrieve_offloaded_content")
        self._texts: dict[str, str] = {}

    async def look_for(self, use: Use, request: Request) -> Counts:
        """Count where a value is that the model was not sent with *request*.

        One look-up away is what a search for the words of the call shows, or one page of what stands behind a
        reference in view: the first, or that of the lines with these words.
        """
        answer = await self._searched(use.query)
        if holds(answer, use.value):
            return self._found(request, answer)
        opened = await self._opened(await self._visible())
        within = [reference for reference, text in opened.items() if holds(text, use.value)]
        for reference in within:
            if page := await self._page_with(use, reference):
                return self._found(request, answer, page)
        is_further = bool(within) or await self._is_named_in(opened.values(), use)
        return self._lost(request, answer) if is_further else Counts(lost=1)

    async def _page_with(self, use: Use, reference: str) -> str:
        """Return the page of a content that shows a value, if one look-up can lead there."""
        pattern = _pattern(use.query)
        for asked in ({}, {"pattern": pattern, "ignore_case": True}) if pattern else ({},):
            page = await self._asked(self._retrieve, {"reference": reference, **asked})
            if holds(page, use.value):
                return page
        return ""

    async def _is_named_in(self, opened: Iterable[str], use: Use) -> bool:
        """Say whether a value is behind a reference that one of these texts shows."""
        texts = list(opened)
        named = [reference for reference in self._stored() if any(reference in text for text in texts)]
        return any(holds(text, use.value) for text in (await self._opened(named)).values())

    def _found(self, request: Request, *answers: str) -> Counts:
        """Count a look-up: one more request for each answer, which stands behind what was sent before.

        What stands behind a reference in view is asked for after a search in vain.
        """
        if self._manager.hold is None:
            return Counts(lookup=1)
        read = sum(map(self._manager.hold.estimator.text, filter(None, answers)))
        return Counts(lookup=1, lookup_cached=len(answers) * request.tokens, lookup_fresh=read)

    def _lost(self, request: Request, answer: str) -> Counts:
        """Count what takes a search in vain and two pages, at the least."""
        if self._manager.hold is None:
            return Counts(lost=1, further=1)
        read = self._manager.hold.estimator.text(answer) + 2 * self._manager.hold.answer_tokens
        return Counts(lost=1, further=1, lookup_cached=3 * request.tokens, lookup_fresh=read)

    async def _searched(self, query: str) -> str:
        return await self._asked(self._search, {"query": query})

    async def _asked(self, tool: AgentTool | None, arguments: dict[str, Any]) -> str:
        """Return what a tool answers, with the room of a whole turn; nothing if there is no such tool."""
        if tool is None or self._manager.hold is None:
            return ""
        with self._manager.hold.turn.aside():
            return (await tool.run(self._conversation, arguments)).text

    async def _visible(self) -> list[str]:
        hold = self._manager.hold
        if hold is None or self._retrieve is None:
            return []
        return sorted(hold.known.visible_in(self._conversation.messages, hold.dialect_of(self._conversation)))

    def _stored(self) -> list[str]:
        return [] if self._manager.hold is None or self._retrieve is None else self._manager.hold.known.stored

    async def _opened(self, references: Sequence[str]) -> dict[str, str]:
        """Return all that paging through these contents would show. Each is read once."""
        texts = {reference: await self._text(reference) for reference in references}
        return {reference: text for reference, text in texts.items() if text is not None}

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


def _pattern(query: str) -> str:
    """Return what finds the lines with words of a query; with too many of them, the last, which stand by the value."""
    pattern = ""
    for word in dict.fromkeys(reversed(_TELLING.findall(query.replace(MASK, " ")))):
        longer = f"{word}|{pattern}" if pattern else word
        if len(longer) > _LONGEST_PATTERN:
            break
        pattern = longer
    return pattern
