"""A summary without a model: what was asked, which tools ran, what was named, what was said last."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.cuts import opens_a_turn
from holdfast.messages import Json, Message, Text, ToolResult, ToolUse

__all__ = ["extractive_summary"]

_KNOWN = "Known from before"
_LONGEST_QUOTE = 240
_MOST_NAMES = 40
_MOST_OF_EACH = 12
_LOOKED_AT = 20_000
# Paths, addresses, identifiers with digits or case in them, and quoted numbers: what an agent has to know exactly.
_NAME = re.compile(
    r"https?://[^\s\"'<>)\]]{4,200}"
    r"|(?:[\w.-]{1,64}/){1,12}[\w.-]{1,64}"
    r"|\b[A-Za-z]{1,12}[-_#][A-Za-z0-9_-]{0,24}\d[A-Za-z0-9_-]{0,24}\b"
    r"|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}\b"
)


def extractive_summary(messages: Sequence[Message], *, known: str = "", longest: int = 6_000) -> str:
    """Return a summary of *messages*, and of what was *known* before, of at most *longest* characters.

    The same messages always give the same summary.
    """
    sections = [
        (_KNOWN, _lines(known)),
        ("Asked by the user", _quotes(message.text for message in messages if opens_a_turn(message))),
        ("Tools used", _tools(messages)),
        ("Failed", _quotes(_failures(messages))),
        ("Named", _names(messages)),
        ("Said last", _quotes(_said_last(messages))),
    ]
    filled = [(title, lines) for title, lines in sections if lines]
    share = longest // max(len(filled), 1)
    return "\n".join(f"{title}:\n{_within(title, lines, share - len(title) - 2)}" for title, lines in filled)[:longest]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and line != f"{_KNOWN}:"]


def _quotes(texts: Iterable[str]) -> list[str]:
    """Return the first and the latest of some texts, shortened."""
    quotes = [f"- {_shortened(text)}" for text in texts if text.strip()]
    return quotes if len(quotes) <= _MOST_OF_EACH else [quotes[0], "- …", *quotes[2 - _MOST_OF_EACH :]]


def _shortened(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST_QUOTE].split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


def _tools(messages: Iterable[Message]) -> list[str]:
    counts = Counter(use.name for message in messages for use in message.tool_uses)
    return [f"- {name} × {count}" for name, count in counts.most_common(_MOST_OF_EACH)]


def _failures(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for result in message.tool_results:
            if result.is_error:
                yield "".join(_texts((result,)))


def _names(messages: Iterable[Message]) -> list[str]:
    """Return what was named most, in the order of first naming."""
    counts: Counter[str] = Counter()
    for message in messages:
        for text in _texts(message.blocks):
            counts.update(dict.fromkeys(_NAME.findall(text[:_LOOKED_AT]), 1))
    most = {name for name, _ in counts.most_common(_MOST_NAMES)}
    return [f"- {name}" for name in counts if name in most]


def _texts(blocks: Iterable[object]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text):
                yield text
            case Json(value) | ToolUse(_, _, value):
                yield str(value)[:_LOOKED_AT]
            case ToolResult(_, content):
                yield from _texts(content)


def _said_last(messages: Sequence[Message]) -> list[str]:
    said = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    return said[-3:]


def _within(title: str, lines: Sequence[str], longest: int) -> str:
    """Return as many lines as fit: the latest, but of what is known from before the first, which is the task."""
    kept: list[str] = []
    for line in lines if title == _KNOWN else reversed(lines):
        longest -= len(line) + 1
        if longest < 0 and kept:
            break
        kept.append(line[: max(longest + len(line), 1)])
    return "\n".join(kept if title == _KNOWN else reversed(kept))
