"""How much the results of one turn take together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Allowance", "Turn"]

_LEAST_PREVIEW, _LEAST_ANSWER = 60, 500


@dataclass
class Allowance:
    """How many *tokens* may be used, and how many were; as long as nobody says, all of them."""

    tokens: int
    used: int


class Turn:
    """What tools answered since the last model call. Many answers share the room for one turn."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.seen: dict[str, tuple[str, int | None]] = {}
        self.decided: set[str] = set()
        self._taken = 0
        self._last_message: object = None

    def begin(self, last_message: object) -> None:
        """Say that the model is called. If the last message is still the same, it is called again in the same turn."""
        if last_message is not None and last_message is self._last_message:
            return
        self._last_message = last_message
        self.seen.clear()
        self.decided.clear()
        self._taken = 0

    def see(self, tool_use_id: str, tool_name: str, tokens: int) -> None:
        """Remember which tool answered a call, and what the answer takes, unless ids repeat: then nobody can tell."""
        self.seen[tool_use_id] = (tool_name, None if tool_use_id in self.seen else tokens)

    def take(self, tokens: int) -> None:
        """Say that a result takes so many tokens, or no longer does."""
        self._taken += tokens

    @contextmanager
    def preview(self, most: int) -> Iterator[Allowance]:
        """Reserve room for a preview: *most*, less once that is over half of what is left, and in the end none."""
        tokens = min(most, self._half)
        with self._reserved(tokens if tokens >= _LEAST_PREVIEW else 0) as allowance:
            yield allowance

    @contextmanager
    def answer(self, most: int) -> Iterator[Allowance]:
        """Reserve room for an answer that can be asked for the rest: there is always some."""
        with self._reserved(min(most, max(self._half, _LEAST_ANSWER))) as allowance:
            yield allowance

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let what is asked meanwhile have the room of a whole turn, and take none: nobody is sent the answers."""
        taken, self._taken = self._taken, 0
        try:
            yield
        finally:
            self._taken = taken

    @property
    def _half(self) -> int:
        return max(self.limit - self._taken, 0) // 2

    @contextmanager
    def _reserved(self, tokens: int) -> Iterator[Allowance]:
        allowance = Allowance(tokens, tokens)
        self._taken += tokens
        try:
            yield allowance
        finally:
            self._taken += allowance.used - tokens
