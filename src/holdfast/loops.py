"""A conversation in a loop of one's own: model calls that fit, tools whose results leave if they are large."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from holdfast.agent_tools import AgentTool
from holdfast.dialects import Dialect, legal_result
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import (
    AfterInvocation,
    AfterModelCall,
    AfterToolCall,
    BeforeModelCall,
    Conversation,
    HookRegistry,
    Plugin,
)
from holdfast.messages import Message, Text, ToolResult
from holdfast.reports.kinds import name_of_tool

__all__ = ["ManagedConversation", "specs_with"]

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")
_NOT_SHOWN = "[Images and documents cannot be shown in a tool's answer here.]"


class ManagedConversation:
    """What a loop calls instead of its model and its tools. It appends its messages itself, to the list it gave."""

    def __init__(
        self, conversation: Conversation, plugin: Plugin, dialect: Dialect, own_tools: Sequence[AgentTool]
    ) -> None:
        self.conversation = conversation
        self._dialect = dialect
        self._own_tools = {tool.name: tool for tool in own_tools}
        self.hooks = HookRegistry()
        """Tells the manager of what happens; for a loop that fires an event itself."""
        plugin.register_hooks(self.hooks)

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

        *usage* takes the reported usage out of an answer, for which ``answer.usage`` or ``answer["usage"]`` is read. An
        answer whose usage cannot be read is an answer all the same.
        """
        while True:
            await self.hooks.invoke(BeforeModelCall(self.conversation))
            try:
                answer = await _awaited(send(self._dialect.sendable(self.messages)))
            except Exception as error:
                ended = await self.hooks.invoke(AfterModelCall(self.conversation, error=error))
                if ended.retry:
                    continue
                if ended.error is error or ended.error is None:
                    raise
                raise ended.error from error
            reported = _reported(answer, usage or _usage_of)
            await self.hooks.invoke(AfterModelCall(self.conversation, usage=reported))
            return cast("_Answer", answer)

    async def call_tool(
        self,
        name: str,
        tool_use_id: str,
        arguments: Mapping[str, Any] | str,
        run: Callable[[str, Mapping[str, Any]], Any],
    ) -> Any:
        """Return the result of a tool as the provider wants it; what the tool raises is an error that the model reads.

        It is a message of its own for OpenAI, and a block for the next message of the user for Anthropic and Converse.
        *arguments* may be JSON text, as OpenAI sends it. *run* gets the name and the arguments of every tool but those
        of `agent_tools`, and may be async.
        """
        if not isinstance(tool_use_id, str) or not tool_use_id:
            raise InvalidTypeError(f"tool_use_id must be the id of the model's call, got {tool_use_id!r:.80}")
        result = await self._result_of(name, arguments, run)
        given = self._written(replace(result, tool_use_id=tool_use_id))
        if name in self._own_tools:
            return _sendable_result(given, self._dialect)
        event = AfterToolCall(self.conversation, name, tool_use_id, given)
        return _sendable_result((await self.hooks.invoke(event)).result, self._dialect)

    async def end(self) -> None:
        """Say that the agent is done with what the user asked."""
        await self.hooks.invoke(AfterInvocation(self.conversation))

    async def _result_of(self, name: str, arguments: Any, run: Callable[[str, Mapping[str, Any]], Any]) -> ToolResult:
        try:
            given = _read_arguments(arguments)
            if (own := self._own_tools.get(name)) is not None:
                answer = await own.run(self.conversation, given)
                return ToolResult("", answer.blocks, is_error=answer.is_error)
            return legal_result(await _awaited(run(name, given)), self._dialect)
        except Exception as error:
            # As frameworks do: the model can try something else.
            logger.warning("the tool %s failed: %s", name, type(error).__name__, exc_info=True)
            return ToolResult("", (Text(f"Error: {type(error).__name__}: {_described(error)}"),), is_error=True)

    def _written(self, result: ToolResult) -> Any:
        wire = self._dialect.write(Message("user", (result,)))[0]
        return wire if self._dialect.name == "openai" else wire["content"][0]


def specs_with(own: Sequence[AgentTool], tool_specs: Sequence[Any] | None, dialect: Dialect) -> list[Any]:
    """Return what the provider is told of the loop's tools and of the manager's *own*, all of different names."""
    if tool_specs is not None and not isinstance(tool_specs, (list, tuple)):
        raise InvalidTypeError(f"tool_specs must be a list of tools, got {tool_specs!r:.80}")
    specs, names = tool_specs or (), {tool.name for tool in own}
    if taken := next((name for name in map(name_of_tool, specs) if name in names), None):
        raise InvalidValueError(
            f"there are two tools called {taken}: the loop's and the manager's; rename the loop's, or use "
            "include_pin_tool=False or offloader={'include_retrieval_tool': False}"
        )
    return [*specs, *(tool.spec(dialect.name) for tool in own)]


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _read_arguments(arguments: Any) -> Any:
    """Return what a model sent as arguments, which need not be what was asked for."""
    given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"the arguments must be a JSON object, got {type(given).__name__}")
    return given


def _sendable_result(given: Any, dialect: Dialect) -> Any:
    """Return a result as its provider takes it: OpenAI's is a message with text, and nothing but text."""
    if dialect.name != "openai" or not isinstance(given["content"], list):
        return given
    texts = [part["text"] if part.get("type") == "text" else _NOT_SHOWN for part in given["content"]]
    return {**given, "content": "\n".join(texts)}


def _reported(answer: Any, usage: Callable[[Any], Any]) -> Any:
    try:
        return usage(answer)
    except Exception:
        # The answer was paid for; without its usage, tokens are estimated as before.
        logger.warning("the usage of an answer could not be read", exc_info=True)
        return None


def _usage_of(answer: Any) -> Any:
    return answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)


def _described(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "(it cannot be described)"
