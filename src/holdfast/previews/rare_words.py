"""Words that occur only once, by where they stand: like the index of a book, they tell where to look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from holdfast.previews.groups import scattered
from holdfast.previews.quoting import evenly, written
from holdfast.previews.room import Room

__all__ = ["RareWords", "rare_words"]

_HAN, _KATAKANA = "\u4e00-\u9fff", "\u30a1-\u30fa\u30fc"
_INSIDE = r"[.@/+-](?=\w)"
_NUMBER = r"\d(?:[\dTZ]|[.:/+-](?=\d)){3,30}(?!\w)"
_ASCII_WORD = rf"[A-Za-z](?:[\w']|{_INSIDE}){{3,80}}"
# Chinese and Japanese have no blanks: there, what stands between kana, marks and letters is taken for a word.
_ANY_WORD = (
    rf"[^\W\d_\u3040-\u30ff{_HAN}](?:[^\W\u3040-\u30ff{_HAN}]|['’]|{_INSIDE}){{3,80}}"
    rf"|(?<![{_HAN}])[{_HAN}]{{2,6}}(?![{_HAN}])|[{_KATAKANA}]{{3,12}}"
)
# The first is for ASCII, and much faster.
_WORDS = re.compile(_ASCII_WORD), re.compile(_ANY_WORD)
_WORDS_AND_NUMBERS = re.compile(f"{_ASCII_WORD}|{_NUMBER}"), re.compile(f"{_ANY_WORD}|{_NUMBER}")
_SORTS = (
    re.compile(r"(?=[^\d].*[A-Z0-9_./@+-]).{4,32}$"),
    re.compile(rf"[^\W\d_][a-z]{{5,15}}$|[^\W\d_A-Za-z]{{5,16}}$|[{_HAN}{_KATAKANA}]{{2,12}}$"),
    re.compile(r"\d"),
)
_MOST_CHARACTERS, _SHORTEST_LOOK, _MOST_WORDS = 500_000, 400, 4_000
_PER_LINE = 10
_FEWEST = 20


class RareWords:
    """The names and words, and if wanted the *numbers*, that occur once in the lines at some or all indices.

    Of very long contents, a part is looked at that is spread over all lines; then that is said.
    """

    def __init__(self, lines: Sequence[str], indices: Sequence[int] | None = None, *, numbers: bool = False) -> None:
        self._patterns = _WORDS_AND_NUMBERS if numbers else _WORDS
        filled = written(lines) if indices is None else indices
        size = sum(map(len, lines)) if indices is None else sum([len(lines[index]) for index in indices])
        self._part, seen, longest = 1.0, filled, size
        if size > _MOST_CHARACTERS:
            seen = [filled[at] for at in evenly(len(filled), max(1, len(filled) * _MOST_CHARACTERS // size))]
            longest = max(_SHORTEST_LOOK, _MOST_CHARACTERS // max(len(seen), 1))
            self._part = sum([min(len(lines[index]), longest) for index in seen]) / size
        self._once = self._occurring_once(lines, seen, longest)

    def told(self, room: Room, share: float = 1.0, shown: Iterable[str] = ()) -> list[str]:
        """Take those that are nowhere in what is *shown*, by line, within that share of the room.

        Names (with capitals, digits or marks inside), plain words and numbers come in turns.
        """
        title = f"words that occur once{self._where()}, by the line of the first:"
        part = room.part(share)
        part.left -= part.cost(title)
        known = {word for line in shown for word in self._words(line)}
        told = _fitted(_in_turns([found for found in self._once if found[1] not in known]), part)
        return room.take_all([title, *told]) if told else []

    def _where(self) -> str:
        return "" if self._part >= 1 else f" in the {max(self._part, 0.01):.0%} that was looked at"

    def _occurring_once(self, lines: Sequence[str], seen: Iterable[int], longest: int) -> list[tuple[int, str]]:
        places: dict[str, int] = {}
        for index in seen:
            for word in self._words(lines[index][:longest]):
                places[word] = -1 if word in places else index
        return [(index, word) for word, index in places.items() if index >= 0]

    def _words(self, line: str) -> list[str]:
        ascii_words, any_words = self._patterns
        return (ascii_words if line.isascii() else any_words).findall(line)


def rare_words(
    lines: Sequence[str], room: Room, share: float, shown: Iterable[str] = (), indices: Sequence[int] | None = None
) -> list[str]:
    """Return names and words that occur once in the lines and nowhere in what is *shown*, by line, within the room."""
    return RareWords(lines, indices).told(room, share, shown)


def _in_turns(once: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return words of each sort in turns, so that any first few of them are from everywhere."""
    some = [once[at] for at in evenly(len(once), _MOST_WORDS)]
    sorts = ([found for found in some if sort.match(found[1])] for sort in _SORTS)
    spread = ([words[place] for place in scattered(len(words))] for words in sorts)
    return [found for found in chain.from_iterable(zip_longest(*spread)) if found]


def _fitted(turns: Sequence[tuple[int, str]], room: Room) -> list[str]:
    """Return lines with as many of the first words as fit, in the order of their places; none if that is very few."""
    taken = len(room.part(1.0).take_all(word for _, word in turns))
    while taken >= _FEWEST:
        words = sorted(turns[:taken])
        told = [_told(words[start : start + _PER_LINE]) for start in range(0, taken, _PER_LINE)]
        if (cost := sum(map(room.cost, told))) <= room.left:
            return told
        taken = min(taken - 1, taken * room.left // cost)
    return []


def _told(words: Sequence[tuple[int, str]]) -> str:
    return f"{words[0][0] + 1}: {', '.join(word for _, word in words)}"
