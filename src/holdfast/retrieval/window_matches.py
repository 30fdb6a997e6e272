"""Every match inside a window of characters, for what stands in one huge line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from holdfast.patterns import Pattern
from holdfast.retrieval.contents import decoded
from holdfast.retrieval.pages import Window, fitting, go_on_with
from holdfast.retrieval.quotes import excerpt_of
from holdfast.retrieval.room import Room

__all__ = ["matches_in_window"]

_MOST = 50
_WIDTH = 600


def matches_in_window(
    pattern: Pattern, window: Window, where: str, again: dict[str, Any], room: Room, deadline: float
) -> str:
    """Return each match inside a window of characters, with what stands around it."""
    # With the character before it, the window's start is taken for that of a line only if it is one.
    before = _encoded(window.before)
    content = before + _encoded(window.text)
    found = pattern.matches_in(content, start=len(before), limit=_MOST, deadline=deadline)
    if found.bytes_at_once:
        window_at_once = {"start": window.first, "end": window.first + found.bytes_at_once - 1}
        return f"[This is too much for this pattern at once; {go_on_with(**again, characters=window_at_once)}]"
    starts = _characters_at(content, [*(start for start, _ in found.spans), found.go_on_at or len(content)])
    offset = window.first - len(window.before)
    quotes = [
        f"character {offset + at:,}> {excerpt_of(content, 0, len(content), start, end, _WIDTH).text}"
        for (start, end), at in zip(found.spans, starts, strict=False)
    ]
    shown = room.take_all(quotes) or [fitting(quote, room) for quote in quotes[:1]]
    part = f"{len(shown):,} matches in characters {window.first:,}–{window.last:,} of {window.total:,} in {where}"
    if len(shown) == len(found.spans) and found.go_on_at is None:
        return "\n".join([*shown, f"[{part}]"])
    following = {"start": offset + starts[len(shown)], "end": window.last}
    return "\n".join([*shown, f"[{part}; {go_on_with(**again, characters=following)}]"])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _characters_at(content: bytes, offsets: Sequence[int]) -> list[int]:
    """Return how many characters stand before each of some rising offsets."""
    sizes = (len(decoded(content[start:end])) for start, end in zip([0, *offsets], offsets, strict=False))
    return list(accumulate(sizes))
