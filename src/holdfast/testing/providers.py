"""What the providers accept as the input of the next model call, as functions that name every violated rule.

    >>> openai_problems([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a", "content": "42"}])
    ["message 1: the result of 'a' answers no tool call made directly before."]

The rules are those of the published API references and, where these are silent, of the errors that the services
return. They look at form only: no limits on size, and no knowledge of which model is called.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from holdfast.extras import import_extra

__all__ = [
    "anthropic_problems",
    "canonical_json",
    "converse_problems",
    "openai_problems",
    "prefix_signature",
    "signed_reasoning_problems",
]

_LONGEST_REPORT = 300


def converse_problems(messages: object) -> list[str]:
    """Every reason for which Bedrock's Converse would refuse *messages*, one sentence each. Needs botocore."""
    return _problems(messages, _converse_blocks, _CONVERSE_RULES)


def anthropic_problems(messages: object) -> list[str]:
    """Every reason for which Anthropic's Messages API would refuse *messages*, one sentence each."""
    return _problems(messages, _anthropic_blocks, _ANTHROPIC_RULES)


def openai_problems(messages: object) -> list[str]:
    """Every reason for which OpenAI's Chat Completions would refuse *messages*, one sentence each."""
    return _problems(messages, _openai_blocks, _OPENAI_RULES)


def signed_reasoning_problems(messages: object, sign: Callable[[list[Any]], str]) -> list[str]:
    """Every signed reasoning block, of Converse or Anthropic, that was signed for other messages than precede it.

    Newer Claude models refuse such blocks ("preserved thinking"). *sign* stands in for theirs: it is given the
    messages before the one with the block, as they would be sent.
    """
    read = _read(messages if isinstance(messages, list) else [], _anthropic_blocks)
    signed = ((m.index, s) for m in read for s in map(_signature, m.blocks) if s is not None)
    return [
        f"message {index}: its reasoning was signed for other messages than those before it."
        for index, signature in signed
        if signature != sign([m.raw for m in read[:index]])
    ]


def prefix_signature(messages: Iterable[object]) -> str:
    """A signature that any change of *messages* changes, whatever the order of their keys: a `sign` for the above."""
    digest = hashlib.sha256()
    for message in messages:
        digest.update(canonical_json(message))
    return digest.hexdigest()


def canonical_json(message: object) -> bytes:
    """One line for one message: equal for equal messages only, whatever the order of their keys."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), default=_json_of_bytes).encode() + b"\n"


def _json_of_bytes(value: object) -> dict[str, str]:
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    raise TypeError(f"{type(value).__name__} cannot be sent")


@dataclass(frozen=True)
class _Message:
    """One message and what could be read of it; `role` is empty and `blocks` are none where it is malformed."""

    index: int
    raw: Any
    role: str = ""
    blocks: tuple[dict[str, Any], ...] = ()

    def says(self, problem: str) -> str:
        return f"message {self.index}: {problem}."

    def get(self, key: str) -> Any:
        return self.raw.get(key) if isinstance(self.raw, dict) else None


_Rule = Callable[[list[_Message]], Iterable[str]]


def _problems(messages: object, read_blocks: Callable[[Any], list[Any]], rules: Iterable[_Rule]) -> list[str]:
    if not isinstance(messages, list):
        return [f"messages must be a list, got {type(messages).__name__}."]
    if not messages:
        return ["messages must hold at least one message."]
    read = _read(messages, read_blocks)
    return [problem for rule in rules for problem in rule(read)]


def _read(messages: Any, read_blocks: Callable[[Any], list[Any]]) -> list[_Message]:
    return [_read_message(index, raw, read_blocks) for index, raw in enumerate(messages)]


def _read_message(index: int, raw: Any, read_blocks: Callable[[Any], list[Any]]) -> _Message:
    if not isinstance(raw, dict):
        return _Message(index, raw)
    role = raw.get("role")
    blocks = tuple(block for block in read_blocks(raw.get("content")) if isinstance(block, dict))
    return _Message(index, raw, role if isinstance(role, str) else "", blocks)


# Rules that providers share.


def _messages_are_objects(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if not isinstance(message.raw, dict):
            yield message.says(f"must be an object, got {type(message.raw).__name__}")


def _roles_are_known(*known: str) -> _Rule:
    def rule(messages: list[_Message]) -> Iterator[str]:
        for message in messages:
            if isinstance(message.raw, dict) and message.role not in known:
                role = textwrap.shorten(repr(message.get("role")), 50)
                yield message.says(f"its role must be one of {', '.join(known)}, got {role}")

    return rule


def _starts_with_user(messages: list[_Message]) -> Iterator[str]:
    if messages[0].role != "user":
        yield messages[0].says("the first message must be the user's")


def _text_is_unicode(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if not _is_unicode(message.raw):
            yield message.says("holds half a surrogate pair, which no JSON can carry")


def _is_unicode(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() or _can_be_encoded(value)
    if isinstance(value, dict):
        return all(map(_is_unicode, value)) and all(map(_is_unicode, value.values()))
    return not isinstance(value, list) or all(map(_is_unicode, value))


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _blocks_have_their_role(kind: Callable[[dict[str, Any]], Iterable[str]], homes: Mapping[str, str]) -> _Rule:
    def rule(messages: list[_Message]) -> Iterator[str]:
        for message in messages:
            for name in sorted({name for block in message.blocks for name in kind(block)}):
                if message.role != homes.get(name, message.role):
                    yield message.says(f"only the {homes[name]} may send {name} blocks")

    return rule


@dataclass(frozen=True)
class _Turn:
    """The ids of the tool calls made and answered in what a provider takes for one turn."""

    index: int = -1
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


_TurnRule = Callable[[list[_Turn]], Iterable[str]]


def _turns_keep(rules: Iterable[_TurnRule], turns_of: Callable[[list[_Message]], list[_Turn]]) -> _Rule:
    def rule(messages: list[_Message]) -> Iterator[str]:
        turns = turns_of(messages)
        for turn_rule in rules:
            yield from turn_rule(turns)

    return rule


def _calls_are_answered(turns: list[_Turn]) -> Iterator[str]:
    for turn, after in pairwise([*turns, _Turn()]):
        for call in turn.calls:
            if call not in after.results:
                yield f"message {turn.index}: the tool call {call!r} has no result directly after."


def _results_answer_calls(turns: list[_Turn]) -> Iterator[str]:
    for before, turn in pairwise([_Turn(), *turns]):
        for call in sorted({*turn.results} - {*before.calls}):
            yield f"message {turn.index}: the result of {call!r} answers no tool call made directly before."


def _calls_are_answered_once(turns: list[_Turn]) -> Iterator[str]:
    for turn in turns:
        for call, times in _repeated(turn.results):
            yield f"message {turn.index}: the tool call {call!r} has {times} results."


def _ids_are_unique_in_a_turn(turns: list[_Turn]) -> Iterator[str]:
    for turn in turns:
        for call, times in _repeated(turn.calls):
            yield f"message {turn.index}: {times} tool calls have the id {call!r}."


def _ids_are_unique_in_all_turns(turns: list[_Turn]) -> Iterator[str]:
    for call, times in _repeated(call for turn in turns for call in turn.calls):
        places = ", ".join(str(turn.index) for turn in turns if call in turn.calls)
        yield f"messages {places}: {times} tool calls have the id {call!r}."


def _repeated(ids: Iterable[str]) -> list[tuple[str, int]]:
    return [(call, times) for call, times in Counter(ids).items() if times > 1]


def _ids_match(pattern: str) -> _TurnRule:
    def rule(turns: list[_Turn]) -> Iterator[str]:
        for turn in turns:
            for call in sorted({*turn.calls, *turn.results}):
                if not re.fullmatch(pattern, call):
                    yield f"message {turn.index}: the id {call!r} of a tool call does not match {pattern}."

    return rule


def _ids(values: Iterable[object]) -> tuple[str, ...]:
    """Those that can be ids; what cannot be one is another rule's to refuse."""
    return tuple(value for value in values if isinstance(value, str))


@dataclass(frozen=True)
class _Fields:
    """The fields of an object with the types of their values; any other field is refused."""

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)

    def problems(self, value: Mapping[str, Any]) -> Iterator[str]:
        known = {**self.optional, **self.required}
        yield from (f"lacks {name!r}" for name in self.required if name not in value)
        for name, content in value.items():
            if name not in known:
                yield f"has an unknown key {textwrap.shorten(repr(name), 50)}"
            elif not isinstance(content, known[name]):
                yield f"cannot have a {name!r} of type {type(content).__name__}"


# Bedrock Converse.


def _converse_blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _converse_kinds(block: dict[str, Any]) -> Iterable[str]:
    return (name for name in block if isinstance(name, str))


@lru_cache(maxsize=1)
def _converse_input() -> tuple[Any, Any]:
    """botocore's validator and the shape of Converse's input."""
    loaders, model, validate = (
        import_extra(f"botocore.{module}", extra="s3") for module in ("loaders", "model", "validate")
    )
    service = model.ServiceModel(loaders.Loader().load_service_model("bedrock-runtime", "service-2"))
    return validate.ParamValidator(), service.operation_model("Converse").input_shape


def _botocore_accepts(messages: list[_Message]) -> Iterator[str]:
    validator, shape = _converse_input()
    for message in messages:
        found = validator.validate({"modelId": "any", "messages": [message.raw]}, shape)
        if found.has_errors():
            report = textwrap.shorten(found.generate_report(), _LONGEST_REPORT)
            yield message.says("botocore says: " + report.replace("messages[0]", f"messages[{message.index}]"))


def _converse_roles_alternate(messages: list[_Message]) -> Iterator[str]:
    for before, message in pairwise(messages):
        if message.role and message.role == before.role:
            yield message.says(f"roles must alternate, but this and the one before are the {message.role}'s")


def _converse_ends_with_user(messages: list[_Message]) -> Iterator[str]:
    if messages[-1].role != "user":
        yield messages[-1].says("the last message must be the user's")


def _converse_content_is_not_empty(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.raw, dict) and all("cachePoint" in block for block in message.blocks):
            yield message.says("its content is empty")


def _converse_text_is_not_blank(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if any(_is_blank(block.get("text")) for block in message.blocks):
            yield message.says("a text block is blank")


def _is_blank(text: object) -> bool:
    return isinstance(text, str) and not text.strip()


def _converse_documents_come_with_text(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        kinds = {name for block in message.blocks for name in _converse_kinds(block)}
        if "document" in kinds and "text" not in kinds:
            yield message.says("a document must come with a text block")


def _converse_reasoning_is_not_last(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        kept = [block for block in message.blocks if "cachePoint" not in block]
        if kept and "reasoningContent" in kept[-1]:
            yield message.says("the last block of a message cannot be reasoning")


def _converse_turns(messages: list[_Message]) -> list[_Turn]:
    return [_Turn(m.index, _converse_ids(m.blocks, "toolUse"), _converse_ids(m.blocks, "toolResult")) for m in messages]


def _converse_ids(blocks: Iterable[dict[str, Any]], kind: str) -> tuple[str, ...]:
    found = (block.get(kind) for block in blocks)
    return _ids(block.get("toolUseId") for block in found if isinstance(block, dict))


_CONVERSE_HOMES = {
    "toolUse": "assistant",
    "reasoningContent": "assistant",
    "toolResult": "user",
    "image": "user",
    "document": "user",
    "video": "user",
}

_CONVERSE_TURN_RULES: tuple[_TurnRule, ...] = (
    _ids_match("[a-zA-Z0-9_.:-]{1,64}"),
    _ids_are_unique_in_a_turn,
    _calls_are_answered,
    _calls_are_answered_once,
    _results_answer_calls,
)

_CONVERSE_RULES: tuple[_Rule, ...] = (
    _messages_are_objects,
    _botocore_accepts,
    _text_is_unicode,
    _roles_are_known("user", "assistant"),
    _starts_with_user,
    _converse_roles_alternate,
    _converse_ends_with_user,
    _converse_content_is_not_empty,
    _converse_text_is_not_blank,
    _converse_documents_come_with_text,
    _converse_reasoning_is_not_last,
    _blocks_have_their_role(_converse_kinds, _CONVERSE_HOMES),
    _turns_keep(_CONVERSE_TURN_RULES, _converse_turns),
)


# Anthropic Messages.

_ANTHROPIC_MESSAGE = _Fields({"role": object, "content": (str, list)})

_CACHE = {"cache_control": (dict, type(None))}
_ANTHROPIC_BLOCKS = {
    "text": _Fields({"type": str, "text": str}, {**_CACHE, "citations": (list, type(None))}),
    "image": _Fields({"type": str, "source": dict}, _CACHE),
    "document": _Fields(
        {"type": str, "source": dict}, {**_CACHE, "title": object, "context": object, "citations": object}
    ),
    "search_result": _Fields(
        {"type": str, "source": str, "title": str, "content": list}, {**_CACHE, "citations": object}
    ),
    "thinking": _Fields({"type": str, "thinking": str, "signature": str}),
    "redacted_thinking": _Fields({"type": str, "data": str}),
    "tool_use": _Fields(
        {"type": str, "id": str, "name": str, "input": dict}, {**_CACHE, "caller": object, "toolset_name": object}
    ),
    "tool_result": _Fields({"type": str, "tool_use_id": str}, {**_CACHE, "content": (str, list), "is_error": bool}),
}
_ANTHROPIC_RESULT_BLOCKS = {"text", "image", "document", "search_result", "tool_reference"}
_ANTHROPIC_SERVER_BLOCKS = {
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
_ANTHROPIC_HOMES = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}
_THINKING = {"thinking", "redacted_thinking"}


def _anthropic_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _type_of(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _anthropic_messages_are_well_formed(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.raw, dict):
            yield from map(message.says, _ANTHROPIC_MESSAGE.problems(message.raw))


def _anthropic_blocks_are_well_formed(messages: list[_Message]) -> Iterator[str]:
    known = _ANTHROPIC_BLOCKS.keys() | _ANTHROPIC_SERVER_BLOCKS
    for message in messages:
        yield from map(message.says, _anthropic_content_problems(message.get("content"), known))
        for block in message.blocks:
            if _type_of(block) == "tool_result":
                yield from map(
                    message.says, _anthropic_content_problems(block.get("content"), _ANTHROPIC_RESULT_BLOCKS)
                )


def _anthropic_content_problems(content: object, known: Iterable[str]) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            yield f"a content block must be an object, got {type(block).__name__}"
        elif _type_of(block) not in known:
            yield f"a content block has an unknown type, {textwrap.shorten(repr(block.get('type')), 50)}"
        elif _type_of(block) in _ANTHROPIC_BLOCKS:
            fields = _ANTHROPIC_BLOCKS[_type_of(block)]
            yield from (f"a {_type_of(block)} block {problem}" for problem in fields.problems(block))


def _anthropic_content_is_not_empty(messages: list[_Message]) -> Iterator[str]:
    """The assistant's last message may be empty: it is what the model continues."""
    for message in messages:
        may_be_empty = message is messages[-1] and message.role == "assistant"
        if message.get("content") in ("", []) and not may_be_empty:
            yield message.says("its content is empty")


def _anthropic_text_is_not_blank(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        results = (b.get("content") for b in message.blocks if _type_of(b) == "tool_result")
        in_results = (block for result in results if isinstance(result, list) for block in result)
        if any(map(_is_blank_text_block, (*message.blocks, *in_results))):
            yield message.says("a text block is blank")


def _is_blank_text_block(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and _is_blank(block.get("text"))


def _anthropic_ending_has_no_trailing_whitespace(messages: list[_Message]) -> Iterator[str]:
    last = messages[-1]
    text = last.blocks[-1].get("text") if last.blocks else None
    if last.role == "assistant" and isinstance(text, str) and text != text.rstrip():
        yield last.says("the assistant's last message ends with whitespace")


def _anthropic_thinking_comes_first(messages: list[_Message]) -> Iterator[str]:
    """Before all else, or, interleaved, before a tool call."""
    for message in messages:
        kinds = [_type_of(block) for block in message.blocks]
        others = [place for place, kind in enumerate(kinds) if kind not in _THINKING]
        calls = [place for place, kind in enumerate(kinds) if kind in ("tool_use", "server_tool_use", "mcp_tool_use")]
        late = max((place for place, kind in enumerate(kinds) if kind in _THINKING), default=-1)
        if others and others[0] < late and late > max(calls, default=-1):
            yield message.says("thinking must come before other content, or before a tool_use")


def _anthropic_thinking_is_not_last(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if message.blocks and _type_of(message.blocks[-1]) in _THINKING:
            yield message.says("the last block of a message cannot be thinking")


def _anthropic_results_come_first(messages: list[_Message]) -> Iterator[str]:
    for turn in _anthropic_merged(messages):
        blocks = [(message, _type_of(block) == "tool_result") for message in turn for block in message.blocks]
        for (_, result_before), (message, result) in pairwise(blocks):
            if result and not result_before:
                yield message.says("tool_result blocks must come before other content")


def _anthropic_merged(messages: list[_Message]) -> list[list[_Message]]:
    """Consecutive messages of one role, which the service takes for one turn."""
    return [list(turn) for _, turn in groupby(messages, key=lambda message: message.role)]


def _anthropic_turns(messages: list[_Message]) -> list[_Turn]:
    return [
        _Turn(turn[0].index, _anthropic_ids(turn, "tool_use", "id"), _anthropic_ids(turn, "tool_result", "tool_use_id"))
        for turn in _anthropic_merged(messages)
    ]


def _anthropic_ids(turn: list[_Message], kind: str, key: str) -> tuple[str, ...]:
    return _ids(block.get(key) for message in turn for block in message.blocks if _type_of(block) == kind)


_ANTHROPIC_TURN_RULES: tuple[_TurnRule, ...] = (
    _ids_match("[a-zA-Z0-9_-]+"),
    _ids_are_unique_in_all_turns,
    _calls_are_answered,
    _calls_are_answered_once,
    _results_answer_calls,
)

_ANTHROPIC_RULES: tuple[_Rule, ...] = (
    _messages_are_objects,
    _anthropic_messages_are_well_formed,
    _text_is_unicode,
    _roles_are_known("user", "assistant"),
    _starts_with_user,
    _anthropic_content_is_not_empty,
    _anthropic_blocks_are_well_formed,
    _anthropic_text_is_not_blank,
    _anthropic_ending_has_no_trailing_whitespace,
    _anthropic_thinking_comes_first,
    _anthropic_thinking_is_not_last,
    _anthropic_results_come_first,
    _blocks_have_their_role(lambda block: [_type_of(block)], _ANTHROPIC_HOMES),
    _turns_keep(_ANTHROPIC_TURN_RULES, _anthropic_turns),
)


# OpenAI Chat Completions.

_TEXT = (str, list)
_MAYBE_TEXT = (str, list, type(None))
_INSTRUCTION = _Fields({"role": str, "content": _TEXT}, {"name": str})
_OPENAI_MESSAGES = {
    "system": _INSTRUCTION,
    "developer": _INSTRUCTION,
    "user": _INSTRUCTION,
    "assistant": _Fields(
        {"role": str},
        {
            "content": _MAYBE_TEXT,
            "name": str,
            "refusal": (str, type(None)),
            "audio": (dict, type(None)),
            "annotations": list,
            "tool_calls": list,
            "function_call": (dict, type(None)),
        },
    ),
    "tool": _Fields({"role": str, "content": _TEXT, "tool_call_id": str}, {"name": str}),
}
_OPENAI_PARTS = {
    "text": _Fields({"type": str, "text": str}),
    "refusal": _Fields({"type": str, "refusal": str}),
    "image_url": _Fields({"type": str, "image_url": dict}),
    "input_audio": _Fields({"type": str, "input_audio": dict}),
    "file": _Fields({"type": str, "file": dict}),
}
_OPENAI_PARTS_OF = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}
_OPENAI_CALLS = {
    "function": (
        _Fields({"id": str, "type": str, "function": dict}),
        _Fields({"name": str, "arguments": str}),
    ),
    "custom": (
        _Fields({"id": str, "type": str, "custom": dict}),
        _Fields({"name": str, "input": str}),
    ),
}


def _openai_blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _openai_messages_are_well_formed(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if message.role in _OPENAI_MESSAGES:
            yield from map(message.says, _OPENAI_MESSAGES[message.role].problems(message.raw))


def _openai_parts_are_well_formed(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if content == []:
            yield message.says("its content is an empty list")
        for part in content if isinstance(content, list) else ():
            yield from map(message.says, _openai_part_problems(part, _OPENAI_PARTS_OF.get(message.role, {"text"})))


def _openai_part_problems(part: object, known: Iterable[str]) -> Iterator[str]:
    if not isinstance(part, dict):
        yield f"a content part must be an object, got {type(part).__name__}"
    elif _type_of(part) not in known:
        yield f"a content part cannot have the type {textwrap.shorten(repr(part.get('type')), 50)} here"
    else:
        fields = _OPENAI_PARTS[_type_of(part)]
        yield from (f"a {_type_of(part)} part {problem}" for problem in fields.problems(part))


def _openai_assistant_says_something(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "assistant" and not any(
            message.get(key) is not None for key in ("content", "tool_calls", "refusal", "audio", "function_call")
        ):
            yield message.says("an assistant's message needs content or tool_calls")


def _openai_calls_are_well_formed(messages: list[_Message]) -> Iterator[str]:
    for message in messages:
        if message.role == "assistant" and message.get("tool_calls") == []:
            yield message.says("tool_calls is an empty list")
        for call in _openai_calls(message):
            yield from map(message.says, _openai_call_problems(call))


def _openai_calls(message: _Message) -> list[Any]:
    calls = message.get("tool_calls") if message.role == "assistant" else None
    return calls if isinstance(calls, list) else []


def _openai_call_problems(call: object) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f"a tool call must be an object, got {type(call).__name__}"
    elif _type_of(call) not in _OPENAI_CALLS:
        yield f"a tool call has an unknown type, {textwrap.shorten(repr(call.get('type')), 50)}"
    else:
        outer, inner = _OPENAI_CALLS[_type_of(call)]
        yield from (f"a tool call {problem}" for problem in outer.problems(call))
        called = call.get(_type_of(call))
        yield from (f"a called tool {p}" for p in inner.problems(called if isinstance(called, dict) else {}))


def _openai_turns(messages: list[_Message]) -> list[_Turn]:
    """Neighbouring tool messages are one turn: they answer one assistant's message, in any order."""
    turns = []
    for are_results, group in groupby(messages, key=lambda message: message.role == "tool"):
        run = list(group)
        if are_results:
            turns.append(_Turn(run[0].index, results=_ids(message.get("tool_call_id") for message in run)))
        else:
            turns += [_Turn(message.index, calls=_openai_call_ids(message)) for message in run]
    return turns


def _openai_call_ids(message: _Message) -> tuple[str, ...]:
    return _ids(call.get("id") for call in _openai_calls(message) if isinstance(call, dict))


_OPENAI_TURN_RULES: tuple[_TurnRule, ...] = (
    _ids_are_unique_in_a_turn,
    _calls_are_answered,
    _calls_are_answered_once,
    _results_answer_calls,
)

_OPENAI_RULES: tuple[_Rule, ...] = (
    _messages_are_objects,
    _text_is_unicode,
    _roles_are_known("system", "developer", "user", "assistant", "tool"),
    _openai_messages_are_well_formed,
    _openai_parts_are_well_formed,
    _openai_assistant_says_something,
    _openai_calls_are_well_formed,
    _turns_keep(_OPENAI_TURN_RULES, _openai_turns),
)


# Signed reasoning.


def _signature(block: dict[str, Any]) -> str | None:
    """The signature of a reasoning block, of either kind; None if it has none or is something else."""
    if block.get("type") == "thinking":
        return _text_or_none(block.get("signature"))
    reasoning = block.get("reasoningContent")
    text = reasoning.get("reasoningText") if isinstance(reasoning, dict) else None
    return _text_or_none(text.get("signature")) if isinstance(text, dict) else None


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
