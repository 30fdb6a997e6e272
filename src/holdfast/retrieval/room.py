"""Room for so many tokens, and what fits into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.tokens import estimate_text

__all__ = ["Room", "shortened"]

_LONGEST_LINE = 240


class Room:
    """How many tokens may still be written. What does not fit is not taken, and costs nothing."""

    def __init__(self, tokens: int, count_text: Callable[[str], int] = estimate_text) -> None:
        self.left = tokens
        self._count_text = count_text

    def part(self, share: float) -> Room:
        """Return room for that share of what is left; what is taken there has to be taken here too, by `take_all`."""
        return Room(int(self.left * share), self._count_text)

    def within(self, share: float, write: Callable[[Room], list[str]]) -> list[str]:
        """Let something be written into that share of what is left, and take what it takes."""
        part = self.part(share)
        before = part.left
        written = write(part)
        self.left -= before - part.left
        return written

    def cost(self, line: str) -> int:
        """Return what one line takes, with its line end."""
        return self._count_text(line) + 1

    def take(self, line: str) -> bool:
        """Take a line if it fits, and say whether it did."""
        if (cost := self.cost(line)) > self.left:
            return False
        self.left -= cost
        return True

    def take_all(self, lines: Iterable[str]) -> list[str]:
        """Take lines up to the first that does not fit, and return those taken."""
        taken: list[str] = []
        for line in lines:
            if not self.take(line):
                break
            taken.append(line)
        return taken


def shortened(line: str, longest: int = _LONGEST_LINE) -> str:
    """Return a line of at most about *longest* characters that says how much of it was left out."""
    if len(line) <= longest:
        return line
    return f"{line[:longest]}… [+{len(line) - longest:,} characters]"
