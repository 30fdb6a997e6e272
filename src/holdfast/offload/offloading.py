"""One result offloaded: planned, stored, rendered. Only the middle can fail for reasons outside."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from holdfast.hold import Content, Hold
from holdfast.messages import Text, ToolResult
from holdfast.offload.plans import OffloadPlan, plan_offload
from holdfast.offload.rendering import rendered
from holdfast.storage.threads import WorkerThreads

__all__ = ["Offload", "Offloading"]

# Up to this many characters of plain text are counted sooner than a thread is woken for it.
_LIGHT = 32_768
_GUIDANCE = (
    "[An extract leaves things out: call retrieve_offloaded_content with the reference and a pattern, or {search}.]"
)
_WORKERS = WorkerThreads(4, name="holdfast-offload")


@dataclass(frozen=True)
class Offload:
    """What a result has become: *plan* names the references, *result* is what is left in the window."""

    plan: OffloadPlan
    result: ToolResult
    tokens: int


class Offloading:
    """Offloads results into one hold."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._estimator = hold.estimator
        # Keys are unique even where a storage takes them for references, and a provider repeats its tool-use ids.
        self._session, self._count = secrets.token_hex(4), 0

    async def tokens(self, result: ToolResult) -> int:
        """Return what a result takes in the window."""
        if _is_light(result):
            return self._estimator.block(result)
        return await _WORKERS.run(self._estimator.block, result)

    async def offload(self, result: ToolResult, preview_tokens: int) -> Offload | None:
        """Store what is large in *result*; None if nothing would be gained.

        Raises what the storage raises; then nothing is stored.
        """
        plan = await _WORKERS.run(plan_offload, result, preview_tokens, self._estimator)
        if not plan.storables:
            return None
        self._count += 1
        key = f"{self._session}-{self._count}_{result.tool_use_id}"
        contents = [
            Content(f"{key}_{number}", storable.content, storable.content_type)
            for number, storable in enumerate(plan.storables)
        ]
        plan = plan.stored_as(await self._hold.storing.store(contents))
        try:
            content = await _WORKERS.run(rendered, plan, self._hold.names, self._estimator.text, self._guidance)
        except Exception:
            # A tokenizer, which is the user's code.
            await self._hold.storing.delete(plan.references)
            raise
        left = result.with_content(content)
        tokens = self._estimator.block(left)
        if tokens >= plan.tokens:
            await self._hold.storing.delete(plan.references)
            return None
        return Offload(plan, left, tokens)

    @property
    def _guidance(self) -> str:
        return _GUIDANCE.format(search=self._hold.search_name) if self._hold.tools else ""


def _is_light(result: ToolResult) -> bool:
    texts = [block.text for block in result.content if isinstance(block, Text)]
    return len(texts) == len(result.content) and sum(map(len, texts)) <= _LIGHT
