"""What stays although no message shows it any more: what left with messages that the archive still names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

__all__ = ["Lasting"]

_MOST_BYTES = 64_000_000
_MOST_SIZES = 10_000
# What is not known, of a session that goes on elsewhere.
_USUAL_SIZE = 20_000


class Lasting:
    """The latest references that one look-up leads to, up to 64 MB of content.

    Beyond that, what was named first grows old like anything else that nobody uses. *on_named* is called when more is
    to stay.
    """

    def __init__(self, on_named: Callable[[], object] = lambda: None) -> None:
        self._on_named = on_named
        self._named: OrderedDict[str, int] = OrderedDict()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0
        self._live: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self._changed = False
        self.revision = 0
        """Another number after every change."""

    def __contains__(self, reference: object) -> bool:
        return reference in self._named

    @property
    def sizes(self) -> dict[str, int]:
        """How large each is that stays, in the order in which they were named."""
        return dict(self._named)

    def note_size(self, reference: str, size: int) -> None:
        """Know how large a content is."""
        self._sizes[reference] = size
        if len(self._sizes) > _MOST_SIZES:
            self._sizes.popitem(last=False)

    def name(self, references: Iterable[str]) -> None:
        """Let these stay."""
        self.go_on_with((reference, self._sizes.get(reference, _USUAL_SIZE)) for reference in references)

    def go_on_with(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Let these stay, of which each is so large."""
        for reference, size in sizes:
            self.discard(reference)
            self._named[reference] = size
            self._bytes += size
            self._change()
        while self._bytes > _MOST_BYTES:
            self.discard(next(iter(self._named)))
        self._on_named()

    def discard(self, reference: str) -> None:
        """Let one grow old again."""
        size = self._named.pop(reference, None)
        if size is not None:
            self._bytes -= size
            self._change()

    def with_visible(self, visible: frozenset[str]) -> frozenset[str]:
        """Return all that stays. As long as nothing changed, it is the very same object."""
        known, live = self._live
        if self._changed or known is not visible:
            live = visible.union(self._named) if self._named else visible
            self._live, self._changed = (visible, live), False
        return live

    def _change(self) -> None:
        self._changed = True
        self.revision += 1
