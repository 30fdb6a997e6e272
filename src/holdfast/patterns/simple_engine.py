"""Regular expressions without RE2: those so simple that they are matched piece by piece, in linear time.

A pattern is one or more alternatives; each is a sequence of pieces with ``.*`` between them; a piece is made of single
characters, classes, dots and anchors, and has no repetition. The first piece is looked for where it first occurs, the
next behind it, and so on: nothing is ever tried twice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from holdfast.errors import InvalidValueError
from holdfast.patterns.plain_engine import require_ascii_letters
from holdfast.patterns.syntax import Kind, Token, invalid_pattern, tokens_of

__all__ = ["SimpleFinder"]

_LONGEST = 200
# No other thread runs while `re` does, so that it gets a small part at a time.
_STEPS = 8
_INSTALL = "For all regular expressions: pip install 'holdfast[patterns]'. For plain text, set plain_text=true"
_AVAILABLE = "without RE2 there are only characters, classes, dots, anchors, .*, and alternatives outside of groups"
_NAMES = {
    Kind.OPEN: "a group is not available",
    Kind.REPEAT: "a repetition other than .* is not available",
    Kind.ESCAPE: "this escape is not available",
    Kind.CLASS: "this class is not available",
}
# As RE2 has them: the vertical tab is no blank.
_CLASS_ESCAPES = {"\\d": "0-9", "\\w": "0-9A-Za-z_", "\\s": r"\t\f\r ", "\\S": r"\S\v", "\\D": "\\D", "\\W": "\\W"}
_CHARACTERS = {"\\n": "\n", "\\t": "\t", "\\f": "\f", "\\r": "\r", "\\v": "\v", "\\a": "\a"}
_IN_CLASS = re.compile(r"\\x\{[^{}]*\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\.|\[:|.", re.DOTALL)
_CLOSED_CLASS = re.compile(r"\[\^?(?:\[:\^?\w+:\]|\\.|[^\\])(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_CODE = re.compile(r"\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_GAPS = ("*", "+", "*?", "+?")
_FLAGS = re.ASCII | re.MULTILINE

_Following = Callable[[str, int, int], int]


class SimpleFinder:
    """Finds lines that match a simple regular expression; raises InvalidValueError for any other."""

    needs_readable_text = True

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        tokens = tokens_of(pattern)
        if len(tokens) > _LONGEST:
            reason = f"without RE2 a regular expression may have at most {_LONGEST} parts, this has {len(tokens)}"
            raise invalid_pattern(pattern, reason, advice=_INSTALL)
        if ignore_case:
            require_ascii_letters(pattern)
        flags = _FLAGS | (re.IGNORECASE if ignore_case else 0)
        self._alternatives = [_Sequence.of(pattern, part, flags) for part in _alternatives(tokens)]
        self.steps_per_byte = _STEPS * (len(tokens) + len(self._alternatives))

    def lines_in(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the first match of each matching line."""
        return self._spans(text, 0, lambda characters, _, end: _line_end(characters, end) + 1)

    def matches_in(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield every match from *start* on, one behind the other."""
        return self._spans(text, start, lambda _, start, end: max(end, start + 1))

    def count_from(self, text: bytes, start: int) -> int:
        """Count the matching lines from *start*, which is the start of a line."""
        return sum(1 for _ in self.lines_in(text[start:]))

    def _spans(self, text: bytes, start: int, following: _Following) -> Iterator[tuple[int, int]]:
        characters = text.decode(errors="replace")
        first = len(text[:start].decode(errors="replace"))
        spans = self._found(characters, first, following)
        return spans if len(characters) == len(text) else _in_bytes(characters, spans)

    def _found(self, text: str, start: int, following: _Following) -> Iterator[tuple[int, int]]:
        """Yield the leftmost match, then the next from where *following* says. What lies further on is not lost."""
        found = [alternative.first_from(text, start) for alternative in self._alternatives]
        while best := min((span for span in found if span is not None), key=itemgetter(0), default=None):
            yield best
            start = following(text, *best)
            for number, span in enumerate(found):
                if span is not None and span[0] < start:
                    found[number] = self._alternatives[number].first_from(text, start)


@dataclass(frozen=True)
class _Sequence:
    """Pieces with anything between them. *last* finds where the last piece ends, behind the others."""

    pieces: tuple[re.Pattern[str], ...]
    last: re.Pattern[str] | None

    @classmethod
    def of(cls, pattern: str, tokens: Sequence[Token], flags: int) -> _Sequence:
        expressions, lazy = _pieces(pattern, tokens)
        compiled = [re.compile(expression, flags) for expression in expressions]
        if len(expressions) == 1:
            return cls((compiled[0],), None)
        last = re.compile(f".*{'?' if lazy else ''}(?:{expressions[-1]})", flags)
        return cls(tuple(compiled[:-1]), last)

    def first_from(self, text: str, start: int) -> tuple[int, int] | None:
        while start <= len(text) and (match := self.pieces[0].search(text, start)) is not None:
            line_end = _line_end(text, match.end())
            if (end := self._end(text, match.end(), line_end)) is not None:
                return match.start(), end
            start = line_end + 1
        return None

    def _end(self, text: str, position: int, line_end: int) -> int | None:
        for piece in self.pieces[1:]:
            if (match := piece.search(text, position, line_end)) is None:
                return None
            position = match.end()
        if self.last is None:
            return position
        found = self.last.match(text, position, line_end)
        return None if found is None else found.end()


def _line_end(text: str, position: int) -> int:
    line_feed = text.find("\n", position)
    return len(text) if line_feed < 0 else line_feed


def _in_bytes(text: str, spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    characters = size = 0
    for start, end in spans:
        size += len(text[characters:start].encode())
        characters = start
        yield size, size + len(text[start:end].encode())


def _alternatives(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.kind is Kind.OR:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _pieces(pattern: str, tokens: Sequence[Token]) -> tuple[list[str], bool]:
    """Return the pieces as expressions of `re`, and whether the last of the ``.*`` between them is lazy."""
    pieces, lazy = [""], False
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind is not Kind.REPEAT:
            pieces[-1] += _in_re(pattern, token)
            continue
        if before is None or before.kind is not Kind.DOT or token.text not in _GAPS:
            raise _unavailable(pattern, token)
        pieces[-1] = pieces[-1] if token.text.startswith("+") else pieces[-1].removesuffix(".")
        pieces.append("")
        lazy = token.text.endswith("?")
    return pieces, lazy


def _in_re(pattern: str, token: Token) -> str:
    match token.kind:
        case Kind.LITERAL:
            return re.escape(token.text)
        case Kind.QUOTED:
            return re.escape(token.text.removeprefix("\\Q").removesuffix("\\E"))
        case Kind.DOT | Kind.WORD_EDGE:
            return token.text
        case Kind.LINE_START | Kind.LINE_END:
            return "^" if token.kind is Kind.LINE_START else "$"
        case Kind.ESCAPE:
            return _escape(pattern, token)
        case Kind.CLASS:
            return _class(pattern, token)
    raise _unavailable(pattern, token)


def _escape(pattern: str, token: Token) -> str:
    if token.text in _CLASS_ESCAPES:
        return _within_the_line(f"[{_CLASS_ESCAPES[token.text]}]")
    if (character := _character(token.text)) is None:
        raise _unavailable(pattern, token)
    return re.escape(character)


def _class(pattern: str, token: Token) -> str:
    if not _CLOSED_CLASS.fullmatch(token.text):
        raise invalid_pattern(pattern, "this bracket is never closed", token.start)
    negated = "^" if token.text.startswith("[^") else ""
    parts = [_class_part(part) for part in _IN_CLASS.findall(token.text[1 + len(negated) : -1])]
    written = "".join(part or "" for part in parts)
    if None in parts or "--" in written:
        raise _unavailable(pattern, token)
    try:
        return _within_the_line(f"[{negated}{written}]")
    except re.error:
        raise invalid_pattern(pattern, "this range of characters does not exist", token.start) from None


def _within_the_line(expression: str) -> str:
    return rf"(?!\n){expression}" if re.match(expression, "\n") else expression


def _class_part(part: str) -> str | None:
    """Return a part of a class as `re` writes it, or None if that has none such."""
    if part == "-" or part in _CLASS_ESCAPES:
        return _CLASS_ESCAPES.get(part, part)
    character = _character(part)
    return None if character is None else re.escape(character)


def _character(text: str) -> str | None:
    """Return the character that a part of a pattern stands for, or None if it stands for none, or for several."""
    if code := _CODE.fullmatch(text):
        value = int(code[code.lastindex or 0], 16)
        return chr(value) if value <= sys.maxunicode else None
    if text in _CHARACTERS:
        return _CHARACTERS[text]
    if text.startswith("\\"):
        return text[1] if len(text) == 2 and not text[1].isalnum() else None
    return text if len(text) == 1 else None


def _unavailable(pattern: str, token: Token) -> InvalidValueError:
    reason = f"{_NAMES.get(token.kind, 'this is not available')}: {_AVAILABLE}"
    return invalid_pattern(pattern, reason, token.start, advice=_INSTALL)
