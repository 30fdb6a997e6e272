"""The references of one conversation: which there are, and which of them its messages still show."""

from __future__ import annotations

import difflib
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.dialects import Dialect
from holdfast.history import goes_on
from holdfast.messages import Block, Message, Reasoning, Text, ToolResult, ToolUse, as_json_text

__all__ = ["KnownReferences", "offloaded_as"]

_MOST = 10_000
_COMPARED = 200
_LONGEST_SCAN = 100_000
# The references of one storage begin alike, and most texts hold no such beginning. Where all differ, each is read.
_BEGINNING, _MOST_BEGINNINGS = 4, 16
# A reference stands between blanks, quotes or brackets. One that holds such itself is looked for as it is.
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|\\]+")
_TRAILING = ".:!?…"
_OFFLOADED = re.compile(r"\[Offloaded as ([^\n]{1,1000}?) : ")


def offloaded_as(reference: str) -> str:
    """Return the words by which a reference is introduced in a conversation, and known again after a restart."""
    return f"[Offloaded as {reference} : "


class KnownReferences:
    """Remembers the latest 10,000 references with the tool each came from, and which messages show them."""

    def __init__(self) -> None:
        self._tools: OrderedDict[str, str] = OrderedDict()
        self._awkward: set[str] = set()
        self._beginnings: set[str] = set()
        self._wires: list[Any] = []
        self._shown: list[frozenset[str]] = []
        self._counts: Counter[str] = Counter()
        self._visible: frozenset[str] = frozenset()
        self._list: list[Any] | None = None
        self._new: set[str] = set()

    def __contains__(self, reference: object) -> bool:
        return reference in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def add(self, reference: str, tool_name: str) -> None:
        """Remember one; the oldest is forgotten where there are too many."""
        self._tools[reference] = tool_name
        self._tools.move_to_end(reference)
        self._new.add(reference)
        if len(self._beginnings) <= _MOST_BEGINNINGS:
            self._beginnings.add(reference[:_BEGINNING])
        if _WORD.fullmatch(reference) is None or reference.endswith(tuple(_TRAILING)):
            self._awkward.add(reference)
        if len(self._tools) > _MOST:
            # What is visible is the last to be forgotten.
            self.forget(next((known for known in self._tools if known not in self._counts), reference))

    def forget(self, reference: str) -> None:
        """Forget one, if it is known."""
        self._tools.pop(reference, None)
        self._awkward.discard(reference)

    def tool_of(self, reference: str) -> str:
        """Return the name of the tool that gave it; empty if nobody knows."""
        return self._tools.get(reference, "")

    def visible_and_latest(self, count: int) -> list[tuple[str, str]]:
        """Return what was visible the last time anybody looked, and the latest so many, oldest first."""
        latest = dict(self.latest(count))
        return [(known, tool) for known, tool in self._tools.items() if known in self._counts or known in latest]

    def latest(self, count: int) -> list[tuple[str, str]]:
        """Return the latest so many references with their tools, oldest first."""
        return list(self._tools.items())[-count:]

    def closest_to(self, reference: str, count: int = 3) -> list[str]:
        """Return the references that one may have meant: those most like it, else the latest."""
        latest = [known for known, _ in reversed(self.latest(_COMPARED))]
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

    def _start_over(self) -> dict[int, tuple[Any, frozenset[str]]]:
        """Return what was seen so far, by the identity of each message, which is held with it."""
        seen = {id(wire): (wire, shown) for wire, shown in zip(self._wires, self._shown, strict=True)}
        self._wires, self._shown, self._visible = [], [], frozenset()
        self._counts.clear()
        return seen

    def _forget_old(self) -> None:
        """Forget all but what was added since anybody looked."""
        for reference in [known for known in self._tools if known not in self._new]:
            self.forget(reference)

    def _see(self, wire: Any, shown: frozenset[str]) -> None:
        self._wires.append(wire)
        self._shown.append(shown)
        self._counts.update(shown)

    def _read(self, message: Message) -> frozenset[str]:
        """Return what a message shows, and get to know what it says was offloaded."""
        for text in _texts_in(message.tool_results):
            for reference in _OFFLOADED.findall(text[:_LONGEST_SCAN]):
                if reference not in self._tools:
                    self.add(reference, "")
        return self.shown_in(message.blocks)

    def shown_in(self, blocks: Iterable[Block]) -> frozenset[str]:
        """Return what is shown in these blocks. Of a text of more than 100,000 characters, only so much is read."""
        found: set[str] = set()
        for text in _texts_in(blocks):
            head = text[:_LONGEST_SCAN]
            if not self._may_show(head):
                continue
            words = {word.rstrip(_TRAILING) for word in _WORD.findall(head)}
            found |= words & self._tools.keys()
            found.update(reference for reference in self._awkward if reference in head)
        return frozenset(found)

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
