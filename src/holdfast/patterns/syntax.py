"""The syntax of patterns: tokens, what no pattern here may hold, and errors that point at the place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["LONGEST_PATTERN", "Kind", "Token", "invalid_pattern", "require_one_line", "require_pattern", "tokens_of"]

LONGEST_PATTERN = 1_000

_SHOWN_BEFORE = 40
_SHOWN_AFTER = 30


class Kind(Enum):
    """What a token of a pattern is."""

    LITERAL = auto()
    QUOTED = auto()
    ESCAPE = auto()
    CLASS = auto()
    DOT = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_EDGE = auto()
    OPEN = auto()
    CLOSE = auto()
    REPEAT = auto()
    OR = auto()


@dataclass(frozen=True)
class Token:
    """A piece of a pattern, and where it begins."""

    kind: Kind
    start: int
    text: str


# Nothing follows the loops in these alternatives that could fail, so that this never backtracks far.
_TOKEN = re.compile(
    r"""
      (?P<QUOTED>     \\Q (?: (?!\\E) . )* (?: \\E )? )
    | (?P<LINE_START> \^ | \\A )
    | (?P<LINE_END>   \$ | \\[zZ] )
    | (?P<WORD_EDGE>  \\[bB] )
    | (?P<ESCAPE>     \\ (?: x\{[^{}]*\} | x[0-9a-fA-F]{2} | u[0-9a-fA-F]{4} | U[0-9a-fA-F]{8} | [pP]\{[^{}]*\}
                           | [pP]. | 0[0-7]{0,2} | [1-7][0-7]{1,2} | . )? )
    | (?P<CLASS>      \[ \^? \]? (?: \[:\^?\w+:\] | \\. | [^\]\\] )* \]? )
    | (?P<OPEN>       \( (?: \? (?: P?<[=!] | P?<[^<>()]*> | P=\w+ | P>\w+ | [-a-zA-Z^]*[:)] | . )? )? )
    | (?P<CLOSE>      \) )
    | (?P<REPEAT>     (?: [*+?] | \{ (?: \d+ (?: ,\d* )? | ,\d+ ) \} ) [?+]? )
    | (?P<OR>         \| )
    | (?P<DOT>        \. )
    | (?P<LITERAL>    . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LOOKS_LIKE_A_PATTERN = re.compile(r"\.[*+]|\\[dDwWsSbB]|\(\?|\[\^|\[\w-\w|\||\{\d")
_LINE_FEED = re.compile(r"\n|\\(?:n|x0[aA]|x\{0*[aA]\}|012|u000[aA]|U0000000[aA])")
_NO_LINE_FEED = "a match never goes beyond its line, so that a line feed matches nothing"
_ONE_LINE = "Use $ for the end of a line, and search for one line at a time"
_ENGINE = "Patterns run on an engine that takes bounded time, and such an engine cannot have them"
_UNSUPPORTED = [
    (
        re.compile(r"\(\?<?[=!]"),
        f"lookahead and lookbehind are not supported. {_ENGINE}: search for the main part alone",
    ),
    (re.compile(r"\\[1-9]\Z|\\[kg]\Z|\(\?P[=>]"), f"back-references are not supported. {_ENGINE}: write the text out"),
    (re.compile(r"\(\?>"), "atomic groups are not supported, and not needed here: use (?:…)"),
    (re.compile(r"\(\?\("), f"conditional groups are not supported. {_ENGINE}: use alternatives, a|b"),
    (re.compile(r"\(\?#"), "comments are not supported: leave them out"),
    (re.compile(r"[*+?}]\+\Z"), "possessive repetitions are not supported, and not needed here: leave out the last +"),
    (re.compile(r"\\C"), "\\C, a single byte, is not supported: use . for a character"),
]


def require_pattern(pattern: object) -> str:
    """Return *pattern* if it is text of a bearable length."""
    if not isinstance(pattern, str):
        raise InvalidTypeError(f"pattern must be text, got {pattern!r:.80}")
    if not pattern:
        raise InvalidValueError("pattern must not be empty: leave it out to see every line")
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidValueError(f"pattern must have at most {LONGEST_PATTERN:,} characters, got {len(pattern):,}")
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        advice = "Write characters as they are, or as \\\\x{1F600}"
        raise invalid_pattern(pattern, "this is half a character", error.start, advice=advice) from None
    return pattern


def require_one_line(text: str) -> None:
    """Raise if *text* has a line feed, which no line holds."""
    if (found := text.find("\n")) >= 0:
        raise invalid_pattern(text, _NO_LINE_FEED, found, advice=_ONE_LINE)


def tokens_of(pattern: str) -> list[Token]:
    """Take *pattern* apart. Raises for what no pattern may hold; whether the rest is sound, its engine says."""
    tokens = list(_tokens(pattern))
    for token in tokens:
        _refuse_unsupported(pattern, token)
        _refuse_line_feed(pattern, token)
    _refuse_unbalanced(pattern, tokens)
    return tokens


def _tokens(pattern: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(pattern):
        yield Token(Kind[match.lastgroup or ""], match.start(), match.group())


def _refuse_unsupported(pattern: str, token: Token) -> None:
    if token.kind not in (Kind.OPEN, Kind.ESCAPE, Kind.REPEAT):
        return
    for form, reason in _UNSUPPORTED:
        if form.match(token.text) or (token.kind is Kind.REPEAT and form.search(token.text)):
            raise invalid_pattern(pattern, reason, token.start)


def _refuse_line_feed(pattern: str, token: Token) -> None:
    if token.kind is Kind.QUOTED:
        found = token.text.find("\n")
    else:
        found = 0 if token.kind in (Kind.LITERAL, Kind.ESCAPE) and _LINE_FEED.fullmatch(token.text) else -1
    if found >= 0:
        raise invalid_pattern(pattern, _NO_LINE_FEED, token.start + found, advice=_ONE_LINE)


def _refuse_unbalanced(pattern: str, tokens: list[Token]) -> None:
    opened: list[int] = []
    for token in tokens:
        # A group such as (?i) is closed already.
        if token.kind is Kind.OPEN and not token.text.endswith(")"):
            opened.append(token.start)
        elif token.kind is Kind.CLOSE and opened:
            opened.pop()
        elif token.kind is Kind.CLOSE:
            raise invalid_pattern(pattern, "this parenthesis closes nothing", token.start)
    if opened:
        raise invalid_pattern(pattern, "this parenthesis is never closed", opened[-1])


def invalid_pattern(pattern: str, reason: str, position: int | None = None, *, advice: str = "") -> InvalidValueError:
    """Return an error that says what is wrong with *pattern*, shows where, and says what to do instead."""
    if not advice and not _LOOKS_LIKE_A_PATTERN.search(pattern):
        advice = "To search for exactly this text, set plain_text=true"
    if position is None:
        return InvalidValueError(f"invalid pattern: {reason}. {advice}".rstrip(". ") + ".")
    first = max(position - _SHOWN_BEFORE, 0)
    left_out = "…" if first else ""
    shown = _printable(pattern[first : position + _SHOWN_AFTER])
    more = "…" if position + _SHOWN_AFTER < len(pattern) else ""
    caret = " " * (len(left_out) + position - first) + "^"
    message = f"invalid pattern at character {position + 1}: {reason}.\n  {left_out}{shown}{more}\n  {caret}"
    return InvalidValueError(f"{message}\n{advice}." if advice else message)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "·" for character in text)
