"""Names: the words that cannot be said in other words, such as identifiers, paths, ids, URLs and quantities.

A name has one shape, at most 60 characters, and nothing that looks like a credential. Finding names takes time linear
in the length of the text. Chinese, Japanese and Korean put no spaces between words: there, a run of one script counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["MOST_NAMES", "Names", "holds_credential"]

MOST_NAMES = 500
"""How many names are kept for one text."""

_SHORTEST, _LONGEST, _MOST_PARTS = 4, 60, 10
_LONGEST_WORD, _MOST_KNOWN = 400, 40_000
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN = r"[\u3400-\u9fff]{2,8}|[\u30a0-\u30ff]{2,8}|[\u3040-\u309f]{2,8}|[\uac00-\ud7af]{2,8}"
_ASCII, _ANY = r"[A-Za-z0-9_./:@#+~-]", r"[A-Za-z0-9_./:@#+~\w-]"
_NUMBER = r"[0-9][0-9]{0,17}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,12})?"
_UNIT = r"(?:%|[kKMGT]i?B\b|[kMG]?Hz\b|[mµn]?s\b|k?g\b|[kcm]?m\b|tokens\b|px\b|°[CF]|[€£¥₽₩])"
_QUANTITY = rf"[$€£¥] ?{_NUMBER}|{_NUMBER} ?{_UNIT}"
# Fast, as the first character tells which alternative may match, and most numbers have no unit.
_NUMBER_WITH_UNIT = _NUMBER.replace("[0-9]", "[0-9](?=[0-9,.]{0,33} ?[%kKMGTHmµnsgctp°€£¥₽₩])", 1) + f" ?{_UNIT}"
_ASCII_WORDS = re.compile(
    rf"[A-Za-z_]{_ASCII}{{2,}}|\n|{_NUMBER_WITH_UNIT}|[0-9#]{_ASCII}{{2,}}|\.[A-Za-z0-9_#]{_ASCII}{{2,}}|\$ ?{_NUMBER}",
    re.ASCII,
)
_WORDS = re.compile(
    rf"[A-Za-z_]{_ANY}{{2,}}|\n|{_NUMBER_WITH_UNIT}|[0-9#]{_ANY}{{2,}}|\.[\w#]{_ANY}{{2,}}|[$€£¥] ?{_NUMBER}"
    rf"|{_RUN}|[^\W\x00-\x7f{_CJK}]{_ANY}{{2,}}"
)
_WITHOUT_SPACES = re.compile(f"[{_CJK}]+")
_OTHER_FORMS = re.compile(rf"(?:{_QUANTITY}|{_RUN})")
_URL = re.compile(r"[a-z][a-z0-9+]{1,9}://[^?#]*")
_HUMP, _CAPITALS = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]"), re.compile(r"[A-Z]{4,}")
_MARKS, _PARTS = re.compile(r"[^\w]"), re.compile(r"[^\W\d_]{2,}")
_LINE_NUMBER = re.compile(r"(?::\d{1,7}){1,2}$")

# Formats of keys and tokens.
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:[spr]k[-_][\w-]{16,}|gh[opsur]_\w{16,}|github_pat_\w{16,}|gl[a-z]{1,4}t-[\w-]{16,}"
    r"|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}"
    r"|eyJ[\w-]{8,}|(?:hf|npm|dop_v1|shp[a-z]{2}|lin_api|ntn|r8|tfp|gsk|pplx|sbp|secret|pul|vercel)[_-][A-Za-z0-9]{20,}"
    r"|(?:nvapi|whsec|glsa|dckr_pat|PMAK|NRAK|figd|lsv2_[a-z]{2})[_-][\w-]{16,}|dapi[0-9a-f]{16,}|dp\.[a-z]{2}\.\w{16,}"
    r"|pypi-[\w-]{16,}|SG\.[\w-]{16,}|key-[0-9a-f]{16,}|hvs\.[\w-]{16,}|sq0[a-z]{3}-[\w-]{16,}|EAA[A-Za-z0-9]{20,}"
    r"|\d{8,10}:AA[\w-]{30,}|-----BEGIN[A-Z ]{0,30} PRIVATE KEY)"
)
# Words beside which a password stands, in small letters, and what stands there. In a URL it stands before the @.
_SECRET_WORD = re.compile(
    r"pass(?:word|wd|phrase|code|(?![a-z]))|pwd|secret|token|credential|cookie|key|auth(?!or)|bearer|basic|://"
)
_SECRET_WORD_OF_ANY_CASE = re.compile(_SECRET_WORD.pattern, re.IGNORECASE)
_VALUE = re.compile(
    r"""(?:(?<=://)(?:[^\s/:@]{0,100}:(?P<open>[^\s/@]{1,200})|(?P<user>[^\s/:@]{16,200}))@
    |(?:(?<=bearer)|(?<=basic))[ ](?P<header>[\w.+/=~-]{12,})
    |[\w-]{0,20}(?:
        [\\"'`\])*]{0,4}(?:\s{1,20}value)?(?:[ \t]{0,4}:[ \t]?\w{1,12}(?=[ \t]{0,4}=))?
            [ \t]{0,4}(?:[:=]{1,2}>?|\bis\b|(?<=["']),)[*]{0,2}[ \t]{0,4}\\?["'`]?
        |>(?=[^<\s]{6,200}</)
        )(?P<value>[^\s"'`,;<>()\[\]{}\\]{6,200})
    |[\w-]{0,20}[ ](?P<argument>[^\s"'`,;<>()\[\]{}\\]{8,200}))""",
    re.IGNORECASE | re.VERBOSE,
)
_REST_OF_VALUE = re.compile(r"[\w.+/=~-]*")
# A key by another name opens nothing: most are those of mappings.
_OF_KEYS = ("api", "access", "secret", "private", "account", "shared", "signing", "encryption", "license", "auth")
_DIGIT, _SMALL, _CAPITAL, _DIGIT_OR_CAPITAL = map(re.compile, ("[0-9]", "[a-z]", "[A-Z]", "[0-9A-Z]"))
_SHORTEST_KEY, _RANDOM_FROM, _MANY_SWITCHES = 11, 24, 0.38
_RUN_OF_LETTERS = re.compile(r"[A-Za-z0-9+=_-]{24,}")
_SWITCH = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")


class Names:
    """What counts as a name. *include* are patterns of further names, *exclude* of words that never are one.

    Patterns are regular expressions. One of *include* may match anywhere; one of *exclude* has to match all of a name.
    They run on whole texts: a pattern that takes long for some of them holds up the agent.

    >>> Names().of("see src/app.py:12, orderId 4711-a and https://example.com/a?key=1")
    ['src/app.py:12', 'orderId', '4711-a', 'https://example.com/a']
    >>> Names(include=[r"ORD-\\d+"], exclude=["orderId"]).of("orderId of ORD-7")
    ['ORD-7']
    """

    def __init__(self, *, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.include = _checked("include", include)
        self.exclude = _checked("exclude", exclude)
        self._included, self._excluded = tuple(map(re.compile, self.include)), tuple(map(re.compile, self.exclude))

    @staticmethod
    def from_options(given: Names | Mapping[str, Any] | None) -> Names:
        """Return the names that an option asks for: ``{"include": […], "exclude": […]}``, or `Names` as they are."""
        if given is None:
            return Names()
        if isinstance(given, Names):
            return given
        if not isinstance(given, Mapping):
            raise InvalidTypeError(f"names must be Names(…) or a mapping with include and exclude, got {given!r:.80}")
        if unknown := [key for key in given if key not in ("include", "exclude")]:
            raise InvalidValueError(f"unknown option {unknown[0]!r:.80} of names: allowed are exclude, include")
        return Names(**given)

    def of(self, text: str, most: int | None = MOST_NAMES) -> list[str]:
        """Return the first *most* names in a text, each once, in their order; None for all of them."""
        text = without_secrets(text)
        found = dict.fromkeys(chain(self._included_in(text), map(_NAME_OF.__getitem__, _words_of(text))))
        return list(islice((name for name in found if name != "\n" and self.may_be_listed(name)), most))

    def by_line(self, text: str) -> list[frozenset[str]]:
        """Return the names in each line of a text, as many sets as it has lines."""
        text = without_secrets(text)
        lines: list[frozenset[str]] = []
        line: list[str] = []
        for name in filter(None, map(_NAME_OF.__getitem__, [*_words_of(text), "\n"])):
            if name != "\n":
                line.append(name)
            else:
                lines.append(frozenset(line) if line else _NONE)
                line.clear()
        if self._included:
            lines = [names.union(self._included_in(own)) for names, own in zip(lines, text.split("\n"), strict=True)]
        if self._excluded:
            lines = [frozenset(filter(self.may_be_listed, names)) for names in lines]
        return lines

    def may_be_listed(self, name: str) -> bool:
        """Return True unless the user excluded the name, or it is too long for one."""
        return 0 < len(name) <= _LONGEST and not any(pattern.fullmatch(name) for pattern in self._excluded)

    def _included_in(self, text: str) -> Iterator[str]:
        found = (match[0] for pattern in self._included for match in pattern.finditer(text))
        return (name for name in found if self.may_be_listed(name) and not _is_key(name))


class _NameOf(dict[str, str]):
    """The name that a word is, empty if it is none. Each word is judged once in a process: for all it is the same.

    A line end stands for itself.
    """

    def __missing__(self, word: str) -> str:
        if len(word) > _LONGEST_WORD:
            return ""
        if len(self) >= _MOST_KNOWN:
            self.clear()
        name = self[word] = "\n" if word == "\n" else _name_in(word)
        return name


_NAME_OF = _NameOf()
_NONE = frozenset[str]()


def _words_of(text: str) -> list[str]:
    """Return what may be names, and line ends."""
    if text.isascii():
        return _ASCII_WORDS.findall(text)
    return _WORDS.findall(_WITHOUT_SPACES.sub(r" \g<0> ", text))


def without_secrets(text: str) -> str:
    """Return the text without passwords: random values beside a word such as token, or before the @ of a URL."""
    small = text.lower()
    # Few letters become two small ones.
    words = _SECRET_WORD.finditer(small) if len(small) == len(text) else _SECRET_WORD_OF_ANY_CASE.finditer(text)
    pieces, end = [], 0
    for word in words:
        found = _VALUE.match(text, word.end()) if word.end() >= end else None
        if found and (kind := found.lastgroup) and _is_secret(kind, found[kind], word):
            pieces.append(text[end : found.start(kind)])
            end = _REST_OF_VALUE.match(text, found.end(kind)).end()  # type: ignore[union-attr]
    return "".join([*pieces, text[end:]]) if pieces else text


def holds_credential(text: str) -> bool:
    """Return True if something in the text looks like a credential."""
    return _is_key(text.strip()) or without_secrets(text) is not text


def _is_secret(kind: str, value: str, word: re.Match[str]) -> bool:
    """Return True if what stands beside a word such as password is one: letters mixed with digits, or the like."""
    if kind in ("open", "user", "header"):
        return True
    has_digit, has_small, has_capital = (bool(test.search(value)) for test in (_DIGIT, _SMALL, _CAPITAL))
    before, said = word.string[max(0, word.start() - 12) : word.start()].lower(), word[0].lower()
    if kind == "argument" or (said == "key" and not before.rstrip("-_ ").endswith(_OF_KEYS)):
        return has_digit and has_small and has_capital
    if said.startswith(("pass", "pwd")) and value.isdigit():
        return True
    return (has_digit and (has_small or has_capital)) or (has_small and has_capital and not value.isalnum())


def _is_key(word: str) -> bool:
    """Return True for the format of a key, and for a random mixture of letters and digits."""
    if len(word) < _SHORTEST_KEY or not _DIGIT_OR_CAPITAL.search(word):
        return False
    if _KEY.search(word):
        return True
    if len(word) < _RANDOM_FROM or not _is_mixed(word):
        return False
    return any(map(_is_random, [word, *_RUN_OF_LETTERS.findall(word)]))


def _is_random(word: str) -> bool:
    return len(_SWITCH.findall(word)) > _MANY_SWITCHES * len(word) and _is_mixed(word)


def _is_mixed(word: str) -> bool:
    return bool(_CAPITAL.search(word) and _DIGIT.search(word) and _SMALL.search(word))


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and word[1:].islower()


def _name_in(word: str) -> str:
    """Return the name that a word is without what stands around it; empty if it is none."""
    if _is_plain(word) or _is_key(word):
        return ""
    url = _URL.match(word)
    name = (url[0] if url else word).rstrip("./:-+~@#")
    # A dot belongs to what it begins only in a path: .git/config, but not .append.
    name = name if "/" in name else name.lstrip(".")
    if len(name) > _LONGEST:
        # The end of a path tells more than its beginning.
        name = name[name.find("/", len(name) - _LONGEST - 1) + 1 :] if "/" in name[-_LONGEST - 1 :] else ""
    if _OTHER_FORMS.fullmatch(name):
        return name
    return name if len(name) >= _SHORTEST and _has_shape(name) else ""


def _has_shape(name: str) -> bool:
    """Return True for an identifier, a number that identifies, or words joined by marks of one kind."""
    core = name.removeprefix("#")
    if ":" in core:
        core = _LINE_NUMBER.sub("", core)
        _, colon, rest = core.partition("://")
        core = rest if colon else core
    marks = set(_MARKS.findall(core))
    # So many parts, of at least two letters each, take some room.
    letters = _PARTS.findall(core) if marks or len(core) > 2 * _MOST_PARTS else ()
    if len(letters) > _MOST_PARTS:
        return False
    has_digit = any(map(str.isdigit, core))
    if not marks:
        if core.isdigit():
            return len(core) >= 5 or name.startswith("#")
        joined = "_" in core.strip("_") or core != name or _HUMP.search(core)
        return bool(joined or has_digit or _CAPITALS.fullmatch(core))
    if "/" in marks:
        return bool(letters) and marks <= {"/", ".", "-", "@", "+", "~"} and (len(letters) > 1 or has_digit)
    if marks == {"-"}:
        return has_digit or core.count("-") > 1
    if "@" in marks:
        return marks <= {"@", ".", "-", "+"} and core.count("@") == 1
    if marks <= {".", "-", ":", "+"}:
        return has_digit or (bool(letters) and len(marks) == 1 and marks <= {".", ":"})
    return False


def _checked(option: str, patterns: Iterable[str]) -> tuple[str, ...]:
    if isinstance(patterns, str) or not isinstance(patterns, Iterable):
        raise InvalidTypeError(f"{option} must be a list of patterns, got {patterns!r:.80}")
    given = tuple(patterns)
    for pattern in given:
        if not isinstance(pattern, str):
            raise InvalidTypeError(f"{option} must hold regular expressions as text, got {type(pattern).__name__}")
        try:
            re.compile(pattern)
        except re.error as error:
            raise InvalidValueError(
                f"{option} holds {pattern!r:.80}, which is no regular expression: {error}"
            ) from None
    return given
