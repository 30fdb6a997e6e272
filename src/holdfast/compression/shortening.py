"""Tool results made shorter: an extract stays, which says where the whole is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.compression.draft import Draft
from holdfast.extracts import extract, introduced
from holdfast.history import History
from holdfast.messages import Block, Document, Image, Json, Message, Text, ToolResult, as_json_text
from holdfast.names import Names
from holdfast.tokens import TokenEstimator

__all__ = ["Shortened", "shorten_largest", "shorten_to_fit", "shortened"]

_SHORT = 200
_SHORTEST, _FEWEST = 60, 40
_FEWEST_CHARACTERS = 80
_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Shortened(Text):
    """What stands for a text, the *source*, or for other content, until it is known where that is stored."""

    source: str = field(default="", compare=False, repr=False)
    about: str = ""
    is_offloaded: bool = False

    def kept_as(self, reference: str) -> Text:
        """Return the text that names the reference; an extract of one that was offloaded names its own."""
        return Text(self.text if self.is_offloaded else self._introduced_by(introduced(reference, self.about)))

    def lost(self) -> Text:
        """Return the text that says that what is left out could not be stored."""
        lost = introduced("", f"{self.about}; the rest could not be stored and is lost")
        return Text(self.text if self.is_offloaded else self._introduced_by(lost))

    def _introduced_by(self, title: str) -> str:
        _, newline, body = self.text.partition("\n")
        return title + newline + body


def shorten_largest(draft: Draft, history: History, indices: Iterable[int], target: int) -> None:
    """Shorten whole messages' results, the largest first, until *target* tokens are reached."""
    for index in sorted(indices, key=lambda index: -history.tokens(index, index + 1)):
        if draft.tokens <= target:
            return
        message = draft.message(index)
        known = history.tokens(index, index + 1) if message is history.messages[index] else None
        draft.rewrite(index, shortened(message, _SHORT, history.estimator, history.names, tokens=known))


def shorten_to_fit(draft: Draft, history: History, indices: Sequence[int], target: int) -> None:
    """Shorten the largest results of these messages to a common size, no further than *target* asks for."""
    estimator = history.estimator
    results = [estimator.block(result) for index in indices for result in draft.message(index).tool_results]
    cap = _common_cap(results, max(draft.tokens - target, 0))
    for _ in range(_ATTEMPTS):
        for index in indices:
            draft.rewrite(index, shortened(draft.message(index), cap, estimator, history.names))
        if draft.tokens <= target or cap <= _SHORTEST:
            return
        cap = max(_SHORTEST, cap * 3 // 4)


def shortened(
    message: Message, cap: int, estimator: TokenEstimator, names: Names, *, tokens: int | None = None
) -> Message:
    """Return *message* with each tool result of more than *cap* tokens cut down to that.

    *tokens* is what the message takes, if that is known: where it is all in one place, nothing is counted again.
    """
    known = tokens if len(message.blocks) == 1 else None
    shortening = _Shortening(estimator, names, message.offloaded)
    blocks = tuple(shortening.result(block, cap, known) for block in message.blocks)
    return message if blocks == message.blocks else message.with_blocks(blocks)


class _Shortening(NamedTuple):
    """How results are shortened; *offloaded* are references of those that are extracts already."""

    estimator: TokenEstimator
    names: Names
    offloaded: tuple[str, ...]

    def result(self, block: Block, cap: int, known: int | None) -> Block:
        if not isinstance(block, ToolResult):
            return block
        if known is not None and len(block.content) == 1:
            content = [(block.content[0], known)]
        else:
            content = [(part, self.estimator.block(part)) for part in block.content]
        tokens = sum(size for _, size in content)
        if tokens <= cap:
            return block
        return block.with_content(tuple(self._part(part, size * cap // tokens) for part, size in content))

    def _part(self, part: Block, cap: int) -> Block:
        match part:
            case Text(text):
                return self._extract(part.source if isinstance(part, Shortened) else text, cap, part)
            case Json(value):
                return self._extract(as_json_text(value), cap, part)
            case Image() | Document():
                about = f"{part.media_type or 'content'}: left out to save space"
                return Shortened(introduced("", about), about=about)
        return part

    def _extract(self, text: str, cap: int, part: Block) -> Block:
        title, _, rest = text.partition("\n")
        is_offloaded = any(reference in title for reference in self.offloaded)
        room = max(cap - self.estimator.text(title), 0) if is_offloaded else max(cap, _FEWEST)
        shorter = extract(rest if is_offloaded else text, room, names=self.names, count_text=self.estimator.text)
        if is_offloaded:
            shorter = "\n".join([title, *shorter.split("\n")[1:]])
        if len(shorter) + _FEWEST_CHARACTERS > len(text):
            return part
        return Shortened(shorter, source=text, about=f"{len(text):,} characters", is_offloaded=is_offloaded)


def _common_cap(sizes: Iterable[int], excess: int) -> int:
    """Return the size to which the larger ones must come down for all together to lose *excess*."""
    largest = sorted(sizes, reverse=True)
    above = 0
    for count, size in enumerate(largest, start=1):
        following = largest[count] if count < len(largest) else 0
        above += count * (size - following)
        if above >= excess:
            return max(_SHORTEST, following + (above - excess) // count)
    return _SHORTEST
