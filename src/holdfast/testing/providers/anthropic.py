"""What Anthropic's Messages API accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import Any

from holdfast.testing.providers.reading import Message, Rule, is_blank, items_of, problems, shown, type_of
from holdfast.testing.providers.rules import (
    Fields,
    blocks_have_their_role,
    messages_are_objects,
    roles_are_known,
    starts_with_user,
    text_is_unicode,
)
from holdfast.testing.providers.turns import (
    Turn,
    calls_and_results_match,
    ids_among,
    ids_are_unique_in_all_turns,
    ids_match,
)

__all__ = ["anthropic_problems"]

_MESSAGE = Fields({"role": object, "content": (str, list)})
_CACHE = {"cache_control": (dict, type(None))}
_BLOCKS = {
    "text": Fields({"type": str, "text": str}, {**_CACHE, "citations": (list, type(None))}),
    "image": Fields({"type": str, "source": dict}, _CACHE),
    "document": Fields(
        {"type": str, "source": dict}, {**_CACHE, "title": object, "context": object, "citations": object}
    ),
    "search_result": Fields(
        {"type": str, "source": str, "title": str, "content": list}, {**_CACHE, "citations": object}
    ),
    "thinking": Fields({"type": str, "thinking": str, "signature": str}),
    "redacted_thinking": Fields({"type": str, "data": str}),
    "tool_use": Fields(
        {"type": str, "id": str, "name": str, "input": dict}, {**_CACHE, "caller": object, "toolset_name": object}
    ),
    "tool_result": Fields({"type": str, "tool_use_id": str}, {**_CACHE, "content": (str, list), "is_error": bool}),
}
_SERVER_BLOCKS = {
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "mcp_tool_result",
    "mcp_tool_use",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "tool_reference",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
}
_IN_MESSAGES = _BLOCKS.keys() | _SERVER_BLOCKS
_IN_RESULTS = {"text", "image", "document", "search_result", "tool_reference"}
_THINKING = {"thinking", "redacted_thinking"}
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}
_HOMES = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}


def anthropic_problems(messages: object) -> list[str]:
    """Every reason for which Anthropic's Messages API would refuse *messages*, one sentence each."""
    return problems(messages, _RULES, _blocks)


def _blocks(content: object) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return items_of(content)


def _messages_are_well_formed(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.raw, dict):
            yield from map(message.says, _MESSAGE.problems(message.raw))


def _content_is_not_empty(messages: list[Message]) -> Iterator[str]:
    """The assistant's last message may be empty: it is what the model continues."""
    for message in messages:
        may_be_empty = message is messages[-1] and message.role == "assistant"
        if message.get("content") in ("", []) and not may_be_empty:
            yield message.says("its content is empty")


def _blocks_are_well_formed(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        yield from map(message.says, _content_problems(message.get("content"), _IN_MESSAGES))
        for content in _contents_of_results(message):
            yield from map(message.says, _content_problems(content, _IN_RESULTS))


def _contents_of_results(message: Message) -> list[object]:
    return [block.get("content") for block in message.blocks if type_of(block) == "tool_result"]


def _content_problems(content: object, known: Iterable[str]) -> Iterator[str]:
    for block in items_of(content):
        if not isinstance(block, dict):
            yield f"a content block must be an object, got {type(block).__name__}"
        elif type_of(block) not in known:
            yield f"a content block has an unknown type, {shown(block.get('type'))}"
        elif type_of(block) in _BLOCKS:
            fields = _BLOCKS[type_of(block)]
            yield from (f"a {type_of(block)} block {problem}" for problem in fields.problems(block))


def _text_is_not_blank(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        in_results = (block for content in _contents_of_results(message) for block in items_of(content))
        if any(map(_is_blank_text, (*message.blocks, *in_results))):
            yield message.says("a text block is blank")


def _is_blank_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and is_blank(block.get("text"))


def _ending_has_no_trailing_whitespace(messages: list[Message]) -> Iterator[str]:
    last = messages[-1]
    text = last.blocks[-1].get("text") if last.blocks else None
    if last.role == "assistant" and isinstance(text, str) and text != text.rstrip():
        yield last.says("the assistant's last message ends with whitespace")


def _thinking_comes_first(messages: list[Message]) -> Iterator[str]:
    """Before all else, or, interleaved, before a tool call."""
    for message in messages:
        kinds = [type_of(block) for block in message.blocks]
        last = max((place for place, kind in enumerate(kinds) if kind in _THINKING), default=0)
        if not _THINKING.issuperset(kinds[:last]) and _CALLS.isdisjoint(kinds[last:]):
            yield message.says("thinking must come before other content, or before a tool_use")


def _thinking_is_not_last(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if message.blocks and type_of(message.blocks[-1]) in _THINKING:
            yield message.says("the last block of a message cannot be thinking")


def _results_come_first(messages: list[Message]) -> Iterator[str]:
    for turn in _merged(messages):
        blocks = [(message, type_of(block) == "tool_result") for message in turn for block in message.blocks]
        for (_, result_before), (message, result) in pairwise(blocks):
            if result and not result_before:
                yield message.says("tool_result blocks must come before other content")


def _merged(messages: list[Message]) -> list[list[Message]]:
    """Consecutive messages of one role, which the service takes for one turn."""
    return [list(turn) for _, turn in groupby(messages, key=lambda message: message.role)]


def _turns(messages: list[Message]) -> list[Turn]:
    return [
        Turn(turn[0].index, _ids(turn, "tool_use", "id"), _ids(turn, "tool_result", "tool_use_id"))
        for turn in _merged(messages)
    ]


def _ids(turn: list[Message], kind: str, key: str) -> tuple[str, ...]:
    return ids_among(block.get(key) for message in turn for block in message.blocks if type_of(block) == kind)


_RULES: tuple[Rule, ...] = (
    messages_are_objects,
    _messages_are_well_formed,
    text_is_unicode,
    roles_are_known("user", "assistant"),
    starts_with_user,
    _content_is_not_empty,
    _blocks_are_well_formed,
    _text_is_not_blank,
    _ending_has_no_trailing_whitespace,
    _thinking_comes_first,
    _thinking_is_not_last,
    _results_come_first,
    blocks_have_their_role(lambda block: [type_of(block)], _HOMES),
    calls_and_results_match(_turns, ids_match("[a-zA-Z0-9_-]+"), ids_are_unique_in_all_turns),
)
