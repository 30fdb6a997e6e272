"""How many tokens a message is, estimated block by block."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.dialects import OpenAI, dialect_of
from holdfast.dialects.wires import as_mapping, unread_in
from holdfast.errors import InvalidTypeError
from holdfast.messages import (
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
    as_json_text,
)
from holdfast.tokens.media import decoded_base64, document_tokens, image_tokens, sound_tokens, without_media
from holdfast.tokens.text import estimate_text

__all__ = ["TokenEstimator", "estimate_input_tokens"]

_PER_MESSAGE = 4
_PER_CALL = 8
_PER_TOOL = 8
# Where only an address is given, the provider fetches an image of a size that nobody here knows.
_IMAGE_ELSEWHERE, _DOCUMENT_ELSEWHERE = 1_600, 3_000
_ENOUGH_OF_AN_IMAGE = 1 << 20
_FREE_KINDS = frozenset({"cachePoint", "cache_control"})
# From how many characters on base64 in a block that nobody knows is taken for media; in sound, all of it is.
_LONG_ENOUGH_FOR_MEDIA, _KINDS_OF_SOUND = 10_000, frozenset({"input_audio"})


def estimate_input_tokens(
    messages: Iterable[Any],
    system_prompt: Any = None,
    tool_specs: Iterable[Any] | None = None,
    *,
    count_text: Callable[[str], int] = estimate_text,
) -> int:
    """Return about how many tokens a model call is sent, for messages of any provider's format.

    *count_text* may be an exact tokenizer, such as `holdfast.tokens.exact_counter()`.
    """
    estimator = TokenEstimator(count_text)
    for name, value in (("messages", messages), ("tool_specs", tool_specs)):
        if isinstance(value, (str, bytes, Mapping)):
            raise InvalidTypeError(f"{name} must be a list, got {type(value).__name__}")
    given = list(messages)
    dialect = dialect_of(given) or OpenAI()
    read = (message if isinstance(message, Message) else dialect.read(message) for message in given)
    return sum(map(estimator.message, read)) + estimator.system(system_prompt) + estimator.tools(tool_specs)


class TokenEstimator:
    """Counts messages, system prompts and tools. *count_text* counts text; the rest is counted as providers do."""

    def __init__(self, count_text: Callable[[str], int] = estimate_text) -> None:
        self._count_text = count_text

    def message(self, message: Message) -> int:
        """Return the tokens of one message."""
        tokens = _PER_MESSAGE + sum(map(self.block, message.blocks))
        unread = unread_in(message.wire)
        return tokens + self._unknown(unread, _LONG_ENOUGH_FOR_MEDIA) if unread else tokens

    def system(self, system_prompt: Any) -> int:
        """Return the tokens of a system prompt: text, or a list of a provider's blocks."""
        if not system_prompt:
            return 0
        return _PER_MESSAGE + (self.text(system_prompt) if isinstance(system_prompt, str) else self.json(system_prompt))

    def tools(self, tool_specs: Iterable[Any] | None) -> int:
        """Return the tokens of the tools' descriptions."""
        return sum(_PER_TOOL + self.json(spec) for spec in tool_specs or ())

    def block(self, block: Block) -> int:
        """Return the tokens of one block."""
        match block:
            case Text(text) | Reasoning(text):
                return self.text(text) if text else self._hidden(block)
            case ToolResult(_, content):
                return _PER_CALL + sum(map(self.block, content))
            case ToolUse(_, name, arguments):
                return _PER_CALL + self.text(name) + self.json(arguments)
            case Json(value):
                return self.json(value)
            case Image():
                return self._image(block)
            case Document():
                return self._document(block)
            case Opaque(kind, value):
                shortest = 0 if kind in _KINDS_OF_SOUND else _LONG_ENOUGH_FOR_MEDIA
                return 0 if kind in _FREE_KINDS else self._unknown(value, shortest)
        return self.json(getattr(block, "value", ""))

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._count_text(text)

    def json(self, value: Any) -> int:
        """Return the tokens of a JSON value as it is sent. Bytes in it are taken for sound or film."""
        if isinstance(value, str):
            return self.text(value)
        sizes: list[int] = []
        text = _as_json(value, sizes)
        return self.text(text) + sound_tokens(sum(sizes))

    def _hidden(self, block: Text | Reasoning) -> int:
        """Return the tokens of reasoning that the provider encrypted."""
        return self.json(block.wire) if isinstance(block, Reasoning) and block.wire is not None else 0

    def _unknown(self, value: Any, shortest: int) -> int:
        """Return the tokens of what no dialect reads: of its JSON, and of the media in it."""
        media: list[int] = []
        try:
            shown = without_media(value, shortest, media)
        except RecursionError:
            return self.json(value)
        return self.json(shown) + sum(media)

    def _image(self, image: Image) -> int:
        data = decoded_base64(image.data, _ENOUGH_OF_AN_IMAGE) if isinstance(image.data, str) else image.data
        return _IMAGE_ELSEWHERE if data is None else image_tokens(data)

    def _document(self, document: Document) -> int:
        data = decoded_base64(document.data) if isinstance(document.data, str) else document.data
        if data is None:
            return max(_DOCUMENT_ELSEWHERE, self.text(document.data) if isinstance(document.data, str) else 0)
        return document_tokens(data, document.media_type)


def _as_json(value: Any, sizes: list[int]) -> str:
    def described(other: Any) -> Any:
        if isinstance(other, (bytes, bytearray, memoryview)):
            sizes.append(len(other))
            return ""
        given = as_mapping(other)
        return str(other) if given is None else dict(given)

    try:
        return json.dumps(value, ensure_ascii=False, default=described)
    except (TypeError, ValueError, RecursionError):
        return as_json_text(value)
