"""Patterns on RE2, which takes linear time for every pattern and lets other threads run meanwhile."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from types import ModuleType
from typing import Any

from holdfast.errors import InvalidValueError
from holdfast.patterns.syntax import Kind, Token, invalid_pattern, tokens_of

__all__ = ["Re2Finder"]

_MEMORY = 4 * 1024 * 1024
_BATCH = 32
_LARGEST_FOR_BATCHES = 100
_NEAR = 2_048
_WORST_STEPS = 20_000_000

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)", re.DOTALL)
# Bytes that are no characters are shown as this one, each or up to three together, and are read as U+001A.
_UNREADABLE = "\ufffd"
_AS_READ = r"(?:\x{FFFD}|\x1a{1,3})"
_ANCHORS = {Kind.LINE_START: "(?m:^)", Kind.LINE_END: "(?m:$)"}
_REASONS = {
    "missing ]": "this bracket is never closed",
    "no argument for repetition operator": "there is nothing before this to repeat",
    "missing argument to repetition operator": "there is nothing before this to repeat",
    "bad repetition operator": "one repetition follows another",
    "invalid repetition size": "a repetition may be asked for 1,000 times at most, all nested ones together",
    "invalid escape sequence": "this escape means nothing",
    "trailing \\": "nothing follows the last backslash",
    "invalid character class range": "this range or class of characters does not exist",
    "invalid perl operator": "this kind of group does not exist",
    "invalid named capture group": "this name of a group is not valid",
    "pattern too large - compile failed": "it is too large once its repetitions are written out; use smaller numbers",
}


class Re2Finder:
    """Finds lines that match a regular expression, or *pattern* as plain text, with google-re2 (the module *re2*)."""

    needs_readable_text = True

    def __init__(self, re2: ModuleType, pattern: str, *, plain_text: bool, ignore_case: bool) -> None:
        self._re2 = re2
        self._ignore_case = ignore_case
        self._expression = _quoted(re2, pattern) if plain_text else "".join(map(_in_re2, tokens_of(pattern)))
        try:
            self._regexp = self._compiled(self._expression)
        except re2.error as error:
            raise _explained(pattern, _message(error)) from None
        self.steps_per_byte: int = self._regexp.programsize

    def lines_in(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the first match of each matching line."""
        start = 0
        while (match := self._regexp.search(text, start)) is not None:
            yield match.span()
            if not (start := text.find(b"\n", match.end()) + 1):
                return

    def matches_in(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield every match from *start* on, one behind the other."""
        start = _character_start(text, start)
        while start <= len(text) and (match := self._regexp.search(text, start)) is not None:
            yield match.span()
            start = match.end() if match.end() > match.start() else _character_start(text, match.end() + 1)

    def count_from(self, text: bytes, start: int) -> int:
        """Count the matching lines from *start*, which is the start of a line. Close ones are counted in batches."""
        total = batches_from = 0
        while (match := self._regexp.search(text, start)) is not None:
            total += 1
            before, start = start, text.find(b"\n", match.end()) + 1
            if not start:
                break
            if start - before < _NEAR and start >= batches_from:
                batches, start, batches_from = self._count_batches(text, start)
                total += batches * _BATCH
        return total

    def _count_batches(self, text: bytes, start: int) -> tuple[int, int, int]:
        """Return how many full batches follow, where they end, and from where it is worth while to try again."""
        if self._batch is None:
            return 0, start, len(text) + 1
        batches, span = 0, _WORST_STEPS // self._batch.programsize
        while (match := self._batch.match(text, start, start + span)) is not None:
            batches, start = batches + 1, match.end()
        return batches, start, start + span

    @cached_property
    def _batch(self) -> Any:
        """As many matching lines as a batch has, in one match, with what is between them. None if that is too large.

        The lazy repetition takes the next line that matches; ``\\C`` is any byte, here the line feed.
        """
        if self.steps_per_byte > _LARGEST_FOR_BATCHES:
            return None
        try:
            return self._compiled(rf"(?:\C*?(?:{self._expression})[^\n]*(?m:$)\C){{{_BATCH}}}")
        except self._re2.error:
            return None

    def _compiled(self, expression: str) -> Any:
        options = self._re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False
        options.never_nl = True
        options.never_capture = True
        options.case_sensitive = not self._ignore_case
        return self._re2.compile(expression.encode(), options)


def _character_start(text: bytes, position: int) -> int:
    while position < len(text) and text[position] & 0xC0 == 0x80:
        position += 1
    return position


def _in_re2(token: Token) -> str:
    """Return a token as RE2 writes it, with anchors that are the ends of the line whatever flags are set."""
    if token.kind in _ANCHORS:
        return _ANCHORS[token.kind]
    if token.kind is Kind.REPEAT and token.text.startswith("{,"):
        return "{0" + token.text[1:]
    if token.kind in (Kind.ESCAPE, Kind.CLASS):
        return _ESCAPE.sub(_escape_in_re2, token.text)
    if token.kind is Kind.QUOTED:
        return token.text.removesuffix("\\E") + "\\E"
    return _AS_READ if token.text == _UNREADABLE else token.text


def _escape_in_re2(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return rf"\x{{{code}}}" if code else escape[0]


def _quoted(re2: ModuleType, text: str) -> str:
    return _AS_READ.join(map(re2.escape, text.split(_UNREADABLE)))


def _message(error: Exception) -> str:
    """Return RE2's message, which comes as bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _explained(pattern: str, message: str) -> InvalidValueError:
    kind, _, fragment = message.partition(": ")
    reason = _REASONS.get(kind, kind)
    if kind.startswith("trailing"):
        return invalid_pattern(pattern, reason, len(pattern) - 1)
    return invalid_pattern(pattern, reason, _position(tokens_of(pattern), fragment) if fragment else None)


def _position(tokens: Sequence[Token], fragment: str) -> int | None:
    """Return where the part that RE2 complains of begins in the pattern as it was given."""
    written = [_in_re2(token) for token in tokens]
    starts = list(accumulate(map(len, written), initial=0))
    expression = "".join(written)
    at_a_token = (start for start in starts if expression.startswith(fragment, start))
    found = next(at_a_token, expression.find(fragment))
    if found < 0:
        return None
    number = bisect_right(starts, found) - 1
    return tokens[number].start + found - starts[number]
