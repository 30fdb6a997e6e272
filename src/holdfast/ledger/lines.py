"""Lines and tables of plain characters, from texts that anybody may have written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from unicodedata import east_asian_width

__all__ = ["WIDTH", "cells_of", "fitted", "one_line", "table"]

WIDTH = 100
_GAP = "  "
_WIDE = frozenset("WF")


def one_line(text: str, most: int = 300) -> str:
    """Return a text as one line of at most so many characters, without anything that a terminal would obey."""
    # Much of a beginning may be blanks.
    head = text[: most * 4]
    plain = head if head.isprintable() else "".join(sign if sign.isprintable() else " " for sign in head)
    shown = " ".join(plain.split())
    return shown if len(shown) <= most and len(head) == len(text) else f"{shown[: most - 1]}…"


def cells_of(text: str) -> int:
    """Return how many columns a line takes at most: some signs take two."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(sign) in _WIDE else 1 for sign in text)


def fitted(text: str, width: int) -> str:
    """Return as much of a line as fits so many columns, with "…" where some does not."""
    if cells_of(text) <= width:
        return text
    kept = bisect_right(list(accumulate(map(cells_of, text[:width]))), width - 1)
    return f"{text[:kept]}…"


def table(rows: Iterable[Sequence[str]], right: Iterable[int], *, width: int = WIDTH) -> list[str]:
    """Return rows as lines; columns named by *right* end together, and the last is cut where a line is too long."""
    given, ends = [tuple(row) for row in rows], frozenset(right)
    if not given:
        return []
    widths = [max(map(cells_of, column)) for column in zip(*given, strict=True)]
    widths[-1] = min(widths[-1], max(width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1), 1))
    return [fitted(_line(row, widths, ends), width) for row in given]


def _line(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    cells = (_padded(cell, wide, at in right) for at, (cell, wide) in enumerate(zip(row, widths, strict=True)))
    return _GAP.join(cells).rstrip()


def _padded(text: str, width: int, right: bool) -> str:
    shown = fitted(text, width)
    blanks = " " * (width - cells_of(shown))
    return blanks + shown if right else shown + blanks
