"""Options that compressors share, checked when they are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
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


def protection_of(protect: Any, named: Mapping[str, Any], *, usually: Protection) -> Protection:
    """Return what is protected: as one object, or by what is *named*, where None is for as usual."""
    said = {name: value for name, value in named.items() if value is not None}
    if protect is None:
        return replace(usually, **said)
    if said:
        raise InvalidValueError(f"give either protect, or {' and '.join(f'protect_{name}' for name in said)}")
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
