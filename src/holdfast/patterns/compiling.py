"""Which lines match a pattern that nobody vouches for: in linear time, within a deadline, counted to the end.

A line matches as in grep: ``^`` and ``$`` are its ends, and no match goes beyond it. Of letters and digits, ``\\w``,
``\\d`` and ``\\b`` know those of ASCII only; ``\\pL`` is any letter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from holdfast.errors import InvalidValueError, MissingExtraError
from holdfast.extras import import_extra
from holdfast.patterns.every_match import Spans, every_match
from holdfast.patterns.line_search import Finder, LineMatch, LineSearch, Matches
from holdfast.patterns.lines import LineIndex
from holdfast.patterns.plain_engine import PlainFinder
from holdfast.patterns.re2_engine import Re2Finder
from holdfast.patterns.simple_engine import SimpleFinder
from holdfast.patterns.syntax import require_one_line, require_pattern

__all__ = ["Engine", "LineMatch", "Matches", "Pattern", "Spans", "compile_pattern"]

Engine = Literal["re2", "plain text", "simple"]


@dataclass(frozen=True)
class Pattern:
    """A pattern that is sound. *engine* says what runs it."""

    text: str
    engine: Engine
    finder: Finder = field(repr=False)

    def matching_lines(
        self,
        content: bytes,
        index: LineIndex,
        *,
        first_line: int = 1,
        last_line: int | None = None,
        limit: int,
        deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Matches:
        """Return the first *limit* matching lines of *content*, and count them all. This belongs in a worker.

        *deadline* is a reading of *clock*. It is seen between parts, and what is not counted then is said.
        """
        _require(len(content) == index.size, f"the index is of {index.size} bytes, and the content has {len(content)}")
        _require(first_line >= 1, f"first_line must be 1 or more, got {first_line}")
        _require(limit >= 0, f"limit must be 0 or more, got {limit}")
        last_line = index.lines if last_line is None else min(last_line, index.lines)
        return LineSearch(self.finder, content, index, limit, deadline, clock).between(first_line, last_line)

    def matches_in(
        self,
        text: bytes,
        *,
        start: int = 0,
        limit: int,
        deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Spans:
        """Return the first *limit* matches in *text* from *start* on, also several in one line."""
        _require(0 <= start <= len(text), f"start must be from 0 to {len(text)}, got {start}")
        _require(limit >= 1, f"limit must be 1 or more, got {limit}")
        return every_match(self.finder, text, start, limit, deadline, clock)


def compile_pattern(pattern: str, *, plain_text: bool = False, ignore_case: bool = False) -> Pattern:
    """Return a pattern to search for, or raise InvalidValueError, which shows what is wrong and where.

    It is a regular expression as RE2 knows them; with *plain_text*, each character stands for itself. Without
    ``holdfast[patterns]`` only simple expressions can be had, and all others are refused. This may take a tenth of a
    second and belongs in a worker.
    """
    require_pattern(pattern)
    if plain_text:
        require_one_line(pattern)
    try:
        re2 = import_extra("re2", extra="patterns")
    except MissingExtraError:
        re2 = None
    if plain_text and (re2 is None or PlainFinder.suffices(pattern, ignore_case=ignore_case)):
        return Pattern(pattern, "plain text", PlainFinder(pattern, ignore_case=ignore_case))
    if re2 is None:
        return Pattern(pattern, "simple", SimpleFinder(pattern, ignore_case=ignore_case))
    finder = Re2Finder(re2, pattern, plain_text=plain_text, ignore_case=ignore_case)
    return Pattern(pattern, "plain text" if plain_text else "re2", finder)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidValueError(otherwise)
