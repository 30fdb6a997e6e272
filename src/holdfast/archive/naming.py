"""A plan that says where what it takes is kept, in as many words as there is room for."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.archive.marking import Marker, marked, recounted, referring
from holdfast.archive.taking import Taken
from holdfast.compression.plans import Drop, Plan, Rewrite, apply
from holdfast.compression.summary_request import without_tags
from holdfast.extracts import extract_removed
from holdfast.history import History

__all__ = ["Naming", "fitting", "removed_by"]

_TELLING = "[{left} left this view. They are kept as {reference} {lost}: {how}.]"
_SHORTER = "[Earlier messages, {left.count} in all, are kept as {reference} {lost}.]"


@dataclass(frozen=True)
class Naming:
    """A plan, what it takes with an *extract* of that, and the words for where it is; *how* says how to look at it."""

    plan: Plan
    history: History
    taken: Taken
    how: str
    extract: str = ""
    is_telling: bool = True

    def named(self, reference: str) -> Plan:
        """Return the plan with the reference where something leaves. Its tokens are still those of the plan without."""
        names = {
            place: entry.original or f"{reference}#{entry.number}"
            for place, entry in zip(self.taken.places, self.taken.entries, strict=True)
        }
        wording = _TELLING if self.is_telling else _SHORTER
        left = self.taken.left
        lost = f", but {left.lost_ones}, which could not be stored and are lost " if left.lost else ""
        line = wording.format(left=left, reference=reference, how=self.how, lost=lost)
        plan = referring(self.plan, names, in_words=self.is_telling)
        said = f"{line}\n{without_tags(self.extract)}" if self.extract and self.is_telling else line
        return marked(plan, self.history, Marker(said, left, reference))

    def counted(self, reference: str) -> Plan:
        """Return the same with the tokens that it takes then."""
        return recounted(self.named(reference), self.plan, self.history)


def removed_by(plan: Plan, history: History, room: int) -> str:
    """Return the extract of the messages that leave with a plan, in at most *room* tokens."""
    dropped = {at for edit in plan.edits if isinstance(edit, Drop) for at in range(edit.start, edit.stop)}
    remade = {edit.start for edit in plan.edits if isinstance(edit, Rewrite) and edit.message.made_as is not None}
    messages = history.messages
    stays = [message for message in apply(plan, messages) if message.made_as is None]
    leaves = [messages[at] for at in sorted(dropped | remade)]
    return extract_removed(leaves, stays, room, names=history.names, count_text=history.estimator.text)


def fitting(
    plan: Plan, history: History, taken: Taken, extract: str, *, how: str, usual: str, limit: int
) -> Naming | None:
    """Return the most telling words with which a plan stays within *limit* tokens; None if it then saves nothing.

    *usual* is what references look like: how much room they take is to be known before there is one.
    """
    if not taken.is_of_conversation:
        return None
    telling = Naming(plan, history, taken, how, extract)
    named = telling.counted(usual)
    if named.saved > 0 and named.tokens_after <= limit:
        return telling
    shorter = Naming(plan, history, taken, how, is_telling=False)
    return shorter if shorter.counted(usual).saved > 0 else None
