"""A summary without a model: what was asked, which tools ran, what was named, what was said last."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from holdfast.compression.summary_sections import (
    CUT,
    Section,
    first_and_latest,
    firsts,
    latest,
    read_sections,
    written,
)
from holdfast.cuts import opens_a_turn
from holdfast.messages import Json, Message, Text, ToolResult, ToolUse
from holdfast.names import Names

__all__ = ["extractive_summary"]

_ASKED, _KNOWN, _TOOLS, _FAILED = "Asked by the user", "Known from before", "Tools used", "Failed"
_NAMED, _SAID = "Named", "Said last"
_TITLES = {title: title for title in (_ASKED, _KNOWN, _TOOLS, _FAILED, _NAMED, _SAID)}
_LONGEST_QUOTE = 240
_MOST_NAMES = 40
_MOST_OF_EACH = 12
_MOST_SAID = 3
_LOOKED_AT = 20_000
_TIMES = re.compile(r"- (.+) × (\d{1,9})")


def extractive_summary(
    messages: Sequence[Message], *, known: str = "", longest: int = 6_000, names: Names | None = None
) -> str:
    """Return a summary of *messages*, and of what was *known* before, of at most *longest* characters.

    The same messages always give the same summary. What an earlier one says is joined with it section by section, and
    what the user asked has the most room.
    """
    before = read_sections(known, _TITLES, _KNOWN)
    asked = _quotes(message.text for message in messages if opens_a_turn(message))
    said = _quotes(message.text for message in messages if message.role == "assistant")
    sections = [
        Section(_ASKED, _joined(before[_ASKED], asked), first_and_latest),
        Section(_KNOWN, before[_KNOWN], firsts),
        Section(_TOOLS, _tools(before[_TOOLS], messages), firsts),
        Section(_FAILED, _joined(before[_FAILED], _quotes(_failures(messages)))[-_MOST_OF_EACH:], latest),
        Section(_NAMED, _names(before[_NAMED], messages, names or Names()), latest),
        Section(_SAID, _joined(before[_SAID], said)[-_MOST_SAID:], latest),
    ]
    return written(sections, longest)


def _joined(known: Iterable[str], new: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*known, *new]))


def _quotes(texts: Iterable[str]) -> list[str]:
    return [f"- {_shortened(text)}" for text in texts if text.strip()]


def _shortened(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST_QUOTE].split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}{CUT}"


def _tools(known: Iterable[str], messages: Iterable[Message]) -> list[str]:
    """Return how often each tool was used so far, the ones used most first."""
    counts: Counter[str] = Counter()
    for used in filter(None, map(_TIMES.fullmatch, known)):
        counts[used[1]] += int(used[2])
    counts.update(use.name for message in messages for use in message.tool_uses)
    return [f"- {name} × {count}" for name, count in counts.most_common(_MOST_OF_EACH)]


def _failures(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for result in message.tool_results:
            if result.is_error:
                yield "".join(_texts((result,)))


def _names(known: Iterable[str], messages: Iterable[Message], names: Names) -> list[str]:
    """Return what was named most, in the order of first naming; of what was named as often, the latest."""
    counts: Counter[str] = Counter()
    for message in messages:
        for text in _texts(message.blocks):
            counts.update(names.of(text[:_LOOKED_AT]))
    earlier = [line.removeprefix("- ") for line in known if not line.endswith((CUT, f"{CUT}]"))]
    new = list(counts)
    counts.update(earlier)
    most = {name for name, _ in counts.most_common(_MOST_NAMES)}
    return [f"- {name}" for name in _joined(earlier, new) if name in most]


def _texts(blocks: Iterable[object]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text):
                yield text
            case Json(value) | ToolUse(_, _, value):
                yield str(value)[:_LOOKED_AT]
            case ToolResult(_, content):
                yield from _texts(content)
