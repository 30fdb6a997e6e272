"""Messages as they were at some moment, to see later whether anybody worked on them."""

from __future__ import annotations

from typing import Any

from holdfast.dialects.wires import as_mapping

__all__ = ["is_as_then", "snapshot"]


def snapshot(wire: Any) -> Any:
    """Return a copy that shares the texts of *wire*: it costs nothing to hold, and comparing it takes no time.

    None if it holds itself or is nested too deeply: no provider could be sent it either.
    """
    try:
        return _copied(wire)
    except RecursionError:
        return None


def is_as_then(wire: Any, then: Any) -> bool:
    """Say whether a message is what it was when its snapshot was taken."""
    return bool(snapshot(wire) == then)


def _copied(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    if isinstance(value, (list, tuple)):
        return list(map(_copied, value))
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    mapping = as_mapping(value)
    return value if mapping is None else {key: _copied(item) for key, item in mapping.items()}
