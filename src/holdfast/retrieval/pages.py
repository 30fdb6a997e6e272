"""Parts of a content that fit into an answer, each with what part it is and how to go on."""

from __future__ import annotations

import codecs
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.retrieval.contents import WORKERS, StoredContent, StoredContents, decoded
from holdfast.retrieval.requests import Span
from holdfast.retrieval.room import Room

__all__ = [
    "NOTES",
    "Window",
    "fitted",
    "fitting",
    "go_on_with",
    "lines_page",
    "selected",
    "text_window",
    "whole_or_page",
    "window_page",
]

NOTES = 120
"""Tokens for what is said around a page: which part it is, and how to go on."""

# No token is longer than this many bytes for long; more would be read in vain.
_BYTES_PER_TOKEN = 16
_PIECE = 1 << 18


def go_on_with(**arguments: Any) -> str:
    """Return how to ask for what comes next, as the arguments of the same call."""
    return f"to go on, call again with {_written(**arguments)}"


def _written(**arguments: Any) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())


async def fitted(write: Callable[[Room], Awaitable[str]], tokens: int, count_text: Callable[[str], int]) -> str:
    """Return an answer of at most so many tokens. *write* writes it into the room that it is given, line by line.

    Lines together may take more than each for itself; then it is written again, into less.
    """
    room = tokens - NOTES
    while True:
        answer = await write(Room(room, count_text))
        if (size := count_text(answer)) <= tokens:
            return answer
        if room <= 1:
            # Whatever it was that did not heed its room: the window comes first.
            return fitting(answer, Room(tokens - NOTES, count_text)) + "… [this answer is cut]"
        room = max(room * tokens * 19 // (size * 20), 1)


async def whole_or_page(contents: StoredContents, opened: StoredContent, room: Room) -> str:
    """Return a content as it is if it fits, else its first lines."""
    if opened.index.size <= room.left * _BYTES_PER_TOKEN:
        text = decoded(await contents.whole(opened))
        if room.take(text):
            return text
    return await lines_page(contents, opened, Span(), room)


async def lines_page(contents: StoredContents, opened: StoredContent, span: Span, room: Room) -> str:
    """Return as many lines of *span* as fit, with their numbers."""
    index = opened.index
    first, last = span.within(index.lines, "line")
    lines = await contents.lines(opened, first, last, room.left * _BYTES_PER_TOKEN)
    shown = room.take_all(f"{number}: {line}" for number, line in enumerate(lines, first))
    if not shown:
        return await window_page(contents, opened, Span(first, first), Span(), room, last_line=last)
    following = first + len(shown)
    part = f"lines {first:,}–{following - 1:,} of {index.lines:,}"
    if following > last:
        return "\n".join([*shown, f"[{part}]"])
    return "\n".join([*shown, f"[{part}; {go_on_with(line_range={'start': following, 'end': last})}]"])


async def window_page(
    contents: StoredContents,
    opened: StoredContent,
    lines: Span | None,
    characters: Span,
    room: Room,
    *,
    last_line: int | None = None,
) -> str:
    """Return as many of these *characters* of some lines, or of the whole content, as fit.

    *last_line* is where somebody wanted to stop who had asked for lines, of which the first alone is too long.
    """
    content, where, again = await selected(contents, opened, lines)
    window = await WORKERS.run(text_window, content, characters)
    shown = fitting(window.text, room)
    following = window.first + len(shown)
    part = f"characters {window.first:,}–{following - 1:,} of {window.total:,} in {where}"
    if following <= window.last:
        part += f"; {go_on_with(**again, characters={'start': following, 'end': window.last})}"
    line = again.get("line_range", {}).get("end")
    if line is not None and line < (last := last_line or opened.index.lines):
        part += f"; for the lines after it, with {_written(line_range={'start': line + 1, 'end': last})}"
    return f"{shown}\n[{part}]"


@dataclass(frozen=True)
class Window:
    """Some characters of a text, from *first* to *last* of *total*, counted from 1, and the one *before* them."""

    before: str
    text: str = field(repr=False)
    first: int
    last: int
    total: int


def text_window(content: bytes, characters: Span) -> Window:
    """Return a window of the text in *content*, which is decoded piece by piece."""
    total = sum(map(len, _pieces(content)))
    first, last = characters.within(total, "character")
    start = max(first - 2, 0)
    found: list[str] = []
    position = 0
    for piece in _pieces(content):
        found.append(piece[max(start - position, 0) : max(last - position, 0)])
        position += len(piece)
        if position >= last:
            break
    text = "".join(found)
    return Window(text[: first - 1 - start], text[first - 1 - start :], first, last, total)


async def selected(
    contents: StoredContents, opened: StoredContent, lines: Span | None
) -> tuple[bytes, str, dict[str, Any]]:
    """Return what a window is looked for in, what to call it, and the arguments that select it again."""
    if lines is None:
        return await contents.whole(opened), "the whole content", {}
    first, last = lines.within(opened.index.lines, "line")
    where = f"line {first:,}" if first == last else f"lines {first:,}–{last:,}"
    return (
        await contents.bytes_of(opened, first, last),
        f"{where} of {opened.index.lines:,}",
        {"line_range": {"start": first, "end": last}},
    )


def _pieces(content: bytes) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for start in range(0, len(content), _PIECE):
        yield decoder.decode(content[start : start + _PIECE], final=start + _PIECE >= len(content))


def fitting(text: str, room: Room) -> str:
    """Return as much of the beginning of *text* as fits, at least one character."""
    shown = text[: max(room.left * _BYTES_PER_TOKEN, 1)]
    while len(shown) > 1 and (cost := room.cost(shown)) > room.left:
        shown = shown[: max(len(shown) * max(room.left, 1) * 19 // (cost * 20), 1)]
    return shown
