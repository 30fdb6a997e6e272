"""What an agent looked up, or could not, for whoever wants to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["NotSearchable", "RetrievalEvent", "RetrievalFailed", "Retrieved", "SearchFailed", "Searched"]


@dataclass(frozen=True)
class Retrieved:
    """The agent looked something up by its reference. *found* says whether there was anything to see."""

    reference: str
    arguments: tuple[str, ...]
    tokens: int
    found: bool
    seconds: float = 0.0


@dataclass(frozen=True)
class RetrievalFailed:
    """The agent asked for something that the storage did not give, or could not: that it is gone is no failure."""

    reference: str
    error: BaseException


@dataclass(frozen=True)
class Searched:
    """The agent searched in everything that left the window, with that *tool*; the program did if it is empty."""

    query: str
    references: tuple[str, ...]
    seconds: float = 0.0
    tool: str = ""


@dataclass(frozen=True)
class SearchFailed:
    """The agent searched, and nothing could be searched in."""

    query: str
    error: BaseException


@dataclass(frozen=True)
class NotSearchable:
    """Contents are there that a search does not cover as a whole; *error* says why, of the first of them."""

    references: tuple[str, ...]
    error: BaseException


RetrievalEvent: TypeAlias = Retrieved | RetrievalFailed | Searched | SearchFailed | NotSearchable
