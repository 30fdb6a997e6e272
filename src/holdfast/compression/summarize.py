"""Summaries: the oldest messages leave, and one message says what was in them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from holdfast.budget import Budget
from holdfast.checks import check_flag
from holdfast.compression.extractive import extractive_summary
from holdfast.compression.options import check_messages, protection_of
from holdfast.compression.plans import Plan
from holdfast.compression.protection import Protection
from holdfast.compression.reduction import Reduction
from holdfast.compression.summarizers import as_summarizer
from holdfast.compression.summary_request import SUMMARY_PROMPT, SummaryRequest, without_tags
from holdfast.compression.truncate import Truncate, plan_window
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError
from holdfast.history import History
from holdfast.messages import SUMMARY, Message

__all__ = ["Summarize", "Summarizer", "summary_in"]

logger = logging.getLogger(__name__)

Summarizer: TypeAlias = Callable[[SummaryRequest], "Awaitable[str] | str"]

_TAGS = re.compile(r"\s*<summary>\n?(.*?)\n?</summary>\s*", re.DOTALL)
_SHARE_FOR_SUMMARY = 0.1
_MOST_TOKENS, _FEWEST_TOKENS = 2_000, 100
_CHARACTERS_PER_TOKEN = 3
_TOKENS_OF_TAGS = 20


@dataclass(frozen=True, kw_only=True)
class Summarize:
    """Replace the oldest messages that are not protected by one summary, in ``<summary>`` tags.

    *summary_ratio* is a share of the messages that may leave, that is of all that are neither protected nor pinned:
    0.3 means that each summary replaces at least the oldest 30 % of them, and more if that does not free enough tokens.
    An earlier summary is handed to the summarizer as what is known so far, and replaced.

    *summarizer* is any async callable from a `SummaryRequest` to text, or a framework's model; a plain function does
    too, but all else waits for it. Without one, an extractive summary is made on the spot. If it fails, answers nothing
    or takes longer than *timeout* seconds, the history is truncated instead, and that is said.
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
        object.__setattr__(self, "summarizer", as_summarizer(self.summarizer))
        _ = self.protection

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
        reduction, request = self._chosen(history, budget)
        if request is None:
            return reduction.fitting(budget, "shortened to stay within the window")
        revision = history.revision
        try:
            text = await self._summary(request)
        except Exception as error:
            # Whatever a summarizer raises, the history must still fit.
            logger.warning("the summarizer failed, so the history is truncated instead: %r", error)
            why = f"its summarizer failed ({type(error).__name__})"
            return self._with_what_was_known(history, budget, why) or self._truncated(history, budget, why)
        if history.revision != revision:
            # The summary is of messages that somebody changed while it was made.
            return self.plan_extractive(history, budget)
        return self._summarized(history, budget, reduction, request, text)

    def plan_window(self, history: History, *, down_to: int | None = None) -> Plan | None:
        """Return what leaves so that at most `window_size` messages stay, if there is such a bound."""
        if self.window_size is None:
            return None
        return plan_window(history, self.window_size, self.protection, down_to=down_to)

    def plan_extractive(self, history: History, budget: Budget) -> Plan | None:
        """Return the same with a summary that needs no model, at once."""
        if history.total <= budget.target:
            return None
        reduction, request = self._chosen(history, budget)
        if request is None:
            return reduction.fitting(budget, "shortened to stay within the window")
        return self._summarized(history, budget, reduction, request, _extracted(request))

    def _chosen(self, history: History, budget: Budget) -> tuple[Reduction, SummaryRequest | None]:
        """Shorten and choose what is to be summarized; nothing, if shortening is enough."""
        protection = self._protection_within(history, budget)
        reduction = Reduction(history, protection, shortens=self.shorten_results)
        reduction.make_room(budget)
        target = reduction.target(budget)
        reduction.shorten_old_results(target)
        if reduction.draft.tokens <= target:
            return reduction, None
        longest = _longest(budget)
        at_least = math.ceil(reduction.old_messages * self.summary_ratio)
        reduction.drop_oldest(target - longest - _TOKENS_OF_TAGS, at_least=at_least)
        leaving = reduction.draft.dropped_messages
        if not leaving:
            return reduction, None
        return reduction, SummaryRequest(
            system_prompt=self.summarization_system_prompt,
            known=_known_in(leaving),
            messages=tuple(message for message in leaving if message.made_as is None),
            longest=longest,
            readable=max(budget.limit - longest, longest),
            estimator=history.estimator,
        )

    async def _summary(self, request: SummaryRequest) -> str:
        if self.summarizer is None:
            return _extracted(request)
        answer = self.summarizer(request)
        text = await _within(self.timeout, answer) if inspect.isawaitable(answer) else answer
        if not isinstance(text, str) or not _untagged(text):
            raise InvalidValueError(f"the summarizer answered nothing to use: {text!r:.80}")
        return text

    def _summarized(
        self, history: History, budget: Budget, reduction: Reduction, request: SummaryRequest, text: str
    ) -> Plan | None:
        """Return the plan with a summary in it; where that says nothing or saves too little, one without."""
        if not _untagged(text):
            return self._truncated(history, budget, "there was nothing to summarize")
        reduction.draft.put_summary(summary_message(text, request))
        try:
            plan = reduction.fitting(budget, "summarized to stay within the window")
        except ContextOverflowError:
            plan = None
        return plan or self._truncated(history, budget, "there was no room for a summary")

    def _with_what_was_known(self, history: History, budget: Budget, why: str) -> Plan | None:
        """Return a truncation that takes the earlier summary over, if there is one and room for it."""
        reduction, request = self._chosen(history, budget)
        if request is None or not request.known:
            return None
        reduction.draft.put_summary(summary_message(request.known, request))
        try:
            return reduction.fitting(budget, f"truncated, as {why}")
        except ContextOverflowError:
            return None

    def _truncated(self, history: History, budget: Budget, why: str) -> Plan | None:
        protection = self._protection_within(history, budget)
        plan = Truncate(protect=protection, shorten_results=self.shorten_results).plan(history, budget)
        return None if plan is None else replace(plan, reason=f"truncated, as {why}")


def summary_in(message: Message) -> str | None:
    """Return the summary that a message holds, if holdfast made it as one."""
    if message.made_as != SUMMARY:
        return None
    found = _TAGS.fullmatch(message.text)
    return message.text if found is None else found.group(1)


def summary_message(text: str, request: SummaryRequest) -> Message:
    """Return the message that holds a summary; one that is longer than was asked for is cut."""
    inner = without_tags(_untagged(text)).encode("utf-8", "replace").decode()
    tokens = request.estimator.text(inner)
    if tokens > request.longest:
        inner = f"{inner[: len(inner) * request.longest // tokens]} […]"
    return Message.of_text("user", f"<summary>\n{inner}\n</summary>", made_as=SUMMARY)


def _untagged(text: str) -> str:
    return (text if (found := _TAGS.fullmatch(text)) is None else found[1]).strip()


async def _within(seconds: float, answer: Awaitable[Any]) -> Any:
    """Return the answer, unlike `asyncio.wait_for` in time even if whoever answers will not be cancelled."""
    task = asyncio.ensure_future(answer)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError(f"no answer within {seconds:g} seconds")
    finally:
        task.cancel()
    if task.cancelled():
        raise TimeoutError("it was cancelled")
    return task.result()


def _known_in(messages: Sequence[Message]) -> str:
    return "\n".join(known for message in messages if (known := summary_in(message)) is not None)


def _extracted(request: SummaryRequest) -> str:
    return extractive_summary(request.messages, known=request.known, longest=request.longest * _CHARACTERS_PER_TOKEN)


def _longest(budget: Budget) -> int:
    """Return how many tokens a summary may take."""
    return max(_FEWEST_TOKENS, min(_MOST_TOKENS, int(budget.limit * _SHARE_FOR_SUMMARY)))
