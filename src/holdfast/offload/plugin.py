"""Large tool results leave the window before any model sees them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.checks import check_flag, check_told
from holdfast.defaults import PREVIEW_TOKENS, THRESHOLD
from holdfast.dialects import dialect_named, read_result
from holdfast.hold import Hold
from holdfast.hooks import AfterToolCall, BeforeModelCall, Conversation, HookRegistry, MessageAdded
from holdfast.messages import OFFLOADED
from holdfast.names import Names
from holdfast.offload.deciding import Deciding
from holdfast.offload.events import OffloadEvent
from holdfast.offload.offloading import Offloading
from holdfast.offload.options import OffloadRules, ShouldOffload
from holdfast.offload.plans import OffloadPlan
from holdfast.offload.unsent import replaced, unsent_results
from holdfast.storage import Storage
from holdfast.tokens import TokenEstimator, estimate_text
from holdfast.turns import Turn

__all__ = ["ContextOffloader"]


class ContextOffloader:
    """Takes large tool results out of one conversation's window and leaves an extract and a reference there.

    *storage* holds what left; without one, memory does, for 20 turns after the conversation last showed or used it.
    The rest is described in `OffloadRules`: *threshold*, *preview_tokens*, *thresholds*, *exclude*, *error_threshold*,
    *turn_budget* and *should_offload*. A storage that fails, or takes longer than *store_timeout* seconds, costs
    nothing but room: the result stays as it was. *on_event* is told of each `OffloadEvent`. *embedder* lets the search
    go by meaning too, see `SearchIndex`. *names* says what counts as a name in an extract.

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
        embedder: Any = None,
        names: Names | Mapping[str, Any] | None = None,
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
        self.hold = Hold(
            storage,
            estimator=TokenEstimator(count_text or estimate_text),
            turn=Turn(self.rules.limit_of_turn),
            answer_tokens=self.rules.limit_of_answer,
            timeout=self.rules.store_timeout,
            includes_tools=include_retrieval_tool,
            dialect=None if dialect is None else dialect_named(dialect),
            embedder=embedder,
            names=Names.from_options(names),
        )
        if on_event is not None:
            self.hold.listen(on_event)
        self._offloading = Offloading(self.hold)
        self._deciding = Deciding(self.rules, self.hold, self._offloading)
        self._unnoted = set[str]()

    @property
    def storage(self) -> Storage:
        """Where results are."""
        return self.hold.storage

    @property
    def tools(self) -> tuple[AgentTool, ...]:
        """What the agent is given to look at what left."""
        return self.hold.tools

    def keep_in(self, storage: Storage) -> None:
        """Use another storage, as a framework's sandbox may ask for. Only before anything happened."""
        self.hold.keep_in(storage)

    def register_hooks(self, registry: HookRegistry) -> None:
        """Act on the events of one conversation."""
        registry.add_callback(AfterToolCall, self.after_tool_call)
        registry.add_callback(MessageAdded, self.message_added)
        registry.add_callback(BeforeModelCall, self.before_model_call)

    async def after_tool_call(self, event: AfterToolCall) -> None:
        """Put an extract and references in the place of a result that is too large."""
        dialect = self.hold.dialect_of(self.own(event.conversation))
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
        if messages and event.message is messages[-1]:
            if self._holds_results(event.message, conversation):
                await self._fit_turn(conversation)
            self._note_offloads(conversation, len(messages) - 1)
            event.message = messages[-1]

    async def before_model_call(self, event: BeforeModelCall) -> None:
        """Let the storage know what the conversation shows, which is not to be forgotten, and that a turn begins."""
        conversation = self.own(event.conversation)
        await self._fit_turn(conversation)
        self._note_offloads(conversation, 0)
        self._unnoted.clear()
        await self.hold.before_model_call(event)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON: the references that are visible, and the latest ones."""
        return self.hold.get_state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.hold.restore(state)

    async def aclose(self) -> None:
        """Wait for what is still under way, and forget the search index. The storage is its owner's to close."""
        await self.hold.aclose()

    def own(self, conversation: Conversation) -> Conversation:
        """Belong to *conversation*, and to no other."""
        return self.hold.own(conversation)

    def _holds_results(self, wire: Any, conversation: Conversation) -> bool:
        results = self.hold.dialect_of(conversation).read(wire).tool_results
        return sum(1 for _ in results) > 1

    async def _fit_turn(self, conversation: Conversation) -> None:
        """Offload unsent results, the largest first, until all of them together fit."""
        dialect, messages = self.hold.dialect_of(conversation), conversation.messages
        results = unsent_results(messages, dialect, self.hold.estimator, self.hold.turn.seen)
        total = sum(unsent.tokens for unsent in results)
        for unsent in sorted(results, key=lambda unsent: -unsent.tokens):
            if total <= self.hold.turn.limit:
                return
            if self.hold.known.shown_in(unsent.result.content):
                # It was offloaded already, or is about something that was.
                continue
            if (offload := await self._deciding.give_up(unsent)) is not None:
                self._remember(unsent.tool_name, offload.plan)
                written = replaced(messages[unsent.message], unsent.block, offload.result, dialect)
                messages[unsent.message : unsent.message + 1] = written
                total -= unsent.tokens - offload.tokens

    def _note_offloads(self, conversation: Conversation, start: int) -> None:
        """Note on messages what was offloaded of them: from its text alone, nothing is ever taken for an extract."""
        dialect, messages = self.hold.dialect_of(conversation), conversation.messages
        for at in range(len(messages) - 1, start - 1, -1):
            if not self._unnoted or (message := dialect.read(messages[at])).role == "assistant":
                return
            if shown := self._unnoted & self.hold.known.shown_in(message.blocks):
                self._unnoted -= shown
                notes = {**message.notes, OFFLOADED: [*message.offloaded, *sorted(shown)]}
                messages[at : at + 1] = dialect.write(replace(message, notes=notes, edited=True))

    def _remember(self, tool_name: str, plan: OffloadPlan) -> None:
        self._unnoted |= set(plan.references)
        for part in plan.parts:
            if part.storable is not None and part.reference is not None:
                self.hold.remember(part.reference, tool_name, part.storable.content, part.storable.content_type)
