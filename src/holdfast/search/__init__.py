"""Search over everything that left the window."""

from holdfast.search.answers import ExcerptLine, Hit, SearchAnswer
from holdfast.search.index import SearchIndex

__all__ = ["ExcerptLine", "Hit", "SearchAnswer", "SearchIndex"]
