"""Large tool results leave the window before any model sees them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.dialects import Dialect, OpenAI, dialect_named, dialect_of, read_result
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import AfterToolCall, BeforeModelCall, Conversation, HookRegistry, MessageAdded
from holdfast.messages import ToolResult
from holdfast.offload.events import Offloaded, OffloadEvent, OffloadFailed
from holdfast.offload.offloading import Offloading
from holdfast.offload.options import PREVIEW_TOKENS, THRESHOLD, OffloadRules, ShouldOffload
from holdfast.offload.plans import OffloadPlan
from holdfast.offload.storing import Storing
from holdfast.offload.turns import Turn
from holdfast.offload.unsent import UnsentResult, replaced, unsent_results
from holdfast.references import KnownReferences
from holdfast.retrieval import Retrieval
from holdfast.storage import InMemoryStorage, Storage, SupportsLive, SupportsTurns
from holdfast.tokens import TokenEstimator, estimate_text

__all__ = ["ContextOffloader"]

logger = logging.getLogger(__name__)

_REFERENCES_IN_STATE = 200
_SHARE_FOR_PREVIEW = 4
_FEWEST_IN_ANSWER = 200
_GUIDANCE = (
    "[Previews leave things out. For more, call retrieve_offloaded_content with the reference and a pattern, "
    "line_range or json_path, or search_offloaded_content.]"
)


class ContextOffloader:
    """Takes large tool results out of one conversation's window and leaves a preview and references there.

    *storage* holds what left; without one, memory does, for 20 turns after the conversation last showed or used it.
    The rest is described in `OffloadRules`: *threshold*, *preview_tokens*, *thresholds*, *exclude*, *error_threshold*,
    *turn_budget* and *should_offload*. A storage that fails, or takes longer than *store_timeout* seconds, costs
    nothing but room: the result stays as it was. *on_event* is told of each `OffloadEvent`.

    `tools` are for the agent, unless *include_retrieval_tool* is False. No answer of theirs has more than
    *answer_tokens* tokens, as many as the threshold if not given, and none is offloaded again.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        threshold: int = THRESHOLD,
        preview_tokens: int = PREVIEW_TOKENS,
        include_retrieval_tool: bool = True,
        should_offload: ShouldOffload | None = None,
        thresholds: Mapping[str, int | None] | None = None,
        exclude: Collection[str] = (),
        error_threshold: int | None = None,
        turn_budget: int | None = None,
        answer_tokens: int | None = None,
        store_timeout: float = 30.0,
        dialect: str | None = None,
        count_text: Callable[[str], int] | None = None,
        on_event: Callable[[OffloadEvent], object] | None = None,
    ) -> None:
        self.storage: Storage = InMemoryStorage() if storage is None else _checked_storage(storage)
        self.rules = OffloadRules(
            threshold=threshold,
            preview_tokens=preview_tokens,
            thresholds=dict(thresholds or {}) if thresholds is None or isinstance(thresholds, Mapping) else thresholds,
            exclude=exclude,
            error_threshold=error_threshold,
            turn_budget=turn_budget,
            should_offload=should_offload,
        )
        for name, given in (("count_text", count_text), ("on_event", on_event)):
            if given is not None and not callable(given):
                raise InvalidTypeError(f"{name} must be callable, got {type(given).__name__}")
        _check_options(answer_tokens, store_timeout)
        self._on_event = on_event
        self._dialect = None if dialect is None else dialect_named(dialect)
        self._estimator = TokenEstimator(count_text or estimate_text)
        answer_tokens = threshold if answer_tokens is None else answer_tokens
        self._turn = Turn(self.rules.limit_of_turn(answer_tokens))
        self._known = KnownReferences()
        self._retrieval = Retrieval(
            self.storage,
            self._known,
            estimator=self._estimator,
            answer_tokens=lambda: self._turn.answer_tokens(answer_tokens),
            timeout=store_timeout,
            on_event=self._tell,
        )
        self.tools: tuple[AgentTool, ...] = self._retrieval.tools if include_retrieval_tool else ()
        self._storing = Storing(self.storage, store_timeout)
        self._offloading = Offloading(self._storing, self._estimator, _GUIDANCE if include_retrieval_tool else "")
        self._conversation: Conversation | None = None

    def register_hooks(self, registry: HookRegistry) -> None:
        """Act on the events of one conversation."""
        registry.add_callback(AfterToolCall, self.after_tool_call)
        registry.add_callback(MessageAdded, self.message_added)
        registry.add_callback(BeforeModelCall, self.before_model_call)

    async def after_tool_call(self, event: AfterToolCall) -> None:
        """Put a preview and references in the place of a result that is too large."""
        dialect = self._dialect_of(self._own(event.conversation))
        given = read_result(event.result, dialect)
        result = replace(given.result, tool_use_id=event.tool_use_id)
        tokens = await self._offloading.tokens(result)
        left = await self._considered(event.tool_name, result, tokens)
        if left is None:
            self._turn.take(tokens)
        else:
            event.result = given.write(given.result.with_content(left.content))

    async def message_added(self, event: MessageAdded) -> None:
        """Look whether the results of a turn are too much together, as soon as they are all there."""
        messages = self._own(event.conversation).messages
        if messages and event.message is messages[-1]:
            await self._fit_turn(event.conversation)
            event.message = messages[-1]

    async def before_model_call(self, event: BeforeModelCall) -> None:
        """Let the storage know what the conversation shows, which is not to be forgotten, and that a turn begins."""
        conversation = self._own(event.conversation)
        await self._fit_turn(conversation)
        self._turn.begin()
        if isinstance(self.storage, SupportsLive):
            self.storage.set_live(self._known.visible_in(conversation.messages, self._dialect_of(conversation)))
        if isinstance(self.storage, SupportsTurns):
            self.storage.advance_turn()
        self._retrieval.index_stored()

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON: the latest references."""
        return {"references": [list(pair) for pair in self._known.latest(_REFERENCES_IN_STATE)]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        for reference, tool_name in _references_in(state):
            self._known.add(reference, tool_name)

    async def aclose(self) -> None:
        """Wait for what is still under way, and forget the search index. The storage is its owner's to close."""
        await self._storing.aclose()
        await self._retrieval.aclose()

    def _own(self, conversation: Conversation) -> Conversation:
        if self._conversation is None:
            self._conversation = conversation
            if hasattr(self.storage, "bind"):
                self.storage.bind(self)
        if self._conversation is not conversation:
            raise InvalidValueError(
                "this ContextOffloader belongs to another conversation; make one for each conversation"
            )
        return conversation

    def _dialect_of(self, conversation: Conversation) -> Dialect:
        return self._dialect or dialect_of(conversation.messages) or OpenAI()

    async def _considered(self, tool_name: str, result: ToolResult, tokens: int) -> ToolResult | None:
        """Return what is left of a result that is too large by itself; None if all of it stays."""
        limit = self._limit_for(tool_name, result)
        if limit is None or tokens <= limit:
            return None
        return await self._offload(tool_name, result, tokens, self.rules.preview_tokens)

    async def _fit_turn(self, conversation: Conversation) -> None:
        """Offload unsent results, the largest first, until all of them together fit."""
        dialect = self._dialect_of(conversation)
        results = unsent_results(conversation.messages, dialect, self._estimator)
        total = sum(unsent.tokens for unsent in results)
        for unsent in sorted(results, key=lambda unsent: -unsent.tokens):
            if total <= self._turn.limit:
                return
            left = await self._given_up(unsent)
            if left is not None:
                messages = conversation.messages
                messages[unsent.index : unsent.index + 1] = replaced(messages[unsent.index], left, dialect)
                total -= unsent.tokens - self._estimator.block(left)

    async def _given_up(self, unsent: UnsentResult) -> ToolResult | None:
        """Return what is left of a result that leaves for the others' sake; None if all of it stays."""
        limit = self._limit_for(unsent.tool_name, unsent.result)
        if limit is None or unsent.result.tool_use_id in self._turn.decided:
            return None
        preview_tokens = min(self.rules.preview_tokens, unsent.tokens // _SHARE_FOR_PREVIEW)
        return await self._offload(unsent.tool_name, unsent.result, unsent.tokens, preview_tokens)

    def _limit_for(self, tool_name: str, result: ToolResult) -> int | None:
        if any(tool.name == tool_name for tool in self._retrieval.tools):
            return None
        return self.rules.limit_for(tool_name, is_error=result.is_error)

    async def _offload(self, tool_name: str, result: ToolResult, tokens: int, preview_tokens: int) -> ToolResult | None:
        # Whatever comes of it, it is not tried again in this turn.
        self._turn.decided.add(result.tool_use_id)
        facts = {"tool_use_id": result.tool_use_id, "is_error": result.is_error}
        if not await self.rules.agreed(tool_name, tokens, **facts):
            return None
        try:
            offload = await self._offloading.offload(result, self._turn.preview_tokens(preview_tokens))
        except Exception as error:
            # Whatever the storage does, the agent goes on with the whole result.
            logger.warning(
                "the result of %s stays, all %s tokens: it could not be stored: %s", tool_name, tokens, error
            )
            self._tell(OffloadFailed(tool_name, result.tool_use_id, tokens, error))
            return None
        if offload is None:
            return None
        self._remember(tool_name, offload.plan)
        self._turn.take(offload.tokens)
        references = tuple(offload.plan.references)
        self._tell(Offloaded(tool_name, result.tool_use_id, references, tokens, offload.tokens))
        return offload.result

    def _remember(self, tool_name: str, plan: OffloadPlan) -> None:
        for part in plan.parts:
            if part.storable is not None and part.reference is not None:
                self._known.add(part.reference, tool_name)
                self._retrieval.stored(part.reference, part.storable.content, part.storable.content_type)

    def _tell(self, event: OffloadEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            # It is the user's code, and no reason to stop an agent.
            logger.exception("on_event failed for %s", type(event).__name__)


def _checked_storage(storage: Storage) -> Storage:
    if not isinstance(storage, Storage):
        raise InvalidTypeError(
            f"storage must have store() and retrieve(), as InMemoryStorage, FileStorage and S3Storage do, "
            f"got {type(storage).__name__}"
        )
    return storage


def _check_options(answer_tokens: int | None, store_timeout: float) -> None:
    if answer_tokens is not None and (not isinstance(answer_tokens, int) or answer_tokens < _FEWEST_IN_ANSWER):
        raise InvalidValueError(
            f"answer_tokens must be a number of tokens, {_FEWEST_IN_ANSWER} or more, got {answer_tokens!r:.80}"
        )
    if not isinstance(store_timeout, (int, float)) or not 0 < store_timeout < math.inf:
        raise InvalidValueError(f"store_timeout must be a number of seconds above 0, got {store_timeout!r:.80}")


def _references_in(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a saved state holds of references, of which anything may have become on its way."""
    references = state.get("references", ()) if isinstance(state, Mapping) else None
    if not isinstance(references, (list, tuple)):
        raise InvalidValueError("the state must be what get_state() returned: a mapping with a list of references")
    pairs = [tuple(pair) for pair in references if isinstance(pair, (list, tuple))]
    return [pair for pair in pairs if len(pair) == 2 and all(isinstance(text, str) for text in pair)]
