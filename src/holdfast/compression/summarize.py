"""Summaries: the oldest messages leave, and one message says what was in them."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, TypeVar

from holdfast.budget import Budget
from holdfast.checks import check_flag
from holdfast.compression.extractive import extractive_summary
from holdfast.compression.options import check_messages, protection_of
from holdfast.compression.plans import Plan
from holdfast.compression.protection import Protection
from holdfast.compression.reduction import Reduction
from holdfast.compression.replacement import Replacement
from holdfast.compression.summarizers import as_summarizer, summary_from
from holdfast.compression.summary_messages import TOKENS_OF_TAGS, known_in, summary_in
from holdfast.compression.summary_request import SUMMARY_PROMPT, SummaryRequest
from holdfast.compression.truncate import Truncate, plan_window
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError
from holdfast.history import History

__all__ = ["Summarize", "Summarizer", "summary_in"]

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")
Summarizer: TypeAlias = Callable[[SummaryRequest], "Awaitable[str] | str"]

_SHARE_FOR_SUMMARY, _ENOUGH = 0.1, 0.5
_MOST_TOKENS, _FEWEST_TOKENS = 2_000, 100
_CHARACTERS_PER_TOKEN = 3
_SHORTENED = "shortened to stay within the window"
# Characters that are looked through at once; more are left to a thread.
_AT_ONCE = 50_000


@dataclass(frozen=True, kw_only=True)
class Summarize:
    """Replace the oldest messages that are not protected by one summary, in ``<summary>`` tags.

    *summary_ratio* is a share of the messages that may leave, that is of all that are neither protected nor pinned:
    0.3 means that each summary replaces at least the oldest 30 % of them, and more if that does not free enough tokens.
    An earlier summary is handed to the summarizer as what is known so far, and replaced.

    *summarizer* is any async callable from a `SummaryRequest` to text, or a framework's model; a plain function does
    too, but all else waits for it. Without one, an extractive summary is made on the spot. If it fails, answers nothing
    or takes longer than *timeout* seconds, the history is truncated instead, and that is said.

    An extract of what leaves follows the summary: the lines that show the most names which stand nowhere else any more.
    With ``facts="replace"`` a summary that holds less than the share *enough_facts* of the names which later messages
    use is not taken, and the history is truncated instead; 0.5 unless something else is said.
    *preserve_recent_messages* is another name for *protect_last*.
    """

    summary_ratio: float = 0.3
    protect_first: int | None = None
    protect_last: int | None = None
    preserve_recent_messages: int | None = None
    protect_task: bool | None = None
    protect: Protection | None = None
    summarizer: Any = None
    summarization_system_prompt: str = SUMMARY_PROMPT
    timeout: float = 120.0
    window_size: int | None = None
    shorten_results: bool = True
    facts: Literal["accept", "replace"] = "accept"
    enough_facts: float | None = None

    def __post_init__(self) -> None:
        ratio = self.summary_ratio
        if not isinstance(ratio, (int, float)) or isinstance(ratio, bool) or not 0.1 <= ratio <= 0.8:
            raise InvalidValueError(f"summary_ratio must be from 0.1 to 0.8, got {ratio!r}")
        if None not in (self.protect_last, self.preserve_recent_messages):
            raise InvalidValueError("protect_last and preserve_recent_messages mean the same; give one of them")
        if not isinstance(self.summarization_system_prompt, str):
            raise InvalidTypeError("summarization_system_prompt must be a string")
        if not isinstance(self.timeout, (int, float)) or isinstance(self.timeout, bool) or not self.timeout > 0:
            raise InvalidValueError(f"timeout must be a number of seconds above 0, got {self.timeout!r:.80}")
        for name in ("window_size", "preserve_recent_messages"):
            if (count := getattr(self, name)) is not None:
                check_messages(name, count)
        check_flag("shorten_results", self.shorten_results)
        self._check_facts()
        object.__setattr__(self, "summarizer", as_summarizer(self.summarizer))
        _ = self.protection

    def _check_facts(self) -> None:
        if self.facts not in ("accept", "replace"):
            raise InvalidValueError(f"facts must be 'accept' or 'replace', got {self.facts!r:.80}")
        enough = self.enough_facts
        if enough is None:
            return
        if not isinstance(enough, (int, float)) or isinstance(enough, bool):
            raise InvalidTypeError(f"enough_facts must be a share from 0 to 1, got {type(enough).__name__}")
        if not 0 <= enough <= 1:
            raise InvalidValueError(f"enough_facts must be a share from 0 to 1, got {enough!r}")
        if self.facts != "replace":
            raise InvalidValueError(
                f"enough_facts works with facts='replace' only, got facts={self.facts!r}; leave it out"
            )

    @cached_property
    def protection(self) -> Protection:
        """What stays. Unless something else is said, the last ten messages do, as far as there is room for them."""
        named = {"first": self.protect_first, "last": self._last, "task": self.protect_task}
        return protection_of(self.protect, named, usually=Protection(last=10))

    @property
    def _last(self) -> int | None:
        return self.protect_last if self.preserve_recent_messages is None else self.preserve_recent_messages

    def _protection_within(self, history: History, budget: Budget) -> Protection:
        """Return what stays; of the latest messages that nobody asked for, only what fits half of the target."""
        last = self.protection.last
        if self._last is None and self.protect is None:
            while last > 1 and history.tokens(max(len(history) - last, 0), len(history)) > budget.target // 2:
                last -= 1
        return replace(self.protection, last=last)

    async def plan(self, history: History, budget: Budget) -> Plan | None:
        """Return what brings *history* down to the budget; None if it is there already, or nothing can leave."""
        if history.total <= budget.target:
            return None
        chosen = await _aside(history, partial(self._chosen, budget=budget))
        if not isinstance(chosen, Replacement):
            return chosen
        answer = await self._answer(chosen)
        return await _aside(history, partial(self._concluded, budget=budget, chosen=chosen, answer=answer))

    def plan_window(self, history: History, *, down_to: int | None = None) -> Plan | None:
        """Return what leaves so that at most `window_size` messages stay, if there is such a bound."""
        if self.window_size is None:
            return None
        return plan_window(history, self.window_size, self.protection, down_to=down_to)

    def plan_extractive(self, history: History, budget: Budget) -> Plan | None:
        """Return the same with a summary that needs no model, at once."""
        if history.total <= budget.target:
            return None
        chosen = self._chosen(history, budget)
        return self._summarized(chosen, _extracted(chosen)) if isinstance(chosen, Replacement) else chosen

    def preview_plan(self, history: History, budget: Budget) -> Plan | None:
        """Return what `plan` would do, at once. No summarizer is asked: an extractive summary stands in for its own."""
        plan = self.plan_extractive(history, budget)
        if plan is None:
            return None
        stands_in = "" if self.summarizer is None else " (previewed with an extractive summary)"
        return replace(plan, reason=f"would be {plan.reason}{stands_in}")

    def _chosen(self, history: History, budget: Budget) -> Replacement | Plan | None:
        """Shorten and choose what a summary is to replace; return the plan, if shortening is all that is to be done."""
        protection = self._protection_within(history, budget)
        reduction = Reduction(history, protection, shortens=self.shorten_results)
        reduction.make_room(budget)
        target = reduction.target(budget)
        reduction.shorten_old_results(target)
        if reduction.draft.tokens <= target:
            return reduction.fitting(budget, _SHORTENED)
        longest = _longest(budget)
        at_least = math.ceil(reduction.old_messages * self.summary_ratio)
        reduction.drop_oldest(target - longest - budget.marker - TOKENS_OF_TAGS, at_least=at_least)
        leaving = reduction.draft.dropped_messages
        if not leaving:
            return reduction.fitting(budget, _SHORTENED)
        request = SummaryRequest(
            system_prompt=self.summarization_system_prompt,
            known=known_in(leaving),
            messages=tuple(message for message in leaving if message.made_as is None),
            longest=longest,
            readable=max(budget.limit - longest, longest),
            estimator=history.estimator,
            names=history.names,
        )
        enough = _ENOUGH if self.enough_facts is None else self.enough_facts
        return Replacement(history, budget, reduction, request, enough if self.facts == "replace" else 0)

    async def _answer(self, chosen: Replacement) -> str | Exception:
        """Return the summary that was asked for, or why there is none."""
        try:
            if self.summarizer is not None:
                return await summary_from(self.summarizer, chosen.request, self.timeout)
            return await _in_thread_if_large(chosen.history, partial(_extracted, chosen))
        except Exception as error:
            # Whatever a summarizer raises, the history must still fit.
            logger.warning("the summarizer failed, so the history is truncated instead: %r", error)
            return error

    def _concluded(
        self, history: History, *, budget: Budget, chosen: Replacement, answer: str | Exception
    ) -> Plan | None:
        """Return the plan with an answer in it, or anew if somebody changed what it is about while it was made."""
        is_current = chosen.history.revision == history.revision
        if isinstance(answer, str):
            return self._summarized(chosen, answer) if is_current else self.plan_extractive(history, budget)
        anew = partial(self._truncated_anew, history, budget)
        return _standing_in(answer, partial(self._truncated, chosen) if is_current else anew)

    def _summarized(self, chosen: Replacement, text: str) -> Plan | None:
        """Return the plan with a summary in it; where that says nothing, or saves or holds too little, one without."""
        summary = chosen.summary_of(text)
        if not summary:
            return self._truncated(chosen, "there was nothing to summarize")
        if (flaw := chosen.flaw_of(summary)) is not None:
            logger.info("the history is truncated instead of summarized: %s", flaw)
            return self._truncated(chosen, flaw)
        plan = chosen.with_summary(summary, "summarized to stay within the window")
        return plan or self._cut(chosen.history, chosen.budget, "there was no room for a summary")

    def _truncated(self, chosen: Replacement, why: str) -> Plan | None:
        """Return a truncation that takes the earlier summary over, if there is one and room for it."""
        known = chosen.summary_of(chosen.request.known)
        plan = chosen.with_summary(known, f"truncated, as {why}") if known else None
        return plan or self._cut(chosen.history, chosen.budget, why)

    def _truncated_anew(self, history: History, budget: Budget, why: str) -> Plan | None:
        """Return the same of a history that somebody changed since it was looked at."""
        chosen = self._chosen(history, budget)
        return self._truncated(chosen, why) if isinstance(chosen, Replacement) else self._cut(history, budget, why)

    def _cut(self, history: History, budget: Budget, why: str) -> Plan | None:
        protection = self._protection_within(history, budget)
        plan = Truncate(protect=protection, shorten_results=self.shorten_results).plan(history, budget)
        return None if plan is None else replace(plan, reason=f"truncated, as {why}")


async def _aside(history: History, think: Callable[[History], _Result]) -> _Result:
    """Return what thinking about a history gives, once more if somebody changes it meanwhile."""
    seen = history.copy()
    try:
        thought = await _in_thread_if_large(seen, partial(think, seen))
    except ContextOverflowError:
        if history.revision == seen.revision:
            raise
    else:
        if history.revision == seen.revision:
            return thought
    # At once, so that it comes to an end, however often the history changes.
    return think(history.copy())


async def _in_thread_if_large(history: History, think: Callable[[], _Result]) -> _Result:
    """Return what thinking gives; if much is thought about, others need not wait for it."""
    is_large = history.total * _CHARACTERS_PER_TOKEN > _AT_ONCE
    return await asyncio.to_thread(think) if is_large else think()


def _standing_in(error: Exception, truncated: Callable[[str], Plan | None]) -> Plan | None:
    """Return the truncation that stands in for a summary, with the error that was in the way of that."""
    try:
        plan = truncated(f"its summarizer failed ({type(error).__name__})")
    except ContextOverflowError as overflow:
        overflow.best = overflow.best and replace(overflow.best, failure=error)
        raise
    return plan and replace(plan, failure=error)


def _extracted(chosen: Replacement) -> str:
    longest, names = chosen.request.longest * _CHARACTERS_PER_TOKEN, chosen.history.names
    return extractive_summary(chosen.request.messages, known=chosen.request.known, longest=longest, names=names)


def _longest(budget: Budget) -> int:
    """Return how many tokens a summary may take."""
    return max(_FEWEST_TOKENS, min(_MOST_TOKENS, int(budget.limit * _SHARE_FOR_SUMMARY)))
