"""Options of kinds that many parts take, checked when the parts are built."""

from __future__ import annotations

import inspect
from typing import Any

from holdfast.errors import InvalidTypeError

__all__ = ["check_flag", "check_told", "is_async"]


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
