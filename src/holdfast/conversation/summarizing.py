"""What leaves is summarized."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from holdfast.budget import Budget
from holdfast.compression.plans import Plan
from holdfast.compression.summarize import Summarize
from holdfast.compression.summary_request import SUMMARY_PROMPT
from holdfast.conversation.base import ConversationManager, ProactiveCompressionConfig
from holdfast.errors import ContextOverflowError, InvalidTypeError
from holdfast.hooks import AfterModelCall, BeforeModelCall, Conversation
from holdfast.messages import SUMMARY, Message

__all__ = ["SummarizingConversationManager"]

logger = logging.getLogger(__name__)


class SummarizingConversationManager(ConversationManager):
    """Replaces the oldest messages by a summary, after an overflow and, if asked, before a model call.

    *summary_ratio* is the share of the messages that may leave, oldest first, that a summary replaces at least. Of the
    latest messages *preserve_recent_messages* always stay; if nothing is said, ten do as far as there is room for them.
    *summarizer* is any async callable or a framework's model; without one, a summary is extracted on the spot. If it
    fails, answers nothing or takes longer than *timeout* seconds, the history is truncated instead, and that is said.

    On the events of an agent, the summarizer is awaited. `reduce_context` cannot wait inside of a running event loop
    without blocking it, so there it makes an extractive summary; `reduce_context_async` waits.
    """

    def __init__(
        self,
        summary_ratio: float = 0.3,
        preserve_recent_messages: int | None = None,
        summarizer: Any = None,
        summarization_system_prompt: str | None = None,
        *,
        protect_first: int = 0,
        timeout: float = 120.0,
        proactive_compression: bool | ProactiveCompressionConfig | None = None,
        window: int | None = None,
        count_text: Callable[[str], int] | None = None,
    ) -> None:
        super().__init__(proactive_compression=proactive_compression, window=window, count_text=count_text)
        self._summarize = Summarize(
            summary_ratio=summary_ratio,
            protect_first=protect_first,
            timeout=timeout,
            preserve_recent_messages=preserve_recent_messages,
            summarizer=summarizer,
            summarization_system_prompt=(
                SUMMARY_PROMPT if summarization_system_prompt is None else summarization_system_prompt
            ),
        )
        self.summary_ratio = summary_ratio
        self.preserve_recent_messages = self._summarize.protection.last
        self._summary: Any = None

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return {**super().get_state(), "summary_message": self._summary}

    def restore_from_session(self, state: dict[str, Any]) -> list[Any] | None:
        """Go on from what `get_state` returned, and return the summary to put before the agent's messages, if any."""
        super().restore_from_session(state)
        summary = state.get("summary_message")
        if summary is not None and not isinstance(summary, Mapping):
            raise InvalidTypeError(f"the state's summary_message must be a message, got {type(summary).__name__}")
        self._summary = summary
        # Where it stood between two messages of the user it was the assistant's, who cannot be the first to speak.
        return None if summary is None else [{**summary, "role": "user"}]

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Do nothing: summaries are made when tokens run short."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Replace the oldest messages by a summary."""
        conversation = self._read(agent)
        budget = self._budget(conversation, e)
        try:
            if self._summarize.summarizer is None:
                plan = self._summarize.plan_extractive(self.window.history, budget)
            elif _in_event_loop():
                logger.warning("an extractive summary is made: waiting for the summarizer would block the event loop")
                plan = self._summarize.plan_extractive(self.window.history, budget)
            else:
                plan = self._waited_for(budget)
        except ContextOverflowError as overflow:
            plan = self._best(overflow, conversation, e)
        self._carry_out(plan, conversation, e)

    async def reduce_context_async(self, agent: Any, e: Exception | None = None) -> None:
        """Replace the oldest messages by a summary, without blocking the event loop."""
        conversation = self._read(agent)
        try:
            planning = self._summarize.plan(self.window.history, self._budget(conversation, e))
            plan = await self.window.planned(planning)
        except ContextOverflowError as overflow:
            plan = self._best(overflow, conversation, e)
        self._carry_out(plan, conversation, e)

    async def _compress_proactively(self, event: BeforeModelCall) -> None:
        try:
            if self.window.is_due(event.conversation):
                await self.reduce_context_async(event.conversation)
        except Exception:
            # Best effort: the call may still fit, and else the provider says so.
            logger.exception("the history could not be reduced, so the model call goes on without")

    async def _recover(self, event: AfterModelCall) -> None:
        if (error := self._overflow_to_recover_from(event)) is not None:
            with self._retry_unless_refused(event):
                await self.reduce_context_async(event.conversation, error)

    def _waited_for(self, budget: Budget) -> Plan | None:
        """Wait for the summarizer, in a thread that is left behind if it outlasts its time and cannot be stopped."""
        outcome: Future[Plan | None] = Future()

        def run() -> None:
            try:
                outcome.set_result(asyncio.run(self._summarize.plan(self.window.history, budget)))
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=run, name="holdfast-summary", daemon=True).start()
        try:
            return outcome.result(self._summarize.timeout + 1)
        except FutureTimeoutError:
            logger.warning("the summarizer takes too long, so an extractive summary is made instead")
            return self._summarize.plan_extractive(self.window.history, budget)

    def _carry_out(self, plan: Plan | None, conversation: Conversation, e: Exception | None) -> None:
        super()._carry_out(plan, conversation, e)
        if plan is not None:
            self._summary = self._summary_in(conversation)

    def _summary_in(self, conversation: Conversation) -> Any:
        def is_summary(pair: tuple[Message, Any]) -> bool:
            return pair[0].made_as == SUMMARY

        pairs = zip(self.window.history.messages, conversation.messages, strict=False)
        return next((wire for _, wire in filter(is_summary, pairs)), None)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
