"""holdfast's tools as tools of a Strands agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

from strands.types.events import ToolResultEvent
from strands.types.tools import AgentTool as StrandsTool
from strands.types.tools import ToolSpec, ToolUse

from holdfast.agent_tools import AgentTool
from holdfast.dialects import Converse
from holdfast.hooks import Conversation
from holdfast.messages import Message, ToolResult

__all__ = ["AdaptedTool"]


class AdaptedTool(StrandsTool):
    """A tool that works on the conversation of the agent that it was given to."""

    def __init__(self, tool: AgentTool, conversation: Callable[[], Conversation]) -> None:
        super().__init__()
        self._tool = tool
        self._conversation = conversation

    @property
    def tool_name(self) -> str:
        """Its name."""
        return self._tool.name

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model is told of it."""
        spec: ToolSpec = self._tool.spec("converse")["toolSpec"]
        return spec

    @property
    def tool_type(self) -> str:
        """What kind of tool it is."""
        return "holdfast"

    async def stream(
        self, tool_use: ToolUse, invocation_state: dict[str, Any], **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """Run it, and yield the result."""
        answer = await self._tool.run(self._conversation(), tool_use["input"])
        result = ToolResult(tool_use["toolUseId"], answer.blocks, is_error=answer.is_error)
        [message] = Converse().write(Message("user", (result,)))
        written = message["content"][0]["toolResult"]
        # Whatever is not an error is said to be a success: Strands looks at it.
        written.setdefault("status", "success")
        yield ToolResultEvent(written)
