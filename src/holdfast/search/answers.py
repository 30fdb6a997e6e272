"""What a search answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ExcerptLine", "Hit", "SearchAnswer"]


@dataclass(frozen=True)
class ExcerptLine:
    """A line of the content, or the part of a longer one that begins at *column* (from 0)."""

    number: int
    column: int
    text: str
    part: bool


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A place in a content that matches. Lines count from 1 and end with a line feed; characters count from 0.

    `first_column` is 0 unless the place begins inside of a line that is too long for one chunk.
    `excerpt` shows the best lines of the place, in their order; lines between them may be left out.
    """

    reference: str
    title: str
    labels: Mapping[str, str]
    first_line: int
    last_line: int
    first_column: int
    start_character: int
    end_character: int
    excerpt: tuple[ExcerptLine, ...]
    score: float


@dataclass(frozen=True, kw_only=True)
class SearchAnswer:
    """The best hits first, and what the reader must know to judge them.

    `total_matching` counts the chunks that hold any of the query's rarer terms: common ones are left out where they
    would decide nothing.
    `missing` are terms that nothing holds, not even as a beginning. `ignored` counts terms of a very long query that
    were not looked for. `uncovered` counts contents that are not in the index, because it is bounded, `gone` further
    hits in contents that were evicted. `unsure` is what a storage says that cannot tell whether hits can be opened.
    `names` are identifiers and paths in these and in the next best places that the query does not name, the likeliest
    first.
    """

    hits: tuple[Hit, ...]
    total_matching: int
    missing: tuple[str, ...] = ()
    ignored: int = 0
    uncovered: int = 0
    gone: int = 0
    unsure: str = ""
    names: tuple[str, ...] = ()
