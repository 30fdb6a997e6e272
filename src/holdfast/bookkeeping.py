"""What happens to a conversation, written into its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch
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
        self.ledger = ledger
        self._latest = latest

    def write(self, event: Any) -> None:
        """Write down what became of a history or of results, what the agent looked up, and what the storage forgot.

        Of other events nothing is written.
        """
        _write(event, self)

    def embedder_failed(self, error: Exception) -> None:
        """Write down that a search goes by words alone for now."""
        self.ledger.add(
            FailureRecord, why="what is searched in was to be embedded", what="the search goes by words", error=error
        )

    def call_in_words(self, tool_use_id: str) -> str:
        """Return the call of that id in words, nothing if it is not among the latest messages."""
        uses = (use for message in self._latest() for use in message.tool_uses)
        return next((words_of_call(use) for use in uses if use.id == tool_use_id), "")


# Not a singledispatchmethod: that of Python 3.13.0 and 3.13.1 keeps every object alive whose method was called.
@singledispatch
def _write(event: Any, books: Bookkeeping) -> None:
    pass


@_write.register
def _(event: Reduced, books: Bookkeeping) -> None:
    plan = event.plan
    books.ledger.add(
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


@_write.register
def _(event: NotKept, books: Bookkeeping) -> None:
    stays = "so it leaves in portions" if event.in_portions else "so it stays"
    lost = "and is lost, as the model took no more" if event.was_carried_out else stays
    numbers = f" (number {event.lost})" if event.lost else ""
    what = f"what would leave could not be stored, {lost}: {in_words(event.plan)}{numbers}"
    books.ledger.add(FailureRecord, why=event.plan.reason, what=what, error=event.error)


@_write.register
def _(event: ReductionFailed, books: Bookkeeping) -> None:
    books.ledger.add(FailureRecord, why="the history was to be reduced", what="nothing left", error=event.error)


@_write.register
def _(event: SummaryFailed, books: Bookkeeping) -> None:
    what = "there is no summary, so the history is truncated instead"
    books.ledger.add(FailureRecord, why="what leaves was to be summarized", what=what, error=event.error)


@_write.register
def _(event: Offloaded, books: Bookkeeping) -> None:
    books.ledger.add(
        OffloadRecord,
        why="large results leave before the model sees them",
        what=f"the result of {books.call_in_words(event.tool_use_id) or event.tool_name}",
        tool=event.tool_name,
        call_id=event.tool_use_id,
        tokens_before=event.tokens_before,
        tokens_after=event.tokens_after,
        references=event.references,
    )


@_write.register
def _(event: OffloadFailed, books: Bookkeeping) -> None:
    what = f"the result of {books.call_in_words(event.tool_use_id) or event.tool_name} stays, as it could not be stored"
    books.ledger.add(FailureRecord, why=f"it has {event.tokens:,} tokens", what=what, error=event.error)


@_write.register
def _(event: Retrieved, books: Bookkeeping) -> None:
    asked = ", ".join(name for name in event.arguments if name != "reference")
    what = event.reference[:_LONGEST_REFERENCE] + (f" by {asked}" if asked else "")
    books.ledger.add(
        RetrievalRecord,
        why="the agent asked",
        what=what if event.found else f"nothing found: {what}",
        found=event.found,
        tokens_after=event.tokens,
        references=(event.reference,) if event.found else (),
        seconds=event.seconds,
    )


@_write.register
def _(event: RetrievalFailed, books: Bookkeeping) -> None:
    what = f"{event.reference[:_LONGEST_REFERENCE]} was not read"
    books.ledger.add(FailureRecord, why="a reference was opened", what=what, error=event.error)


@_write.register
def _(event: Searched, books: Bookkeeping) -> None:
    contents = len(event.references)
    books.ledger.add(
        SearchRecord,
        why="the agent asked" if event.tool else "the program asked",
        what=f"passages of {contents} content{'' if contents == 1 else 's'} found" if contents else "nothing found",
        tool=event.tool,
        query=event.query,
        references=event.references,
        seconds=event.seconds,
    )


@_write.register
def _(event: SearchFailed, books: Bookkeeping) -> None:
    books.ledger.add(FailureRecord, why="a search was asked for", what="nothing was searched in", error=event.error)


@_write.register
def _(event: NotSearchable, books: Bookkeeping) -> None:
    first, *others = event.references
    more = f", nor can {len(others):,} more" if others else ""
    books.ledger.add(
        FailureRecord,
        why="what left is made findable",
        what=f"{first[:_LONGEST_REFERENCE]} cannot be searched as a whole{more}",
        error=event.error,
    )


@_write.register
def _(event: Eviction, books: Bookkeeping) -> None:
    what = f"{event.key[:_LONGEST_KEY]}, {event.size:,} bytes"
    books.ledger.add(EvictionRecord, why=event.because, what=what, references=(event.reference,))


def latest_messages(hold: Hold | None, conversation: Conversation | None) -> Iterator[Message]:
    """Yield the messages among which a call is whose result just came, the latest first."""
    if hold is not None and conversation is not None:
        yield from map(hold.dialect_of(conversation).read, reversed(conversation.messages[-_LATEST:]))
