"""Plain text in lines, found with the standard library alone."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.patterns.syntax import invalid_pattern

__all__ = ["PlainFinder", "require_ascii_letters"]


class PlainFinder:
    """Finds lines that hold a text. With *ignore_case*, the letters from a to z are the same in both cases."""

    steps_per_byte = 1

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        if ignore_case:
            require_ascii_letters(text)
        self.needs_readable_text = "\r" in text
        self._ignore_case = ignore_case
        self._wanted = text.encode().lower() if ignore_case else text.encode()

    @staticmethod
    def suffices(text: str, *, ignore_case: bool) -> bool:
        """Say whether nothing more is needed. RE2 knows the cases of all letters, and bytes that are no characters."""
        return not ignore_case and "\ufffd" not in text

    def lines_in(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the first match of each matching line."""
        if self._ignore_case:
            text = text.lower()
        start = 0
        while (found := text.find(self._wanted, start)) >= 0:
            yield found, found + len(self._wanted)
            if not (start := text.find(b"\n", found) + 1):
                return

    def matches_in(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield every match from *start* on, one behind the other."""
        if self._ignore_case:
            text = text.lower()
        while (found := text.find(self._wanted, start)) >= 0:
            start = found + len(self._wanted)
            yield found, start

    def count_from(self, text: bytes, start: int) -> int:
        """Count the matching lines from *start*, which is the start of a line."""
        return sum(1 for _ in self.lines_in(text[start:]))


def require_ascii_letters(text: str) -> None:
    """Raise if *text* has letters whose other case is not known without RE2."""
    for position, character in enumerate(text):
        if not character.isascii() and character.lower() != character.upper():
            reason = "without RE2, ignore_case knows only the letters from a to z"
            raise invalid_pattern(text, reason, position, advice="For all letters: pip install 'holdfast[patterns]'")
