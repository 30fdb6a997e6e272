"""The results at the end of a conversation that no model has seen yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.dialects import Dialect
from holdfast.messages import Message, ToolResult
from holdfast.tokens import TokenEstimator

__all__ = ["UnsentResult", "replaced", "unsent_results"]


@dataclass(frozen=True)
class UnsentResult:
    """A tool's result, in which message and as which block of it it stands, and what it takes."""

    message: int
    block: int
    tool_name: str
    result: ToolResult
    tokens: int


def unsent_results(
    wires: Sequence[Any], dialect: Dialect, estimator: TokenEstimator, seen: Mapping[str, tuple[str, int | None]]
) -> list[UnsentResult]:
    """Return the results after the last message of the assistant.

    *seen* has the names of tools, and what their answers take where that is known, by the id of a call.
    """
    last, messages = _after_assistant(wires, dialect)
    uses = dialect.read(wires[last]).tool_uses if messages else ()
    known = {**{use.id: (use.name, None) for use in uses}, **seen}

    def unsent(message: int, number: int, result: ToolResult) -> UnsentResult:
        name, tokens = known.get(result.tool_use_id, ("", None))
        return UnsentResult(message, number, name, result, estimator.block(result) if tokens is None else tokens)

    return [
        unsent(last + 1 + at, number, block)
        for at, message in enumerate(messages)
        for number, block in enumerate(message.blocks)
        if isinstance(block, ToolResult)
    ]


def replaced(wire: Any, block: int, result: ToolResult, dialect: Dialect) -> list[Any]:
    """Return a message with *result* in the place of one of its blocks, in the provider's format."""
    message = dialect.read(wire)
    blocks = (*message.blocks[:block], result, *message.blocks[block + 1 :])
    return dialect.write(message.with_blocks(blocks))


def _after_assistant(wires: Sequence[Any], dialect: Dialect) -> tuple[int, list[Message]]:
    """Return where the assistant spoke last, and the messages since; none if it never did."""
    since: list[Message] = []
    for index in range(len(wires) - 1, -1, -1):
        message = dialect.read(wires[index])
        if message.role == "assistant":
            return index, since[::-1]
        since.append(message)
    return -1, []
