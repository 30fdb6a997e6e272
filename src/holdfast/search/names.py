r"""Names where a query leads: what a reader may look for without knowing what it is called.

The words around a path or an identifier seldom say which of a hundred passages holds it. A list of the names that stand
in all of them is short, and who sees the right one knows it. Measured in docs/decisions/0018-names-in-answers.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["names_in", "names_near"]

_SHORTEST, _LONGEST, _MOST = 4, 160, 500
# Without what JSON writes for a line end: it would be taken for the first letter of what follows.
_WORD = re.compile(r"\\[nrt]|([\w./:@~+-]{4,})")
_AROUND = ".:-+~"
# A word with an underscore, a hump, a slash or a dot inside, or with letters and digits.
_NAME = re.compile(r"[^\W_]_|_[^\W_]|[a-z][A-Z]|[^\W\d_][./:@-]*\d|\d[./:-]*[^\W\d_]|\w/\w|\w\.[^\W\d_]{2}")
_TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
# The first passages count more than the last, but not by much: the ranks are no more than likely.
_RANKS_THAT_MATTER_LITTLE = 20
# Searches in one conversation come upon the same words again and again.
_WORDS_REMEMBERED = 16_384


class _Names(dict[str, str]):
    """The names that words are, without what stands around them; empty for words that are none. Each is judged once."""

    def __missing__(self, word: str) -> str:
        named = self[word] = _name_in(word)
        return named

    def of(self, text: str) -> dict[str, None]:
        """Return each name of *text* once, in order."""
        names = dict.fromkeys(map(self.__getitem__, _WORD.findall(text)))
        names.pop("", None)
        return names


def names_near(query: str, passages: Iterable[str]) -> tuple[str, ...]:
    """Return names in *passages*, of which the best come first, without those in the *query*.

    The likeliest come first: those in many passages, and in the best.
    """
    names = _Names()
    scores: dict[str, float] = defaultdict(float)
    for rank, passage in enumerate(passages, start=_RANKS_THAT_MATTER_LITTLE):
        for name in names.of(passage):
            scores[name] += 1 / rank
    for name in names.of(query):
        scores.pop(name, None)
    return tuple(sorted(scores, key=lambda name: -scores[name])[:_MOST])


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """Return all names in some texts."""
    names = _Names()
    return frozenset(name for text in texts for name in names.of(text))


@lru_cache(_WORDS_REMEMBERED)
def _name_in(word: str) -> str:
    name = word.strip(_AROUND)
    return name if _is_name(name) else ""


def _is_name(word: str) -> bool:
    if not _SHORTEST <= len(word) <= _LONGEST or (word.isalpha() and word[1:].islower()):
        return False
    return bool(_NAME.search(word) and _TWO_LETTERS.search(word))
