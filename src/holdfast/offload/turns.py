"""How much the results of one turn take together."""

from __future__ import annotations

__all__ = ["Turn"]

_LEAST_PREVIEW, _LEAST_ANSWER = 150, 500


class Turn:
    """Counts what tools answered since the last model call, so that many answers share the room for one turn."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.decided: set[str] = set()
        self._taken = 0

    def begin(self) -> None:
        """Say that the model is called with all that was answered so far."""
        self.decided.clear()
        self._taken = 0

    def take(self, tokens: int) -> None:
        """Say that a result takes so many tokens."""
        self._taken += tokens

    def preview_tokens(self, most: int) -> int:
        """Return how long the next preview may be: *most*, and less once that is over half of what is left."""
        return min(most, max((self.limit - self._taken) // 2, _LEAST_PREVIEW))

    def answer_tokens(self, most: int) -> int:
        """Return how long the next answer of a tool may be that can be asked for the rest."""
        return min(most, max((self.limit - self._taken) // 2, _LEAST_ANSWER))
