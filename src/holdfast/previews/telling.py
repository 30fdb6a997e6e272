"""Samples spread over the whole of a content: evenly, or where the words are that occur nowhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from holdfast.previews.quoting import evenly
from holdfast.previews.rare_words import rare_words
from holdfast.previews.room import Room

__all__ = ["Found", "spread", "telling", "with_rare_words"]

# A text with the place where it stands: a line number, or a JSON path.
Found = tuple[str, str]

# Words hold no digits, else every random id were one. Of scripts that put no room between words, pairs are counted.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|(?<!\w)[^\W\d]{3,}(?!\w)")
_LONGEST = 120
_LONG_LINE = 400
_WORDS = 0.3
_LONGEST_READ = 1000
_AROUND = 24
_MOST_READ = 40_000
_COST_OF_LINE = 4
_TOKENS_A_LINE = 16


def spread(count: int) -> Iterator[int]:
    """Yield every index below *count* once: the first, the last, then ever finer in between."""
    yield from range(min(count, 1))
    yield from range(count - 1, count) if count > 1 else ()
    stride = 1 << max(count - 1, 0).bit_length()
    while stride > 1:
        yield from range(stride // 2, count - 1, stride)
        stride //= 2


def telling(found: Sequence[Found], room: Room, longest: int = _LONGEST, *, rare_only: bool = True) -> list[str]:
    """Take excerpts from everywhere, each with its place: of each stretch the one with the most words used once."""
    read = [_Excerpt(*found[index]) for index in evenly(len(found), _MOST_READ)]
    counts = Counter(word for excerpt in read for word in excerpt.words)
    for excerpt in read:
        excerpt.narrow({word for word in excerpt.words if counts[word] == 1}, longest)
    stretches = room.left // _TOKENS_A_LINE
    lines = _best(read, stretches, rare_only)
    cost = sum(map(room.cost, lines))
    if 0 < cost < room.left:
        lines = _best(read, stretches * room.left // cost, rare_only)
    return _taken(lines, room)


class _Excerpt:
    """A text with its place, narrowed down to the part with the words that no other text has."""

    def __init__(self, place: str, text: str) -> None:
        self._place = place
        self._text = " ".join(text[:_LONGEST_READ].split())
        self._more = len(text) > _LONGEST_READ
        self.words = set(_WORD.findall(self._text))
        self.worth = 0.0
        self.line = ""

    def narrow(self, rare: set[str], longest: int) -> None:
        """Cut to what stands around the rare words, and find what the line is worth for what it costs."""
        spans = [match.span() for match in _WORD.finditer(self._text) if match[0] in rare]
        start = self._word_start(spans[0][0] - _AROUND) if spans else 0
        within = [end for _, end in spans if end <= start + longest]
        end = min(start + longest, max(within) + _AROUND) if within else start + longest
        shown = f"{'…' if start else ''}{self._text[start:end]}{'…' if end < len(self._text) or self._more else ''}"
        self.line = f"{self._place}: {shown}"
        self.worth = len(within) / (_COST_OF_LINE + _size(self.line) / 4)

    def _word_start(self, position: int) -> int:
        return 0 if position <= _AROUND else self._text.find(" ", position, position + _AROUND) + 1 or position


def with_rare_words(write: Callable[[Room], list[str]], lines: Sequence[str], room: Room) -> str | None:
    """Return what is written, and after it, if the lines of the content are short, words that occur once by line."""
    tokens = room.left
    brief = [line if len(line) <= _LONG_LINE else "" for line in lines]
    are_short = 2 * sum(map(len, brief)) > sum(map(len, lines))
    has_words = are_short and bool(rare_words(brief, room.part(_WORDS), 1.0))
    shown = room.within(1 - _WORDS if has_words else 1.0, write)
    return _joined([*shown, *(rare_words(brief, room, 1.0, shown) if has_words else [])], tokens, room)


def _joined(lines: Sequence[str], tokens: int, room: Room) -> str | None:
    """Return the lines as one text of at most *tokens* tokens, or None if there are none. The last ones go first."""
    kept = list(lines)
    while kept and room.cost(text := "\n".join(kept)) > tokens + 1:
        kept.pop()
    return text if kept else None


def _best(read: Sequence[_Excerpt], stretches: int, rare_only: bool) -> list[str]:
    bounds = [step * len(read) // max(stretches, 1) for step in range(stretches + 1)]
    parts = [read[start:end] for start, end in pairwise(bounds) if start < end]
    best = [max(part, key=lambda excerpt: excerpt.worth) for part in parts]
    return [excerpt.line for excerpt in best if excerpt.worth or not rare_only]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _taken(lines: Sequence[str], room: Room) -> list[str]:
    taken: dict[int, str] = {}
    for index in spread(len(lines)):
        if room.take(lines[index]):
            taken[index] = lines[index]
        elif room.left < _TOKENS_A_LINE:
            break
    return [taken[index] for index in sorted(taken)]
