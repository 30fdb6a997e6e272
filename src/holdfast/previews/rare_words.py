"""Words that occur only once, by where they stand: like the index of a book, they tell where to look."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.previews.groups import scattered
from holdfast.previews.quoting import evenly
from holdfast.previews.room import Room

__all__ = ["rare_words"]

_HAN, _KATAKANA = "\u4e00-\u9fff", "\u30a1-\u30fa\u30fc"
# Chinese and Japanese have no blanks: there, what stands between kana, marks and letters is taken for a word.
_WORD = re.compile(
    rf"[^\W\d_\u3040-\u30ff{_HAN}](?:[^\W\u3040-\u30ff{_HAN}]|['’]|[.@/+-](?=\w)){{3,80}}"
    rf"|(?<![{_HAN}])[{_HAN}]{{2,6}}(?![{_HAN}])|[{_KATAKANA}]{{3,12}}"
)
_NAME = re.compile(r"(?=.+[A-Z0-9_./@+-]).{4,32}$")
_PLAIN = re.compile(
    r"[^\W\d_][a-z]{5,15}$|[^\W\d_A-Za-z]{5,16}$"
    rf"|[{_HAN}{_KATAKANA}]{{2,12}}$"
)
_MOST_LINES, _COMPARED = 20_000, 400
_PER_LINE = 10
_FEWEST = 20


def rare_words(lines: Sequence[str], room: Room, share: float, shown: Iterable[str] = ()) -> list[str]:
    """Return names and words that occur once in the lines and nowhere in what is *shown*, by line, within the room.

    Of very many lines, some are looked at. Names (with capitals, digits or marks inside) and plain words come in turns.
    """
    once = _once(lines, shown)
    part = room.part(share)
    title = "words that occur once, by the line of the first:"
    part.left -= part.cost(title) + part.left // _PER_LINE
    names, words = _scattered(once, _NAME), _scattered(once, _PLAIN)
    turns = [found for pair in zip(names, words, strict=False) for found in pair]
    turns += names[len(words) :] + words[len(names) :]
    taken = sorted(turns[: len(part.take_all(f"{word}" for _, word in turns))])
    if len(taken) < _FEWEST:
        return []
    told = [_told(taken[start : start + _PER_LINE]) for start in range(0, len(taken), _PER_LINE)]
    return room.take_all([title, *told])


def _once(lines: Sequence[str], shown: Iterable[str]) -> list[tuple[int, str]]:
    """Return the words that occur once, with the index of their line."""
    seen = Counter(word for line in shown for word in _WORD.findall(line))
    places: dict[str, int] = {}
    for index in evenly(len(lines), _MOST_LINES):
        for word in _WORD.findall(lines[index][:_COMPARED]):
            places[word] = -1 if word in places or word in seen else index
    return [(index, word) for word, index in places.items() if index >= 0]


def _scattered(once: Sequence[tuple[int, str]], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    fitting = [(index, word) for index, word in once if pattern.match(word)]
    return [fitting[place] for place in scattered(len(fitting))]


def _told(words: Sequence[tuple[int, str]]) -> str:
    return f"{words[0][0] + 1}: {', '.join(word for _, word in words)}"
