"""The context manager as a plugin of Strands."""

from __future__ import annotations

import logging
from typing import Any

from strands import Agent
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AgentInitializedEvent,
    BeforeModelCallEvent,
    HookOrder,
    MessageAddedEvent,
)
from strands.middleware import InvokeModelStage
from strands.plugins import Plugin

from holdfast.adapters.strands.keeper import SessionKeeper
from holdfast.adapters.strands.reading import AgentReader, AuxiliaryModel, reported_usage
from holdfast.adapters.strands.rivals import (
    has_offloader,
    refuse_rivals,
    refuse_second_offloader,
    refuse_taken_names,
    set_aside,
    steps_aside,
)
from holdfast.adapters.strands.sandboxes import in_sandbox_of, innermost
from holdfast.adapters.strands.sessions import session_of
from holdfast.adapters.strands.tools import AdaptedTool
from holdfast.adapters.strands.traces import let_go
from holdfast.adapters.strands.turn_taking import take_turns
from holdfast.compression import Summarize
from holdfast.compression.options import with_options
from holdfast.errors import InvalidValueError
from holdfast.hooks import (
    AfterInvocation,
    AfterModelCall,
    AfterToolCall,
    BeforeModelCall,
    Conversation,
    HookRegistry,
    MessageAdded,
)
from holdfast.ledger import ReductionRecord, UndoRecord
from holdfast.manager import ContextManager as CoreManager
from holdfast.storage import InMemoryStorage

__all__ = ["ContextManager"]

logger = logging.getLogger(__name__)

_MOST_DIRECT_CALLS = 100


class ContextManager(CoreManager, Plugin):
    """`holdfast.ContextManager` for one Strands agent: ``Agent(plugins=[ContextManager("auto")])``.

    It takes the place of the agent's conversation manager, as long as it compresses. With ``"summarize"``, the agent's
    auxiliary model summarizes, unless a *summarizer* is given.
    """

    name = "holdfast:context-manager"
    speaks = "converse"
    traces_tools = False
    _keeper: SessionKeeper | None = None

    @property
    def hooks(self) -> list[Any]:
        """None: they are added when the manager meets its agent, each where it belongs among those of others."""
        return []

    @property
    def tools(self) -> list[Any]:
        """The tools, as Strands takes them."""
        return [AdaptedTool(tool, self._reader.latest) for tool in self.agent_tools]

    def init_agent(self, agent: Agent) -> None:
        """Belong to *agent* from now on."""
        if self._conversation is not None:
            raise InvalidValueError(
                "this ContextManager belongs to another agent already; make one for each, with one storage if you like"
            )
        refuse_rivals(agent, compresses=self.compression is not None)
        self._reader, self._events = AgentReader(agent, self.limits_for), HookRegistry()
        self._direct_calls: dict[str, str] = {}
        self._settle_offloader(agent)
        self._settle_compression(agent)
        refuse_taken_names(agent, self.agent_tools)
        self.own(self._reader.read(agent))
        self.register_hooks(self._events)
        self._listen(agent)

    async def undo(self, to: ReductionRecord | None = None) -> UndoRecord:
        """Put back what reductions took, as `holdfast.ContextManager.undo` does, and have the session written down."""
        record = await super().undo(to)
        if self._keeper is not None:
            await self._keeper.rewritten()
        return record

    def _settle_offloader(self, agent: Agent) -> None:
        if self.offloader is not None and steps_aside(agent):
            self.offloader = None
        if self.hold is not None:
            if has_offloader(agent):
                self.hold.leave_retrieval_to_others()
            self.hold.keep_in(in_sandbox_of(agent, self.hold.storage))

    def _settle_compression(self, agent: Agent) -> None:
        if self.compression is None:
            return
        compressor = self.compression.compressor
        if isinstance(compressor, Summarize) and compressor.summarizer is None:
            self.compression.compressor = with_options(compressor, summarizer=AuxiliaryModel(agent))
        set_aside(agent)
        self._keeper = agent.conversation_manager = SessionKeeper(self, agent)

    def _listen(self, agent: Agent) -> None:
        """Act before a session manager writes anything down, and on results and requests after all others did."""
        agent.add_middleware(InvokeModelStage.Input, take_turns)
        agent.add_middleware(InvokeModelStage.Input, self._reader.note_serving_model)
        agent.add_hook(self._after_initialization, AgentInitializedEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._message_added, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        agent.add_hook(self._after_tool_call, AfterToolCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._before_model_call, BeforeModelCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._after_model_call, AfterModelCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._after_invocation, AfterInvocationEvent, order=HookOrder.SDK_FIRST)

    def _own_conversation(self) -> Conversation:
        """Return the conversation with the list that the agent has now: Strands and users put another there."""
        super()._own_conversation()
        return self._reader.latest()

    def _after_initialization(self, event: AgentInitializedEvent) -> None:
        if self.offloader is not None:
            refuse_second_offloader(event.agent)
        elif self.hold is not None and has_offloader(event.agent):
            self.hold.leave_retrieval_to_others()
        self._reader.read(event.agent)
        if self._keeper is not None:
            self._keeper.log.initialized(event.agent)
        if self.hold is not None and session_of(event.agent) is not None:
            _warn_of_forgetting(self.hold.storage)

    async def _message_added(self, event: MessageAddedEvent) -> None:
        message = event.message
        await self._offload_direct_calls(event)
        told = await self._events.invoke(MessageAdded(self._reader.read(event.agent), message))
        if told.message is not message:
            # Others hold the message that was added, and write it down: it has to be that one which is smaller.
            for key in ("content", "metadata"):
                if key in told.message:
                    message[key] = told.message[key]
            event.agent.messages[-1] = message
        if self._keeper is not None:
            self._keeper.log.added(message)

    async def _after_tool_call(self, event: AfterToolCallEvent) -> None:
        # What a delegate says is the agent's own answer to the user, and no result that a model reads.
        if event.retry or getattr(event.selected_tool, "delegate", False) is True:
            return
        if "event_loop_cycle_id" not in event.invocation_state:
            # Somebody's program called the tool, and gets what it answered. Only the history may show less.
            self._note_direct_call(event.tool_use["toolUseId"], event.tool_use["name"])
            return
        result = await self._offloaded(event.agent, event.tool_use["name"], event.result)
        if result is not event.result:
            let_go(event, result)
            event.result = result

    def _note_direct_call(self, tool_use_id: str, name: str) -> None:
        self._direct_calls[tool_use_id] = name
        if len(self._direct_calls) > _MOST_DIRECT_CALLS:
            # One that is not to be recorded never comes into the history.
            del self._direct_calls[next(iter(self._direct_calls))]

    async def _offload_direct_calls(self, event: MessageAddedEvent) -> None:
        for number, block in enumerate(event.message["content"] if self._direct_calls else ()):
            result = block.get("toolResult", {})
            if (name := self._direct_calls.pop(result.get("toolUseId", ""), None)) is not None:
                event.message["content"][number] = {"toolResult": await self._offloaded(event.agent, name, result)}

    async def _offloaded(self, agent: Agent, name: str, result: Any) -> Any:
        """Return what is left of a result; the very same if all of it is."""
        told = AfterToolCall(self._reader.read(agent), name, result["toolUseId"], result)
        await self._events.invoke(told)
        if told.result is result:
            return result
        # Beside its content, a result of MCP holds the same as a value, which no model is sent.
        return {key: value for key, value in told.result.items() if key != "structuredContent"}

    async def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        if not event.cancel:
            await self._events.invoke(BeforeModelCall(self._reader.read(event.agent)))
            if self._keeper is not None:
                await self._keeper.rewritten()

    async def _after_model_call(self, event: AfterModelCallEvent) -> None:
        if event.exception is not None and event.retry:
            # Somebody knows a better way already.
            return
        usage = None if event.stop_response is None else reported_usage(event.stop_response.message)
        told = AfterModelCall(self._reader.read(event.agent, served=True), usage=usage, error=event.exception)
        await self._events.invoke(told)
        event.retry = event.retry or told.retry
        if self._keeper is not None and event.exception is not None and not event.retry:
            self._keeper.refuse(event.exception, told.error)

    async def _after_invocation(self, event: AfterInvocationEvent) -> None:
        await self._events.invoke(AfterInvocation(self._reader.read(event.agent)))
        if self._keeper is not None:
            self._keeper.refresh()


def _warn_of_forgetting(storage: Any) -> None:
    if isinstance(innermost(storage), InMemoryStorage):
        logger.warning(
            "the session outlives this process, but what leaves the window is kept in memory, so references lead to "
            "nothing after a restart; pass offload_storage=FileStorage(…) or S3Storage(…)"
        )
