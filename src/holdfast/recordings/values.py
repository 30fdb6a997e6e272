"""What reading gives: recordings, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidValueError

__all__ = ["FORMATS", "Recording", "Unreadable", "UnusableError", "quoted"]

FORMATS: tuple[str, ...] = ("openai", "anthropic", "converse", "strands", "claude-code")
"""What recorded a conversation. The first three are messages of a provider, in any file."""

_REASON, _QUOTED = 200, 60


@dataclass(frozen=True)
class Recording:
    """A conversation as it was recorded. *messages* are the provider's, in order, in the form of *dialect*.

    They are plain dicts with the provider's own keys, without system messages at the beginning: these, as text or as a
    provider's blocks, are the *system_prompt*. *name* is for people: the file as given, and the line or the id where a
    file holds several. *format* is one of `FORMATS`; *dialect* is "openai", "anthropic" or "converse".
    """

    name: str
    format: str
    dialect: str
    messages: tuple[Any, ...]
    system_prompt: Any = None
    tool_specs: tuple[Any, ...] = ()
    model: str = ""


@dataclass(frozen=True)
class Unreadable:
    """What could not be read. `str` is the one line for people: the file, the line if there is one, and the reason."""

    file: str
    line: int | None
    reason: str

    def __post_init__(self) -> None:
        # Frozen for everybody else.
        object.__setattr__(self, "reason", _cut(_one_line(self.reason), _REASON))

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{_one_line(place)}: {self.reason}"


class UnusableError(InvalidValueError):
    """A value cannot be made a recording, and why. It becomes an `Unreadable` where the file is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        return self.reason


def quoted(text: str, most: int = _QUOTED) -> str:
    """Return a few characters of something that was found, on one line."""
    return _cut(_one_line(text[: most + 1]), most)


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
