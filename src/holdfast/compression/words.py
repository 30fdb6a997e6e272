"""What a plan does, in a line: which messages leave, which tools were used in them, how many are rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from holdfast.compression.plans import Drop, Plan, Rewrite
from holdfast.messages import Message

__all__ = ["in_words", "removed_by", "rewritten_by", "tools_in"]

_Spans: TypeAlias = list[tuple[int, int]]
_MOST_SPANS, _MOST_NAMED, _MOST_TOOLS, _LONGEST_NAME = 100, 3, 5, 60


def removed_by(plan: Plan) -> int:
    """Return how many messages leave, without those that holdfast put there itself."""
    return plan.removed - plan.made_here


def rewritten_by(plan: Plan) -> int:
    """Return how many messages stay in other words, of those that holdfast did not put there itself."""
    return sum(isinstance(edit, Rewrite) and edit.message.made_as is None for edit in plan.edits)


def in_words(plan: Plan, messages: Sequence[Message] = ()) -> str:
    """Return what a plan does; with the *messages* that it is for, also which of the conversation leave.

    That is known from the marker in their place.
    """
    removed, rewritten = removed_by(plan), rewritten_by(plan)
    said = [f"{_named(plan, messages)} removed{tools_in(_taken(plan, messages))}"] if removed or not rewritten else []
    if rewritten:
        said.append(f"{rewritten:,} rewritten" if said else f"{_messages(rewritten)} rewritten")
    return ", ".join(said)


def tools_in(messages: Iterable[Message]) -> str:
    """Return how often which tools were called, in brackets; nothing if none was."""
    tools = Counter(use.name for message in messages for use in message.tool_uses)
    named = ", ".join(
        f"{' '.join(name.split())[:_LONGEST_NAME]} × {count}" for name, count in tools.most_common(_MOST_TOOLS)
    )
    return f" ({named}{', …' if len(tools) > _MOST_TOOLS else ''})" if named else ""


def _named(plan: Plan, messages: Sequence[Message]) -> str:
    """Return the numbers of what leaves, or how many they are where these are not known, or many."""
    count = removed_by(plan)
    if not messages:
        return _messages(count)
    spans = list(_new_spans(_spans(_made(plan)), _spans(_taken(plan, messages))))
    if not 0 < len(spans) <= _MOST_NAMED or sum(last - first + 1 for first, last in spans) != count:
        return _messages(count)
    numbers = ", ".join(f"{first}–{last}" if first != last else f"{first}" for first, last in spans)
    return f"message{'' if count == 1 else 's'} {numbers}"


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _taken(plan: Plan, messages: Sequence[Message]) -> Iterator[Message]:
    for edit in plan.edits:
        if isinstance(edit, Drop):
            yield from messages[edit.start : edit.stop]
        elif isinstance(edit, Rewrite) and edit.message.made_as is not None:
            yield from messages[edit.start : edit.start + 1]


def _made(plan: Plan) -> Iterator[Message]:
    return (edit.message for edit in plan.edits if not isinstance(edit, Drop))


def _spans(messages: Iterable[Message]) -> _Spans:
    """Return which numbers markers and summaries say have left, as far as that is few words."""
    notes = (message.notes.get("left") for message in messages if message.made_as is not None)
    given = [span for note in notes if isinstance(note, Mapping) for span in _list(note.get("ranges"))]
    return sorted(map(tuple, filter(_is_span, given[:_MOST_SPANS])))


def _list(given: Any) -> Sequence[Any]:
    return given if isinstance(given, (list, tuple)) else ()


def _is_span(span: Any) -> bool:
    # Notes are kept by others, who may have made anything of them.
    return len(_list(span)) == 2 and all(type(number) is int for number in span)


def _new_spans(now: _Spans, before: _Spans) -> Iterator[tuple[int, int]]:
    """Yield what of the spans *now* is in none of those *before*."""
    for first, last in now:
        for start, stop in before:
            if first <= last and start <= last and stop >= first:
                if first < start:
                    yield first, start - 1
                first = stop + 1
        if first <= last:
            yield first, last
