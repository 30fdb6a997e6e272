r"""The terms by which a text is found: its words, folded, and the words that hide in them.

An identifier is found by its words (`self.read_only_files` by `files`), and whole by these words in a row. Words with
humps or numbers are terms themselves and by their parts in a row (`getUserById` by `user`, `ORD4411` by `4411`).
`3,007` is `3007` too. Scripts without blanks, and emoji, are taken by the character. Escapes of JSON are read: `\u00e9`
is an é, and `\nError` hides `Error`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain, filterfalse
from typing import NamedTuple
from unicodedata import normalize

__all__ = ["Terms", "parts_of", "plain", "searchable", "terms_of"]

_LONGEST_WITH_PARTS = 100
_MOST_PARTS = 16
# Thai to Khmer, kana, ideographs, Hangul: words are not set apart there, or not as people search for them.
_WITHOUT_BLANKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Box-drawing is not among them: a table would be all terms.
_EMOJI = "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_ALONE = _WITHOUT_BLANKS + _EMOJI
# Python does not count the vowel signs of Indian scripts as parts of words.
_INDIAN = "\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(f"[{_ALONE}]|(?:[^\\W_{_ALONE}]|[{_INDIAN}])+")
_ASCII_WORD = re.compile("[A-Za-z0-9]+")
# Accents, and the points of Hebrew and Arabic: people leave them out. And what has no width: nobody sees it.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]+"
)
_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Hexadecimal, or with more than three numbers.
_NOISE = re.compile(r"(?:0x|[a-f]*[0-9]+[a-f])[0-9a-f]*\Z|(?:[^0-9]*[0-9]+(?![0-9])){3}[^0-9]+[0-9]", re.IGNORECASE)
_ESCAPED_CHARACTERS = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_GROUPED_NUMBER = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])", re.ASCII)
_WORD_AFTER_AN_ESCAPE = re.compile(r"\\[nrt]([A-Za-z0-9]+)")


class Terms(NamedTuple):
    """The words of a text in order, and the words that are inside of these."""

    words: list[str]
    hidden: list[str]


def plain(text: str) -> str:
    """Return *text* without escapes of JSON, accents and forms of presentation. Its lines stay its lines."""
    if "\\u" in text:
        text = _ESCAPED_CHARACTERS.sub(_unescaped, text)
    if text.isascii():
        return text
    # Decomposed, without the accents, and composed again: else Hangul would fall apart.
    return normalize("NFC", _MARKS.sub("", normalize("NFKD", text)))


def terms_of(text: str) -> Terms:
    """Return the terms of *text*, in plain form and without case."""
    text = plain(text)
    words = _words(text)
    return Terms(_folded(words), _folded(_hidden(text, words)))


def parts_of(text: str) -> dict[str, list[str]]:
    """Return the parts that make up words of *text*, by the word, in plain form and without case."""
    rows = {word.casefold(): _folded(_parts(word)) for word in _with_parts(_words(plain(text)))}
    return {word: parts for word, parts in rows.items() if "".join(parts) == word}


def searchable(text: str) -> str:
    """Return all terms of *text* as SQLite is to see them, between blanks. The same text gives the same terms."""
    return " ".join(chain.from_iterable(terms_of(text)))


def _unescaped(escapes: re.Match[str]) -> str:
    units = bytes.fromhex(escapes[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace").replace("\n", " ")


def _words(text: str) -> list[str]:
    return _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(text)


def _folded(words: Collection[str]) -> list[str]:
    # All at once: this is where indexing spends its time.
    return " ".join(words).casefold().split() if words else []


def _hidden(text: str, words: Iterable[str]) -> list[str]:
    hidden = list(chain.from_iterable(map(_parts, _with_parts(words))))
    if "\\" in text:
        hidden += dict.fromkeys(_WORD_AFTER_AN_ESCAPE.findall(text))
    if "," in text:
        hidden += (number.replace(",", "") for number in dict.fromkeys(_GROUPED_NUMBER.findall(text)))
    return hidden


def _with_parts(words: Iterable[str]) -> list[str]:
    """Return each of *words* that may have parts once, in an order that does not change."""
    distinct = set(words)
    # By filters in C: most words are plain, and this is done for all of them.
    with_digits = filterfalse(str.isdigit, filterfalse(str.isalpha, distinct))
    with_capitals = filterfalse(str.islower, filter(str.isalpha, distinct))
    with_humps = [word for word in with_capitals if len(word) > 1 and not (word.istitle() or word.isupper())]
    return sorted([*with_digits, *with_humps])


@lru_cache(maxsize=16_384)
def _parts(word: str) -> tuple[str, ...]:
    """Return the parts of a word, in a row; none for a hash, or for anything else that chance put together."""
    if len(word) > _LONGEST_WITH_PARTS or _NOISE.match(word):
        return ()
    parts = _PART.findall(word) if word.isascii() else _parts_by_shape(word)
    if len(parts) > min(_MOST_PARTS, len(word) // 2 + 1):
        return ()
    # A single letter leads nowhere.
    return tuple([part for part in parts if 1 < len(part) < len(word)])


def _parts_by_shape(word: str) -> list[str]:
    shape = "".join("A" if letter.isupper() else "0" if letter.isdigit() else "a" for letter in word)
    return [word[part.start() : part.end()] for part in _PART.finditer(shape)]
