"""Messages as the core sees them, whatever a provider calls their parts.

All are frozen. What came from a provider's format keeps the very object it was read from as ``wire``, so that whatever
nobody changed goes back as it came: prompt caches and signed reasoning stay valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

__all__ = [
    "KEPT_AS",
    "KEPT_IN",
    "LEFT_AS",
    "NO_NOTES",
    "OFFLOADED",
    "SUMMARY",
    "Block",
    "Document",
    "Image",
    "Json",
    "Message",
    "Opaque",
    "Reasoning",
    "Role",
    "Text",
    "ToolResult",
    "ToolUse",
    "as_json_text",
    "text_of",
]

Role: TypeAlias = Literal["user", "assistant", "system"]

SUMMARY = "summary"
KEPT_IN, KEPT_AS, LEFT_AS, OFFLOADED = "kept_in", "kept_as", "left_as", "offloaded"
"""Notes: where what left is stored, on a marker or a summary; where a message is stored of which something is left out,
and what tells that message from one that somebody changed since; the references of results that were offloaded.
"""
NO_NOTES: Mapping[str, Any] = MappingProxyType({})
_PINNED, _MADE_AS = "pinned", "holdfast"


@dataclass(frozen=True, slots=True)
class Text:
    """Text of any kind."""

    text: str
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value, as a tool returned it."""

    value: Any
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its bytes, or their base64 text, or neither where it is only pointed at."""

    media_type: str = ""
    data: bytes | str | None = field(default=None, repr=False)
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its bytes, or their base64 text, or neither where it is only pointed at."""

    media_type: str = ""
    name: str = ""
    data: bytes | str | None = field(default=None, repr=False)
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought. `bound` if the provider refuses it after any other prefix than the one it was made for."""

    text: str = ""
    bound: bool = False
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block that the core does not know. It is counted, kept and given back, and never looked into."""

    kind: str
    value: Any = field(default=None, repr=False)
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool. The input is a JSON value, or its text where the provider sends text."""

    id: str
    name: str
    input: Any = None
    wire: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to the call with that id."""

    tool_use_id: str
    content: tuple[Block, ...] = ()
    is_error: bool = False
    wire: Any = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False, repr=False)

    def with_content(self, content: tuple[Block, ...]) -> ToolResult:
        """Return the result with other content, and all else that the provider's object holds."""
        return replace(self, content=content, edited=True)


def as_json_text(value: Any) -> str:
    """Return a value of a tool's input or result as text. What JSON cannot hold is described; it never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_described)
    except (TypeError, ValueError, RecursionError):
        # A key that is no string, a value that holds itself, or one too deep: no provider could be sent it either.
        return f"[{type(value).__name__} that is no JSON]"


def _described(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"[{len(value):,} bytes]"
    return dict(value) if isinstance(value, Mapping) else str(value)


def text_of(message: Message) -> str:
    """Return all that a message says, the calls and results of tools included."""
    return "\n".join(_texts_in(message.blocks))


def _texts_in(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text) | Reasoning(text):
                yield text
            case ToolUse(_, name, arguments):
                yield f"{name} {arguments if isinstance(arguments, str) else as_json_text(arguments)}"
            case Json(value):
                yield as_json_text(value)
            case ToolResult(_, content):
                yield from _texts_in(content)


Block: TypeAlias = Text | Json | Image | Document | Reasoning | Opaque | ToolUse | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `notes` is what no provider ever sees: pins, and what holdfast itself put there."""

    role: Role
    blocks: tuple[Block, ...]
    notes: Mapping[str, Any] = field(default_factory=lambda: NO_NOTES)
    wire: Any = field(default=None, compare=False, repr=False)
    edited: bool = field(default=False, compare=False, repr=False)

    @staticmethod
    def of_text(role: Role, text: str, *, made_as: str | None = None) -> Message:
        """Make a new message. *made_as* notes what holdfast made it for."""
        return Message(role, (Text(text),), NO_NOTES if made_as is None else {_MADE_AS: made_as})

    @property
    def tool_uses(self) -> Iterator[ToolUse]:
        """The calls in it."""
        return (block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def tool_results(self) -> Iterator[ToolResult]:
        """The answers in it."""
        return (block for block in self.blocks if isinstance(block, ToolResult))

    @property
    def text(self) -> str:
        """All of its own text, without that of tool results."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def pinned(self) -> bool:
        """Whether someone asked that it stays."""
        return self.notes.get(_PINNED) is True

    @property
    def made_as(self) -> str | None:
        """What holdfast made it for, if it did."""
        made_as = self.notes.get(_MADE_AS)
        return made_as if isinstance(made_as, str) else None

    @property
    def offloaded(self) -> tuple[str, ...]:
        """The references of its results that were offloaded, as far as they were noted."""
        noted = self.notes.get(OFFLOADED)
        return tuple(name for name in noted if isinstance(name, str)) if isinstance(noted, (list, tuple)) else ()

    def with_pin(self, pinned: bool) -> Message:
        """Return the message pinned, or not."""
        others = {name: note for name, note in self.notes.items() if name != _PINNED}
        return replace(self, notes=others | {_PINNED: True} if pinned else others, edited=True)

    def with_blocks(self, blocks: tuple[Block, ...]) -> Message:
        """Return the message with other blocks, and all else that the provider's object holds."""
        return replace(self, blocks=blocks, edited=True)
