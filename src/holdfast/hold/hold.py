"""The hold of one conversation: all that left its window, in one storage, with the tools to look at it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.checks import is_count
from holdfast.dialects import Dialect, OpenAI, dialect_of
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hold.lasting import Lasting
from holdfast.hold.packing import packed, unpacked
from holdfast.hold.storing import Storing
from holdfast.hooks import BeforeModelCall, Conversation
from holdfast.names import Names
from holdfast.references import KnownReferences, Source, is_reference
from holdfast.retrieval import RETRIEVE, Retrieval
from holdfast.storage import InMemoryStorage, Storage, SupportsTurns, SupportsWatch
from holdfast.storage.liveness import Showing
from holdfast.storage.tombstones import Eviction
from holdfast.tokens import TokenEstimator
from holdfast.turns import Turn

__all__ = ["Hold"]

logger = logging.getLogger(__name__)

_REFERENCES_IN_STATE = 200


class Hold:
    """Keeps what left one conversation's window, and gives it back to whoever has its reference or looks for it.

    What the conversation shows, and what the archive names, stays for as long as the storage's owner lets it. An answer
    of the `tools` has at most *answer_tokens*, and *turn* is what all results of a turn share. The storage has
    *timeout* seconds for each answer of its own. *embedder* is for a search by meaning too, see `SearchIndex`.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        estimator: TokenEstimator,
        turn: Turn,
        answer_tokens: int,
        timeout: float,
        includes_tools: bool = True,
        dialect: Dialect | None = None,
        embedder: Any = None,
        names: Names | None = None,
    ) -> None:
        self.estimator = estimator
        self.names = names or Names()
        self.turn = turn
        self.lasting = Lasting(self._spare)
        self.known = KnownReferences(self.lasting)
        self.answer_tokens = answer_tokens
        self._timeout = timeout
        self._includes_tools = includes_tools
        self._dialect = dialect
        self._looked_at = 0
        self._visible: frozenset[str] = frozenset()
        self._packed = (0, "")
        self._embedder = embedder
        self._opens = True
        self.turn_number = 0
        self.covers_history = False
        self._conversation: Conversation | None = None
        self._listeners: list[Callable[[Any], object]] = []
        self.keep_in(InMemoryStorage() if storage is None else storage)

    def keep_in(self, storage: Storage) -> None:
        """Use another storage, as a framework's sandbox may ask for. Only before anything happened."""
        if self._conversation is not None:
            raise InvalidValueError("the storage cannot be changed any more: it may hold results already")
        self.storage: Storage = _checked_storage(storage)
        self._showing = Showing(storage)
        self._counting = storage if isinstance(storage, SupportsTurns) else None
        self.storing = Storing(self.storage, self._timeout)
        self._settle_retrieval()

    def leave_retrieval_to_others(self) -> None:
        """Give the agent only the search: it has another tool by the name of the one that opens references."""
        self._opens = False

    def cover_history(self) -> None:
        """Let the search be over messages that left too, and say so to the agent."""
        self.covers_history = True
        self._settle_retrieval()

    def _settle_retrieval(self) -> None:
        self.retrieval = Retrieval(
            self.storage,
            self.known,
            estimator=self.estimator,
            allowance=lambda: self.turn.answer(self.answer_tokens),
            timeout=self._timeout,
            on_event=self.tell,
            covers_history=self.covers_history,
            embedder=self._embedder,
        )

    @property
    def tools(self) -> tuple[AgentTool, ...]:
        """What the agent is given: to open references, and to search."""
        if not self._includes_tools:
            return ()
        return self.retrieval.tools if self._opens else self.retrieval.tools[1:]

    @property
    def how_to_look(self) -> str:
        """What to tell the agent of messages that left."""
        names = [tool.name for tool in self.tools]
        finds = f"{self.search_name} finds what was in them" if self.search_name in names else ""
        opens = f"{RETRIEVE} opens them" if RETRIEVE in names else ""
        return ", ".join(filter(None, (finds, opens))) or "they can be read there"

    @property
    def search_name(self) -> str:
        """What the tool for searching is called."""
        return self.retrieval.tools[1].name

    def listen(self, listener: Callable[[Any], object]) -> None:
        """Tell *listener* of all that happens here: results that left, what the agent looked up, evictions."""
        self._listeners.append(listener)

    def tell(self, event: Any) -> None:
        """Tell whoever listens."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                # It is the user's code, and no reason to stop an agent.
                logger.exception("on_event failed for %s", type(event).__name__)

    def own(self, conversation: Conversation) -> Conversation:
        """Belong to *conversation*, and to no other."""
        if self._conversation is None:
            if hasattr(self.storage, "bind"):
                self.storage.bind(self)
            if isinstance(self.storage, SupportsWatch):
                self.storage.watch(self._evicted)
            self._conversation = conversation
            self._look_at(conversation)
        if self._conversation is not conversation:
            raise InvalidValueError(
                "this ContextOffloader belongs to another conversation; make one for each conversation"
            )
        return conversation

    def dialect_of(self, conversation: Conversation) -> Dialect:
        """Return the dialect, once it is known for good. As long as nothing gives it away, only news are looked at."""
        if self._dialect is None:
            messages = conversation.messages
            self._dialect = dialect_of(messages[min(self._looked_at, len(messages)) :])
            self._looked_at = len(messages)
        return self._dialect or OpenAI()

    def remember(self, reference: str, tool_name: str, content: bytes, content_type: str) -> None:
        """Know what was stored, so that it is found again."""
        self.known.add(reference, tool_name, self.turn_number)
        self.lasting.note_size(reference, len(content))
        # A message will show it in a moment; until then, others that share the storage may speak.
        self._visible |= {reference}
        self._spare()
        if self._includes_tools:
            self.retrieval.note(reference, content, content_type)

    async def before_model_call(self, event: BeforeModelCall) -> None:
        """Let the storage know what is not to be forgotten, and that a turn begins."""
        conversation = self.own(event.conversation)
        self.turn.begin(conversation.messages[-1] if conversation.messages else None)
        self._look_at(conversation)
        self._begin_turn()
        self.retrieval.index_stored()

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON: what lasts, and the visible and latest of what does not."""
        known = self.known.visible_and_latest(_REFERENCES_IN_STATE)
        return {
            "references": [[name, *source] for name, source in known if name not in self.lasting],
            **({"lasting": lasting} if (lasting := self._lasting_in_state()) else {}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        references, lasting = _references_in(state), _lasting_in(state)
        if self.covers_history:
            self._go_on_with(lasting)
        for reference, source in references:
            if source.tool_name:
                self.known.add(reference, *source)
            else:
                self.known.claim(reference)
        self._visible |= {reference for reference, _ in references}
        self._spare()
        if self.covers_history:
            self.lasting.name(reference for reference, source in references if source.tool_name)

    async def aclose(self) -> None:
        """Wait for what is still under way, and forget the search index. The storage is its owner's to close.

        Where others go on with it, what this conversation shows grows old from then on.
        """
        await self.storing.aclose()
        await self.retrieval.aclose()
        self._showing = Showing(self.storage)

    def _lasting_in_state(self) -> str:
        """Return all that lasts with the tools it came from, packed; made anew only when that changed."""
        if self._packed[0] != self.lasting.revision:
            rows = [[name, *self.known.source_of(name), size] for name, size in self.lasting.sizes.items()]
            self._packed = (self.lasting.revision, packed(rows) if rows else "")
        return self._packed[1]

    def _go_on_with(self, lasting: Sequence[tuple[str, Source, int]]) -> None:
        for reference, source, size in lasting:
            if source.tool_name:
                self.known.add(reference, *source)
            self.lasting.note_size(reference, size)
        self.lasting.go_on_with((reference, size) for reference, _, size in lasting)

    def _look_at(self, conversation: Conversation) -> None:
        self._visible = self.known.visible_in(conversation.messages, self.dialect_of(conversation))
        self._spare()

    def _spare(self) -> None:
        """Let the storage know what is not to be forgotten."""
        try:
            self._showing.tell(self.lasting.with_visible(self._visible))
        except Exception:
            # A storage may be anybody's; that it cannot forget is no reason to stop an agent.
            logger.exception("%s could not be told what is visible", type(self.storage).__name__)

    def _begin_turn(self) -> None:
        try:
            if self._counting is not None:
                self._counting.advance_turn()
        except Exception:
            logger.exception("%s could not be told of the next turn", type(self.storage).__name__)

    def _evicted(self, eviction: Eviction) -> None:
        # The storage may serve others too.
        if eviction.reference in self.known:
            self.lasting.discard(eviction.reference)
            self.tell(eviction)


def _checked_storage(storage: Storage) -> Storage:
    if isinstance(storage, type) or not isinstance(storage, Storage):
        given = f"the class {storage.__name__}" if isinstance(storage, type) else type(storage).__name__
        raise InvalidTypeError(
            f"storage must have store() and retrieve(), as InMemoryStorage(), FileStorage(…) and S3Storage(…) do, "
            f"got {given}"
        )
    return storage


def _references_in(state: Mapping[str, Any]) -> list[tuple[str, Source]]:
    """Return what a saved state holds of references, of which anything may have become on its way."""
    references = state.get("references", ()) if isinstance(state, Mapping) else None
    if not isinstance(references, (list, tuple)):
        raise InvalidValueError("the state must be what get_state() returned: a mapping with a list of references")
    rows = [row for row in references if isinstance(row, (list, tuple))]
    # Older sessions know no turns.
    return [(row[0], Source(*row[1:])) for row in rows if len(row) in (2, 3) and _is_reference(*row)]


def _lasting_in(state: Mapping[str, Any]) -> list[tuple[str, Source, int]]:
    if (given := state.get("lasting")) is None:
        return []
    rows = unpacked(given)
    fits = isinstance(rows, list) and all(isinstance(row, list) and len(row) == 4 for row in rows)
    if not fits:
        raise InvalidValueError("the state must be what get_state() returned: what lasts has another form")
    return [
        (name, Source(tool, turn), size)
        for name, tool, turn, size in rows
        if _is_reference(name, tool, turn) and is_count(size)
    ]


def _is_reference(name: object, tool: object, turn: object = 0) -> bool:
    return is_reference(name) and isinstance(tool, str) and is_count(turn)
