"""A stored message part by part: each text, call, image or document by itself, as it was."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.batches.batch import Entry
from holdfast.batches.beside import beside_block, beside_message
from holdfast.batches.encoding import decoded, encoded
from holdfast.batches.pieces import Piece, piece_in, pieces_in, put_together
from holdfast.dialects import dialect_named
from holdfast.errors import InvalidValueError
from holdfast.media_types import is_textual, media_type_of
from holdfast.messages import (
    KEPT_IN,
    SUMMARY,
    Block,
    Document,
    Image,
    Json,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
)
from holdfast.messages import as_json_text as json_text

__all__ = ["Leaf", "leaves_of", "message_of", "says_something"]

# All that a marker or a bridge says, and a summary of which the messages are archived.
_OWN_WORDS = re.compile(r"(<summary>.*</summary>\n)?\[[^\n]*\](\n.*)?", re.DOTALL)


@dataclass(frozen=True)
class Leaf:
    """A part of a message that holds no others. *role* is who spoke: ``tool`` for results; *tool* its name.

    *elsewhere* is the reference of a batch that holds it, where it is stored already; then *content* is empty.
    """

    role: str
    kind: str
    content: bytes = field(repr=False)
    content_type: str = "text/plain"
    tool: str = ""
    elsewhere: str = ""

    @property
    def text(self) -> str | None:
        """What can be read of it; None if it is no text."""
        if not is_textual(self.content_type):
            return None
        try:
            return self.content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return self.content.decode("utf-8", "replace")


def message_of(entry: Entry, dialect: str) -> Message:
    """Return the message of an entry. Parts that are stored elsewhere are opaque.

    Raises InvalidValueError if it is damaged.
    """
    if entry.damage:
        raise InvalidValueError(entry.damage)
    # What a user wrote may look like our names once it is decoded, but is no Piece.
    named = put_together(entry.wire, {piece: piece for piece in pieces_in(entry.wire)})
    return dialect_named(dialect).read(decoded(named))


def says_something(entry: Entry, dialect: str) -> bool:
    """Say whether what holdfast itself had put there says what is nowhere else.

    That is a summary whose messages nobody archived, or anything to which somebody added something.
    """
    if piece_in(entry.wire) is not None:
        return False
    try:
        message = message_of(entry, dialect)
    except InvalidValueError:
        # Nobody can tell any more, so it is not passed over.
        return True
    if message.made_as == SUMMARY and KEPT_IN not in message.notes:
        return True
    return len(message.blocks) != 1 or _OWN_WORDS.fullmatch(message.text) is None


def leaves_of(entry: Entry, dialect: str) -> list[Leaf]:
    """Return the parts of an entry's message, in their order. Raises InvalidValueError if it is damaged."""
    if (piece := piece_in(entry.wire)) is not None:
        return [Leaf("", "part", b"", elsewhere=piece.reference)]
    message = message_of(entry, dialect)
    try:
        leaves = [leaf for block in message.blocks for leaf in _leaves(block, message.role, entry)]
        beside = beside_message(message)
    except RecursionError as error:
        raise InvalidValueError("it is nested too deeply to be read part by part") from error
    if beside is not None or not leaves:
        leaves.append(_as_json(beside or message.wire, message.role, "beside"))
    # Behind all others: a block is found under its own number.
    return sorted(leaves, key=lambda leaf: leaf.kind == "beside")


def _leaves(block: Block, role: str, entry: Entry) -> Iterator[Leaf]:
    """Yield the parts of a block, and what its object says beside them."""
    tool = entry.tools.get(block.tool_use_id, "") if isinstance(block, ToolResult) else ""
    yield from _read(block, role, entry, tool)
    if (beside := beside_block(block, tool)) is not None:
        leaf = _as_json(beside, role, "beside")
        yield _of_result(leaf, tool) if isinstance(block, ToolResult) else leaf


def _read(block: Block, role: str, entry: Entry, tool: str) -> Iterator[Leaf]:
    match block:
        case Text(text):
            yield Leaf(role, "text", _bytes(text))
        case Reasoning("") if block.wire is not None:
            # Only the provider can read it.
            yield replace(_as_json(block.wire, role, "reasoning"), content_type="application/octet-stream")
        case Reasoning(text):
            yield Leaf(role, "reasoning", _bytes(text))
        case Json(value):
            yield Leaf(role, "value", _bytes(json_text(value)), "application/json")
        case ToolUse(_, name, arguments):
            text = arguments if isinstance(arguments, str) else json_text(arguments)
            yield Leaf(role, "call", _bytes(text), "application/json", tool=name)
        case ToolResult(_, content):
            for part in content:
                yield from (_of_result(leaf, tool) for leaf in _leaves(part, role, entry))
        case Image(_, data) | Document(_, _, data) if not data and block.wire is not None:
            yield _as_json(block.wire, role, "file")
        case Image(media_type, data) | Document(media_type, _, data):
            yield Leaf(role, "file", *_media(data, media_type, block))
        case Opaque(_, value):
            yield _opaque(value, role)


def _of_result(leaf: Leaf, tool: str) -> Leaf:
    return Leaf("tool", leaf.kind, leaf.content, leaf.content_type, tool, leaf.elsewhere)


def _opaque(value: Any, role: str) -> Leaf:
    if isinstance(value, Piece):
        return Leaf(role, "part", b"", elsewhere=value.reference)
    return _as_json(value, role, "block")


def _as_json(value: Any, role: str, kind: str) -> Leaf:
    return Leaf(role, kind, _bytes(json_text(encoded(value))), "application/json")


def _media(data: bytes | str | None, media_type: str, block: Block) -> tuple[bytes, str]:
    content_type = media_type_of(media_type, "image/png" if isinstance(block, Image) else "application/octet-stream")
    if isinstance(data, bytes):
        return data, content_type
    try:
        return b64decode("".join(data.split()), validate=True) if data else b"", content_type
    except ValueError:
        return _bytes(data or ""), "text/plain"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
