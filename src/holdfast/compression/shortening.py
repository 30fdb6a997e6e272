"""Tool results made shorter: the head and the tail stay, and a note says how much is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.compression.draft import Draft
from holdfast.history import History
from holdfast.messages import Block, Document, Image, Json, Message, Text, ToolResult, as_json_text
from holdfast.tokens import TokenEstimator

__all__ = ["shorten_largest", "shorten_to_fit", "shortened"]

_SHORT = 200
_SHORTEST = 60
_FEWEST_CHARACTERS = 80
_ATTEMPTS = 6


def shorten_largest(draft: Draft, history: History, indices: Iterable[int], target: int) -> None:
    """Shorten whole messages' results, the largest first, until *target* tokens are reached."""
    for index in sorted(indices, key=lambda index: -history.tokens(index, index + 1)):
        if draft.tokens <= target:
            return
        message = draft.message(index)
        known = history.tokens(index, index + 1) if message is history.messages[index] else None
        draft.rewrite(index, shortened(message, _SHORT, history.estimator, tokens=known))


def shorten_to_fit(draft: Draft, history: History, indices: Sequence[int], target: int) -> None:
    """Shorten the largest results of these messages to a common size, no further than *target* asks for."""
    estimator = history.estimator
    results = [estimator.block(result) for index in indices for result in draft.message(index).tool_results]
    cap = _common_cap(results, max(draft.tokens - target, 0))
    for _ in range(_ATTEMPTS):
        for index in indices:
            draft.rewrite(index, shortened(draft.message(index), cap, estimator))
        if draft.tokens <= target or cap <= _SHORTEST:
            return
        cap = max(_SHORTEST, cap * 3 // 4)


def shortened(message: Message, cap: int, estimator: TokenEstimator, *, tokens: int | None = None) -> Message:
    """Return *message* with each tool result of more than *cap* tokens cut down to about that.

    *tokens* is what the message takes, if that is known: where it is all in one place, nothing is counted again.
    """
    known = tokens if len(message.blocks) == 1 else None
    blocks = tuple(_shortened_result(block, cap, estimator, known) for block in message.blocks)
    return message if blocks == message.blocks else message.with_blocks(blocks)


def _shortened_result(block: Block, cap: int, estimator: TokenEstimator, known: int | None) -> Block:
    if not isinstance(block, ToolResult):
        return block
    if known is not None and len(block.content) == 1:
        content = [(block.content[0], known)]
    else:
        content = [(part, estimator.block(part)) for part in block.content]
    tokens = sum(size for _, size in content)
    if tokens <= cap:
        return block
    return block.with_content(tuple(_shortened_part(part, size, size * cap // tokens) for part, size in content))


def _shortened_part(part: Block, tokens: int, cap: int) -> Block:
    match part:
        case Text(text):
            return _as_text(text, tokens, cap, part)
        case Json(value):
            return _as_text(as_json_text(value), tokens, cap, part)
        case Image() | Document():
            return Text(f"[{part.media_type or 'content'}: left out to save space]")
    return part


def _as_text(text: str, tokens: int, cap: int, part: Block) -> Block:
    kept = max(len(text) * cap // max(tokens, 1), _FEWEST_CHARACTERS)
    left_out = len(text) - kept
    if tokens <= cap or left_out <= _FEWEST_CHARACTERS:
        return part
    half = kept // 2
    return Text(f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[len(text) - half :]}")


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
