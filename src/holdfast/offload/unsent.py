"""The results at the end of a conversation that no model has seen yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.dialects import Dialect
from holdfast.messages import Message, ToolResult
from holdfast.tokens import TokenEstimator

__all__ = ["UnsentResult", "replaced", "unsent_results"]


@dataclass(frozen=True)
class UnsentResult:
    """A tool's result, where it stands in the conversation, and what it takes."""

    index: int
    tool_name: str
    result: ToolResult
    tokens: int


def unsent_results(wires: Sequence[Any], dialect: Dialect, estimator: TokenEstimator) -> list[UnsentResult]:
    """Return the tool results after the last message of the assistant."""
    last, messages = _after_assistant(wires, dialect)
    names = {} if last < 0 else {use.id: use.name for use in dialect.read(wires[last]).tool_uses}
    return [
        UnsentResult(last + 1 + at, names.get(result.tool_use_id, ""), result, estimator.block(result))
        for at, message in enumerate(messages)
        for result in message.tool_results
    ]


def replaced(wire: Any, result: ToolResult, dialect: Dialect) -> list[Any]:
    """Return a message with *result* in the place of the one to the same call, in the provider's format."""
    message = dialect.read(wire)
    blocks = (
        result if isinstance(block, ToolResult) and block.tool_use_id == result.tool_use_id else block
        for block in message.blocks
    )
    return dialect.write(message.with_blocks(tuple(blocks)))


def _after_assistant(wires: Sequence[Any], dialect: Dialect) -> tuple[int, list[Message]]:
    """Return where the assistant spoke last, -1 if never, and the messages since."""
    since: list[Message] = []
    for index in range(len(wires) - 1, -1, -1):
        message = dialect.read(wires[index])
        if message.role == "assistant":
            return index, since[::-1]
        since.append(message)
    return -1, []
