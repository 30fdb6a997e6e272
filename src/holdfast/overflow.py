"""Errors with which providers say that a request is too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.errors import ContextOverflowError

__all__ = ["Figures", "figures_in", "is_context_overflow"]

_NAMES = frozenset({"ContextWindowOverflowException", "ContextWindowExceededError", "ContextLengthExceededError"})
_CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded", "request_too_large"})
_WORDS = re.compile(
    r"prompt is too long|input is too long"
    r"|context.{0,20}(?:length|window|limit|size).{0,40}(?:exceed|too|larger|maximum)"
    r"|exceed.{0,40}context|maximum context length|too many (?:input )?tokens|input length and `?max_tokens`? exceed"
    r"|reduce the length of the (?:messages|prompt|input)|token count.{0,40}exceeds|input tokens? exceeds?",
    re.IGNORECASE | re.DOTALL,
)
# Bedrock throttles with "Too many tokens, please wait before trying again": a shorter history would not help.
_THROTTLED = re.compile(r"throttl|rate.?limit|please wait|tokens per (?:minute|day)", re.IGNORECASE)
_SENT_AND_LIMIT = (
    re.compile(r"(?P<sent>[\d,]{3,12}) tokens? > (?P<limit>[\d,]{3,12})"),
    re.compile(r"context limit: (?P<sent>[\d,]{3,12}) \+ [\d,]{1,12} > (?P<limit>[\d,]{3,12})"),
    re.compile(
        r"maximum context length (?:is|of) (?P<limit>[\d,]{3,12}) tokens"
        r".{0,80}?\((?P<sent>[\d,]{3,12}) in the messages",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(
        r"maximum context length (?:is|of) (?P<limit>[\d,]{3,12}) tokens.{0,80}?(?P<sent>[\d,]{3,12}) tokens",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(
        r"token count.{0,20}?(?P<sent>[\d,]{3,12}).{0,60}?exceeds.{0,60}?(?P<limit>[\d,]{3,12})",
        re.DOTALL | re.IGNORECASE,
    ),
)
_LOOKED_AT = 4_000
_MOST_CAUSES = 8


class Figures(NamedTuple):
    """How many tokens a provider was sent, and how many it takes, as far as it said."""

    sent: int | None = None
    limit: int | None = None


def is_context_overflow(error: BaseException | None) -> bool:
    """Say whether *error*, or what caused it, means that the request did not fit the model's window."""
    return isinstance(error, Exception) and any(_means_overflow(each) for each in _chain(error))


def figures_in(error: BaseException | None) -> Figures:
    """Return the figures that *error* names."""
    for each in _chain(error):
        for pattern in _SENT_AND_LIMIT:
            if (found := pattern.search(str(each)[:_LOOKED_AT])) is not None:
                return Figures(_number(found["sent"]), _number(found["limit"]))
    return Figures()


def _means_overflow(error: BaseException) -> bool:
    if isinstance(error, ContextOverflowError) or type(error).__name__ in _NAMES:
        return True
    code, words = getattr(error, "code", None), str(error)[:_LOOKED_AT]
    if isinstance(code, str) and code in _CODES:
        return True
    return _WORDS.search(words) is not None and _THROTTLED.search(words) is None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))
