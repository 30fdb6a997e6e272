r"""The terms by which a text is found: its words, folded, and the words that hide in them.

An identifier is found by its words (`self.read_only_files` by `files`), and whole by these words in a row. Words with
humps are terms themselves and by their parts (`getUserById` by `user`). Scripts without blanks are taken by the
character. Escapes of JSON are read: `\u00e9` is an é, and `\nError` hides `Error`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from unicodedata import normalize

__all__ = ["Terms", "plain", "searchable", "terms_of"]

_LONGEST_WITH_HUMPS = 40
# Thai to Khmer, kana, ideographs, Hangul: words are not set apart there, or not as people search for them.
_WITHOUT_BLANKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Python does not count the vowel signs of Indian scripts as parts of words.
_INDIAN = "\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(f"[{_WITHOUT_BLANKS}]|(?:[^\\W_{_WITHOUT_BLANKS}]|[{_INDIAN}])+")
_ASCII_WORD = re.compile("[A-Za-z0-9]+")
# Accents, and the points of Hebrew and Arabic: people leave them out.
_MARKS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]+")
_PART = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ESCAPED_CHARACTERS = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
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
    words = _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(text)
    return Terms(_folded(words), _folded(_hidden(text, words)))


def searchable(text: str) -> str:
    """Return all terms of *text* as SQLite is to see them, between blanks. The same text gives the same terms."""
    return " ".join(chain.from_iterable(terms_of(text)))


def _unescaped(escapes: re.Match[str]) -> str:
    units = bytes.fromhex(escapes[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace").replace("\n", " ")


def _folded(words: Collection[str]) -> list[str]:
    # All at once: this is where indexing spends its time.
    return " ".join(words).casefold().split() if words else []


def _hidden(text: str, words: Iterable[str]) -> list[str]:
    mixed = [word for word in set(words) if not (word.islower() or word.isupper() or word.istitle() or word.isdigit())]
    hidden = {part for word in mixed if len(word) <= _LONGEST_WITH_HUMPS and word.isascii() for part in _parts(word)}
    if "\\" in text:
        hidden.update(_WORD_AFTER_AN_ESCAPE.findall(text))
    return sorted(hidden)


@lru_cache(maxsize=4096)
def _parts(word: str) -> tuple[str, ...]:
    parts = tuple(_PART.findall(word))
    return parts if len(parts) > 1 else ()
