"""What records may hold: whatever is given, a record stays small, and can be printed and saved."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.checks import is_count
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.ledger.lines import one_line

__all__ = ["checked_number", "checked_references", "checked_seconds", "checked_text"]

# The last second of the year 9999, after which no calendar goes on.
_LATEST = 253_402_300_799
_MOST_REFERENCES, _LONGEST_REFERENCES = 20, 4_000


def checked_number(name: str, value: object, *, at_least: int = 0) -> int:
    """Return a count as it is; refuse what is none."""
    if is_count(value, least=at_least):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a whole number, got {type(value).__name__}")
    raise InvalidValueError(f"{name} must be from {at_least} to 2**63 - 1, and is not")


def checked_seconds(name: str, value: object) -> None:
    """Refuse what is no time, nor a length of time."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a number of seconds, got {type(value).__name__}")
    if not 0 <= value <= _LATEST:
        raise InvalidValueError(f"{name} must be seconds from 0 to the year 9999, and is not")


def checked_text(name: str, value: object, most: int) -> str:
    """Return a text as one line of at most so many characters."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} must be text, got {type(value).__name__}")
    return one_line(value, most)


def checked_references(name: str, given: object) -> tuple[str, ...]:
    """Return as many references as a record may hold, in their order; none is cut, for half of one leads nowhere."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise InvalidTypeError(f"{name} must be a list of references, got {type(given).__name__}")
    kept: list[str] = []
    room = _LONGEST_REFERENCES
    for reference in given:
        if not isinstance(reference, str):
            raise InvalidTypeError(f"{name} must hold text only, got {type(reference).__name__}")
        if len(kept) < _MOST_REFERENCES and len(reference) <= room:
            kept.append(reference)
            room -= len(reference)
    return tuple(kept)
