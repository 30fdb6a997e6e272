"""How a report is made: from a history, a budget and the ledger, without changing any of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from holdfast.budget import Budget
from holdfast.history import History
from holdfast.ledger import EvictionRecord, Ledger, OffloadRecord, Record, ReductionRecord, UndoRecord
from holdfast.ledger.lines import one_line
from holdfast.messages import Message, ToolResult, ToolUse
from holdfast.reports.kinds import UNKNOWN_TOOL, first_words, kind_of, name_of_tool, words_for, words_of_call
from holdfast.reports.values import ContextReport, Departure, Item, Subtotal

__all__ = ["report_of"]

_LONGEST_NAME = 120


def report_of(
    history: History,
    *,
    system_prompt: Any,
    tool_specs: Iterable[Any] | None,
    budget: Budget,
    protected: Collection[int],
    ledger: Ledger,
    request_tokens: int | None,
    references: Callable[[Message], Collection[str]],
) -> ContextReport:
    """Say what is in a context. *protected* are indices of messages; *references* returns those that a message shows.

    *request_tokens* is what the next request takes as the provider counts, if that is known better than by the sum of
    the estimates: then all of the report is in such tokens.
    """
    making = _Making(history, references)
    items = (
        *making.system(system_prompt),
        *making.tools(tool_specs or ()),
        *making.messages(frozenset(protected)),
    )
    estimated = sum(item.estimated for item in items)
    used = estimated if request_tokens is None else request_tokens
    scale = _Scale(used, estimated)
    return ContextReport(
        window=budget.window,
        limit=budget.window - budget.reserved,
        used=used,
        items=tuple(scale.items(items, budget.window)),
        left=tuple(_departures(ledger, scale)),
        forgotten=ledger.forgotten,
        by_tool=MappingProxyType(scale.totals(making.by_tool)),
    )


class _Scale:
    """Makes the provider's tokens of estimates, for which it counts *used* where *estimated* are."""

    def __init__(self, used: int, estimated: int) -> None:
        self._ratio = used / estimated if estimated else 1.0

    def of(self, tokens: int) -> int:
        return round(tokens * self._ratio)

    def items(self, items: Iterable[Item], window: int) -> Iterator[Item]:
        """Give all items so many tokens that their sum is what is used."""
        reached = 0
        for item in items:
            before, reached = reached, reached + item.estimated
            tokens = self.of(reached) - self.of(before)
            yield replace(item, tokens=tokens, share=tokens / window)

    def totals(self, totals: Mapping[str, Subtotal]) -> dict[str, Subtotal]:
        """Return subtotals, the costliest first."""
        scaled = {name: replace(total, tokens=self.of(total.tokens)) for name, total in totals.items()}
        return dict(sorted(scaled.items(), key=lambda entry: -entry[1].tokens))


class _Making:
    """Reads a context from its beginning to its end."""

    def __init__(self, history: History, references: Callable[[Message], Collection[str]]) -> None:
        self._history = history
        self._references = references
        self._called: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self.by_tool: dict[str, Subtotal] = {}

    def system(self, prompt: Any) -> Iterator[Item]:
        if tokens := self._history.estimator.system(prompt):
            yield self._item(role="system", kind="system", what=first_words(prompt), tokens=tokens)

    def tools(self, specs: Iterable[Any]) -> Iterator[Item]:
        for spec in specs:
            tokens = self._history.estimator.tools([spec])
            yield self._item(role="", kind="tool", what=name_of_tool(spec), tokens=tokens)

    def messages(self, protected: frozenset[int]) -> Iterator[Item]:
        for at, message in enumerate(self._history.messages):
            # An id may come back: an answer is to the call right before it.
            self._called.update((use.id, use.name) for use in message.tool_uses)
            self._calls.update((use.id, words_of_call(use)) for use in message.tool_uses)
            tokens = self._history.tokens(at, at + 1)
            self._count_tools(message, tokens)
            yield self._item(
                number=at + 1,
                role=message.role,
                kind=kind_of(message),
                what=words_for(message, self._calls),
                tokens=tokens,
                pinned=message.pinned,
                protected=at in protected,
                references=tuple(sorted(self._references(message))),
            )

    def _item(self, *, tokens: int, **values: Any) -> Item:
        return Item(tokens=tokens, estimated=tokens, share=0.0, **values)

    def _count_tools(self, message: Message, tokens: int) -> None:
        """Add what calls and answers take; one alone in its message takes all of that."""
        calls = [block for block in message.blocks if isinstance(block, (ToolUse, ToolResult))]
        alone = len(calls) == len(message.blocks) == 1
        for block in calls:
            called = block.name if isinstance(block, ToolUse) else self._called.get(block.tool_use_id)
            name = one_line(called, _LONGEST_NAME) if called else UNKNOWN_TOOL
            taken = tokens if alone else self._history.estimator.block(block)
            self.by_tool[name] = self.by_tool.get(name, Subtotal()).plus(taken)


def _departures(ledger: Ledger, scale: _Scale) -> Iterator[Departure]:
    """Yield what left and did not come back, oldest first."""
    evicted = {reference for record in ledger.of(EvictionRecord) for reference in record.references}
    undone = _undone(ledger)
    for record in ledger:
        if isinstance(record, (ReductionRecord, OffloadRecord)) and record.number not in undone:
            yield _departure(record, evicted, scale)


def _undone(ledger: Ledger) -> set[int]:
    """Return the numbers of reductions that were undone. To undo one is to undo all that came after it."""
    standing: list[ReductionRecord] = []
    undone: set[int] = set()
    for record in ledger:
        if isinstance(record, ReductionRecord):
            standing.append(record)
        if isinstance(record, UndoRecord) and (first := _first_undone(record, standing)) is not None:
            while standing and standing[-1].number >= first:
                undone.add(standing.pop().number)
    return undone


def _first_undone(undo: UndoRecord, standing: Iterable[ReductionRecord]) -> int | None:
    """Return the number of the earliest that came back; by its references if the undo does not know it."""
    if undo.undone is not None:
        return undo.undone
    back = frozenset(undo.references)
    return next((record.number for record in standing if not back.isdisjoint(record.references)), None)


def _departure(record: Record, evicted: Collection[str], scale: _Scale) -> Departure:
    return Departure(
        record=record.number,
        kind=record.kind,
        what=record.what or record.why,
        tokens=scale.of(max(record.saved, 0)),
        turn=record.turn,
        at=record.at,
        references=tuple(reference for reference in record.references if reference not in evicted),
        evicted=tuple(reference for reference in record.references if reference in evicted),
        more_references=record.more_references,
    )
