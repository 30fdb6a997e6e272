"""Options of kinds that many parts take, checked when the parts are built."""

from __future__ import annotations

import inspect
from typing import Any, TypeGuard

from holdfast.errors import InvalidTypeError

__all__ = ["LARGEST", "check_flag", "check_told", "is_async", "is_count"]

LARGEST = 2**63 - 1
"""No number of anything is larger; what is written down may say otherwise."""


def check_flag(name: str, flag: object) -> None:
    """Refuse anything but True and False, above all the word "false", which would mean True."""
    if not isinstance(flag, bool):
        raise InvalidTypeError(f"{name} must be True or False, got {flag!r:.80}")


def check_told(name: str, told: object) -> None:
    """Refuse what cannot be called, or would have to be awaited; None is nobody to tell."""
    if told is not None and not callable(told):
        raise InvalidTypeError(f"{name} must be callable, got {type(told).__name__}")
    if is_async(told):
        raise InvalidTypeError(f"{name} must be a plain function, got an async one, which nobody would await")


def is_async(given: Any) -> bool:
    """Say whether *given* is an async function, or an object that is called like one."""
    return inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(getattr(given, "__call__", None))  # noqa: B004


def is_count(value: object, *, least: int = 0, most: int = LARGEST) -> TypeGuard[int]:
    """Say whether *value* is a whole number that something can be counted with; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
