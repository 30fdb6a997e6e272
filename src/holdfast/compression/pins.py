"""Pins: messages that stay because someone asked for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.agent_tools import AgentTool
from holdfast.cuts import opens_a_turn
from holdfast.defaults import WINDOW
from holdfast.dialects import OpenAI, dialect_of
from holdfast.dialects.wires import as_mapping, with_notes
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import Conversation
from holdfast.messages import Json, Message, Text, ToolResult
from holdfast.tokens import TokenEstimator

__all__ = ["pin_message", "set_pins"]

_ARGUMENTS = ("action", "last", "messages", "containing")
_LONGEST_QUOTE = 60
_MOST_NAMED = 10
# Of the window. The rest has to do for everything else: system prompt, tools, what is new, and the answer.
_MOST_PINNED = 1 / 3


def set_pins(messages: list[Any], indices: Iterable[int], *, pinned: bool = True) -> None:
    """Pin, or unpin, messages of a provider's format in place. A pin covers the tool pair that a message belongs to.

    The pin stands under ``metadata.custom`` of the message, which is saved with it and sent to no provider:
    `Dialect.sendable` leaves it out.
    """
    dialect = dialect_of(messages) or OpenAI()
    for index, given in [(index, _mapping_at(messages, index)) for index in indices]:
        message = dialect.read(given)
        if message.pinned is not pinned:
            messages[index] = with_notes(given, message.with_pin(pinned).notes)


def _mapping_at(messages: list[Any], index: int) -> dict[str, Any]:
    if not -len(messages) <= index < len(messages):
        raise InvalidValueError(f"there is no message at {index}: there are {len(messages)}")
    if (given := as_mapping(messages[index])) is None:
        kind = type(messages[index]).__name__
        raise InvalidTypeError(f"message {index + 1} can hold no pin: it is a {kind} and not a mapping")
    return dict(given)


async def _pin(conversation: Conversation, arguments: Mapping[str, Any]) -> str:
    unknown = [name for name in arguments if name not in _ARGUMENTS]
    if unknown:
        raise InvalidValueError(f"unknown argument {unknown[0]!r}; allowed are {', '.join(_ARGUMENTS)}")
    action = arguments.get("action", "pin")
    if action not in ("pin", "unpin"):
        raise InvalidValueError(f"action must be 'pin' or 'unpin', got {action!r:.80}")
    dialect = dialect_of(conversation.messages) or OpenAI()
    messages = [dialect.read(wire) for wire in conversation.messages]
    chosen = _chosen(messages, arguments)
    changed = [index for index in chosen if messages[index].pinned is not (action == "pin")]
    if action == "pin":
        _refuse_too_much(messages, changed, conversation.window or WINDOW)
    set_pins(conversation.messages, changed, pinned=action == "pin")
    return _answer(action, messages, chosen, changed)


def _refuse_too_much(messages: Sequence[Message], indices: Iterable[int], window: int) -> None:
    """Refuse pins that would leave too little room: a window full of what may not leave fits no request any more."""
    kept = {*indices, *(index for index, message in enumerate(messages) if message.pinned)}
    tokens = sum(map(TokenEstimator().message, (messages[index] for index in kept)))
    if tokens > window * _MOST_PINNED:
        raise InvalidValueError(
            f"pinned messages would take about {tokens:,} tokens of a window of {window:,}, and may take "
            f"{int(window * _MOST_PINNED):,}; pin fewer messages, or unpin some first"
        )


def _chosen(messages: Sequence[Message], arguments: Mapping[str, Any]) -> list[int]:
    ways = [name for name in _ARGUMENTS[1:] if arguments.get(name) is not None]
    if len(ways) > 1:
        raise InvalidValueError(f"give only one of last, messages and containing, not {' and '.join(ways)}")
    if not messages:
        raise InvalidValueError("there are no messages yet")
    if not ways:
        return _current_exchange(messages)
    choose = {"last": _last, "messages": _numbered, "containing": _containing}[ways[0]]
    return choose(messages, arguments[ways[0]])


def _current_exchange(messages: Sequence[Message]) -> list[int]:
    openings = [index for index, message in enumerate(messages) if opens_a_turn(message)]
    return list(range(openings[-1] if openings else 0, len(messages)))


def _last(messages: Sequence[Message], count: Any) -> list[int]:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InvalidValueError(f"last must be a number of messages, 1 or more, got {count!r:.80}")
    return list(range(max(len(messages) - count, 0), len(messages)))


def _numbered(messages: Sequence[Message], numbers: Any) -> list[int]:
    if not isinstance(numbers, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise InvalidTypeError("messages must be a list of numbers: 1 is the first message, -1 the latest")
    if not numbers:
        raise InvalidValueError("messages must name at least one message: 1 is the first, -1 the latest")
    for number in numbers:
        if not (1 <= number <= len(messages) or -len(messages) <= number <= -1):
            raise InvalidValueError(f"there is no message {number}: they go from 1 to {len(messages)}")
    return sorted({number - 1 if number > 0 else len(messages) + number for number in numbers})


def _containing(messages: Sequence[Message], text: Any) -> list[int]:
    if not isinstance(text, str) or not text.strip():
        raise InvalidValueError("containing must be some text that the messages hold")
    # The call itself is the latest message, and may well quote what it asks for.
    before_the_call = messages[:-1] if any(messages[-1].tool_uses) else messages
    found = [index for index, message in enumerate(before_the_call) if _holds(message.blocks, text)]
    if not found:
        raise InvalidValueError(f"no message holds {text!r:.120}")
    return found


def _holds(blocks: Iterable[object], text: str) -> bool:
    return any(
        (isinstance(block, Text) and text in block.text)
        or (isinstance(block, Json) and text in _as_json(block.value))
        or (isinstance(block, ToolResult) and _holds(block.content, text))
        for block in blocks
    )


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return ""


def _answer(action: str, messages: Sequence[Message], chosen: Sequence[int], changed: Sequence[int]) -> str:
    done = "Pinned" if action == "pin" else "Unpinned"
    if not changed:
        state = "pinned already" if action == "pin" else "not pinned"
        return f"Nothing changed: {_count(len(chosen))} {'was' if len(chosen) == 1 else 'were'} {state}."
    tokens = sum(map(TokenEstimator().message, (messages[index] for index in changed)))
    named = [f"{index + 1} ({messages[index].role}: {_quoted(messages[index])})" for index in changed[:_MOST_NAMED]]
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    meaning = "will not leave with older ones" if action == "pin" else "may leave again"
    return f"{done} {_count(len(changed))}, about {tokens:,} tokens, which {meaning}: {', '.join(named)}{more}."


def _count(number: int) -> str:
    return f"{number} message{'' if number == 1 else 's'}"


def _quoted(message: Message) -> str:
    text = " ".join(message.text[:200].split())
    if not text:
        names = [use.name for use in message.tool_uses]
        return f"calls {', '.join(names)}" if names else "a tool's result"
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…")


pin_message = AgentTool(
    name="pin_message",
    description=(
        "Keep messages in view, or let them go again. Older messages leave the conversation when it becomes too long; "
        "pinned ones stay, with the tool calls and results that belong to them. Without further arguments it pins the "
        "current exchange: the user's latest request and all that followed. Pin what must not be forgotten, such as "
        "requirements, and unpin what is done: pinned messages take room."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["pin", "unpin"], "default": "pin"},
            "last": {"type": "integer", "minimum": 1, "description": "The latest so many messages."},
            "messages": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "Messages by number: 1 is the first in view, -1 the latest.",
            },
            "containing": {"type": "string", "description": "Every message that holds this text."},
        },
        "additionalProperties": False,
    },
    handler=_pin,
)
