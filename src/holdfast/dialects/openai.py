"""OpenAI Chat: tool calls beside the content of an assistant's message, each result a message of its own."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from holdfast.dialects.wires import (
    MAPPING,
    Wire,
    as_dict,
    as_mapping,
    no_message,
    notes_in,
    role_in,
    sendable,
    string_in,
    unchanged,
    with_notes,
)
from holdfast.messages import (
    Block,
    Document,
    Image,
    Json,
    Message,
    Opaque,
    Reasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
)

__all__ = ["OpenAI"]

# A kind that no part of a content has: calls that cannot be read go back among the calls.
_CALL = "tool call"
_ROLES: dict[str, Role] = {"assistant": "assistant", "system": "system", "developer": "system"}


class OpenAI:
    """Messages of OpenAI's Chat Completions API, and of the many that speak it too."""

    name = "openai"
    may_repeat_roles = True

    def read(self, wire: Any) -> Message:
        """Return the message that *wire* stands for. A tool's message is one of the user's, with one result."""
        if (given := as_mapping(wire)) is None:
            return no_message(wire)
        role, content = role_in(given), _read_content(given.get("content"))
        if role == "tool" and isinstance(given.get("tool_call_id"), str):
            return Message("user", (ToolResult(given["tool_call_id"], content, wire=given),), notes_in(given), wire)
        blocks = (*content, *_read_reasoning(given), *_read_calls(given.get("tool_calls")))
        return Message(_ROLES.get(role, "user"), blocks, notes_in(given), wire)

    def write(self, message: Message) -> list[Any]:
        """Return what *message* was read from, or what it has become since: one message for each tool result."""
        if (as_it_came := unchanged(message)) is not None:
            return as_it_came
        results = list(message.tool_results)
        if not results:
            return [self._write_spoken(message)]
        spoken = tuple(block for block in message.blocks if not isinstance(block, ToolResult))
        return [
            *(with_notes(_write_result(result), message.notes) for result in results),
            *([self._write_spoken(Message("user", spoken, message.notes))] if spoken else []),
        ]

    def sendable(self, wires: Iterable[Any]) -> list[Any]:
        """Return the messages without what no provider may see."""
        return sendable(wires)

    def _write_spoken(self, message: Message) -> Wire:
        calls = tuple(filter(_is_call, message.blocks))
        said = tuple(block for block in message.blocks if not _is_call(block) and not isinstance(block, Reasoning))
        new: Wire = {"role": message.role, "content": None if calls else ""}
        given = as_mapping(message.wire)
        wire = new if given is None else dict(given)
        if said != _read_content(wire.get("content")):
            wire["content"] = _write_content(said, wire.get("content"))
        if calls != tuple(_read_calls(wire.get("tool_calls"))):
            wire = _with_calls(wire, calls)
        if not any(isinstance(block, Reasoning) for block in message.blocks):
            wire.pop("reasoning_content", None)
        return with_notes(wire, message.notes)


def _read_content(content: Any) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(map(_read_part, content)) if isinstance(content, list) else ()


def _read_part(wire: Any) -> Block:
    if (given := as_dict(wire)) is None:
        return Opaque("", wire, wire)
    read = _READERS.get(kind := string_in(given, "type"))
    block = read(given) if read is not None else None
    return Opaque(kind, given, given) if block is None else block


def _text(wire: Wire) -> Block | None:
    text = wire.get("text")
    return Text(text, wire) if isinstance(text, str) else None


def _image(wire: Wire) -> Block | None:
    image = wire.get("image_url")
    url = image.get("url") if isinstance(image, MAPPING) else image
    return Image(*_from_data_url(url), wire) if isinstance(url, str) else None


def _file(wire: Wire) -> Block | None:
    file = wire.get("file")
    if not isinstance(file, MAPPING):
        return None
    given = string_in(file, "file_data")
    media_type, data = _from_data_url(given)
    # Some send the base64 text alone.
    return Document(media_type, string_in(file, "filename"), (given or None) if data is None else data, wire)


def _from_data_url(url: Any) -> tuple[str, str | None]:
    """Return media type and base64 text; of any other address, neither."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return "", None
    head, _, data = url[len("data:") :].partition(",")
    return head.partition(";")[0], data


_READERS: dict[str, Callable[[Wire], Block | None]] = {"text": _text, "image_url": _image, "file": _file}


def _read_reasoning(wire: Mapping[str, Any]) -> tuple[Block, ...]:
    text = string_in(wire, "reasoning_content")
    return (Reasoning(text),) if text else ()


def _read_calls(calls: Any) -> Iterable[Block]:
    return map(_read_call, calls) if isinstance(calls, list) else ()


def _read_call(wire: Any) -> Block:
    if (given := as_dict(wire)) is None:
        return Opaque(_CALL, wire, wire)
    function = as_mapping(given.get("function"))
    if function is None:
        function = as_mapping(given.get("custom"))
    if function is None or not isinstance(given.get("id"), str):
        return Opaque(_CALL, given, given)
    return ToolUse(given["id"], string_in(function, "name"), function.get("arguments", function.get("input")), given)


def _is_call(block: Block) -> bool:
    return isinstance(block, ToolUse) or (isinstance(block, Opaque) and block.kind == _CALL)


def _write_result(result: ToolResult) -> Wire:
    before = result.wire if result.wire is not None else {"role": "tool", "tool_call_id": result.tool_use_id}
    if result.wire is not None and not result.edited:
        return dict(before)
    return {**before, "content": _write_content(result.content, before.get("content", ""))}


def _with_calls(wire: Wire, calls: Iterable[Block]) -> Wire:
    written = list(map(_write_call, calls))
    others = {name: value for name, value in wire.items() if name != "tool_calls"}
    return others | {"tool_calls": written} if written else others


def _write_call(call: Block) -> Any:
    match call:
        case Opaque(_, value):
            return value
        case ToolUse(id, name, input) if call.wire is None:
            arguments = input if isinstance(input, str) else json.dumps(input if input is not None else {})
            return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return call.wire


def _write_content(blocks: Sequence[Block], before: Any) -> Any:
    """Return the blocks as text where they are all text and the provider's object did not hold parts."""
    if not blocks or (not isinstance(before, list) and all(isinstance(block, Text) for block in blocks)):
        return "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)
    return list(chain.from_iterable(map(_write_part, blocks)))


def _write_part(block: Block) -> list[Any]:
    if not isinstance(block, (ToolUse, ToolResult)) and block.wire is not None:
        return [block.wire]
    match block:
        case Opaque(_, value):
            return [value]
        case Text(text):
            return [{"type": "text", "text": text}]
        case Json(value):
            return [{"type": "text", "text": json.dumps(value, ensure_ascii=False, default=str)}]
        case Image(media_type, data):
            return [{"type": "image_url", "image_url": {"url": _data_url(media_type, data)}}]
        case Document(media_type, name, data):
            return [{"type": "file", "file": {"filename": name, "file_data": _data_url(media_type, data)}}]
    return []


def _data_url(media_type: str, data: bytes | str | None) -> str:
    encoded = b64encode(data).decode() if isinstance(data, bytes) else data or ""
    return f"data:{media_type};base64,{encoded}"
