"""A recording made ready to be lived through: read once, for all policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nlargest
from typing import Any

from holdfast.dialects import dialect_named
from holdfast.recordings import Recording
from holdfast.replay.outcomes import Large
from holdfast.replay.parts import Parts
from holdfast.replay.values import Use, uses_in
from holdfast.reports.kinds import kind_of, words_for, words_of_call
from holdfast.tokens import TokenEstimator

__all__ = ["Prepared"]

_LARGEST = 20


class Prepared:
    """A recording with what is found out of it once: its messages, the values used again, the largest messages."""

    def __init__(self, recording: Recording, count_text: Callable[[str], int]) -> None:
        self.recording = recording
        self.count_text = count_text
        self.dialect = dialect_named(recording.dialect)
        self.parts = Parts(self.dialect, TokenEstimator(count_text))
        self.messages = [self.dialect.read(wire) for wire in recording.messages]
        self._uses: dict[int, list[Use]] = {}
        for use in uses_in(self.messages):
            self._uses.setdefault(use.at, []).append(use)
        self.largest = tuple(self._largest())

    def uses_at(self, number: int) -> list[Use]:
        """Return what the answer with that number used again."""
        return self._uses.get(number, [])

    @property
    def values(self) -> int:
        """How many uses there are."""
        return sum(map(len, self._uses.values()))

    def tokens_of(self, wire: Any) -> int:
        """Return how many tokens a message is."""
        return sum(self.parts.of(wire).tokens)

    def _largest(self) -> Iterator[Large]:
        # An id may come back; a recording's largest messages are told by any of its calls.
        calls = {use.id: words_of_call(use) for message in self.messages for use in message.tool_uses}
        sizes = enumerate(map(self.tokens_of, self.recording.messages))
        for number, tokens in sorted(nlargest(_LARGEST, sizes, key=lambda size: size[1])):
            message = self.messages[number]
            yield Large(number + 1, kind_of(message), words_for(message, calls), tokens)
