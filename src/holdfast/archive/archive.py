"""The archive of one conversation: batches of what left, each naming those before it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.archive.chronicle import Chronicle
from holdfast.archive.kept import Kept, Lost
from holdfast.archive.left import Left, left_noted, offset_of
from holdfast.archive.marking import Marker, admitting, marked, recounted, sealing, with_summary
from holdfast.archive.naming import Naming, fitting, removed_by
from holdfast.archive.parts import Digests, Place, StoredParts, digests_of, with_found
from holdfast.archive.snapshots import snapshot
from holdfast.archive.taking import kept_whole, left_with, lost_by, places_in, removals_of, taken_by
from holdfast.batches import BATCH_TYPE, MOST_NAMED, Batch, Entry, Piece, Seal, parted, pieces_in, put_together
from holdfast.batches.pieces import parts_of
from holdfast.compression.plans import Plan
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.history import History
from holdfast.hold import Content, Hold
from holdfast.messages import Message
from holdfast.references import HISTORY, is_reference
from holdfast.storage.threads import WorkerThreads

__all__ = ["WORKERS", "Archive"]

WORKERS = WorkerThreads(2, name="holdfast-archive")
"""Where batches are made and read: however large they are, the event loop goes on."""

_MOST_UNDOABLE = 1_000
_UNDOABLE_IN_STATE = 100


class _Packed(NamedTuple):
    content: bytes
    seals: Mapping[int, Seal]
    parts: Digests
    needed: frozenset[str]


class Archive:
    """Stores what a plan takes before it is carried out, in one batch, and puts it back when asked.

    A part of a message is stored once, however often the message is touched. The latest 1,000 reductions can be undone,
    and the latest 100 after a restart.
    """

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self.chronicle = Chronicle()
        self._parts = StoredParts()
        # The latest batches, in order. All that can be undone are among those that were ever there.
        self._chain: list[str] = []
        # What references look like here: how much room a plan takes is to be known before there is one for it.
        self._usual = "mem_123456789012_history-3f9a1c-10"
        self._undoable: list[str] = []
        # Markers say the same, but anybody may delete one.
        self._left = Left()
        self._offset: int | None = None
        self._session, self._count = secrets.token_hex(3), 0
        hold.cover_history()

    @property
    def undoable(self) -> tuple[str, ...]:
        """The batches that can be put back, oldest first."""
        return tuple(self._undoable)

    @property
    def _latest(self) -> str | None:
        return self._chain[-1] if self._chain else None

    async def keep(self, plan: Plan, history: History, *, limit: int, room: int) -> Kept | None:
        """Store what *plan* takes, and return the plan that says where, in as many words as *limit* tokens allow.

        An extract of what leaves stands there too, of at most *room* tokens.

        None if nothing of the conversation would leave, or nothing be gained. Raises what the storage raises. It counts
        as kept once it is confirmed, and is withdrawn otherwise.
        """
        plan, messages, revision = with_summary(plan, history), list(history.messages), history.revision
        large = {at: snapshot(messages[at].wire) for at in places_in(plan) if not history.is_seen_whole(at)}
        taken, extract = await WORKERS.run(
            lambda history: (taken_by(plan, messages, self.chronicle, self._left), removed_by(plan, history, room)),
            history.copy(),
        )
        naming = fitting(plan, history, taken, extract, how=self._hold.how_to_look, usual=self._usual, limit=limit)
        if naming is None:
            return None
        self._count += 1
        key = f"history-{self._session}-{self._count}"
        packed = await self._packed(naming, messages)
        # Nothing is waited for from here to where it is confirmed or withdrawn: who is cancelled leaves nothing behind.
        [reference] = await self._hold.storing.store([Content(key, packed.content, BATCH_TYPE)])
        self._hold.remember(reference, HISTORY, packed.content, BATCH_TYPE)
        named = sealing(naming.counted(reference), packed.seals)
        return Kept(named, reference, taken.left, revision, taken.places, large, packed.needed, packed.parts)

    def foreseen(self, plan: Plan, history: History, *, limit: int, room: int) -> Plan | None:
        """Return the plan that `keep` would, with a reference such as it would be, and store nothing."""
        plan = with_summary(plan, history)
        taken = taken_by(plan, history.messages, self.chronicle, self._left)
        extract = removed_by(plan, history, room)
        naming = fitting(plan, history, taken, extract, how=self._hold.how_to_look, usual=self._usual, limit=limit)
        return None if naming is None else naming.counted(self._usual)

    async def _packed(self, naming: Naming, messages: Sequence[Message]) -> _Packed:
        taken = naming.taken
        # Of a message that is stored whole already, parts may be: others are stored here.
        shortened = {at for at, entry in enumerate(taken.entries) if entry.original is not None}
        parts = await WORKERS.run(digests_of, taken.entries, shortened | taken.stays)
        earlier = {place: each for place, each in parts.items() if place.entry in shortened}
        await self._remember_parts([taken.entries[at] for at in shortened])
        found = await self._parts.found(earlier, self._hold.retrieval.has)
        content, seals = await WORKERS.run(self._written, naming, messages, found)
        shown = await WORKERS.run(self._shown_in, [messages[place] for place in taken.places])
        new = {at: each for at, each in parts.items() if at.entry in taken.stays and at not in found}
        return _Packed(content, seals, new, shown.union(piece.reference for piece in found.values()))

    async def _remember_parts(self, entries: Iterable[Entry]) -> None:
        """Get to know what is stored of messages that were shortened before a restart."""
        batches = {parted(entry.original)[0] for entry in entries if entry.original is not None}
        for reference in sorted(batches):
            if not self._parts.knows(reference):
                # What cannot be read is stored again: this is done only to store less.
                with suppress(HoldfastError, KeyError):
                    stored = (await self._stored(reference)).entries
                    self._parts.note(await WORKERS.run(digests_of, stored, range(len(stored))), reference)

    def _written(
        self, naming: Naming, messages: Sequence[Message], found: Mapping[Place, Piece]
    ) -> tuple[bytes, dict[int, Seal]]:
        """Return a batch as it is stored, and the seals of what is rewritten, by its place.

        What nobody ever said stands for its reference, which is not known yet.
        """
        history, nobody = naming.history, secrets.token_hex(16)
        plan = naming.named(nobody)
        batch = Batch(
            dialect=history.dialect.name,
            entries=with_found(naming.taken.entries, found),
            removals=removals_of(plan, messages, nobody, history.written),
            before=tuple(self._chain),
            reason=plan.reason,
            lost=naming.taken.left.lost,
        )
        return batch.written(), {one.start: one.made[-1] for one in batch.removals if one.rewritten and one.made}

    def _shown_in(self, messages: Sequence[Message]) -> frozenset[str]:
        return self._hold.known.stored_in(block for message in messages for block in message.blocks)

    def confirm(self, kept: Kept) -> None:
        """Say that the plan was carried out."""
        self._usual, self._left, self._offset = kept.reference, kept.left, None
        self._chain = [*self._chain, kept.reference][-MOST_NAMED:]
        self._undoable = [*self._undoable, kept.reference][-_MOST_UNDOABLE:]
        self._hold.lasting.name([*sorted(kept.needed - {kept.reference}), kept.reference])
        self._parts.note(kept.parts, kept.reference)

    def withdraw(self, kept: Kept) -> None:
        """Say that the plan was not carried out after all."""
        self._hold.known.forget(kept.reference)
        self._hold.storing.take_back([kept.reference])

    def lose(self, plan: Plan, history: History) -> Lost:
        """Return *plan* with a marker that says that what leaves could not be stored."""
        whole, messages = with_summary(plan, history), history.messages
        lost_now = lost_by(whole, messages, self._left)
        left = Left.of_all([left_with(whole, messages, self.chronicle, self._left), lost_now])
        others = f" What left before is kept as {self._latest} : {self._hold.how_to_look}." if self._latest else ""
        lost = f" {left.lost_ones} could not be stored, and are lost." if left.lost else ""
        line = f"[{left} left this view.{lost}{others}]"
        admitted = admitting(whole, kept_whole(whole, messages))
        named = marked(admitted, history, Marker(line, left, self._latest or ""))
        return Lost(recounted(named, whole, history), left, lost_now.lost_ones)

    def confirm_lost(self, lost: Lost) -> None:
        """Say that such a plan was carried out. Nothing before it can be undone from now on."""
        self._left, self._undoable, self._offset = lost.left, [], None

    def begin_turn(self, wires: Sequence[Any], turn: int, at: float) -> None:
        """Note when the latest messages came."""
        if self._offset is None:
            self._offset = offset_of(wires, self._left)
        self.chronicle.note(len(wires) + self._offset, turn, at)

    async def opened(self, reference: str) -> Batch:
        """Return a batch with all its parts, also those that an earlier one holds.

        Raises KeyError if it is gone, InvalidValueError if it is damaged.
        """
        batch = await self._stored(reference)
        missing = {piece for entry in batch.entries for piece in pieces_in(entry.wire)}
        others = {name: await self._stored(name) for name in {piece.reference for piece in missing}}
        found = {piece: part for piece in missing if (part := _part(others[piece.reference], piece)) is not None}
        entries = tuple(replace(entry, wire=put_together(entry.wire, found)) for entry in batch.entries)
        return replace(batch, entries=entries)

    def confirm_undone(self, batches: Mapping[str, Batch]) -> None:
        """Say that these batches were put back, the latest first."""
        for reference, batch in batches.items():
            # Not deleted: what a session wrote down before may still name it. But what is in view is not to be found.
            self._hold.lasting.discard(reference)
            self._hold.known.forget(reference)
            self._chain = list(batch.before)
        self._parts.forget(batches)
        self._undoable = [known for known in self._undoable if known not in batches]
        back = {entry.number for batch in batches.values() for entry in batch.entries if entry.number is not None}
        self._left, self._offset = self._left.without(back), None

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        return {
            "latest": self._latest,
            "undoable": self._undoable[-_UNDOABLE_IN_STATE:],
            "left": self._left.as_note(),
            "turns": self.chronicle.get_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        if not isinstance(state, Mapping):
            raise InvalidTypeError(f"state must be what get_state() returned, got {type(state).__name__}")
        latest, undoable = state.get("latest"), state.get("undoable", [])
        if not isinstance(latest, (str, type(None))) or not isinstance(undoable, list):
            raise InvalidValueError("the state of the archive must be what get_state() returned")
        self._undoable = [name for name in undoable[-_UNDOABLE_IN_STATE:] if is_reference(name)]
        self._left = left_noted(state.get("left")) or Left()
        named = [*(known for known in self._undoable if known != latest), *([latest] if is_reference(latest) else [])]
        self._chain, self._offset = named[-MOST_NAMED:], None
        self.chronicle.restore(state.get("turns"))
        for reference in named:
            self._hold.known.learn(reference, HISTORY)
        self._hold.lasting.name(named)

    async def _stored(self, reference: str) -> Batch:
        content, _ = await self._hold.retrieval.stored(reference)
        return await WORKERS.run(Batch.read, content)


def _part(batch: Batch, piece: Piece) -> Any:
    if not 0 <= piece.entry < len(batch.entries):
        return None
    return next((part for block, part in parts_of(batch.entries[piece.entry].wire) if block == piece.block), None)
