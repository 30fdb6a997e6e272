"""The moments of an agent's life that plugins act on, and who is told of them.

An adapter turns a framework's hooks into these events. A hand-written loop fires them itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

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
    """The model answered, with the *usage* that it reports, or failed with *error*. A plugin may ask for a *retry*."""

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
