"""What of a tool's result is to be stored, and what stays: decided before anything is done."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from holdfast.batches import BATCH_TYPE
from holdfast.errors import InvalidValueError
from holdfast.gentle_json import dumps_readable
from holdfast.media_types import is_textual, media_type_of
from holdfast.messages import Block, Document, Image, Json, Text, ToolResult
from holdfast.tokens import TokenEstimator

__all__ = ["OffloadPlan", "Part", "Storable", "plan_offload"]

_MOST_TEXTS = 8
# What the line with a reference takes, so that a preview with it is surely smaller than what it stands for.
_HEADER = 80
# Characters: most records then stand on one line, which a pattern shows whole.
_RECORD = 400


@dataclass(frozen=True)
class Storable:
    """One content to store. Of *text*, an extract of *room* tokens takes its place; other contents have none."""

    content: bytes = field(repr=False)
    content_type: str
    tokens: int
    name: str = ""
    text: str | None = field(default=None, repr=False)
    room: int = 0


@dataclass(frozen=True)
class Part:
    """A block of a result, what is to be stored of it, and the reference once it is. What is not stored stays."""

    block: Block
    storable: Storable | None = None
    reference: str | None = None


@dataclass(frozen=True)
class OffloadPlan:
    """The blocks of a result, in their order."""

    tokens: int
    parts: tuple[Part, ...]

    @property
    def storables(self) -> list[Storable]:
        """What is to be stored."""
        return [part.storable for part in self.parts if part.storable is not None]

    @property
    def references(self) -> list[str]:
        """Where it is stored."""
        return [part.reference for part in self.parts if part.reference is not None]

    def stored_as(self, references: Iterable[str]) -> OffloadPlan:
        """Return the plan with a reference for each of its storables."""
        given = iter(references)
        parts = (part if part.storable is None else replace(part, reference=next(given)) for part in self.parts)
        return replace(self, parts=tuple(parts))


def plan_offload(result: ToolResult, preview_tokens: int, estimator: TokenEstimator) -> OffloadPlan:
    """Say what of *result* leaves: what is not as good as its own preview in a fair share of *preview_tokens*."""
    sized = [(block, estimator.block(block)) for block in _with_few_texts(result.content)]
    share = _fair_share([tokens for block, tokens in sized if _is_shown(block)], preview_tokens)
    parts = tuple(Part(block, _storable(block, tokens, share)) for block, tokens in sized)
    return OffloadPlan(sum(tokens for _, tokens in sized), parts)


def _with_few_texts(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Join neighbouring texts if there are many: each reference takes room in the window too."""
    if sum(isinstance(block, Text) for block in blocks) <= _MOST_TEXTS:
        yield from blocks
        return
    for are_texts, run in groupby(blocks, lambda block: isinstance(block, Text)):
        if are_texts:
            yield Text("\n".join(block.text for block in run if isinstance(block, Text)))
        else:
            yield from run


def _is_shown(block: Block) -> bool:
    is_text = isinstance(block, Document) and is_textual(media_type_of(block.media_type, ""))
    return is_text or isinstance(block, (Text, Json))


def _fair_share(sizes: Iterable[int], tokens: int) -> int:
    """Return how many tokens each may take, if those that need less leave the rest to the others."""
    waiting = sorted(sizes)
    share = tokens
    for at, size in enumerate(waiting):
        share = tokens // (len(waiting) - at)
        if size > share:
            return share
        tokens -= size
    return max([share, *waiting])


def _storable(block: Block, tokens: int, share: int) -> Storable | None:
    match block:
        case Text(text) if tokens > share + _HEADER:
            return _of_text(text, "text/plain", tokens, share)
        case Json(value) if tokens > share + _HEADER:
            return _of_json(value, tokens, share)
        case Image(media_type, data) if tokens > _HEADER:
            return _of_media(data, media_type_of(media_type, "image/png"), tokens)
        case Document(media_type, name, data) if tokens > _HEADER:
            content_type = media_type_of(media_type, "application/octet-stream")
            return _of_document(_of_media(data, content_type, tokens, name), share)
    return None


def _of_json(value: object, tokens: int, share: int) -> Storable | None:
    try:
        text = dumps_readable(value, width=_RECORD)
    except InvalidValueError:
        # It holds itself, or other keys than text: what it is could not be stored.
        return None
    return _of_text(text, "application/json", tokens, share)


def _of_text(text: str, content_type: str, tokens: int, share: int) -> Storable:
    # Lone surrogates, which no encoding knows, are stored as they are: nothing that a tool said may be lost.
    content = text.encode("utf-8", "surrogatepass")
    return Storable(content, content_type, tokens, text=text, room=share)


def _of_media(data: bytes | str | None, content_type: str, tokens: int, name: str = "") -> Storable | None:
    content = _decoded(data) if isinstance(data, str) else data
    if content_type == BATCH_TYPE:
        # Only the archive stores messages as such.
        content_type = "application/octet-stream"
    return Storable(content, content_type, tokens, name) if content else None


def _of_document(document: Storable | None, share: int) -> Storable | None:
    """Return a document with its text, if it is one of text."""
    if document is None or not is_textual(document.content_type):
        return document
    return replace(document, text=document.content.decode("utf-8", "replace"), room=share)


def _decoded(data: str) -> bytes | None:
    try:
        return b64decode("".join(data.split()), validate=True)
    except ValueError:
        # Whatever it is, it could not be given back as it came.
        return None
