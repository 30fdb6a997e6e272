"""One object that keeps a conversation inside its window: configuration in, composed plugins out."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time as now
from typing import Any, ClassVar, TypeVar

from holdfast.agent_tools import AgentTool
from holdfast.bookkeeping import Bookkeeping, latest_messages
from holdfast.checks import check_flag
from holdfast.composition import composed, restore_all
from holdfast.compression import NextReduction, next_reduction, pin_message
from holdfast.configuration import CompressionChoice, OffloaderChoice, StorageChoice, known
from holdfast.dialects import dialect_named
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import BeforeModelCall, Conversation, HookRegistry, Plugin
from holdfast.ledger import Ledger, ReductionRecord, UndoRecord
from holdfast.ledger.kinds import Subscribe
from holdfast.limits import Limits
from holdfast.loops import ManagedConversation, specs_with
from holdfast.names import Names
from holdfast.reports import ContextReport, report_on
from holdfast.search import SearchAnswer
from holdfast.search.embedding import Embedder, Embedding
from holdfast.telemetry import Telemetry
from holdfast.undo import undo_and_record

__all__ = ["ContextManager"]

_Managed = TypeVar("_Managed", bound="ContextManager")


class ContextManager:
    """Keeps one conversation inside its model's window.

    With ``"auto"`` as *strategy* everything is on, and options override it. Without, nothing is on but what is asked
    for: *compression* is True, ``"truncate"``, ``"summarize"``, a mapping of options, a `Truncate` or `Summarize`;
    *offloader* is True, a mapping of options or `OffloadRules`. *offload_storage* holds what left the window: a
    storage, ``"memory"``, a directory, ``"s3://bucket/prefix"`` or a mapping.

    The user's first message and the one being worked on stay in any case, unless *protect_task* is False or a
    `Protection` says otherwise. *protect_first* and *protect_last* keep so many messages more. *window* is how many
    tokens the model takes, *reserved* how many of them are kept free for its answer; both are known of many models.

    What leaves is stored first, in *offload_storage*, unless *archive* is False: then `search_context` finds it, `undo`
    puts it back, and `ledger` and `report` say what happened. *embedder* lets the search go by meaning too.

    The agent may pin messages unless *include_pin_tool* is False. A loop of your own says which messages it speaks, as
    *dialect*: ``"openai"``, ``"anthropic"`` or ``"converse"``. *count_text* counts tokens where estimates will not do.
    *names* says what counts as a name in extracts: ``Names(include=[r"ORD-\\d+"])``.

    An own `ContextOffloader` or `ContextCompression`, given as the option or among *plugins*, takes the place of the
    managed one. What is wrong or has no effect is an error here, not later.
    """

    speaks: ClassVar[str | None] = None
    """The dialect, unless *dialect* is given."""
    traces_tools: ClassVar[bool] = True
    """Whether calls of its tools become spans of their own; not where the framework makes some."""

    def __init__(
        self,
        strategy: str | None = None,
        *,
        compression: CompressionChoice = None,
        offloader: OffloaderChoice = None,
        offload_storage: StorageChoice = None,
        protect_first: int | None = None,
        protect_last: int | None = None,
        protect_task: bool | None = None,
        window: int | None = None,
        reserved: int | None = None,
        include_pin_tool: bool = True,
        dialect: str | None = None,
        count_text: Callable[[str], int] | None = None,
        archive: bool | None = None,
        embedder: Embedder | None = None,
        names: Names | Mapping[str, Any] | None = None,
        plugins: Iterable[Plugin] | None = (),
    ) -> None:
        dialect = self.speaks if dialect is None else dialect
        self.strategy = strategy
        self._embedding = None if embedder is None else Embedding(embedder)
        self.dialect = None if dialect is None else dialect_named(dialect)
        self.compression, self.offloader, self.hold, self.archive, self.plugins = composed(
            strategy,
            _checked_plugins(plugins),
            compression=compression,
            offloader=offloader,
            storage=offload_storage,
            archive=archive,
            embedder=self._embedding,
            protect={"protect_first": protect_first, "protect_last": protect_last, "protect_task": protect_task},
            limits={"window": window, "reserved": reserved},
            dialect=dialect,
            count_text=count_text,
            names=names,
        )
        check_flag("include_pin_tool", include_pin_tool)
        self._pins = include_pin_tool and self.compression is not None
        self._limits = Limits(window, reserved)
        self.ledger = Ledger()
        self.telemetry = Telemetry.of(self.ledger, conversation_id=secrets.token_hex(8), tool_spans=self.traces_tools)
        self._keep_books()
        self._conversation: Conversation | None = None
        self._latest: Any = None

    @classmethod
    def from_config(cls: type[_Managed], config: Mapping[str, Any]) -> _Managed:
        """Make one from plain data, as YAML or JSON hold it: a mapping of the options."""
        if not isinstance(config, Mapping):
            raise InvalidTypeError(f"config must be a mapping of options, got {type(config).__name__}")
        inherited, own = inspect.signature(ContextManager).parameters, inspect.signature(cls).parameters
        return cls(**known("the context manager", config, inherited | own))

    @property
    def agent_tools(self) -> tuple[AgentTool, ...]:
        """What the agent is given: to look at what left, and to keep messages in view."""
        return (*(self.hold.tools if self.hold else ()), *((pin_message,) if self._pins else ()))

    def register_hooks(self, registry: HookRegistry) -> None:
        """Act on the events of one conversation: large results leave first, then old messages."""
        registry.add_callback(BeforeModelCall, self._begin_turn)
        if self.offloader is None and self.hold is not None:
            registry.add_callback(BeforeModelCall, self.hold.before_model_call)
        for plugin in (self.offloader, self.compression, *self.plugins):
            if plugin is not None:
                plugin.register_hooks(registry)

    def converse(
        self,
        messages: list[Any],
        *,
        system_prompt: Any = None,
        tool_specs: Sequence[Any] | None = None,
        model: str = "",
        window: int | None = None,
    ) -> ManagedConversation:
        """Return *messages*, a list that a loop of your own appends to, as a conversation to go on with.

        The manager belongs to it from now on, and must know the *dialect*. Other options are what the provider is sent.
        """
        if self.dialect is None:
            raise InvalidValueError(
                "say which messages the loop speaks: ContextManager(…, dialect='openai'), 'anthropic' or 'converse'"
            )
        if None not in (window, self._limits.window):
            raise InvalidValueError(f"window is given twice: {window}, and {self._limits.window} to the manager")
        specs = specs_with(self.agent_tools, tool_specs, self.dialect)
        found, reserved = self.limits_for(model, window=window)
        conversation = Conversation(messages, system_prompt, specs, model, found, reserved)
        self.own(conversation)
        return ManagedConversation(conversation, self, self.dialect, self.agent_tools)

    def own(self, conversation: Conversation) -> None:
        """Belong to *conversation*, and to no other."""
        if self._conversation is not None and self._conversation is not conversation:
            raise InvalidValueError(
                "this ContextManager belongs to another conversation already; "
                "make one for each, with one storage if you like"
            )
        for part in (self.hold, self.compression):
            if part is not None:
                part.own(conversation)
        self._conversation = conversation

    def limits_for(self, model: str, *, window: int | None = None, answer: int | None = None) -> tuple[int | None, int]:
        """Return how many tokens a model takes, None if nobody knows, and how many of them are for its answer.

        What this manager was told comes first, then *window* and *answer*, which the model says of itself, then what is
        known of well-known models.
        """
        return self._limits.of(model, window=window, answer=answer)

    async def search_context(self, query: str, limit: int = 8) -> SearchAnswer:
        """Search in all that left the window, as the agent's tool of that name does."""
        if self.hold is None:
            raise InvalidValueError("nothing is stored, so there is nothing to search in: use archive or offloader")
        return await self.hold.retrieval.search(query, limit)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return a content that left, whole, and its content type.

        That of a batch of messages is their transcript; ``reference#17`` is message 17 of it, ``reference#17.2`` the
        second part of that message, as it was. Raises KeyError if the reference leads to nothing, DamagedContentError
        if what is stored there is no longer what was stored.
        """
        if self.hold is None:
            raise InvalidValueError("nothing is stored, so there is nothing to retrieve: use archive or offloader")
        if not isinstance(reference, str):
            raise InvalidTypeError(f"reference must be a text, as a search or a marker names it, got {reference!r:.80}")
        return await self.hold.retrieval.retrieve(reference)

    async def undo(self, to: ReductionRecord | None = None) -> UndoRecord:
        """Put back what the last reduction took, or what all took from that of the record *to* on.

        Raises ContextOverflowError if that does not fit the window, and says how much is missing; InvalidValueError if
        there is nothing to undo, or somebody else changed the history since; KeyError if the batch was evicted. Then
        nothing changes. Objects of a provider's SDK come back as mappings.
        """
        if self.compression is None:
            raise InvalidValueError("there is nothing to undo: nothing is ever reduced without compression")
        if self.archive is None:
            raise InvalidValueError("there is nothing to undo: with archive=False, what leaves is not kept")
        return await undo_and_record(self.archive, self.compression, self._own_conversation(), self.ledger, to=to)

    def preview(self) -> NextReduction:
        """Return what the next reduction would do if it were due now. Nothing is applied, and no model is called."""
        if self.compression is None:
            raise InvalidValueError("nothing is ever reduced without compression")
        return next_reduction(self.compression, self._own_conversation())

    def report(self) -> ContextReport:
        """Return what is in the context, item by item, what each takes, what left and where it is."""
        return report_on(
            self._own_conversation(),
            self.ledger,
            compression=self.compression,
            known=None if self.hold is None else self.hold.known,
            dialect=self.dialect,
        )

    @property
    def on(self) -> Subscribe:
        """``on(kind, callback)`` calls *callback* with each new record of a kind, "*" for all; see `Ledger.on`."""
        return self.ledger.on

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        parts = {name: part.get_state() for name, part in self._parts.items()}
        return {**parts, "conversation_id": self.telemetry.conversation_id} if parts else {}

    @property
    def _parts(self) -> dict[str, Any]:
        """What has a state. What is in the hold was the offloader's once, and is so in sessions of then."""
        parts = {"compression": self.compression, "offloader": self.hold, "archive": self.archive}
        there = {name: part for name, part in parts.items() if part is not None}
        return {**there, "ledger": self.ledger} if there else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned. If a part of it cannot be, nothing changes, and it raises why."""
        if not isinstance(state, Mapping):
            raise InvalidTypeError(f"state must be what get_state() returned, got {type(state).__name__}")
        restore_all(self._parts, state)
        if isinstance(known := state.get("conversation_id"), str):
            self.telemetry.conversation_id = known

    async def aclose(self) -> None:
        """Wait for what is still under way. The storage is its owner's to close."""
        if self.hold is not None:
            await self.hold.aclose()

    def _keep_books(self) -> None:
        """Have all that happens written into the ledger."""
        books = Bookkeeping(self.ledger, lambda: latest_messages(self.hold, self._conversation))
        for part in (self.hold, self.compression):
            if part is not None:
                part.listen(books.write)
        if self._embedding is not None:
            self._embedding.on_failure = books.embedder_failed

    def _begin_turn(self, event: BeforeModelCall) -> None:
        """Count the turn, and let the parts that write it down know."""
        self.own(event.conversation)
        messages = event.conversation.messages
        latest = messages[-1] if messages else None
        if latest is not None and latest is self._latest:
            # The model is called again in the same turn.
            return
        self._latest = latest
        self.ledger.turn += 1
        if self.hold is not None:
            self.hold.turn_number = self.ledger.turn
        if self.archive is not None:
            self.archive.begin_turn(messages, self.ledger.turn, now())

    def _own_conversation(self) -> Conversation:
        if self._conversation is None:
            raise InvalidValueError("this manager has no conversation yet; give it to an agent, or call converse(…)")
        return self._conversation


def _checked_plugins(plugins: Iterable[Plugin] | None) -> tuple[Plugin, ...]:
    if plugins is not None and (isinstance(plugins, (str, Mapping)) or not isinstance(plugins, Iterable)):
        raise InvalidTypeError(f"plugins must be a list of plugins, got {plugins!r:.80}")
    given = tuple(plugins or ())
    for plugin in given:
        if isinstance(plugin, type) or not callable(getattr(plugin, "register_hooks", None)):
            raise InvalidTypeError(f"plugins must have register_hooks(registry), got {plugin!r:.80}")
        if isinstance(plugin, ContextManager):
            raise InvalidTypeError("plugins holds a ContextManager; one conversation needs one")
    return given
