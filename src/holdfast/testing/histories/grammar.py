"""The grammar of histories, and the two ways to draw from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal, cast

from holdfast.errors import InvalidValueError
from holdfast.extras import import_extra
from holdfast.testing.histories.anthropic import AnthropicWire
from holdfast.testing.histories.contents import Contents
from holdfast.testing.histories.converse import ConverseWire
from holdfast.testing.histories.dice import Dice, FastDice, ShrinkingDice
from holdfast.testing.histories.faults import break_history
from holdfast.testing.histories.openai import OpenAIWire
from holdfast.testing.histories.wire import Call, Message, Wire
from holdfast.testing.providers import canonical_json

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["Dialect", "histories", "random_history", "without_metadata"]

Dialect = Literal["converse", "anthropic", "openai"]

_WIRES: dict[str, type[Wire]] = {"converse": ConverseWire, "anthropic": AnthropicWire, "openai": OpenAIWire}
_MAX_TURNS = 20
_TOOLS = ("read_file", "run_tests", "search", "http_get", "edit-file")
# How many in a hundred answers of the model call tools: agents with company, agents alone, plain chats.
_TOOL_SHARES = (75, 100, 0, 75, 100)


def random_history(
    random: Random,
    dialect: Dialect,
    *,
    legal: bool = True,
    signed_reasoning: bool = False,
    pins: bool = False,
    max_turns: int = _MAX_TURNS,
) -> list[Message]:
    """One history of up to *max_turns* answers of the model, which it is now to continue.

    With `legal=False` some are broken, in up to three ways at once. With `signed_reasoning` every signature is the
    `prefix_signature` of the messages before. With `pins` some messages say so in a `metadata` that no provider takes.
    """
    options = _Options(dialect, legal, signed_reasoning, pins, max_turns)
    return _Grammar(FastDice(random), options).history()


def histories(
    dialect: Dialect,
    *,
    legal: bool = True,
    signed_reasoning: bool = False,
    pins: bool = False,
    max_turns: int = _MAX_TURNS,
) -> SearchStrategy[list[Message]]:
    """The histories of `random_history` as a hypothesis strategy, which shrinks to one short message of the user."""
    options = _Options(dialect, legal, signed_reasoning, pins, max_turns)
    strategies = import_extra("hypothesis.strategies", extra="testing")

    def draw_history(draw: DrawFn) -> list[Message]:
        return _Grammar(ShrinkingDice(draw, strategies), options).history()

    return cast("SearchStrategy[list[Message]]", strategies.composite(draw_history)())


def without_metadata(messages: Iterable[Message]) -> list[Message]:
    """The messages as a framework would send them: without the `metadata` it keeps beside their content."""
    return [{key: value for key, value in message.items() if key != "metadata"} for message in messages]


@dataclass(frozen=True)
class _Options:
    dialect: Dialect
    legal: bool
    signed_reasoning: bool
    pins: bool
    max_turns: int

    def __post_init__(self) -> None:
        if self.dialect not in _WIRES:
            raise InvalidValueError(f"dialect must be one of {', '.join(_WIRES)}, got {self.dialect!r}")
        if self.max_turns < 0:
            raise InvalidValueError(f"max_turns must be at least 0, got {self.max_turns}")


class _Grammar:
    """A user's message, then turns: the model calls tools and gets results, or answers and is asked again."""

    def __init__(self, dice: Dice, options: _Options) -> None:
        self._dice = dice
        self._options = options
        self._contents = Contents(dice)
        self._wire = _WIRES[options.dialect](dice)
        self._ids_repeat = self._wire.ids_may_repeat and dice.chance(30)
        self._calls_made = 0
        self._signed = hashlib.sha256()
        self._messages: list[Message] = []

    def history(self) -> list[Message]:
        tool_share = self._dice.pick(_TOOL_SHARES)
        self._say(self._wire.opening())
        self._say(self._wire.user(self._contents.text()))
        self._dice.repeat(self._options.max_turns, lambda: self._turn(calls_tools=self._dice.chance(tool_share)))
        if not self._options.legal:
            break_history(self._messages, self._dice, self._wire)
        if self._options.pins:
            self._pin()
        return self._messages

    def _turn(self, *, calls_tools: bool) -> None:
        calls = self._calls() if calls_tools else []
        text = "" if calls and self._dice.chance(50) else self._contents.text()
        self._say([self._wire.answer(text, calls, self._signature())])
        self._say(self._wire.results(calls) if calls else self._wire.user(self._contents.text()))

    def _calls(self) -> list[Call]:
        parallel = self._dice.below(4) + self._dice.below(3) if self._dice.chance(25) else 0
        if self._ids_repeat:
            self._calls_made = 0
        return [self._call() for _ in range(max(1, parallel))]

    def _call(self) -> Call:
        self._calls_made += 1
        return Call(f"call_{self._calls_made}", self._dice.pick(_TOOLS), self._contents.input())

    def _signature(self) -> str:
        return self._signed.hexdigest() if self._options.signed_reasoning else f"c2lnbmVk{self._dice.below(1000)}"

    def _say(self, messages: list[Message]) -> None:
        self._messages += messages
        if self._options.signed_reasoning:
            for message in messages:
                self._signed.update(canonical_json(message))

    def _pin(self) -> None:
        for message in self._messages:
            if self._dice.chance(15):
                message["metadata"] = {"custom": {"pinned": True}}
