"""Which messages a plan takes, as entries of a batch to store before it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from holdfast.archive.chronicle import Chronicle
from holdfast.archive.left import Left, forgotten, left_in, numbers_of
from holdfast.archive.seals import fingerprint, is_as_left, sealed
from holdfast.batches import Entry, Removal, parted
from holdfast.batches.encoding import encoded
from holdfast.compression.plans import Drop, Insert, Plan, Rewrite
from holdfast.messages import KEPT_AS, LEFT_AS, Message

__all__ = ["Taken", "kept_whole", "left_with", "lost_by", "places_in", "removals_of", "taken_by"]


@dataclass(frozen=True)
class Taken:
    """What leaves: *places* in the history, in their order, an entry for each, and what the marker says of it.

    Of the entries in *stays* something does: only they are met again.
    """

    places: tuple[int, ...]
    entries: tuple[Entry, ...]
    stays: frozenset[int]
    left: Left

    @property
    def is_of_conversation(self) -> bool:
        """Whether anything is among it that holdfast did not put there itself."""
        return any(entry.number is not None for entry in self.entries)


def taken_by(plan: Plan, messages: Sequence[Message], chronicle: Chronicle, known: Left) -> Taken:
    """Return which of the *messages* a plan takes out or rewrites. What is *known* to have left keeps its numbers."""
    numbers, places = numbers_of(messages, known), tuple(places_in(plan))
    tools = _tools_of(messages)
    entries = tuple(_entry(messages[place], numbers[place], chronicle, tools[place]) for place in places)
    rewritten = _rewritten(plan)
    stays = frozenset(number for number, place in enumerate(places) if place in rewritten)
    return Taken(places, entries, stays, left_with(plan, messages, chronicle, known))


def left_with(plan: Plan, messages: Sequence[Message], chronicle: Chronicle, known: Left) -> Left:
    """Return what has left once a plan is carried out, with all that what it takes says had left before."""
    said = (left for place in places_in(plan) if (left := left_in(messages[place])) is not None)
    leaving = _leaving(plan, messages, chronicle, known)
    return Left.of_all([forgotten(known, messages), *said, *leaving])


def lost_by(plan: Plan, messages: Sequence[Message], known: Left) -> Left:
    """Return what is lost with a plan whose messages could not be stored: also what is left out of some of them.

    Of one that was shortened before and not changed since, all is stored already.
    """
    numbers, stored = numbers_of(messages, known), kept_whole(plan, messages)
    lost = (number for place in places_in(plan) if place not in stored and (number := numbers[place]) is not None)
    return Left.of_all(Left(lost=((number, number),)) for number in lost)


def kept_whole(plan: Plan, messages: Sequence[Message]) -> dict[int, str]:
    """Return where messages are stored whole that a plan takes or rewrites and an earlier one shortened, by place."""
    places = (place for place in places_in(plan) if _is_kept_whole(messages[place]))
    return {place: messages[place].notes[KEPT_AS] for place in places}


def _leaving(plan: Plan, messages: Sequence[Message], chronicle: Chronicle, known: Left) -> Iterator[Left]:
    """Yield the messages of the conversation that leave with a plan, each by itself."""
    numbers, rewritten = numbers_of(messages, known), _rewritten(plan)
    for place in places_in(plan):
        if (number := numbers[place]) is not None and place not in rewritten:
            yield _left_as(messages[place], number, chronicle)


def removals_of(
    plan: Plan, messages: Sequence[Message], name: str, written: Callable[[Sequence[Message]], list[Any]]
) -> tuple[Removal, ...]:
    """Return where a plan takes and makes messages. What it makes is *written*, and sealed without *name* in it."""
    found: dict[tuple[int, bool], tuple[int, list[Message]]] = {}
    for edit in plan.edits:
        at = edit.start, isinstance(edit, Rewrite)
        taken, made = found.get(at, (0, []))
        new = [] if isinstance(edit, Drop) else [edit.message]
        found[at] = taken + len(_places_of(edit)), made + new
    edited = {start for start, _ in found}
    return tuple(
        Removal(
            start,
            taken,
            tuple(sealed(wire, name) for wire in written(made)),
            rewritten,
            _after(start + taken, edited, messages),
        )
        for (start, rewritten), (taken, made) in sorted(found.items(), key=itemgetter(0))
    )


def _after(place: int, edited: Collection[int], messages: Sequence[Message]) -> str | None:
    """Return what tells the next message, unless that is edited too, and so known by other means."""
    return None if place in edited or place >= len(messages) else fingerprint(messages[place].wire)


def _rewritten(plan: Plan) -> set[int]:
    return {edit.start for edit in plan.edits if isinstance(edit, Rewrite)}


def places_in(plan: Plan) -> Iterator[int]:
    """Yield the places of what a plan takes out or rewrites, in their order."""
    for edit in plan.edits:
        yield from _places_of(edit)


def _places_of(edit: Any) -> Sequence[int]:
    if isinstance(edit, Insert):
        return ()
    return range(edit.start, edit.stop) if isinstance(edit, Drop) else (edit.start,)


def _entry(message: Message, number: int | None, chronicle: Chronicle, tools: Mapping[str, str]) -> Entry:
    turn, at = (0, None) if number is None else chronicle.when(number)
    kept_as = message.notes.get(KEPT_AS)
    entry = Entry(encoded(message.wire), number, turn, at, tools)
    if not isinstance(kept_as, str):
        return entry
    return replace(entry, original=kept_as) if _is_kept_whole(message) else replace(entry, changed_from=kept_as)


def _is_kept_whole(message: Message) -> bool:
    """Say whether a message was shortened, with all of it stored, and is as it was left then."""
    kept_as = message.notes.get(KEPT_AS)
    return isinstance(kept_as, str) and is_as_left(message.wire, message.notes.get(LEFT_AS), parted(kept_as)[0])


def _left_as(message: Message, number: int, chronicle: Chronicle) -> Left:
    counts: dict[str, int] = {}
    for use in message.tool_uses:
        counts[use.name] = counts.get(use.name, 0) + 1
    turn, at = chronicle.when(number)
    return Left(
        ranges=((number, number),),
        tools=counts,
        turns=(turn, turn) if turn else None,
        times=None if at is None else (at, at),
    )


def _tools_of(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return for each message which tools its results are from, by the id of the call: of repeated ids, the latest."""
    tools: dict[str, str] = {}
    of_messages = []
    for message in messages:
        tools.update((use.id, use.name) for use in message.tool_uses)
        of_messages.append({id_: tools.get(id_, "") for id_ in (result.tool_use_id for result in message.tool_results)})
    return of_messages
