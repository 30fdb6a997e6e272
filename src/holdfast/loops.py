"""A conversation in a loop of one's own: model calls that fit, tools whose results leave if they are large."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.agent_tools import AgentTool, ToolAnswer
from holdfast.dialects import Dialect, read_result
from holdfast.hooks import (
    AfterInvocation,
    AfterModelCall,
    AfterToolCall,
    BeforeModelCall,
    Conversation,
    HookRegistry,
    Plugin,
)
from holdfast.messages import Block, Message, Text, ToolResult

__all__ = ["ManagedConversation"]

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")
_NOTHING = Text("[The tool answered nothing.]")


class ManagedConversation:
    """What a loop calls instead of its model and its tools. It appends its messages itself, to the list it gave."""

    def __init__(
        self, conversation: Conversation, plugin: Plugin, dialect: Dialect, own_tools: Sequence[AgentTool]
    ) -> None:
        self.conversation = conversation
        self._dialect = dialect
        self._own_tools = {tool.name: tool for tool in own_tools}
        self._hooks = HookRegistry()
        plugin.register_hooks(self._hooks)

    @property
    def messages(self) -> list[Any]:
        """The list that the loop gave."""
        return self.conversation.messages

    @property
    def tool_specs(self) -> Sequence[Any]:
        """The tools to send to the provider: the loop's, and those that look at what left."""
        return self.conversation.tool_specs

    async def call_model(
        self, send: Callable[[list[Any]], Awaitable[_Answer]], *, usage: Callable[[_Answer], Any] | None = None
    ) -> _Answer:
        """Return what *send* answers to messages that fit. After an overflow it is called again, with less.

        *usage* takes the reported usage out of an answer, for which ``answer.usage`` or ``answer["usage"]`` is read.
        """
        while True:
            await self._hooks.invoke(BeforeModelCall(self.conversation))
            try:
                answer = await send(self._dialect.sendable(self.messages))
            except Exception as error:
                ended = await self._hooks.invoke(AfterModelCall(self.conversation, error=error))
                if ended.retry:
                    continue
                if ended.error is error or ended.error is None:
                    raise
                raise ended.error from error
            reported = (_usage_of if usage is None else usage)(answer)
            await self._hooks.invoke(AfterModelCall(self.conversation, usage=reported))
            return answer

    async def call_tool(
        self, name: str, tool_use_id: str, arguments: Mapping[str, Any], run: Callable[[str, Mapping[str, Any]], Any]
    ) -> Any:
        """Return the result of a tool as the provider wants it; what the tool raises is an error that the model reads.

        It is a message of its own for OpenAI, and a block for the next message of the user for Anthropic and Converse.
        *run* gets the name and the arguments of every tool but those of `agent_tools`, and may be async.
        """
        if (own := self._own_tools.get(name)) is not None:
            return self._written(_answered(tool_use_id, await own.run(self.conversation, arguments), self._dialect))
        result = await self._run(run, name, arguments)
        given = self._written(replace(result, tool_use_id=tool_use_id))
        event = AfterToolCall(self.conversation, name, tool_use_id, given)
        return (await self._hooks.invoke(event)).result

    async def end(self) -> None:
        """Say that the agent is done with what the user asked."""
        await self._hooks.invoke(AfterInvocation(self.conversation))

    async def _run(self, run: Callable[[str, Mapping[str, Any]], Any], name: str, arguments: Any) -> ToolResult:
        try:
            result = run(name, arguments)
            result = await result if inspect.isawaitable(result) else result
        except Exception as error:
            # As frameworks do: the model can try something else.
            logger.warning("the tool %s failed: %r", name, error)
            return ToolResult("", (Text(f"Error: {type(error).__name__}: {error}"),), is_error=True)
        given = read_result(result, self._dialect).result
        # Providers refuse a text that is blank.
        return replace(given, content=tuple(map(_spoken, given.content)) or (_NOTHING,))

    def _written(self, result: ToolResult) -> Any:
        wire = self._dialect.write(Message("user", (result,)))[0]
        return _with_plain_text(wire) if self._dialect.name == "openai" else wire["content"][0]


def _spoken(block: Block) -> Block:
    return _NOTHING if isinstance(block, Text) and not block.text.strip() else block


def _with_plain_text(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose content is text rather than a list of texts: many servers take no other."""
    parts = message["content"]
    if isinstance(parts, str) or not all(part.get("type") == "text" for part in parts):
        return message
    return {**message, "content": "\n".join(part["text"] for part in parts)}


def _answered(tool_use_id: str, answer: ToolAnswer, dialect: Dialect) -> ToolResult:
    blocks: tuple[Block, ...] = answer.blocks
    if dialect.name == "openai" and answer.media:
        # A tool's message takes text only.
        blocks = (Text(f"{answer.text}\n[Images and documents cannot be shown in a tool's answer here.]"),)
    return ToolResult(tool_use_id, blocks, is_error=answer.is_error)


def _usage_of(answer: Any) -> Any:
    return answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)
