"""What requests are made of: each message read and counted once, whatever policies send it."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.dialects import Dialect
from holdfast.messages import Message, ToolResult
from holdfast.replay.texts import text_of
from holdfast.tokens import TokenEstimator

__all__ = ["PARTS", "Part", "Parts", "Split", "by_part"]

PARTS = ("system", "tools", "user", "assistant", "tool results", "summaries")
"""What tokens are spent on, in the order in which pictures stack it."""

Split = tuple[int, ...]
"""Tokens by what they are spent on, in the order of `PARTS`."""


class Part(NamedTuple):
    """A message of a request: what it says, and its tokens."""

    role: str
    text: str
    tokens: Split


class Parts:
    """Reads and counts the messages of one conversation. A message is known again by the object that it is."""

    def __init__(self, dialect: Dialect, estimator: TokenEstimator) -> None:
        self.dialect = dialect
        self.estimator = estimator
        # With the object, so that no other one gets its id.
        self._known: dict[int, tuple[Any, Part]] = {}

    def of(self, wire: Any) -> Part:
        """Return a provider's message as a part of a request."""
        known = self._known.get(id(wire))
        if known is None:
            known = self._known[id(wire)] = (wire, self._read(self.dialect.read(wire)))
        return known[1]

    def fixed(self, system_prompt: Any, tool_specs: Any) -> Split:
        """Return what comes before all messages."""
        return by_part(system=self.estimator.system(system_prompt), tools=self.estimator.tools(tool_specs))

    def _read(self, message: Message) -> Part:
        return Part(message.role, text_of(message), self._split(message))

    def _split(self, message: Message) -> Split:
        tokens = self.estimator.message(message)
        if message.made_as is not None:
            return by_part(summaries=tokens)
        is_result = [isinstance(block, ToolResult) for block in message.blocks]
        if is_result and all(is_result):
            return by_part(**{"tool results": tokens})
        results = sum(self.estimator.block(block) for block in message.blocks if isinstance(block, ToolResult))
        return by_part(**{"tool results": results, message.role: tokens - results})


def by_part(**tokens: int) -> Split:
    """Return tokens in the order of `PARTS`."""
    return tuple(tokens.get(part, 0) for part in PARTS)
