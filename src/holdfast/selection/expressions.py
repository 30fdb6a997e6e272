"""What small written languages have in common: a cursor with helpful errors, and, or, not and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn, TypeAlias

from holdfast.errors import InvalidValueError

__all__ = ["Condition", "Cursor", "Words", "closest", "condition", "listed"]

Condition: TypeAlias = Callable[[Any], bool]
"""Says of an item or a row whether it is wanted."""

_LONGEST = 5_000
_DEEPEST = 50
_SHOWN = 60
_MOST_COMPARED = 500
_LONGEST_NAME = 80
_SPACE = re.compile(r"\s*")


class Cursor:
    """A place in a written expression, moving forward. `fail` shows the place with a caret."""

    def __init__(self, text: str, *, what: str) -> None:
        if len(text) > _LONGEST:
            raise InvalidValueError(f"{what} may have at most {_LONGEST:,} characters, got {len(text):,}")
        self.text = text
        self.position = 0
        self._what = what

    def skip_space(self) -> None:
        self.take(_SPACE)

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """Move past what the pattern matches here and return that, or stay and return nothing."""
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        return match[0]

    def accept(self, literal: str) -> bool:
        """Move past this text if it is here."""
        found = self.text.startswith(literal, self.position)
        self.position += len(literal) if found else 0
        return found

    def expect(self, literal: str, expected: str) -> None:
        if not self.accept(literal):
            self.fail(expected)

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def fail(self, expected: str, position: int | None = None) -> NoReturn:
        """Raise an error that shows the place and says what was expected there."""
        at = self.position if position is None else position
        start = max(at - _SHOWN, 0)
        shown = ("…" if start else "") + self.text[start : at + _SHOWN] + ("…" if at + _SHOWN < len(self.text) else "")
        line = "".join(character if character.isprintable() else " " for character in shown)
        caret = " " * (at - start + (1 if start else 0)) + "^"
        raise InvalidValueError(f"{self._what}: expected {expected} at character {at + 1}\n  {line}\n  {caret}")


@dataclass(frozen=True)
class Words:
    """How a language writes and, or and not, each in all spellings that it allows."""

    both: re.Pattern[str]
    either: re.Pattern[str]
    negation: re.Pattern[str]


def condition(cursor: Cursor, words: Words, test: Callable[[Cursor], Condition], depth: int = 0) -> Condition:
    """Read a condition: tests with and, or, not and parentheses around them. `and` binds stronger than `or`."""
    choices = [_all_of(cursor, words, test, depth)]
    while _joined(cursor, words.either):
        choices.append(_all_of(cursor, words, test, depth))
    return choices[0] if len(choices) == 1 else lambda item: any(choice(item) for choice in choices)


def _all_of(cursor: Cursor, words: Words, test: Callable[[Cursor], Condition], depth: int) -> Condition:
    needs = [_one(cursor, words, test, depth)]
    while _joined(cursor, words.both):
        needs.append(_one(cursor, words, test, depth))
    return needs[0] if len(needs) == 1 else lambda item: all(need(item) for need in needs)


def _joined(cursor: Cursor, word: re.Pattern[str]) -> bool:
    cursor.skip_space()
    return cursor.take(word) is not None


def _one(cursor: Cursor, words: Words, test: Callable[[Cursor], Condition], depth: int) -> Condition:
    if depth > _DEEPEST:
        cursor.fail(f"at most {_DEEPEST} parentheses and negations inside each other")
    cursor.skip_space()
    if cursor.take(words.negation) is not None:
        negated = _one(cursor, words, test, depth + 1)
        return lambda item: not negated(item)
    if not cursor.accept("("):
        return test(cursor)
    inner = condition(cursor, words, test, depth + 1)
    cursor.skip_space()
    cursor.expect(")", "')'")
    return inner


def closest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that look most like this one, the best first."""
    candidates = {known[:_LONGEST_NAME].lower(): known for known, _ in zip(names, range(_MOST_COMPARED), strict=False)}
    return [candidates[match] for match in get_close_matches(name[:_LONGEST_NAME].lower(), candidates, n=3)]


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return the first names in words, and how many more there are."""
    shown = ", ".join(map(_shown, names[:most]))
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def _shown(name: str) -> str:
    short = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    return short if short.isprintable() and short else repr(short)
