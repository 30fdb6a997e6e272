"""Reading back what left the window: by reference within a budget, or by searching in all of it."""

from __future__ import annotations

from holdfast.retrieval.events import Retrieved, Searched
from holdfast.retrieval.tools import Retrieval

__all__ = ["Retrieval", "Retrieved", "Searched"]
