"""The texts in a stored content that a search can find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from holdfast.agent_tools import OWN_TOOLS
from holdfast.batches import BATCH_TYPE, Batch, Entry, addressed, described, leaves_of, parted
from holdfast.dialects.wires import notes_in
from holdfast.errors import InvalidValueError
from holdfast.media_types import essence
from holdfast.messages import Message
from holdfast.references import HISTORY, Source
from holdfast.retrieval.contents import decoded, is_text
from holdfast.search import Addition

__all__ = ["Findable", "findable_in"]


class Findable(NamedTuple):
    """The texts, the batches *before* and the contents that these messages *claim* were stored, and what is damaged.

    *originals* are batches that hold messages whole of which a part is in this one: what is found of these is there.
    """

    additions: list[Addition]
    before: Sequence[str] = ()
    claims: Sequence[str] = ()
    damage: str = ""
    originals: frozenset[str] = frozenset()


def findable_in(
    reference: str, source: Source, content: bytes, content_type: str, is_gone: Callable[[str], bool]
) -> Findable:
    """Return what can be found of a content: all of a text, each part of each message in a batch, no bytes."""
    if essence(content_type) == BATCH_TYPE:
        # What any tool says is no archive of this conversation, although the storage may have it for another.
        return _in_batch(reference, content, is_gone) if source.tool_name == HISTORY else Findable([])
    if not is_text(content, content_type):
        return Findable([])
    return Findable([Addition(reference, decoded(content), source.tool_name, _labels(source))])


def _labels(source: Source) -> dict[str, str]:
    """Return what is known of an offloaded result."""
    labels = {
        "what": f"from {source.tool_name or 'a tool'}",
        "role": "tool",
        "tool": source.tool_name,
        "turn": f"{source.turn or ''}",
    }
    return {name: label for name, label in labels.items() if label}


def _in_batch(reference: str, content: bytes, is_gone: Callable[[str], bool]) -> Findable:
    """Return the texts of a batch, without those of messages that cannot be read."""
    try:
        batch = Batch.read(content)
    except InvalidValueError as error:
        return Findable([], damage=f"{error}")
    additions: list[Addition] = []
    damage = ""
    for address, entry in addressed(batch):
        if entry.original is not None and not is_gone(parted(entry.original)[0]):
            continue
        try:
            additions += _parts(address, entry, batch.dialect, reference)
        except Exception as error:
            # Anything may stand in a message that somebody else wrote, and the others are to be found.
            damage = damage or f"message {address}: {error!r:.200}"
    claims = [named for _, entry in addressed(batch) for named in Message("user", (), notes_in(entry.wire)).offloaded]
    originals = frozenset(parted(entry.original)[0] for entry in batch.entries if entry.original is not None)
    return Findable(additions, batch.before, claims, damage, originals)


def _parts(address: str, entry: Entry, dialect: str, reference: str) -> Iterator[Addition]:
    """Yield each text of a message that is stored here."""
    leaves = leaves_of(entry, dialect)
    for place, leaf in enumerate(leaves, start=1):
        if (text := leaf.text) and not leaf.elsewhere:
            number = f"{address}.{place}" if len(leaves) > 1 else address
            what = described(entry, leaf)
            labels = {
                "what": what,
                "role": leaf.role,
                "tool": leaf.tool,
                "turn": f"{entry.turn or ''}",
                "batch": reference,
            }
            if entry.number is not None:
                labels |= {"what": f"message {address}, {what}", "message": address}
            known = {name: label for name, label in labels.items() if label}
            yield Addition(f"{reference}#{number}", text, leaf.tool, known, is_echo=leaf.tool in OWN_TOOLS)
