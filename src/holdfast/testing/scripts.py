"""What a scripted model or client answers, step by step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, cycle
from typing import Any

from holdfast.dialects import Converse
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.messages import Block, Json, Text, ToolResult, as_json_text

__all__ = ["STEPS", "Call", "Request", "ids_of", "returned", "steps_of"]

STEPS = "text, a Call, a list of these, an exception, an assistant's message, or a function that returns one of them"
_AT_THE_END = "done."


@dataclass(frozen=True)
class Call:
    """A tool call to answer with. An *input* that is text is sent as it is, so that it may be broken JSON."""

    name: str
    input: Any = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class Request:
    """What the model was sent, and how many tokens it took this for; `number` counts from 1."""

    messages: list[Any]
    system_prompt: Any
    tool_specs: list[Any]
    tokens: int
    number: int

    @property
    def latest_text(self) -> str:
        """All text of the latest message, that of tool results included."""
        return "\n".join(_texts_in(Converse().read(self.messages[-1]).blocks)) if self.messages else ""


def steps_of(script: Iterable[Any] | Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Return what gives the step for a request: the next of an iterable, or what a function says."""
    if callable(script):
        return script
    if isinstance(script, (str, Mapping)) or not isinstance(script, Iterable):
        raise InvalidTypeError(f"script must be an iterable of steps, or a function, got {type(script).__name__}")
    steps = iter(script)
    return lambda request: next(steps, _AT_THE_END)


async def returned(step: Any, request: Request) -> Any:
    """What a step comes to, if it is a function or what an async one returned."""
    while True:
        if inspect.isawaitable(step):
            step = await step
        elif callable(step) and not isinstance(step, type):
            step = step(request)
        else:
            return step


def ids_of(ids: Iterable[str] | Callable[[], str] | None) -> Callable[[], str]:
    """Return what gives the id of the next tool call."""
    if callable(ids):
        return ids
    if ids is not None and (isinstance(ids, str) or not ids):
        raise InvalidValueError(f"ids must be a list of at least one id, or a function, got {ids!r:.80}")
    return (map("call-{}".format, count(1)) if ids is None else cycle(ids)).__next__


def _texts_in(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text):
                yield text
            case Json(value):
                yield as_json_text(value)
            case ToolResult(_, content):
                yield from _texts_in(content)
