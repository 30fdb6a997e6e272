"""What the features of `holdfast.tokens.text` cost, in hundredths of a token.

Written by tools/fit_token_estimator.py, fitted to o200k_base.
"""

from __future__ import annotations

__all__ = ["COSTS"]

COSTS = {
    "word": 73,
    "third and further letter": 10,
    "hump in a word": 74,
    "number": 107,
    "third and further digit": 27,
    "number after a blank": 127,
    "digit after a capital": 127,
    "capital after a digit": 127,
    "digit between letters": 119,
    "mark": 18,
    "mark apart from a word": 82,
    "quote or bracket before a word": 84,
    "further mark": 2,
    "third and further mark, unless a rule": 26,
    "wide blank": 91,
    "third and further blank": 1,
    "line end, unless after a mark": 100,
    "further line end": 6,
    "accented letter": 148,
    "arabic": 39,
    "cyrillic": 29,
    "everyday han": 76,
    "greek": 41,
    "half of a surrogate pair": 88,
    "hangul": 69,
    "hebrew or armenian": 39,
    "indic": 38,
    "kana or wide mark": 69,
    "latin extended": 20,
    "latin of vietnamese": 0,
    "other han": 160,
    "other script": 223,
    "sign of latin-1": 257,
    "symbol": 56,
    "thai, georgian, burmese or khmer": 45,
}
