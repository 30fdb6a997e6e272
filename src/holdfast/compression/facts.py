"""Facts in text: what cannot be said in other words, such as identifiers, amounts, paths, addresses and quotes."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["WORD", "Found", "Place", "facts_in", "looked_at"]

WORD = r"0-9A-Za-z_\u00c0-\u052f"
"""What words are written in that blanks set apart, for a class of a regular expression."""

_MOST_OF_A_TEXT, _FEWEST_OF_A_TEXT, _MOST_IN_ALL = 200_000, 2_000, 2_000_000
_LONGEST_TOKEN, _LONGEST_ADDRESS, _LONGEST_NAME = 400, 1_000, 128

# Every repeat that can be tried again is bounded: nothing here takes longer than linear time.
_MONEY = r"(?:[€£₽₴₺₹₩]|(?:zł|Kč|kr|USD|EUR|GBP|CHF|JPY|RUB|PLN|SEK|NOK|DKK|CZK)\b)"
_NUMBER = (
    r"(?:\d{1,3}(?:,\d{3}){1,6}(?:\.\d{1,12})?"
    # The comma of decimals, as in 1.234,50 and 12 500,50; without thousands it could be the comma of a list.
    r"|\d{1,3}(?:(?:\.\d{3}){1,6}|(?:[ \u00a0\u2009\u202f]\d{3}){1,6}),\d{1,2}(?!\d)"
    rf"|\d{{1,18}},\d{{1,2}}(?= ?(?:%|{_MONEY}))"
    r"|\d{1,18}(?:\.\d{1,12})?)"
)
_UNIT = (
    rf"%|{_MONEY}|(?:[kKMGT]i?B|[kMG]?Hz|bytes|tokens|ms|mins?|minutes?|secs?|seconds?|hours?|days?|weeks?|months?|"
    r"years?|[km]?g|lbs?|[kcm]m|miles|kWh?|px|°[CF])"
)
_AMOUNT = rf"(?:[$€£¥] ?{_NUMBER}|{_NUMBER}(?: ?(?:{_UNIT}))?)(?![{WORD}%]|[-./:@\\][{WORD}])"
_SCHEME = r"(?:https?|ftp|file|s3|gs|wss?|ssh|git|jdbc:\w{1,20}|postgres(?:ql)?|mysql|redis|mongodb(?:\+srv)?)"
_TOKEN = re.compile(
    # What stands before a line of a file that a tool shows is no fact: the number of the line.
    r"^(?P<line> *\d{1,6}→| +\d{1,6}\t|\d{1,6}[:-](?!\d| \S))"
    rf"|{_SCHEME}://[^\s\"'<>`]+|{_AMOUNT}|[^\s\"'`<>()\[\]{{}},;|“”„«»「」『』]+",
    re.MULTILINE,
)
_QUOTED = re.compile(
    rf"(?<![{WORD}\\])\"([^\"\n<>]{{2,80}})\"(?![{WORD}]| ?:)"
    rf"|(?<![{WORD}\\])'([^'\n<>]{{2,80}})'(?![{WORD}]| ?:)"
    rf"|(?<![{WORD}`])`([^`\n<>]{{2,80}})`(?![{WORD}`])"
    r"|“([^“”\n<>]{2,80})”|„([^„“”\n<>]{2,80})[“”]|«\s?([^«»\n<>]{2,80}?)\s?»"
    r"|「([^「」\n<>]{2,80})」|『([^『』\n<>]{2,80})』"
    # What ends it is an apostrophe, too.
    rf"|‘((?:[^‘’\n<>]|’(?=[{WORD}])){{2,80}})’(?![{WORD}])"
)
_WHOLE_AMOUNT = re.compile(_AMOUNT)
_BARE_NUMBER = re.compile(_NUMBER)
# Of Windows: on a drive, or on another machine; with two backslashes for each in JSON.
_WINDOWS = re.compile(r"[A-Za-z]:\\{1,2}[^\\]|\\{2}[\w.$-]{2,64}\\[^\\]|\\{4}[\w.$-]{2,64}\\{2}[^\\]")
# An escape of JSON, and whatever sets a name apart from its value.
_ESCAPE = re.compile(r"\\[nrt\"]")
_BETWEEN = re.compile(r"\\[nrt\"\\]|[=&…]|->|\.{3,}")
_BRACKET, _CLOSING = re.compile(r"[(){}\[\]]"), {"(": ")", "[": "]", "{": "}"}
_BEFORE, _AFTER = ",:;!?*+^%", ".,:;!?*+^\\/-"
_PLACE_IN_FILE = re.compile(r"(.{1,300}?)(:\d{1,7}(?::\d{1,7})?)")
_ENDINGS = (
    "bat bin c cc cfg conf cpp cs css csv db dll doc docx env exe gif go gz h hpp html ini ipynb java jpeg jpg js json "
    "jsonl jsx kt lock log lua md mjs parquet pdf php pl png properties proto ps1 py pyi rb rs rst scala sh sql sqlite "
    "svg swift tar tex tf toml ts tsv tsx txt vue webp xls xlsx xml yaml yml zip"
)
_FILE = re.compile(rf"[{WORD}.@+-]{{1,120}}\.(?:{'|'.join(_ENDINGS.split())})", re.IGNORECASE)
_TWO_LETTERS = re.compile(rf"[{WORD}]{{2}}")
_PATH = re.compile(r"[^\s*?^$\\]{3,300}")
_MAIL = re.compile(rf"[{WORD}.+-]{{1,64}}@[{WORD}-]{{1,64}}(?:\.[{WORD}-]{{1,64}}){{1,6}}")
# Dates, times, versions and addresses of machines.
_FIGURES = re.compile(r"(?=(?:\D*\d){4})\d[\d:.T/-]{2,40}[\dZ]|\d+\.\d+|\d{3,}|\d+(?:\.\d+){2,6}")
_NAME = re.compile(rf"[{WORD}][{WORD}.#+-]{{1,{_LONGEST_NAME - 1}}}")
_VERSION = re.compile(rf"[vV]?\d+\.\d+[{WORD}.+-]*")
_OTHER_SCRIPTS = re.compile(r"[^\u0000-\u052f]+")
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_COMPOUND = re.compile(r"[^\W_]_+[^\W_]|[a-z][A-Z]")
# Names such as `payment-gateway-service`; two words, or such with little ones between them, are often just written so.
_KEBAB = re.compile(r"(?!.*-(?:and|for|the)-)[a-z]{3,}(?:-[a-z]{3,}){2,}")
# Such as `int64`, `step2` and `utf8`.
_NUMBERED_WORD = re.compile(r"[A-Z]?[a-z]+\d{1,2}")
_CODES = frozenset(errno.errorcode.values())


class Place(NamedTuple):
    """Where something stands: in which of several texts, and from which character on at the earliest."""

    text: int
    at: int


class Found(NamedTuple):
    """Where a fact stood first and last, and how often it stood anywhere."""

    first: Place
    last: Place
    times: int


def facts_in(texts: Iterable[str]) -> dict[str, Found]:
    """Return the facts that *texts* hold, in the order in which they first stand there.

    Of a long text only head and tail are looked at, 200,000 characters together, and less of many long texts.
    """
    found: dict[str, Found] = {}
    known: dict[str, tuple[str, ...]] = {}
    for number, text, start, stop in looked_at(texts):
        for value, at in _stands(text, start, stop, known):
            place, before = Place(number, at), found.get(value)
            found[value] = Found(place, place, 1) if before is None else Found(before[0], place, before[2] + 1)
    return found


def looked_at(texts: Iterable[str]) -> Iterator[tuple[int, str, int, int]]:
    """Yield each text with its number, and from where to where to look at it: all of it, or its head and its tail."""
    given = list(texts)
    most = max(_FEWEST_OF_A_TEXT, min(_MOST_OF_A_TEXT, _MOST_IN_ALL // max(len(given), 1)))
    for number, text in enumerate(given):
        if len(text) <= most:
            yield number, text, 0, len(text)
        else:
            yield number, text, 0, most // 2
            yield number, text, len(text) - most // 2, len(text)


def _stands(text: str, start: int, stop: int, known: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    for match in _TOKEN.finditer(text, start, stop):
        if match.lastgroup:
            continue
        token = match[0]
        values = known.get(token)
        if values is None:
            known[token] = values = tuple(dict.fromkeys(_in_token(token)))
        for value in values:
            yield value, match.start()
    for match in _QUOTED.finditer(text, start, stop):
        quoted = match[match.lastindex or 0]
        if quoted not in known.get(quoted, ()) and _is_worth_quoting(quoted):
            yield quoted, match.start()


def _is_worth_quoting(quoted: str) -> bool:
    """Say whether it reads like something quoted, and not like what stands between two quotes."""
    if " ".join(quoted.split()) != quoted or quoted[0] in ",:;=+|&)]}" or _ESCAPE.search(quoted):
        return False
    return sum(map(str.isalpha, quoted)) >= 2 or bool(_FIGURES.search(quoted))


def _in_token(token: str) -> Iterator[str]:
    """Yield the facts in what stands between two blanks, each as it is written there."""
    if "://" in token and len(token) <= _LONGEST_ADDRESS:
        yield token[: _end_of_address(token)].rstrip(_AFTER)
    elif _WHOLE_AMOUNT.fullmatch(token):
        yield from _in_amount(token)
    elif len(token) > _LONGEST_TOKEN:
        return
    elif _WINDOWS.match(token):
        yield from _with_place(token.rstrip(_AFTER))
    else:
        for part in _BETWEEN.split(token):
            yield from _in_part(part.lstrip(_BEFORE).rstrip(_AFTER))


def _end_of_address(token: str) -> int:
    """Return where an address ends: at the latest before a bracket that it does not open."""
    opened: list[str] = []
    for bracket in _BRACKET.finditer(token):
        if (closing := _CLOSING.get(bracket[0])) is not None:
            opened.append(closing)
        elif not opened or opened.pop() != bracket[0]:
            return bracket.start()
    return len(token)


def _in_amount(token: str) -> Iterator[str]:
    number = _BARE_NUMBER.search(token)
    if number is None or number[0] != token:
        yield token
    if number is not None and (len(number[0]) >= 3 or not number[0].isdigit()):
        yield number[0]


def _in_part(part: str) -> Iterator[str]:
    if ("@" in part and _MAIL.fullmatch(part)) or _FIGURES.fullmatch(part):
        yield part
    elif "/" in part:
        yield from _in_path(part)
    elif ":" in part:
        named, _, line = part.partition(":")
        if _FILE.fullmatch(named) and line[:1].isdigit():
            yield from _with_place(part)
        else:
            yield from (value for name in part.split(":") for value in _in_name(name))
    else:
        yield from _in_name(part)


def _in_path(part: str) -> Iterator[str]:
    placed = _PLACE_IN_FILE.match(part)
    path = part if placed is None else placed[1]
    if _is_path(path):
        yield path.rstrip("/")
        if placed is not None:
            yield placed[0]
    else:
        yield from (value for name in re.split("[/:]", part) for value in _in_name(name))


def _with_place(part: str) -> Iterator[str]:
    """Yield a path, and with its line if it names one."""
    placed = _PLACE_IN_FILE.fullmatch(part)
    if placed is not None:
        yield placed[1]
    yield part


def _is_path(path: str) -> bool:
    """Say whether it is a path and not `and/or`, a fraction, or a comment."""
    parts = [part for part in path.split("/") if part]
    if not _PATH.fullmatch(path) or path.startswith("//") or not any(map(_TWO_LETTERS.search, parts)):
        return False
    if len(parts) == 1:
        return _FILE.fullmatch(parts[0]) is not None
    return path[0] in "/~." or len(parts) > 2 or any(re.search(r"[\d_.-]", part) for part in parts)


def _in_name(name: str) -> Iterator[str]:
    """Yield a name if it is nothing that language has by itself, and such names that it is made of."""
    name = name.lstrip(".#@~-+$").rstrip(_AFTER)
    if not _NAME.fullmatch(name):
        yield from () if name.isascii() else filter(_is_name, _OTHER_SCRIPTS.split(name))
        return
    if _is_name(name):
        yield name
    if "." in name and not _FILE.fullmatch(name) and not _VERSION.fullmatch(name):
        yield from filter(_is_name, name.split("."))


def _is_name(name: str) -> bool:
    if _FIGURES.fullmatch(name) or _COMPOUND.search(name) or name in _CODES or _KEBAB.fullmatch(name):
        return True
    mixed = _DIGIT.search(name) and _LETTER.search(name) and not _NUMBERED_WORD.fullmatch(name)
    return bool(mixed and len(name) > 3) or name.count(".") > 1 or _FILE.fullmatch(name) is not None
