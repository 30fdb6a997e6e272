"""Search over everything that left the window."""

from holdfast.search.additions import Addition
from holdfast.search.answers import ExcerptLine, Hit, SearchAnswer
from holdfast.search.embedding import Embedder
from holdfast.search.index import SearchIndex

__all__ = ["Addition", "Embedder", "ExcerptLine", "Hit", "SearchAnswer", "SearchIndex"]
