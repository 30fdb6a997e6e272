"""Large tool results leave the window before any model sees them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.checks import check_flag, check_told
from holdfast.defaults import PREVIEW_TOKENS, THRESHOLD
from holdfast.dialects import Dialect, OpenAI, dialect_named, dialect_of, read_result
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import AfterToolCall, BeforeModelCall, Conversation, HookRegistry, MessageAdded
from holdfast.offload.deciding import Deciding
from holdfast.offload.events import OffloadEvent
from holdfast.offload.offloading import Offloading
from holdfast.offload.options import OffloadRules, ShouldOffload
from holdfast.offload.plans import OffloadPlan
from holdfast.offload.storing import Storing
from holdfast.offload.unsent import replaced, unsent_results
from holdfast.references import KnownReferences
from holdfast.retrieval import Retrieval
from holdfast.storage import InMemoryStorage, Storage, SupportsLive, SupportsTurns
from holdfast.tokens import TokenEstimator, estimate_text
from holdfast.turns import Turn

__all__ = ["ContextOffloader"]

logger = logging.getLogger(__name__)

_REFERENCES_IN_STATE = 200
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
        self.rules = OffloadRules(
            threshold=threshold,
            preview_tokens=preview_tokens,
            thresholds=thresholds,
            exclude=exclude,
            error_threshold=error_threshold,
            turn_budget=turn_budget,
            answer_tokens=answer_tokens,
            store_timeout=store_timeout,
            should_offload=should_offload,
        )
        check_told("count_text", count_text)
        check_told("on_event", on_event)
        check_flag("include_retrieval_tool", include_retrieval_tool)
        self._on_event = on_event
        self._dialect = None if dialect is None else dialect_named(dialect)
        self._looked_at = 0
        self._estimator = TokenEstimator(count_text or estimate_text)
        self._conversation: Conversation | None = None
        self._known = KnownReferences()
        self._turn = Turn(self.rules.limit_of_turn)
        self._includes_tools = include_retrieval_tool
        self.keep_in(InMemoryStorage() if storage is None else storage)

    def keep_in(self, storage: Storage) -> None:
        """Use another storage, as a framework's sandbox may ask for. Only before anything happened."""
        if self._conversation is not None:
            raise InvalidValueError("the storage cannot be changed any more: it may hold results already")
        self.storage: Storage = _checked_storage(storage)
        # Asked once: to look for a protocol takes longer than to tell the storage.
        self._sparing = storage if isinstance(storage, SupportsLive) else None
        self._counting = storage if isinstance(storage, SupportsTurns) else None
        self._retrieval = Retrieval(
            self.storage,
            self._known,
            estimator=self._estimator,
            allowance=lambda: self._turn.answer(self.rules.limit_of_answer),
            timeout=self.rules.store_timeout,
            on_event=self._tell,
        )
        self.tools: tuple[AgentTool, ...] = self._retrieval.tools if self._includes_tools else ()
        self._storing = Storing(self.storage, self.rules.store_timeout)
        self._offloading = Offloading(self._storing, self._estimator, _GUIDANCE if self._includes_tools else "")
        names = {tool.name for tool in self._retrieval.tools}
        self._deciding = Deciding(self.rules, self._turn, self._offloading, own_tools=names, tell=self._tell)

    def register_hooks(self, registry: HookRegistry) -> None:
        """Act on the events of one conversation."""
        registry.add_callback(AfterToolCall, self.after_tool_call)
        registry.add_callback(MessageAdded, self.message_added)
        registry.add_callback(BeforeModelCall, self.before_model_call)

    async def after_tool_call(self, event: AfterToolCall) -> None:
        """Put a preview and references in the place of a result that is too large."""
        dialect = self._dialect_of(self.own(event.conversation))
        given = read_result(event.result, dialect)
        result = replace(given.result, tool_use_id=event.tool_use_id)
        tokens = await self._offloading.tokens(result)
        offload = await self._deciding.consider(event.tool_name, result, tokens)
        if offload is not None:
            self._remember(event.tool_name, offload.plan)
            event.result = given.write(given.result.with_content(offload.result.content))

    async def message_added(self, event: MessageAdded) -> None:
        """Look whether the results of a turn are too much together, if they came in one message."""
        conversation = self.own(event.conversation)
        messages = conversation.messages
        if messages and event.message is messages[-1] and self._holds_results(event.message, conversation):
            await self._fit_turn(conversation)
            event.message = messages[-1]

    async def before_model_call(self, event: BeforeModelCall) -> None:
        """Let the storage know what the conversation shows, which is not to be forgotten, and that a turn begins."""
        conversation = self.own(event.conversation)
        await self._fit_turn(conversation)
        self._turn.begin(conversation.messages[-1] if conversation.messages else None)
        self._tell_storage(self._known.visible_in(conversation.messages, self._dialect_of(conversation)))
        self._retrieval.index_stored()

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON: the references that are visible, and the latest ones."""
        return {"references": [list(pair) for pair in self._known.visible_and_latest(_REFERENCES_IN_STATE)]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        for reference, tool_name in _references_in(state):
            self._known.add(reference, tool_name)

    async def aclose(self) -> None:
        """Wait for what is still under way, and forget the search index. The storage is its owner's to close."""
        await self._storing.aclose()
        await self._retrieval.aclose()

    def own(self, conversation: Conversation) -> Conversation:
        """Belong to *conversation*, and to no other."""
        if self._conversation is None:
            if hasattr(self.storage, "bind"):
                self.storage.bind(self)
            self._conversation = conversation
        if self._conversation is not conversation:
            raise InvalidValueError(
                "this ContextOffloader belongs to another conversation; make one for each conversation"
            )
        return conversation

    def _dialect_of(self, conversation: Conversation) -> Dialect:
        """Return the dialect, once it is known for good. As long as nothing gives it away, only news are looked at."""
        if self._dialect is None:
            messages = conversation.messages
            self._dialect = dialect_of(messages[min(self._looked_at, len(messages)) :])
            self._looked_at = len(messages)
        return self._dialect or OpenAI()

    def _holds_results(self, wire: Any, conversation: Conversation) -> bool:
        results = self._dialect_of(conversation).read(wire).tool_results
        return sum(1 for _ in results) > 1

    async def _fit_turn(self, conversation: Conversation) -> None:
        """Offload unsent results, the largest first, until all of them together fit."""
        dialect, messages = self._dialect_of(conversation), conversation.messages
        results = unsent_results(messages, dialect, self._estimator, self._turn.seen)
        total = sum(unsent.tokens for unsent in results)
        for unsent in sorted(results, key=lambda unsent: -unsent.tokens):
            if total <= self._turn.limit:
                return
            if self._known.shown_in(unsent.result.content):
                # It was offloaded already, or is about something that was.
                continue
            if (offload := await self._deciding.give_up(unsent)) is not None:
                self._remember(unsent.tool_name, offload.plan)
                written = replaced(messages[unsent.message], unsent.block, offload.result, dialect)
                messages[unsent.message : unsent.message + 1] = written
                total -= unsent.tokens - offload.tokens

    def _remember(self, tool_name: str, plan: OffloadPlan) -> None:
        for part in plan.parts:
            if part.storable is not None and part.reference is not None:
                self._known.add(part.reference, tool_name)
                if self._includes_tools:
                    self._retrieval.stored(part.reference, part.storable.content, part.storable.content_type)

    def _tell_storage(self, visible: frozenset[str]) -> None:
        try:
            if self._sparing is not None:
                self._sparing.set_live(visible)
            if self._counting is not None:
                self._counting.advance_turn()
        except Exception:
            # A storage may be anybody's; that it cannot forget is no reason to stop an agent.
            logger.exception("%s could not be told of the next turn", type(self.storage).__name__)

    def _tell(self, event: OffloadEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            # It is the user's code, and no reason to stop an agent.
            logger.exception("on_event failed for %s", type(event).__name__)


def _checked_storage(storage: Storage) -> Storage:
    if isinstance(storage, type) or not isinstance(storage, Storage):
        given = f"the class {storage.__name__}" if isinstance(storage, type) else type(storage).__name__
        raise InvalidTypeError(
            f"storage must have store() and retrieve(), as InMemoryStorage(), FileStorage(…) and S3Storage(…) do, "
            f"got {given}"
        )
    return storage


def _references_in(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a saved state holds of references, of which anything may have become on its way."""
    references = state.get("references", ()) if isinstance(state, Mapping) else None
    if not isinstance(references, (list, tuple)):
        raise InvalidValueError("the state must be what get_state() returned: a mapping with a list of references")
    pairs = [tuple(pair) for pair in references if isinstance(pair, (list, tuple))]
    return [pair for pair in pairs if len(pair) == 2 and all(isinstance(text, str) for text in pair)]
