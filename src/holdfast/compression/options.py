"""Options that compressors share, checked when they are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from holdfast.compression.protection import Protection
from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["check_window_size", "protection_of"]


def check_window_size(window_size: object) -> None:
    """Refuse anything but a number of messages, 0 or more."""
    if not isinstance(window_size, int) or isinstance(window_size, bool):
        raise InvalidTypeError(f"window_size must be a number of messages, got {type(window_size).__name__}")
    if window_size < 0:
        raise InvalidValueError(f"window_size must be 0 or more, got {window_size}")


def protection_of(protect: Any, first: int | None, last: int | None, *, usually: Protection) -> Protection:
    """Return what is protected: as one object, or by the number of first and last messages."""
    if protect is None:
        return Protection(first=usually.first if first is None else first, last=usually.last if last is None else last)
    if first is not None or last is not None:
        raise InvalidValueError("give either protect, or protect_first and protect_last")
    if isinstance(protect, Mapping):
        allowed = [option.name for option in fields(Protection)]
        unknown = [name for name in protect if name not in allowed]
        if unknown:
            names = ", ".join(map(repr, allowed))
            raise InvalidValueError(f"unknown option of protect: {unknown[0]!r}; allowed are {names}")
        return Protection(**protect)
    if not isinstance(protect, Protection):
        raise InvalidTypeError(f"protect must be Protection(first=…, last=…), got {type(protect).__name__}")
    return protect
