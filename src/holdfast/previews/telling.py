"""Samples spread over the whole of a content: evenly, or where the words are that occur nowhere else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise

from holdfast.previews.quoting import evenly, written
from holdfast.previews.rare_words import RareWords
from holdfast.previews.room import Room

__all__ = ["Found", "numbered", "spread", "telling", "with_rare_words"]

# A text with the place where it stands: a line number, or a JSON path.
Found = tuple[str, str]

# Words hold no digits, else every random id were one. Of scripts that put no room between words, pairs are counted.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|(?<!\w)[^\W\d]{3,}(?!\w)")
_LONGEST = 120
_LONG_LINE = 400
_WORDS = 0.3
_LONGEST_READ = 1000
_AROUND = 24
_MOST_READ = 5_000
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


def numbered(lines: Sequence[str], indices: Sequence[int]) -> list[Found]:
    """Return lines with their numbers, as many as `telling` reads."""
    some = (indices[at] for at in evenly(len(indices), _MOST_READ))
    return [(str(index + 1), lines[index][:_LONGEST_READ].strip()) for index in some]


def telling(found: Sequence[Found], room: Room, longest: int = _LONGEST, *, rare_only: bool = True) -> list[str]:
    """Take excerpts from everywhere, each with its place: of each stretch the one with the most words used once."""
    read = [_Excerpt(*found[index]) for index in evenly(len(found), _MOST_READ)]
    counts = Counter(chain.from_iterable(excerpt.words for excerpt in read))
    for excerpt in read:
        excerpt.keep_rare(counts, longest)
    stretches = max(room.left, 0) // _TOKENS_A_LINE
    lines = _best(read, stretches, rare_only, longest)
    cost = sum(map(room.cost, lines))
    if 0 < cost < room.left:
        lines = _best(read, stretches * room.left // cost, rare_only, longest)
    return _taken(lines, room)


class _Excerpt:
    """A text with its place, that can be narrowed down to the part with the words that no other text has."""

    def __init__(self, place: str, text: str) -> None:
        self._place = place
        self._text = text[:_LONGEST_READ]
        self._more = len(text) > _LONGEST_READ
        self.words = set(_WORD.findall(self._text))
        self.worth = 0.0

    def keep_rare(self, counts: Counter[str], longest: int) -> None:
        """Keep the words that are counted once, and find what they are worth for what it costs to show them."""
        self.words = {word for word in self.words if counts[word] == 1}
        self.worth = len(self.words) / (_COST_OF_LINE + min(_size(self._text), longest) / 4)

    def line(self, longest: int) -> str:
        """Return what stands around the rare words."""
        text = " ".join(self._text.split())
        spans = [match.span() for match in _WORD.finditer(text) if match[0] in self.words]
        start = _word_start(text, spans[0][0] - _AROUND) if spans else 0
        within = [end for _, end in spans if end <= start + longest]
        end = min(start + longest, max(within) + _AROUND) if within else start + longest
        cut = end < len(text) or self._more
        return f"{self._place}: {'…' if start else ''}{text[start:end]}{'…' if cut else ''}"


def _word_start(text: str, position: int) -> int:
    return 0 if position <= _AROUND else text.find(" ", position, position + _AROUND) + 1 or position


def with_rare_words(
    write: Callable[[Room], list[str]],
    lines: Sequence[str],
    room: Room,
    *,
    share: float = _WORDS,
    numbers: bool = False,
) -> str | None:
    """Return what is written, and after it, within that share of the room, words that occur once by line."""
    tokens = room.left
    words = RareWords(lines, _usual(lines), numbers=numbers)
    has_words = bool(words.told(room.part(share)))
    shown = room.within(1 - share if has_words else 1.0, write)
    return _joined([*shown, *(words.told(room, shown=shown) if has_words else [])], tokens, room)


def _usual(lines: Sequence[str]) -> list[int] | None:
    """Return the indices of the lines without the long ones, which may hold anything encoded, unless most is long."""
    if max(map(len, lines), default=0) <= _LONG_LINE:
        return None
    filled = written(lines)
    brief = [index for index in filled if len(lines[index]) <= _LONG_LINE]
    sizes = [sum(len(lines[index]) for index in indices) for indices in (brief, filled)]
    return brief if 2 * sizes[0] > sizes[1] else filled


def _joined(lines: Sequence[str], tokens: int, room: Room) -> str | None:
    """Return the lines as one text of at most *tokens* tokens, or None if there are none. The last ones go first."""
    kept = list(lines)
    while kept and room.cost(text := "\n".join(kept)) > tokens + 1:
        kept.pop()
    return text if kept else None


def _best(read: Sequence[_Excerpt], stretches: int, rare_only: bool, longest: int) -> list[str]:
    bounds = [step * len(read) // max(stretches, 1) for step in range(stretches + 1)]
    parts = [read[start:end] for start, end in pairwise(bounds) if start < end]
    best = [max(part, key=lambda excerpt: excerpt.worth) for part in parts]
    return [excerpt.line(longest) for excerpt in best if excerpt.worth or not rare_only]


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
