"""The text of messages, part by part, and whose it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from holdfast.agent_tools import OWN_TOOLS
from holdfast.compression.furniture import without_furniture, without_notes
from holdfast.messages import Block, Json, Message, Text, ToolResult, ToolUse, as_json_text

__all__ = ["Said", "said_in"]

_MOST_VALUES = 20_000


class Said(NamedTuple):
    """A text, and who it comes from: a tool's name, a role, or "" for a summary.

    *is_input* is what a tool was given, *is_list* what was only listed behind a summary.
    """

    source: str
    text: str
    is_input: bool = False
    is_list: bool = False


def said_in(messages: Iterable[Message]) -> Iterator[Said]:
    """Yield what *messages* say, in order, without what holdfast itself put among it.

    A tool's result has the name of the tool if its call is there, too.
    """
    names: dict[str, str] = {}
    for message in messages:
        for block in message.blocks:
            match block:
                case Text(text):
                    yield Said(message.role, text)
                case ToolUse(id_, name, given):
                    names[id_] = name
                    if name not in OWN_TOOLS:
                        yield Said(name, _as_lines(given), is_input=True)
                case ToolResult(id_, content):
                    name = names.get(id_, "a tool")
                    told = without_notes if name in OWN_TOOLS else without_furniture
                    yield Said(name, told("\n".join(_contents(content))))


def _contents(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text):
                yield text
            case Json(value):
                yield _as_lines(value)


def _as_lines(value: Any) -> str:
    """Return a value of JSON, or its text, as lines of names and values; of very many values, the first."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    return "\n".join(_leaves(value))


def _leaves(value: Any) -> Iterator[str]:
    # No recursion: a value may be nested deeply, or hold itself.
    open_values: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    left = _MOST_VALUES
    while open_values and left:
        if (found := next(open_values[-1], None)) is None:
            open_values.pop()
            continue
        left -= 1
        name, value = found
        if isinstance(value, Mapping):
            open_values.append((key if isinstance(key, str) else "", inner) for key, inner in list(value.items()))
        elif isinstance(value, (list, tuple)):
            open_values.append(zip(repeat(name), value))
        elif value is not None and not isinstance(value, bool):
            leaf = value if isinstance(value, str) else as_json_text(value)
            yield f"{name}: {leaf}" if name else leaf
