"""What an agent looked up, for whoever wants to know."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Retrieved", "Searched"]


@dataclass(frozen=True)
class Retrieved:
    """The agent looked something up by its reference. *found* says whether there was anything to see."""

    reference: str
    arguments: tuple[str, ...]
    tokens: int
    found: bool


@dataclass(frozen=True)
class Searched:
    """The agent searched in everything that was offloaded."""

    query: str
    references: tuple[str, ...]
