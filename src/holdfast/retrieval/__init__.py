"""Reading back what left the window: by reference within a budget, or by searching in all of it."""

from __future__ import annotations

from holdfast.retrieval.events import NotSearchable, RetrievalEvent, RetrievalFailed, Retrieved, Searched, SearchFailed
from holdfast.retrieval.retrieving import RETRIEVE
from holdfast.retrieval.tools import Retrieval

__all__ = [
    "RETRIEVE",
    "NotSearchable",
    "Retrieval",
    "RetrievalEvent",
    "RetrievalFailed",
    "Retrieved",
    "SearchFailed",
    "Searched",
]
