"""Undoing reductions in a conversation that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.archive.archive import WORKERS, Archive
from holdfast.archive.putting_back import put_back
from holdfast.archive.snapshots import is_as_then, snapshot
from holdfast.batches import Batch, grouped
from holdfast.compression import ContextCompression
from holdfast.compression.window import ContextWindow
from holdfast.errors import ContextOverflowError, InvalidValueError
from holdfast.history import History
from holdfast.hooks import Conversation

__all__ = ["Undone", "undo_reductions"]

_AT_ONCE = 8


@dataclass(frozen=True)
class Undone:
    """What was put back: the batches of which reductions, the latest first, and the tokens of all messages."""

    references: tuple[str, ...]
    tokens_before: int
    tokens_after: int


class _Restored(NamedTuple):
    """Messages as they were, and the batches that they are from, the latest first."""

    wires: list[Any]
    batches: Mapping[str, Batch]


async def undo_reductions(
    archive: Archive, compression: ContextCompression, conversation: Conversation, *, down_to: str | None
) -> Undone:
    """Put back what the latest reductions took, to that of the batch *down_to* or only the last.

    Raises ContextOverflowError if the history would no longer fit, and InvalidValueError if there is nothing to undo or
    somebody else changed it; then nothing is changed.
    """
    window = compression.window
    if window.is_waiting:
        raise InvalidValueError("the history is being reduced or put back right now; undo that when it is done")
    references = _chosen(archive, down_to)
    window.verify(conversation)
    wires = list(conversation.messages)
    with window.waiting():
        seen = await WORKERS.run(_snapshots, wires)
        restored = await _restored(archive, wires, references)
        history = await _read_in_steps(restored.wires, window.history)
    _check_unchanged(conversation.messages, wires, restored.wires, seen)
    came = conversation.messages[len(wires) :]
    history.read([*restored.wires, *came])
    _check_fits(history, window, conversation)
    undone = Undone(tuple(references), window.history.total, history.total)
    conversation.messages[:] = [*restored.wires, *came]
    _go_on(window, history, came)
    archive.confirm_undone(restored.batches)
    compression.hold_off()
    return undone


async def _restored(archive: Archive, wires: list[Any], references: Sequence[str]) -> _Restored:
    """Return *wires* as they were before the reductions of these batches, of which the latest comes first."""
    batches: dict[str, Batch] = {}
    for group in grouped(references):
        for reference, batch in zip(group, await asyncio.gather(*map(archive.opened, group)), strict=True):
            wires = await WORKERS.run(put_back, wires, batch, reference)
            batches[reference] = batch
    return _Restored(wires, batches)


async def _read_in_steps(wires: list[Any], known: History) -> History:
    """Return a history of *wires*, counted as the *known* one is. Others go on meanwhile."""
    history = History(known.dialect, known.estimator)
    for start in range(0, len(wires), _AT_ONCE):
        history.read_on(wires[start : start + _AT_ONCE])
        await asyncio.sleep(0)
    return history


def _go_on(window: ContextWindow, history: History, came: Sequence[Any]) -> None:
    """Let the window measure what is there now."""
    back = _originals(history) - _originals(window.history) - len(came)
    window.removed_message_count -= min(back, window.removed_message_count)
    window.go_on_with(history)


def _originals(history: History) -> int:
    return sum(message.made_as is None for message in history.messages)


def _snapshots(wires: Sequence[Any]) -> list[Any]:
    return list(map(snapshot, wires))


def _check_unchanged(now: list[Any], before: list[Any], restored: list[Any], seen: Sequence[Any]) -> None:
    """Refuse to put something in the place of what others worked on meanwhile. What stays keeps what they did."""
    stays = set(map(id, restored))
    goes = ((wire, then) for wire, then in zip(before, seen, strict=True) if id(wire) not in stays)
    if now[: len(before)] != before or not all(is_as_then(wire, then) for wire, then in goes):
        raise InvalidValueError("the history was changed by somebody else meanwhile; nothing was undone")


def _chosen(archive: Archive, down_to: str | None) -> list[str]:
    undoable = archive.undoable
    if not undoable:
        raise InvalidValueError("there is nothing to undo: no reduction of this history is left that was archived")
    if down_to is None:
        return [undoable[-1]]
    if down_to not in undoable:
        raise InvalidValueError(
            f"{down_to!r:.200} is not the batch of a reduction that can be undone; it was undone already, or one after "
            "it could not be archived"
        )
    return list(undoable[undoable.index(down_to) :])[::-1]


def _check_fits(history: History, window: ContextWindow, conversation: Conversation) -> None:
    """Refuse what does not fit, in the tokens that the provider counts."""
    if history.total <= window.budget(conversation).limit:
        return
    budget = window.budget_of_provider(conversation)
    limit = budget.window - budget.reserved
    tokens = max(window.request_with(history.total, conversation), limit + 1)
    raise ContextOverflowError(
        f"what was removed does not fit any more: the next request would take {tokens:,} tokens, and {limit:,} fit, so "
        f"{tokens - limit:,} are missing; let something else leave first, or search for what you need",
        tokens,
        limit,
    )
