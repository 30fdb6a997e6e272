"""What a provider counts, and why it would refuse a request: each message looked at once, in whatever copy it comes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any

from holdfast.dialects import Converse
from holdfast.testing.providers import canonical_json, converse_problems, signed_reasoning_problems
from holdfast.testing.providers.reading import items_of, mapping_of
from holdfast.testing.scripts import Request
from holdfast.tokens import TokenEstimator

__all__ = ["CountOnce", "IllegalRequestError", "Refusals"]

_MOST_NAMED = 5
_MOST_KNOWN = 100_000
_WHATEVER_CAME_BEFORE = {"role": "user", "content": [{"text": "hi"}]}


class IllegalRequestError(AssertionError):
    """A provider would have refused this request; `problems` are its reasons, one sentence each."""

    def __init__(self, number: int, problems: Iterable[str]) -> None:
        self.number = number
        self.problems = tuple(problems)
        super().__init__(number, self.problems)

    def __str__(self) -> str:
        left_out = len(self.problems) - _MOST_NAMED
        more = f" And {left_out} more." if left_out > 0 else ""
        return f"request {self.number}: {' '.join(self.problems[:_MOST_NAMED])}{more}"


class CountOnce:
    """Counts as `estimate_input_tokens` does, each part once however often it is sent, in whatever copy."""

    def __init__(self) -> None:
        self._estimator = TokenEstimator()
        self._dialect = Converse()
        self._known: dict[tuple[str, int], int] = {}

    def __call__(self, messages: list[Any], system_prompt: Any, tool_specs: list[Any]) -> int:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        asked_for = self._once(self._estimator.system, system_prompt) + self._once(self._estimator.tools, tool_specs)
        return asked_for + sum(self._once(self._message, message) for message in messages)

    def _message(self, wire: Any) -> int:
        return self._estimator.message(self._dialect.read(wire))

    def _once(self, count: Callable[[Any], int], value: Any) -> int:
        part = (count.__name__, _mark(value))
        if part not in self._known:
            self._known[part] = count(value)
        return self._known[part]


class Refusals:
    """Says why a provider would refuse a request. Looks anew only at what follows the start of the last legal one."""

    def __init__(self, checks_signatures: bool) -> None:
        self._checks_signatures = checks_signatures
        self._legal: list[int] = []
        self._is_loaded = False

    async def of(self, request: Request) -> list[str]:
        """Return the reasons, one sentence each."""
        # The first call of all reads botocore's description of the service from a file.
        problems = self._find(request) if self._is_loaded else await asyncio.to_thread(self._find, request)
        self._is_loaded = True
        return problems

    def _find(self, request: Request) -> list[str]:
        messages = [_sent(message) for message in request.messages]
        marks = [_mark(message) for message in messages]
        problems = self._problems_of_form(messages, marks) + _problems_of_tools(request)
        if self._checks_signatures:
            problems += _problems_of_signatures(messages)
        if not problems:
            self._legal = marks
        return problems

    def _problems_of_form(self, messages: list[Any], marks: list[int]) -> list[str]:
        """What Converse says of *messages*; its rules look at one message, or at one and the next."""
        same = sum(1 for _ in takewhile(bool, map(int.__eq__, self._legal, marks)))
        start = next((at for at in reversed(range(same)) if messages[at]["role"] == "assistant"), 0)
        if start and not converse_problems([_WHATEVER_CAME_BEFORE, *messages[start:]]):
            return []
        return converse_problems(messages)


def _sent(message: Any) -> Any:
    """What a model of strands sends of a message, which holds notes of the framework's own too."""
    notes = ("metadata", "tracking_id")
    return {key: value for key, value in message.items() if key not in notes} if isinstance(message, dict) else message


def _problems_of_tools(request: Request) -> list[str]:
    if request.tool_specs:
        return []
    for number, message in enumerate(request.messages):
        if any(map(_is_of_a_tool, items_of(mapping_of(message).get("content")))):
            return [f"message {number}: toolUse and toolResult blocks need a toolConfig, but no tools were sent."]
    return []


def _is_of_a_tool(block: Any) -> bool:
    return not {"toolUse", "toolResult"}.isdisjoint(mapping_of(block))


def _problems_of_signatures(messages: list[Any]) -> list[str]:
    """What `prefix_signature` says of signed reasoning, in one pass: it is asked about ever longer prefixes."""
    digest, length = hashlib.sha256(), 0

    def sign(before: list[Any]) -> str:
        nonlocal length
        for message in before[length:]:
            digest.update(canonical_json(message))
        length = len(before)
        return digest.hexdigest()

    return signed_reasoning_problems(messages, sign)


def _mark(value: Any) -> int:
    """A number that is the same for equal values. Texts keep their hash, also in copies: each is looked at once."""
    if isinstance(value, dict):
        return hash(tuple([(key, _mark(each)) for key, each in value.items()]))
    if isinstance(value, (list, tuple)):
        return hash(tuple([_mark(each) for each in value]))
    if value is None or isinstance(value, (str, bytes, int, float)):
        return hash((type(value), value))
    return hash(repr(value))
