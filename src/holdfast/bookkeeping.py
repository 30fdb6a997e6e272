"""What happens to a conversation, written into its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import singledispatchmethod
from typing import Any

from holdfast.compression.keeping import NotKept, Reduced, ReductionFailed, SummaryFailed
from holdfast.compression.words import in_words, removed_by, rewritten_by
from holdfast.hold import Hold
from holdfast.hooks import Conversation
from holdfast.ledger import (
    EvictionRecord,
    FailureRecord,
    Ledger,
    OffloadRecord,
    ReductionRecord,
    RetrievalRecord,
    SearchRecord,
)
from holdfast.messages import Message
from holdfast.offload import Offloaded, OffloadFailed
from holdfast.reports.kinds import words_of_call
from holdfast.retrieval import NotSearchable, RetrievalFailed, Retrieved, Searched, SearchFailed
from holdfast.storage.tombstones import Eviction

__all__ = ["Bookkeeping", "latest_messages"]

_LONGEST_REFERENCE, _LONGEST_KEY = 200, 100
# A turn may have many calls, each with a message for its result.
_LATEST = 40


class Bookkeeping:
    """Listens to what a manager is made of, and adds a record for each event.

    *latest* returns the messages among which a call is whose result just left, the latest first.
    """

    def __init__(self, ledger: Ledger, latest: Callable[[], Iterable[Message]] = tuple) -> None:
        self._ledger = ledger
        self._latest = latest

    @singledispatchmethod
    def write(self, event: Any) -> None:
        """Write down what became of a history or of results, what the agent looked up, and what the storage forgot.

        Of other events nothing is written.
        """

    def embedder_failed(self, error: Exception) -> None:
        """Write down that a search goes by words alone for now."""
        self._ledger.add(
            FailureRecord, why="what is searched in was to be embedded", what="the search goes by words", error=error
        )

    @write.register
    def _(self, event: Reduced) -> None:
        plan = event.plan
        self._ledger.add(
            ReductionRecord,
            why=plan.reason,
            what=event.what or in_words(plan),
            tokens_before=plan.tokens_before,
            tokens_after=plan.tokens_after,
            references=(event.reference,) if event.reference else (),
            messages=removed_by(plan),
            rewritten=rewritten_by(plan),
            seconds=event.seconds,
        )

    @write.register
    def _(self, event: NotKept) -> None:
        stays = "so it leaves in portions" if event.in_portions else "so it stays"
        lost = "and is lost, as the model took no more" if event.was_carried_out else stays
        what = f"what would leave could not be stored, {lost}: {in_words(event.plan)}"
        self._ledger.add(FailureRecord, why=event.plan.reason, what=what, error=event.error)

    @write.register
    def _(self, event: ReductionFailed) -> None:
        self._ledger.add(FailureRecord, why="the history was to be reduced", what="nothing left", error=event.error)

    @write.register
    def _(self, event: SummaryFailed) -> None:
        what = "there is no summary, so the history is truncated instead"
        self._ledger.add(FailureRecord, why="what leaves was to be summarized", what=what, error=event.error)

    @write.register
    def _(self, event: Offloaded) -> None:
        self._ledger.add(
            OffloadRecord,
            why="large results leave before the model sees them",
            what=f"the result of {self._call(event.tool_use_id) or event.tool_name}",
            tool=event.tool_name,
            call_id=event.tool_use_id,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
            references=event.references,
        )

    @write.register
    def _(self, event: OffloadFailed) -> None:
        what = f"the result of {self._call(event.tool_use_id) or event.tool_name} stays, as it could not be stored"
        self._ledger.add(FailureRecord, why=f"it has {event.tokens:,} tokens", what=what, error=event.error)

    @write.register
    def _(self, event: Retrieved) -> None:
        asked = ", ".join(name for name in event.arguments if name != "reference")
        what = event.reference[:_LONGEST_REFERENCE] + (f" by {asked}" if asked else "")
        self._ledger.add(
            RetrievalRecord,
            why="the agent asked",
            what=what if event.found else f"nothing found: {what}",
            found=event.found,
            tokens_after=event.tokens,
            references=(event.reference,) if event.found else (),
            seconds=event.seconds,
        )

    @write.register
    def _(self, event: RetrievalFailed) -> None:
        what = f"{event.reference[:_LONGEST_REFERENCE]} was not read"
        self._ledger.add(FailureRecord, why="a reference was opened", what=what, error=event.error)

    @write.register
    def _(self, event: Searched) -> None:
        contents = len(event.references)
        self._ledger.add(
            SearchRecord,
            why="the agent asked" if event.tool else "the program asked",
            what=f"passages of {contents} content{'' if contents == 1 else 's'} found" if contents else "nothing found",
            tool=event.tool,
            query=event.query,
            references=event.references,
            seconds=event.seconds,
        )

    @write.register
    def _(self, event: SearchFailed) -> None:
        self._ledger.add(FailureRecord, why="a search was asked for", what="nothing was searched in", error=event.error)

    @write.register
    def _(self, event: NotSearchable) -> None:
        first, *others = event.references
        more = f", nor can {len(others):,} more" if others else ""
        self._ledger.add(
            FailureRecord,
            why="what left is made findable",
            what=f"{first[:_LONGEST_REFERENCE]} cannot be searched as a whole{more}",
            error=event.error,
        )

    @write.register
    def _(self, event: Eviction) -> None:
        what = f"{event.key[:_LONGEST_KEY]}, {event.size:,} bytes"
        self._ledger.add(EvictionRecord, why=event.because, what=what, references=(event.reference,))

    def _call(self, tool_use_id: str) -> str:
        """Return the call of that id in words, nothing if it is not among the latest messages."""
        uses = (use for message in self._latest() for use in message.tool_uses)
        return next((words_of_call(use) for use in uses if use.id == tool_use_id), "")


def latest_messages(hold: Hold | None, conversation: Conversation | None) -> Iterator[Message]:
    """Yield the messages among which a call is whose result just came, the latest first."""
    if hold is not None and conversation is not None:
        yield from map(hold.dialect_of(conversation).read, reversed(conversation.messages[-_LATEST:]))
