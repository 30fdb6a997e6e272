"""How many tokens a text is, counted by a tokenizer that comes with the extra ``tokenizer`` and needs no network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType

from holdfast.errors import InvalidValueError
from holdfast.extras import import_extra

__all__ = ["ENCODINGS", "exact_counter"]

ENCODINGS = ("o200k_base", "cl100k_base", "voyage3_base")
"""What can be counted in: that of GPT-4o and later, that of GPT-4 and GPT-3.5, that of voyage-3."""

_LONGEST_PIECE = 500_000


def exact_counter(encoding: str = "o200k_base") -> Callable[[str], int]:
    """Return a function that counts the tokens of any text. To make the first one takes about a second.

    What is written like a special token counts as text. A text beyond half a million characters is counted in pieces;
    without blanks in it, each cut may cost a token.
    """
    if encoding not in ENCODINGS:
        raise InvalidValueError(f"encoding must be one of {', '.join(ENCODINGS)}, got {encoding!r}")
    count: Callable[[str], int] = _bindings().tokenizer_for_encoding(encoding).count

    def count_tokens(text: str) -> int:
        if len(text) > _LONGEST_PIECE:
            return sum(map(count_tokens, _pieces(text)))
        try:
            return count(text)
        except UnicodeEncodeError:
            return count(text.encode("utf-8", "replace").decode())

    return count_tokens


def _bindings() -> ModuleType:
    # bpe-openai reads its vocabulary in a way that Python 3.11 and 3.12 deprecate, and 3.13 does not.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_extra("bpe_openai._bindings", extra="tokenizer")


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces of *text*, cut before blanks that follow something else: no token reaches across these."""
    start = 0
    while start < len(text):
        piece = text[start : start + _LONGEST_PIECE]
        if start + len(piece) < len(text):
            piece = piece[: len(piece[: piece.rfind(" ")].rstrip()) or len(piece)]
        yield piece
        start += len(piece)
