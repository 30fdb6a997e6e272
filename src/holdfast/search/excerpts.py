"""What to show of a place: its best lines, in their order."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.search.answers import ExcerptLine
from holdfast.search.chunks import Chunk
from holdfast.search.lines import LineScores

__all__ = ["excerpt_of"]


def excerpt_of(scores: LineScores, chunk: Chunk, characters: int) -> tuple[ExcerptLine, ...]:
    """Return the best lines of *chunk* and those around the best, in order, with up to so many *characters*."""
    lines = [_shown(scores, line, characters) for line in _lines(chunk) if line.text.strip()]
    best = max(lines, key=lambda line: scores[line.text].score).number if lines else 0
    chosen: list[ExcerptLine] = []
    for line in sorted(lines, key=lambda line: (-scores[line.text].score, abs(line.number - best))):
        if len(line.text) <= characters:
            characters -= len(line.text)
            chosen.append(line)
    return tuple(sorted(chosen, key=lambda line: line.number))


def _lines(chunk: Chunk) -> Iterator[ExcerptLine]:
    column = chunk.column
    for number, text in enumerate(chunk.text.split("\n"), start=chunk.line):
        part = bool(column) or (chunk.goes_on and number == chunk.last_line)
        yield ExcerptLine(number, column, text.rstrip("\r"), part)
        column = 0


def _shown(scores: LineScores, line: ExcerptLine, longest: int) -> ExcerptLine:
    """Return the line, or the best part of one that is too long to be shown."""
    if len(line.text) <= longest:
        return line
    step = max(longest // 2, 1)
    parts = {start: line.text[start : start + longest] for start in range(0, len(line.text) - step, step)}
    best = max(parts, key=lambda start: scores[parts[start]].score)
    return ExcerptLine(line.number, line.column + best, parts[best], part=True)
