"""The moments of an agent's life that plugins act on, and who is told of them.

An adapter turns a framework's hooks into these events. A hand-written loop fires them itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = [
    "AfterInvocation",
    "AfterModelCall",
    "AfterToolCall",
    "BeforeModelCall",
    "Conversation",
    "Event",
    "HookRegistry",
    "MessageAdded",
    "Plugin",
]


@dataclass(eq=False)
class Conversation:
    """What plugins see of one conversation. *messages* is the framework's own list, and is changed in place."""

    messages: list[Any]
    system_prompt: Any = None
    tool_specs: Sequence[Any] = ()
    model: str = ""
    window: int | None = None
    reserved: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.messages, list):
            raise InvalidTypeError(
                f"messages must be a list, which is changed in place, got {type(self.messages).__name__}"
            )
        if self.tool_specs is None:
            self.tool_specs = ()
        for name, value, least in (("window", self.window, 1), ("reserved", self.reserved, 0)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise InvalidValueError(f"{name} must be a number of tokens, {least} or more, got {value!r:.80}")
        if self.window is not None and self.reserved >= self.window:
            raise InvalidValueError(f"reserved must be below the window ({self.window:,}), got {self.reserved:,}")


@dataclass
class MessageAdded:
    """A message was appended."""

    conversation: Conversation
    message: Any


@dataclass
class AfterToolCall:
    """A tool answered. A plugin may put another *result* in the place of the one it gave."""

    conversation: Conversation
    tool_name: str
    tool_use_id: str
    result: Any


@dataclass
class BeforeModelCall:
    """The model is about to be called with the conversation."""

    conversation: Conversation


@dataclass
class AfterModelCall:
    """The model answered, with the *usage* that it reports, or failed with *error*.

    A plugin may ask for a *retry*, or put an error in the place of *error* that says more; that one is to be raised.
    """

    conversation: Conversation
    usage: Any = None
    error: BaseException | None = None
    retry: bool = field(default=False)


@dataclass
class AfterInvocation:
    """The agent is done with what the user asked."""

    conversation: Conversation


Event: TypeAlias = MessageAdded | AfterToolCall | BeforeModelCall | AfterModelCall | AfterInvocation
_E = TypeVar("_E", MessageAdded, AfterToolCall, BeforeModelCall, AfterModelCall, AfterInvocation)


class HookRegistry:
    """Calls whoever wants to know of an event, in the order in which they came."""

    def __init__(self) -> None:
        self._callbacks: dict[type[Any], list[Callable[[Any], Any]]] = {}

    def add_callback(self, event_type: type[_E], callback: Callable[[_E], Awaitable[None] | None]) -> None:
        """Call *callback*, which may be async, on each event of that type."""
        self._callbacks.setdefault(event_type, []).append(callback)

    async def invoke(self, event: _E) -> _E:
        """Tell everybody of *event*, and return it with what they made of it."""
        for callback in tuple(self._callbacks.get(type(event), ())):
            if inspect.isawaitable(answer := callback(event)):
                await answer
        return event


class Plugin(Protocol):
    """Something that acts on events."""

    def register_hooks(self, registry: HookRegistry) -> None:
        """Say which events to be told of."""
        ...
