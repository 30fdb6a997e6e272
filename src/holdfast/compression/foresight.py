"""What the next reduction would do, without doing it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.budget import Budget
from holdfast.compression.config import Compressor
from holdfast.compression.plans import Drop, Insert, Plan, Rewrite
from holdfast.compression.plugin import ContextCompression, is_worth_it
from holdfast.compression.protection import Protection
from holdfast.compression.words import in_words, tools_in
from holdfast.errors import ContextOverflowError, InvalidValueError
from holdfast.history import History
from holdfast.hooks import Conversation

__all__ = ["NextReduction", "next_reduction", "protected_in"]

_TOO_LITTLE = "it would free too little to break the provider's cache for"
_UNDONE = "what left was put back just now, and fits"
_TRIED = "little came since the last reduction, which could not do more"


@dataclass(frozen=True)
class NextReduction:
    """What would happen to a history now: *plan* before a model call, *at_end* at the end of an invocation.

    None is for nothing. The plans are those that the ledger would tell of, in the same estimated tokens. All other
    tokens are as the provider counts them, and of the whole request: it takes *tokens* of *window*, and is reduced from
    *due_at* on, None if only after an overflow. *put_off* is why it is not even then; *is_due* whether the plan would
    be carried out before the next model call.
    """

    plan: Plan | None
    at_end: Plan | None
    tokens: int
    due_at: int | None
    window: int
    is_due: bool = False
    put_off: str = ""
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        when = "after an overflow only" if self.due_at is None else f"from {self.due_at:,} tokens on"
        state = f"the next request takes {self.tokens:,} of {self.window:,} tokens, and is reduced {when}"
        put_off = f"; this is put off: {self.put_off}" if self.put_off else ""
        if not self.lines:
            return f"Nothing would leave: {state}{put_off}."
        return "\n".join([*self.lines, f"({state}{put_off})"])


def next_reduction(compression: ContextCompression, conversation: Conversation) -> NextReduction:
    """Return what `compression` would do with a conversation now."""
    window = compression.window
    window.verify(conversation)
    foresight = _Foresight(compression, conversation)
    plan, put_off = foresight.before_call()
    at_end = foresight.kept(compression.plan_at_end(conversation))
    due_at = None if window.trigger is None else window.budget(conversation).trigger_at
    return NextReduction(
        plan,
        at_end,
        foresight.request(window.history.total),
        None if due_at is None else foresight.request(due_at),
        window.budget_of_provider(conversation).window,
        plan is not None and not put_off and due_at is not None and window.history.total >= due_at,
        put_off,
        (*foresight.told(plan), *foresight.told(at_end, "At the end of the invocation: ")),
    )


def protected_in(compression: ContextCompression | None, history: History) -> frozenset[int]:
    """Return which messages stay in any case."""
    protection = None if compression is None else getattr(compression.compressor, "protection", None)
    if not isinstance(protection, Protection):
        return frozenset(history.kept)
    units = protection.kept_units(history) | protection.recent_units(history, at_least=1)
    return frozenset(index for unit in units for index in range(unit.start, unit.stop))


class _Foresight:
    """Looks at one conversation as it is now."""

    def __init__(self, compression: ContextCompression, conversation: Conversation) -> None:
        self._compression = compression
        self._conversation = conversation
        self._history = compression.window.history

    def request(self, tokens: int) -> int:
        """Return what a request takes, as the provider counts, whose messages have so many estimated tokens."""
        return self._compression.window.request_with(tokens, self._conversation)

    def before_call(self) -> tuple[Plan | None, str]:
        """Return what would leave before a model call, and why it does not even if that is due."""
        compression, budget = self._compression, self._compression.budget(self._conversation)
        try:
            plan = _planned(compression.compressor, self._history, budget)
        except ContextOverflowError as error:
            plan = error.best if budget.limit else None
        put_off = _put_off(compression, plan, budget)
        return self.kept(plan), put_off

    def kept(self, plan: Plan | None) -> Plan | None:
        """Return a plan with the words for where that is kept which leaves; None if nothing would be gained then."""
        archive = self._compression.archive
        if plan is None or archive is None:
            return plan
        budget = self._compression.window.budget(self._conversation)
        return archive.foreseen(plan, self._history, limit=budget.limit, room=budget.marker)

    def told(self, plan: Plan | None, when: str = "") -> Iterator[str]:
        """Yield a plan line by line, in tokens of requests as the provider counts. Numbers are those of the report."""
        if plan is None:
            return
        before, after = self.request(plan.tokens_before), self.request(plan.tokens_after)
        yield f"{when}{plan.reason}: {before:,} → {after:,} tokens, {in_words(plan)}"
        yield from _lines(plan, self._history, lambda tokens: self.request(tokens) - self.request(0))


def _planned(compressor: Compressor, history: History, budget: Budget) -> Plan | None:
    plan = getattr(compressor, "preview_plan", compressor.plan)(history, budget)
    if not inspect.isawaitable(plan):
        return plan
    if inspect.iscoroutine(plan):
        plan.close()
    raise InvalidValueError(
        f"{type(compressor).__name__} cannot say what it would do without doing it; give it a preview_plan(history, "
        "budget) that returns a Plan"
    )


def _put_off(compression: ContextCompression, plan: Plan | None, budget: Budget) -> str:
    if compression.is_put_off(budget):
        return _UNDONE if compression.is_held_off else _TRIED
    return _TOO_LITTLE if plan is not None and not is_worth_it(plan, budget) else ""


def _lines(plan: Plan, history: History, counted: Callable[[int], int]) -> Iterator[str]:
    for edit in sorted(plan.edits, key=lambda edit: isinstance(edit, Insert)):
        match edit:
            case Drop(start, stop):
                tokens = counted(history.tokens(start, stop))
                which = f"messages {start + 1}–{stop} leave" if stop - start > 1 else f"message {stop} leaves"
                yield f"- {which}, {tokens:,} tokens{tools_in(history.messages[start:stop])}"
            case Rewrite(start, message):
                before, after = counted(history.tokens(start, start + 1)), counted(history.estimator.message(message))
                done = "is shortened" if message.made_as is None else "is renewed"
                yield f"- message {start + 1} {done}, {before:,} → {after:,} tokens"
            case Insert(start, message):
                tokens = counted(history.estimator.message(message))
                yield f"- a {message.made_as or 'message'} of {tokens:,} tokens stands before message {start + 1}"
