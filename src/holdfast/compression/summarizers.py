"""Whatever can summarize, called in one way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.checks import is_async
from holdfast.compression.summary_messages import untagged
from holdfast.compression.summary_request import SummaryRequest
from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["as_summarizer", "summary_from"]


def as_summarizer(given: Any) -> Callable[[SummaryRequest], Awaitable[str] | str] | None:
    """Return *given* as a summarizer: a callable as it is, a model that streams in Converse's form wrapped."""
    if given is None or isinstance(given, _StreamingModel):
        return given
    if callable(given) and not (hasattr(given, "stream") and not is_async(given)):
        summarizer: Callable[[SummaryRequest], Awaitable[str] | str] = given
        return summarizer
    if hasattr(given, "stream"):
        return _StreamingModel(given)
    raise InvalidTypeError(
        f"summarizer must be an async callable or a model with a stream method, got {type(given).__name__}"
    )


async def summary_from(summarizer: Callable[[SummaryRequest], Any], request: SummaryRequest, seconds: float) -> str:
    """Return what a summarizer answers in time. Raises if it fails, or if there is nothing in it to use."""
    answer = summarizer(request)
    text = await _within(seconds, answer) if inspect.isawaitable(answer) else answer
    if not isinstance(text, str) or not untagged(text):
        raise InvalidValueError(f"the summarizer answered nothing to use: {text!r:.80}")
    return text


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


class _StreamingModel:
    """A framework's model, asked directly: outside of its agent's loop, locks and metrics."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __repr__(self) -> str:
        return repr(self._model)

    async def __call__(self, request: SummaryRequest) -> str:
        messages = [{"role": "user", "content": [{"text": request.prompt}]}]
        said: list[str] = []
        async for event in self._model.stream(messages, None, request.system_prompt):
            delta = event.get("contentBlockDelta", {}).get("delta", {})
            said.append(delta.get("text", ""))
        return "".join(said)
