"""What OpenAI's Chat Completions accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from holdfast.testing.providers.reading import Message, Rule, items_of, mapping_of, problems, shown, type_of
from holdfast.testing.providers.rules import Fields, messages_are_objects, roles_are_known, text_is_unicode
from holdfast.testing.providers.turns import Turn, calls_and_results_match, ids_among, ids_are_unique_in_a_turn

__all__ = ["openai_problems"]

_TEXT = (str, list)
_INSTRUCTION = Fields({"role": str, "content": _TEXT}, {"name": str})
_MESSAGES = {
    "system": _INSTRUCTION,
    "developer": _INSTRUCTION,
    "user": _INSTRUCTION,
    "assistant": Fields(
        {"role": str},
        {
            "content": (*_TEXT, type(None)),
            "name": str,
            "refusal": (str, type(None)),
            "audio": (dict, type(None)),
            "annotations": list,
            "tool_calls": list,
            "function_call": (dict, type(None)),
        },
    ),
    "tool": Fields({"role": str, "content": _TEXT, "tool_call_id": str}, {"name": str}),
}
_SAYINGS = ("content", "tool_calls", "refusal", "audio", "function_call")
_PARTS = {
    "text": Fields({"type": str, "text": str}),
    "refusal": Fields({"type": str, "refusal": str}),
    "image_url": Fields({"type": str, "image_url": dict}),
    "input_audio": Fields({"type": str, "input_audio": dict}),
    "file": Fields({"type": str, "file": dict}),
}
_PARTS_OF = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
_CALLS = {
    "function": (
        Fields({"id": str, "type": str, "function": dict}),
        Fields({"name": str, "arguments": str}),
    ),
    "custom": (
        Fields({"id": str, "type": str, "custom": dict}),
        Fields({"name": str, "input": str}),
    ),
}


def openai_problems(messages: object) -> list[str]:
    """Every reason for which OpenAI's Chat Completions would refuse *messages*, one sentence each."""
    return problems(messages, _RULES)


def _messages_are_well_formed(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if message.role in _MESSAGES:
            yield from map(message.says, _MESSAGES[message.role].problems(message.raw))


def _parts_are_well_formed(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if content == []:
            yield message.says("its content is an empty list")
        for part in items_of(content):
            yield from map(message.says, _part_problems(part, _PARTS_OF.get(message.role, {"text"})))


def _part_problems(part: object, known: Iterable[str]) -> Iterator[str]:
    if not isinstance(part, dict):
        yield f"a content part must be an object, got {type(part).__name__}"
    elif type_of(part) not in known:
        yield f"a content part cannot have the type {shown(part.get('type'))} here"
    else:
        fields = _PARTS[type_of(part)]
        yield from (f"a {type_of(part)} part {problem}" for problem in fields.problems(part))


def _assistant_says_something(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "assistant" and all(message.get(key) is None for key in _SAYINGS):
            yield message.says("an assistant's message needs content or tool_calls")


def _calls_are_well_formed(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "assistant" and message.get("tool_calls") == []:
            yield message.says("tool_calls is an empty list")
        for call in _calls(message):
            yield from map(message.says, _call_problems(call))


def _calls(message: Message) -> list[Any]:
    return items_of(message.get("tool_calls")) if message.role == "assistant" else []


def _call_problems(call: object) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f"a tool call must be an object, got {type(call).__name__}"
    elif type_of(call) not in _CALLS:
        yield f"a tool call has an unknown type, {shown(call.get('type'))}"
    else:
        outer, inner = _CALLS[type_of(call)]
        yield from (f"a tool call {problem}" for problem in outer.problems(call))
        yield from (f"a called tool {problem}" for problem in inner.problems(mapping_of(call.get(type_of(call)))))


def _turns(messages: list[Message]) -> list[Turn]:
    """Neighbouring tool messages are one turn: they answer one assistant's message, in any order."""
    runs = groupby(messages, key=lambda message: -1 if message.role == "tool" else message.index)
    return [_turn(list(run)) for _, run in runs]


def _turn(run: list[Message]) -> Turn:
    calls = ids_among(mapping_of(call).get("id") for message in run for call in _calls(message))
    results = ids_among(message.get("tool_call_id") for message in run if message.role == "tool")
    return Turn(run[0].index, calls, results)


_RULES: tuple[Rule, ...] = (
    messages_are_objects,
    text_is_unicode,
    roles_are_known("system", "developer", "user", "assistant", "tool"),
    _messages_are_well_formed,
    _parts_are_well_formed,
    _assistant_says_something,
    _calls_are_well_formed,
    calls_and_results_match(_turns, ids_are_unique_in_a_turn),
)
