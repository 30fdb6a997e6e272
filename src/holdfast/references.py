"""The references of one conversation: which there are, and which of them its messages still show."""

from __future__ import annotations

import difflib
import re
from collections import Counter, OrderedDict
from collections.abc import Container, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, TypeGuard

from holdfast.batches import parted
from holdfast.dialects import Dialect
from holdfast.history import goes_on
from holdfast.messages import KEPT_AS, KEPT_IN, Block, Message, Reasoning, Text, ToolResult, ToolUse, as_json_text

__all__ = ["HISTORY", "KnownReferences", "Source", "is_reference"]

HISTORY = "history"
"""What a batch of messages came from, instead of a tool."""

_MOST, _MOST_CLAIMED = 10_000, 2_000
_COMPARED = 200
# Far more than any storage needs.
_LONGEST = 32_768
_LONGEST_SCAN = 100_000
# The references of one storage begin alike, and most texts hold no such beginning. Where all differ, each is read.
_BEGINNING, _MOST_BEGINNINGS = 4, 16
# A reference stands between blanks, quotes or brackets. One that holds such itself is looked for as it is.
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|\\]+")
_TRAILING = ".:!?…"


def is_reference(value: object) -> TypeGuard[str]:
    """Say whether a value that somebody saved may be a reference: all of them go into every session from then on."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


class Source(NamedTuple):
    """Where a content came from: from which tool, and in which turn, 0 if nobody knows."""

    tool_name: str
    turn: int = 0


_UNKNOWN = Source("")


class KnownReferences:
    """Remembers the latest 10,000 references with the tool each came from, and which messages show them.

    What is only noted on messages is kept apart, the latest 2,000, until it is found to be there: others keep messages
    too, and may change them. What is *lasting* is the last to be forgotten, but for what is visible.
    """

    def __init__(self, lasting: Container[str] = ()) -> None:
        self._lasting = lasting
        self._sources: OrderedDict[str, Source] = OrderedDict()
        self._claimed: OrderedDict[str, None] = OrderedDict()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._awkward: set[str] = set()
        self._beginnings: set[str] = set()
        self._wires: list[Any] = []
        self._shown: list[frozenset[str]] = []
        self._counts: Counter[str] = Counter()
        self._visible: frozenset[str] = frozenset()
        self._list: list[Any] | None = None
        self._new: set[str] = set()

    def __contains__(self, reference: object) -> bool:
        return reference in self._sources or reference in self._claimed

    def __iter__(self) -> Iterator[str]:
        return iter([*self._claimed, *self._sources])

    def __len__(self) -> int:
        return len(self._sources) + len(self._claimed)

    @property
    def stored(self) -> list[str]:
        """What was stored here, or was found to be, without what is only claimed."""
        return list(self._sources)

    def is_stored(self, reference: str) -> bool:
        """Say whether one is known as more than a claim."""
        return reference in self._sources

    @property
    def claimed(self) -> list[str]:
        """What texts claim, and nobody has looked for."""
        return list(self._claimed)

    def add(self, reference: str, tool_name: str, turn: int = 0) -> None:
        """Remember one; the oldest is forgotten where there are too many."""
        self._claimed.pop(reference, None)
        self._gone.pop(reference, None)
        self._sources[reference] = Source(tool_name, turn)
        self._sources.move_to_end(reference)
        self._look_for(reference)
        if len(self._sources) > _MOST:
            self._drop(self._least_needed())

    def learn(self, reference: str, tool_name: str) -> None:
        """Remember what was stored by those before, unless it was looked for in vain."""
        if self.tool_of(reference) != tool_name and reference not in self._gone:
            self.add(reference, tool_name)

    def claim(self, reference: str) -> None:
        """Remember what a text claims, unless it was looked for in vain before."""
        if reference in self or reference in self._gone:
            return
        self._claimed[reference] = None
        self._look_for(reference)
        if len(self._claimed) > _MOST_CLAIMED:
            self._drop(next(iter(self._claimed)))

    def forget(self, reference: str) -> None:
        """Forget one that leads to nothing, if it is known. A text that claims it again is not believed."""
        if reference in self:
            self._drop(reference)
            self._gone[reference] = None
            if len(self._gone) > _MOST_CLAIMED:
                self._gone.popitem(last=False)

    def is_gone(self, reference: str) -> bool:
        """Say whether one was looked for in vain."""
        return reference in self._gone

    def tool_of(self, reference: str) -> str:
        """Return the name of the tool that gave it; empty if nobody knows."""
        return self.source_of(reference).tool_name

    def source_of(self, reference: str) -> Source:
        """Return where it came from, as far as anybody knows."""
        return self._sources.get(reference, _UNKNOWN)

    def visible_and_latest(self, count: int) -> list[tuple[str, Source]]:
        """Return what was visible the last time anybody looked, and the latest so many, oldest first.

        What is only claimed is first, without a source.
        """
        latest = set(self.stored[-count:])
        return [(known, self.source_of(known)) for known in self if known in self._counts or known in latest]

    def closest_to(self, reference: str, count: int = 3) -> list[str]:
        """Return the references that one may have meant: those most like it, else the latest."""
        latest = self.stored[: -_COMPARED - 1 : -1]
        return difflib.get_close_matches(reference[:300], latest, count, cutoff=0.6) or latest[:count]

    def visible_in(self, wires: list[Any], dialect: Dialect) -> frozenset[str]:
        """Return what is shown in these messages. Those seen the last time are not read again.

        As long as nothing new is shown, it is the very same object. Another list with none of the messages of the last
        one is another conversation, and what was known of that one is forgotten.
        """
        seen = {} if goes_on(self._wires, wires) else self._start_over()
        if seen and wires is not self._list and not any(id(wire) in seen for wire in wires):
            self._forget_old()
        for wire in wires[len(self._wires) :]:
            _, shown = seen.get(id(wire), (None, None))
            self._see(wire, self._read(dialect.read(wire)) if shown is None else shown)
        if len(self._visible) != len(self._counts):
            self._visible = frozenset(self._counts)
        self._list, self._new = wires, set()
        return self._visible

    def _look_for(self, reference: str) -> None:
        self._new.add(reference)
        if len(self._beginnings) <= _MOST_BEGINNINGS:
            self._beginnings.add(reference[:_BEGINNING])
        if _WORD.fullmatch(reference) is None or reference.endswith(tuple(_TRAILING)):
            self._awkward.add(reference)

    def _least_needed(self) -> str:
        unseen = (known for known in self._sources if known not in self._counts)
        aging = (known for known in self._sources if known not in self._counts and known not in self._lasting)
        return next(chain(aging, unseen, self._sources))

    def _drop(self, reference: str) -> None:
        self._sources.pop(reference, None)
        self._claimed.pop(reference, None)
        self._awkward.discard(reference)

    def _start_over(self) -> dict[int, tuple[Any, frozenset[str]]]:
        """Return what was seen so far, by the identity of each message, which is held with it."""
        seen = {id(wire): (wire, shown) for wire, shown in zip(self._wires, self._shown, strict=True)}
        self._wires, self._shown, self._visible = [], [], frozenset()
        self._counts.clear()
        return seen

    def _forget_old(self) -> None:
        """Forget all but what was added since anybody looked."""
        self._gone.clear()
        for reference in [known for known in self if known not in self._new]:
            self._drop(reference)

    def _see(self, wire: Any, shown: frozenset[str]) -> None:
        self._wires.append(wire)
        self._shown.append(shown)
        self._counts.update(shown)

    def _read(self, message: Message) -> frozenset[str]:
        """Return what a message shows, and get to know what is noted on it as offloaded."""
        noted = [parted(note)[0] for name in (KEPT_IN, KEPT_AS) if isinstance(note := message.notes.get(name), str)]
        for reference in noted:
            self.learn(reference, HISTORY)
        for reference in message.offloaded:
            self.claim(reference)
        return self.shown_in(message.blocks)

    def shown_in(self, blocks: Iterable[Block]) -> frozenset[str]:
        """Return what is shown in these blocks. Of a text of more than 100,000 characters, only so much is read."""
        found: set[str] = set()
        for text in _texts_in(blocks):
            head = text[:_LONGEST_SCAN]
            if not self._may_show(head):
                continue
            words = {word.rstrip(_TRAILING) for word in _WORD.findall(head)}
            # A message out of a batch is named with a number behind it.
            words |= {parted(word)[0] for word in words if "#" in word}
            found |= (words & self._sources.keys()) | (words & self._claimed.keys())
            # A copy: this runs in worker threads too, while the event loop gets to know more.
            found.update(reference for reference in tuple(self._awkward) if reference in head)
        return frozenset(found)

    def stored_in(self, blocks: Iterable[Block]) -> frozenset[str]:
        """Return what is shown in these blocks and was stored here: what texts only claim has to prove itself."""
        return frozenset(filter(self._sources.__contains__, self.shown_in(blocks)))

    def _may_show(self, text: str) -> bool:
        """Say quickly, if so, that a text shows none."""
        return len(self._beginnings) > _MOST_BEGINNINGS or any(map(text.__contains__, self._beginnings))


def _texts_in(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text) | Reasoning(text):
                yield text
            case ToolUse(_, _, arguments):
                yield arguments if isinstance(arguments, str) else as_json_text(arguments)
            case ToolResult(_, content):
                yield from _texts_in(content)
