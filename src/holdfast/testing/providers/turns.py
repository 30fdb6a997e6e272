"""Rules on tool calls and their results, which providers share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from holdfast.testing.providers.reading import Message, Rule

__all__ = [
    "Turn",
    "calls_and_results_match",
    "ids_among",
    "ids_are_unique_in_a_turn",
    "ids_are_unique_in_all_turns",
    "ids_match",
]


@dataclass(frozen=True)
class Turn:
    """The ids of the tool calls made and answered in what a provider takes for one turn."""

    index: int = -1
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


_TurnRule = Callable[[list[Turn]], Iterable[str]]


def calls_and_results_match(turns_of: Callable[[list[Message]], list[Turn]], *id_rules: _TurnRule) -> Rule:
    """The rules of one provider on ids, then those of all: every call has one result, and every result a call."""

    def rule(messages: list[Message]) -> Iterator[str]:
        turns = turns_of(messages)
        for turn_rule in (*id_rules, _calls_are_answered, _calls_are_answered_once, _results_answer_calls):
            yield from turn_rule(turns)

    return rule


def _calls_are_answered(turns: list[Turn]) -> Iterator[str]:
    for turn, after in pairwise([*turns, Turn()]):
        for call in turn.calls:
            if call not in after.results:
                yield f"message {turn.index}: the tool call {call!r} has no result directly after."


def _calls_are_answered_once(turns: list[Turn]) -> Iterator[str]:
    for turn in turns:
        for call, times in _repeated(turn.results):
            yield f"message {turn.index}: the tool call {call!r} has {times} results."


def _results_answer_calls(turns: list[Turn]) -> Iterator[str]:
    for before, turn in pairwise([Turn(), *turns]):
        for call in sorted({*turn.results} - {*before.calls}):
            yield f"message {turn.index}: the result of {call!r} answers no tool call made directly before."


def ids_are_unique_in_a_turn(turns: list[Turn]) -> Iterator[str]:
    """No two calls of one turn have the same id."""
    for turn in turns:
        for call, times in _repeated(turn.calls):
            yield f"message {turn.index}: {times} tool calls have the id {call!r}."


def ids_are_unique_in_all_turns(turns: list[Turn]) -> Iterator[str]:
    """No two calls at all have the same id."""
    for call, times in _repeated(call for turn in turns for call in turn.calls):
        places = ", ".join(str(turn.index) for turn in turns if call in turn.calls)
        yield f"messages {places}: {times} tool calls have the id {call!r}."


def _repeated(ids: Iterable[str]) -> list[tuple[str, int]]:
    return [(call, times) for call, times in Counter(ids).items() if times > 1]


def ids_match(pattern: str) -> _TurnRule:
    """The ids of all calls and results are made as *pattern* says."""

    def rule(turns: list[Turn]) -> Iterator[str]:
        for turn in turns:
            for call in sorted({*turn.calls, *turn.results}):
                if not re.fullmatch(pattern, call):
                    yield f"message {turn.index}: the id {call!r} of a tool call does not match {pattern}."

    return rule


def ids_among(values: Iterable[object]) -> tuple[str, ...]:
    """Those that can be ids; what cannot be one is another rule's to refuse."""
    return tuple(value for value in values if isinstance(value, str))
