"""A plan with a marker where messages leave, and with references where something of a message does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.archive.left import LEFT, Left
from holdfast.batches import Seal
from holdfast.compression.plans import Drop, Edit, Insert, Plan, Rewrite
from holdfast.compression.seams import BRIDGE, seam
from holdfast.compression.shortening import Shortened
from holdfast.history import History
from holdfast.messages import KEPT_AS, KEPT_IN, LEFT_AS, SUMMARY, Block, Message, Text, ToolResult

__all__ = ["MARKER", "Marker", "admitting", "marked", "recounted", "referring", "sealing", "with_summary"]

MARKER = "marker"
_END_OF_SUMMARY = "</summary>"


class Marker(NamedTuple):
    """What is said where messages left, and what is noted there."""

    line: str
    left: Left
    reference: str

    @property
    def notes(self) -> dict[str, Any]:
        """What no provider sees."""
        kept_in = {KEPT_IN: self.reference} if self.reference else {}
        return {LEFT: self.left.as_note(), **kept_in}


def with_summary(plan: Plan, history: History) -> Plan:
    """Return *plan* with the summary that stays among what is rewritten, if messages leave: it says so of them too."""
    dropped = {place for edit in plan.edits if isinstance(edit, Drop) for place in range(edit.start, edit.stop)}
    if not dropped or any(map(_is_summary, plan.edits)):
        return plan
    stays = (place for place, message in enumerate(history.messages) if message.made_as == SUMMARY)
    place = next((place for place in stays if place not in dropped), None)
    if place is None:
        return plan
    edits = [*plan.edits, Rewrite(place, history.messages[place])]
    return replace(plan, edits=tuple(sorted(edits, key=lambda edit: edit.start)))


def marked(plan: Plan, history: History, marker: Marker) -> Plan:
    """Return *plan* with *marker* where the first messages leave: in the summary if there is one, else by itself.

    Its tokens are still those of *plan*.
    """
    at = next((edit.start for edit in plan.edits if isinstance(edit, Drop)), None)
    if at is None:
        return plan
    if any(map(_is_summary, plan.edits)):
        edits = [_with_line(edit, marker) if _is_summary(edit) else edit for edit in plan.edits]
    else:
        others = [edit for edit in plan.edits if not _is_bridge(edit, at)]
        made = [Insert(at, message) for message in _seam(plan, history, at, marker)]
        first = next(number for number, edit in enumerate(others) if isinstance(edit, Drop))
        edits = [*others[:first], *made, *others[first:]]
    return replace(plan, edits=tuple(edits))


def referring(plan: Plan, kept_as: Mapping[int, str], *, in_words: bool = True) -> Plan:
    """Return *plan* with the reference of each message that is rewritten, by its place, noted on it and named in it.

    Its tokens are still those of *plan*.
    """
    edits = tuple(_referring(edit, kept_as, in_words) if isinstance(edit, Rewrite) else edit for edit in plan.edits)
    return replace(plan, edits=edits)


def admitting(plan: Plan, kept_as: Mapping[int, str]) -> Plan:
    """Return *plan* with a word in each message that is rewritten that what is left out of it could not be stored.

    Those that are stored whole, by their places, are named instead. Its tokens are still those of *plan*.
    """
    edits = tuple(_admitting(edit, kept_as) if isinstance(edit, Rewrite) else edit for edit in plan.edits)
    return replace(plan, edits=edits)


def sealing(plan: Plan, seals: Mapping[int, Seal]) -> Plan:
    """Return *plan* with the seal of each message that names where all of it is, by its place, noted on it."""
    edits = tuple(_sealing(edit, seals) if isinstance(edit, Rewrite) else edit for edit in plan.edits)
    return replace(plan, edits=edits)


def recounted(plan: Plan, before: Plan, history: History) -> Plan:
    """Return *plan* with the tokens that its messages take, instead of those of the plan *before*."""
    return replace(plan, tokens_after=before.tokens_after + _made(plan, history) - _made(before, history))


def _is_bridge(edit: Edit, at: int) -> bool:
    return isinstance(edit, Insert) and edit.start == at and edit.message.made_as == BRIDGE


def _is_summary(edit: Edit) -> bool:
    return not isinstance(edit, Drop) and edit.message.made_as == SUMMARY


def _with_line(edit: Edit, marker: Marker) -> Edit:
    assert not isinstance(edit, Drop)
    said, end, _ = edit.message.text.partition(_END_OF_SUMMARY)
    noted = replace(edit.message, notes={**edit.message.notes, **marker.notes})
    return replace(edit, message=noted.with_blocks((Text(f"{said}{end}\n{marker.line}"),)))


def _seam(plan: Plan, history: History, at: int, marker: Marker) -> list[Message]:
    """Return the marker, and what has to stand beside it."""
    dropped = {index for edit in plan.edits if isinstance(edit, Drop) for index in range(edit.start, edit.stop)}
    before = _told(plan, at) or _speaker(history, (index for index in range(at - 1, -1, -1) if index not in dropped))
    after = _speaker(history, (index for index in range(at, len(history)) if index not in dropped))
    message = Message.of_text("user", marker.line, made_as=MARKER)
    noted = replace(message, notes={**message.notes, **marker.notes})
    return seam(noted, before, after, may_repeat=history.dialect.may_repeat_roles)


def _told(plan: Plan, at: int) -> Message | None:
    """Return what a compressor of somebody's own says where messages leave, if it says anything."""
    made = [edit for edit in plan.edits if isinstance(edit, Insert) and edit.start == at]
    return next((edit.message for edit in reversed(made) if not _is_bridge(edit, at)), None)


def _speaker(history: History, indices: Iterable[int]) -> Message | None:
    messages = (history.messages[index] for index in indices)
    return next((message for message in messages if message.role != "system"), None)


def _referring(edit: Rewrite, kept_as: Mapping[int, str], in_words: bool) -> Rewrite:
    message = edit.message
    if message.made_as is not None:
        return edit
    blocks = tuple(_telling(block, kept_as[edit.start]) if in_words else block for block in message.blocks)
    noted = replace(message, notes={**message.notes, KEPT_AS: kept_as[edit.start]}, edited=True)
    return Rewrite(edit.start, noted if blocks == message.blocks else noted.with_blocks(blocks))


def _admitting(edit: Rewrite, kept_as: Mapping[int, str]) -> Rewrite:
    message = edit.message
    blocks = tuple(_telling(block, kept_as.get(edit.start)) for block in message.blocks)
    return edit if blocks == message.blocks else Rewrite(edit.start, message.with_blocks(blocks))


def _sealing(edit: Rewrite, seals: Mapping[int, Seal]) -> Rewrite:
    if KEPT_AS not in edit.message.notes or (seal := seals.get(edit.start)) is None:
        return edit
    notes = {**edit.message.notes, LEFT_AS: [seal.digest, list(seal.gaps)]}
    return Rewrite(edit.start, replace(edit.message, notes=notes))


def _telling(block: Block, reference: str | None) -> Block:
    """Return a result of a tool with a word on what became of what is left out of it: None if that is lost."""
    if not isinstance(block, ToolResult):
        return block
    parts = [(part, part if isinstance(part, Shortened) else None) for part in block.content]
    if not any(short for _, short in parts):
        return block
    told = (
        part if short is None else short.lost() if reference is None else short.kept_as(reference)
        for part, short in parts
    )
    return block.with_content(tuple(told))


def _made(plan: Plan, history: History) -> int:
    made = (edit.message for edit in plan.edits if not isinstance(edit, Drop))
    return sum(map(history.estimator.message, made))
