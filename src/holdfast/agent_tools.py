"""Tools that an agent is given: plain values that any framework's adapter can register."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.hooks import Conversation
from holdfast.messages import Block, Document, Image, Text

__all__ = ["OWN_TOOLS", "AgentTool", "ToolAnswer"]

OWN_TOOLS = frozenset({"pin_message", "retrieve_offloaded_content", "search_context", "search_offloaded_content"})
"""The names of those that agents are given here: what they are called with is about references and pages, and what they
answer was said before."""

_LONGEST_ERROR = 1_000


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool says to the model, with the images and documents that it shows, where the model can see such."""

    text: str
    is_error: bool = False
    media: tuple[Image | Document, ...] = field(default=(), repr=False)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All of it, as the content of a tool result."""
        return (Text(self.text), *self.media)


def _shortened(message: str) -> str:
    """Return an error's message without what would only fill the window: it may quote what a model wrote."""
    return message if len(message) <= _LONGEST_ERROR else f"{message[:_LONGEST_ERROR]}…"


@dataclass(frozen=True)
class AgentTool:
    """A tool by name, with the JSON schema of its input, and what it does with a conversation."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(repr=False)
    handler: Callable[[Conversation, Mapping[str, Any]], Awaitable[str | ToolAnswer]] = field(repr=False)

    def spec(self, dialect: str) -> dict[str, Any]:
        """Return what a provider is told of the tool, in the form of its *dialect*."""
        named = {"name": self.name, "description": self.description}
        match dialect:
            case "openai":
                return {"type": "function", "function": {**named, "parameters": dict(self.input_schema)}}
            case "anthropic":
                return {**named, "input_schema": dict(self.input_schema)}
            case "converse":
                return {"toolSpec": {**named, "inputSchema": {"json": dict(self.input_schema)}}}
        raise InvalidValueError(f"dialect must be 'openai', 'anthropic' or 'converse', got {dialect!r:.80}")

    async def run(self, conversation: Conversation, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Do it. What the model got wrong is told to the model, not raised."""
        if not isinstance(conversation, Conversation):
            raise InvalidTypeError(f"conversation must be a Conversation(messages), got {type(conversation).__name__}")
        try:
            if not isinstance(arguments, Mapping):
                raise InvalidTypeError(f"the arguments must be an object, got {type(arguments).__name__}")
            answer = await self.handler(conversation, arguments)
        except HoldfastError as error:
            return ToolAnswer(_shortened(str(error)), is_error=True)
        return answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)
