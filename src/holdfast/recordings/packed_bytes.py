"""Bytes as Strands writes them into JSON."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from holdfast.recordings.values import UnusableError

__all__ = ["unpacked"]

_MARK = "__bytes_encoded__"


def unpacked(value: Any) -> Any:
    """Return a value with the bytes in it as bytes: the same object, where there are none."""
    if isinstance(value, dict):
        return _bytes_of(value) if value.get(_MARK) is True and "data" in value else _unpacked_dict(value)
    if not isinstance(value, list):
        return value
    new = [unpacked(each) for each in value]
    return new if any(after is not before for after, before in zip(new, value, strict=True)) else value


def _unpacked_dict(value: dict[str, Any]) -> dict[str, Any]:
    new = {name: unpacked(each) for name, each in value.items()}
    return new if any(new[name] is not each for name, each in value.items()) else value


def _bytes_of(packed: dict[str, Any]) -> bytes:
    try:
        return b64decode(packed["data"], validate=True)
    except (TypeError, ValueError):
        raise UnusableError("bytes in it are not base64") from None
