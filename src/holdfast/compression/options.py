"""Options that compressors share, checked when they are built."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, replace
from typing import Any, TypeVar

from holdfast.compression.protection import Protection
from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["check_messages", "protection_of", "with_options"]

_Compressor = TypeVar("_Compressor")


def check_messages(name: str, count: object) -> None:
    """Refuse anything but a number of messages, 0 or more."""
    if not isinstance(count, int) or isinstance(count, bool):
        raise InvalidTypeError(f"{name} must be a number of messages, got {type(count).__name__}")
    if count < 0:
        raise InvalidValueError(f"{name} must be 0 or more, got {count}")


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


def with_options(compressor: _Compressor, **changes: Any) -> _Compressor:
    """Return a compressor with some options changed, whatever its own class takes to be made."""
    changed = copy(compressor)
    vars(changed).pop("protection", None)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    changed.__post_init__()  # type: ignore[attr-defined]
    return changed
