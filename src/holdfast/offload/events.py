"""What an offloader did, for whoever wants to know: logs, ledgers, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.retrieval.events import RetrievalEvent

__all__ = ["OffloadEvent", "OffloadFailed", "Offloaded"]


@dataclass(frozen=True)
class Offloaded:
    """A tool's result left the window. Tokens are estimates of the result, before and after."""

    tool_name: str
    tool_use_id: str
    references: tuple[str, ...]
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class OffloadFailed:
    """A result could not be stored, so it stays in the window whole."""

    tool_name: str
    tool_use_id: str
    tokens: int
    error: BaseException


OffloadEvent: TypeAlias = Offloaded | OffloadFailed | RetrievalEvent
