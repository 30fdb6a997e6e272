"""What is remembered of contents that left, so that whoever asks for one learns its story."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timezone
from typing import NamedTuple

from holdfast.errors import EvictedError

__all__ = ["Eviction", "Tombstones"]

_LONGEST_QUOTE = 100
_LONGEST_KEY = 1_000


class Eviction(NamedTuple):
    """One content that left: what it was, when it came and went, and why. Times are seconds since the epoch."""

    reference: str
    key: str
    content_type: str
    size: int
    stored_at: float
    evicted_at: float
    because: str
    was_live: bool = False

    @property
    def story(self) -> str:
        """Tell it in words that help a model as well as a person."""
        visible = ", although it was still visible in the conversation" if self.was_live else ""
        return (
            f"stored {_moment(self.stored_at)}, gone since {_moment(self.evicted_at)} because {self.because}{visible}; "
            f"it was {_quoted(self.key)}, {_shortened(self.content_type)}, {self.size:,} bytes"
        )


class Tombstones:
    """The latest evictions, up to *limit* of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._evictions: OrderedDict[str, Eviction] = OrderedDict()

    def add(self, eviction: Eviction) -> None:
        """Remember an eviction, with the beginning of its key, and forget the oldest if there are too many."""
        if len(eviction.key) > _LONGEST_KEY:
            eviction = eviction._replace(key=eviction.key[:_LONGEST_KEY])
        self._evictions[eviction.reference] = eviction
        if len(self._evictions) > self._limit:
            self._evictions.popitem(last=False)

    def discard(self, reference: str) -> None:
        """Forget an eviction that was taken back."""
        self._evictions.pop(reference, None)

    def error(self, reference: str) -> EvictedError | None:
        """Return what to raise for *reference*, if it is remembered."""
        found = self._evictions.get(reference)
        if found is None:
            return None
        return EvictedError(
            reference,
            found.story,
            found.key,
            found.content_type,
            found.size,
            found.stored_at,
            found.evicted_at,
            found.because,
        )


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} seconds after 1970"


def _quoted(text: str) -> str:
    return _shortened(repr(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
