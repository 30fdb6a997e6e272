"""Which results leave: those too large by themselves, and the largest of those that are too much together."""

from __future__ import annotations

import logging
from collections.abc import Collection

from holdfast.hold import Hold
from holdfast.messages import ToolResult
from holdfast.offload.events import Offloaded, OffloadFailed
from holdfast.offload.offloading import Offload, Offloading
from holdfast.offload.options import OffloadRules
from holdfast.offload.unsent import UnsentResult

__all__ = ["Deciding"]

logger = logging.getLogger(__name__)

_SHARE_FOR_PREVIEW = 4


class Deciding:
    """Applies the rules to results. The answers of the hold's own tools never leave."""

    def __init__(self, rules: OffloadRules, hold: Hold, offloading: Offloading) -> None:
        self._rules = rules
        self._hold = hold
        self._turn = hold.turn
        self._offloading = offloading

    @property
    def _own_tools(self) -> Collection[str]:
        return self._hold.retrieval.names

    async def consider(self, tool_name: str, result: ToolResult, tokens: int) -> Offload | None:
        """Offload a result that is too large by itself; None if it stays."""
        limit = None if tool_name in self._own_tools else self._rules.limit_for(tool_name, is_error=result.is_error)
        offload = None
        if limit is not None and tokens > limit:
            offload = await self._offload(tool_name, result, tokens, self._rules.preview_for(limit))
        if offload is None and tool_name not in self._own_tools:
            self._turn.take(tokens)
        self._turn.see(result.tool_use_id, tool_name, tokens if offload is None else offload.tokens)
        return offload

    async def give_up(self, unsent: UnsentResult) -> Offload | None:
        """Offload a result for the others' sake; None if it stays, as errors do, and what nobody knows the tool of."""
        name, result = unsent.tool_name, unsent.result
        limit = self._rules.limit_for(name, is_error=result.is_error)
        stays = not name or name in self._own_tools or limit is None or result.is_error
        if stays or result.tool_use_id in self._turn.decided:
            return None
        preview_tokens = min(self._rules.preview_tokens, unsent.tokens // _SHARE_FOR_PREVIEW)
        self._turn.take(-unsent.tokens)
        offload = await self._offload(name, result, unsent.tokens, preview_tokens)
        if offload is None:
            self._turn.take(unsent.tokens)
        return offload

    async def _offload(self, tool_name: str, result: ToolResult, tokens: int, preview_tokens: int) -> Offload | None:
        # Whatever comes of it, it is not tried again in this turn.
        self._turn.decided.add(result.tool_use_id)
        facts = {"tool_use_id": result.tool_use_id, "is_error": result.is_error}
        if not await self._rules.agreed(tool_name, tokens, **facts):
            return None
        try:
            offload = await self._within_turn(result, preview_tokens)
        except Exception as error:
            # Whatever the storage does, the agent goes on with the whole result.
            logger.warning(
                "the result of %s stays, all %s tokens: it could not be stored: %s", tool_name, tokens, error
            )
            self._hold.tell(OffloadFailed(tool_name, result.tool_use_id, tokens, error))
            return None
        if offload is not None:
            references = tuple(offload.plan.references)
            self._hold.tell(Offloaded(tool_name, result.tool_use_id, references, tokens, offload.tokens))
        return offload

    async def _within_turn(self, result: ToolResult, preview_tokens: int) -> Offload | None:
        with self._turn.preview(preview_tokens) as allowance:
            # If nothing is stored, the result itself is counted.
            allowance.used = 0
            offload = await self._offloading.offload(result, allowance.tokens)
            if offload is not None:
                allowance.used = offload.tokens
        return offload
