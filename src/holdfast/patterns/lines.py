"""Where lines begin: an index that is built once, and finds any line by reading one or two blocks.

Lines are numbered from 1 and end with a line feed; a last line without one counts too. A carriage return before it is
part of the line's end.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from holdfast.errors import InvalidValueError

__all__ = ["BLOCK_BYTES", "LineEdge", "LineIndex", "LineWindow"]

BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True)
class LineEdge:
    """The block, from *start* to *end*, in which a line begins: right after its line feed number *line_feeds*.

    Without a line feed to look for, the line begins at *start*, and nothing needs to be read.
    """

    start: int
    end: int
    line_feeds: int

    def locate(self, block: bytes) -> int:
        """Return the offset in the whole content at which the line begins. *block* is what stands in the range."""
        return self.start + _after_line_feed(block, self.line_feeds)


@dataclass(frozen=True)
class LineWindow:
    """A range of whole blocks. Its first byte belongs to line *first_line*, perhaps to the midst of it."""

    start: int
    end: int
    first_line: int

    def bounds(self, window: bytes, first: int, last: int) -> tuple[int, int]:
        """Return the exact range of lines in the content, with their ends. *window* is the bytes of this window."""
        start = _after_line_feed(window, first - self.first_line)
        end = _after_line_feed(window, last - first + 1, start)
        return self.start + start, self.start + end


@dataclass(frozen=True)
class LineIndex:
    """How many line feeds stand before each block: a few kilobytes for 50 MB."""

    size: int
    lines: int
    line_feeds: tuple[int, ...]

    @classmethod
    def of(cls, content: bytes) -> LineIndex:
        """Count the lines of *content*. It takes some milliseconds for each 10 MB, and belongs off the event loop."""
        starts = range(0, len(content), BLOCK_BYTES)
        counts = (content.count(b"\n", start, start + BLOCK_BYTES) for start in starts)
        before = tuple(accumulate(counts, initial=0))
        unended = bool(content) and not content.endswith(b"\n")
        return cls(len(content), before[-1] + unended, before)

    def edge_of(self, line: int) -> LineEdge:
        """Return where to look for the beginning of *line*; the line after the last begins where the content ends."""
        self._require(1 <= line <= self.lines + 1, line)
        line_feed = line - 1
        if line_feed == 0 or line_feed > self.line_feeds[-1]:
            return LineEdge(self.size, self.size, 0) if line_feed else LineEdge(0, 0, 0)
        block = bisect_left(self.line_feeds, line_feed) - 1
        start = block * BLOCK_BYTES
        return LineEdge(start, min(start + BLOCK_BYTES, self.size), line_feed - self.line_feeds[block])

    def window_for(self, first: int, last: int) -> LineWindow:
        """Return the blocks that hold the lines *first* to *last*, both included."""
        self._require(1 <= first <= self.lines, first)
        self._require(first <= last <= self.lines, last)
        begin, end = self.edge_of(first), self.edge_of(last + 1)
        return LineWindow(begin.start, end.end, first - begin.line_feeds)

    def cut(self, window_bytes: bytes, window: LineWindow, first: int, last: int) -> list[bytes]:
        """Return the lines *first* to *last* without their ends, from the bytes of a window that holds them."""
        start, end = window.bounds(window_bytes, first, last)
        lines = window_bytes[start - window.start : end - window.start].removesuffix(b"\n").split(b"\n")
        return [line.removesuffix(b"\r") for line in lines]

    def start_of(self, line: int, content: bytes) -> int:
        """Return the offset at which *line* begins in the whole *content*, looking at one block of it."""
        edge = self.edge_of(line)
        return _after_line_feed(content, edge.line_feeds, edge.start, edge.end)

    def bounds(self, first: int, last: int, content: bytes) -> tuple[int, int]:
        """Return the range of the lines *first* to *last* in the whole *content*, with their ends."""
        return self.start_of(first, content), self.start_of(last + 1, content)

    def block_of(self, offset: int) -> tuple[int, int]:
        """Return the range of the block in which the byte at *offset* stands."""
        start = offset - offset % BLOCK_BYTES
        return start, min(start + BLOCK_BYTES, self.size)

    def line_of(self, offset: int, content: bytes, *, content_start: int = 0) -> int:
        """Return the number of the line to which the byte at *offset* belongs.

        *content* is the whole, or any part that begins at *content_start* and holds the byte's block up to the byte.
        """
        if not 0 <= offset < self.size:
            raise InvalidValueError(f"there is no byte {offset}: they go from 0 to {self.size - 1}")
        start, _ = self.block_of(offset)
        in_block = content.count(b"\n", start - content_start, offset - content_start)
        return self.line_feeds[offset // BLOCK_BYTES] + in_block + 1

    def _require(self, there_is: bool, line: int) -> None:
        if not there_is:
            raise InvalidValueError(f"there is no line {line} here: there are {self.lines} lines")


def _after_line_feed(content: bytes, number: int, start: int = 0, end: int | None = None) -> int:
    """Return the offset after line feed *number* from *start* on, or the end if there are fewer. Halves, and counts."""
    low, high = start, len(content) if end is None else end
    if not number:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        counted = content.count(b"\n", low, middle)
        if counted >= number:
            high = middle
        else:
            number, low = number - counted, middle
    return high
