"""Lines quoted with their numbers, so that whoever reads them can ask for what stands around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from holdfast.previews.room import Room, shortened

__all__ = [
    "MOST_LINES",
    "at_most",
    "counted",
    "counted_lines",
    "evenly",
    "left_out",
    "lines_of",
    "quoted",
    "some_of",
    "take_quotes",
    "without_colours",
    "written",
]

MOST_LINES = 200_000
"""How many lines are looked at one by one."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_LONGEST_QUOTE = 200


def lines_of(text: str) -> list[str]:
    """Return the lines of *text* as line ranges count them: a line ends at a line feed, and nowhere else."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def written(lines: Sequence[str]) -> list[int]:
    """Return the indices of the lines that are not blank."""
    return [index for index, line in enumerate(lines) if line and not line.isspace()]


def some_of(indices: Sequence[int], most: int = MOST_LINES) -> Sequence[int]:
    """Return all of these indices; of more than *most*, so many that are spread evenly."""
    return [indices[at] for at in evenly(len(indices), most)] if len(indices) > most else indices


def quoted(number: int, line: str, longest: int = _LONGEST_QUOTE) -> str:
    """Return a line with its number before it, cut to about *longest* characters."""
    return f"{number}: {shortened(line.rstrip(), longest)}"


def counted(number: int, noun: str) -> str:
    """Return '1 line', '2,000 lines' and the like."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counted_lines(lines: Sequence[str], filled: Sequence[int], most: int = MOST_LINES) -> str:
    """Return how many lines there are, and how many of the *filled* ones `some_of` takes if they are too many."""
    some = f" ({most:,} of them looked at)" if len(filled) > most else ""
    return f"{counted(len(lines), 'line')}{some}"


def left_out(number: int, noun: str = "line") -> str:
    """Return the note that stands where something is missing."""
    return f"… {counted(number, noun)} left out …"


def evenly(count: int, wanted: int) -> list[int]:
    """Return up to *wanted* of the indices below *count*, spread evenly, in their order."""
    if wanted <= 0:
        return []
    if wanted >= count:
        return list(range(count))
    return [(2 * place + 1) * count // (2 * wanted) for place in range(wanted)]


def at_most(items: Sequence[str], wanted: int) -> str:
    """Return the first *wanted* of some items in one line, and how many more there are."""
    more = f", … {len(items) - wanted:,} more" if len(items) > wanted else ""
    return ", ".join(items[:wanted]) + more


def take_quotes(room: Room, lines: Sequence[str], indices: Iterable[int], longest: int = _LONGEST_QUOTE) -> list[str]:
    """Take the quotes of these lines, which are counted from 0, up to the first that does not fit."""
    return room.take_all(quoted(index + 1, lines[index], longest) for index in indices)


def without_colours(line: str) -> str:
    """Return a line without the codes that colour it on a terminal."""
    return _COLOUR.sub("", line) if "\x1b" in line else line
