"""Values of a provider's messages as JSON that gives back the very same values."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from holdfast.dialects.wires import as_mapping
from holdfast.errors import InvalidValueError

__all__ = ["decoded", "encoded"]

_BYTES, _TUPLE, _PAIRS, _INTEGER, _OTHER = "$bytes", "$tuple", "$pairs", "$integer", "$other"
# Python writes longer ones neither as JSON nor otherwise in decimal digits.
_LONGEST_INTEGER = 2_000


def encoded(value: Any) -> Any:
    """Return *value* as JSON: bytes, tuples, odd keys and huge integers are marked, SDK objects become what they dump.

    What is none of these, which no provider could be sent either, is kept as its description.
    """
    try:
        return _encoded(value)
    except RecursionError as error:
        raise InvalidValueError("a message is nested too deeply, or holds itself, and cannot be stored") from error


def decoded(value: Any) -> Any:
    """Return the value that `encoded` was given. Raises InvalidValueError for what it never returned."""
    try:
        return _decoded(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"this was not written as a stored message: {error!r:.120}") from error


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LONGEST_INTEGER else {_INTEGER: hex(value)}
    if isinstance(value, list):
        return list(map(_encoded, value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {_BYTES: b64encode(value).decode()}
    if isinstance(value, tuple):
        return {_TUPLE: list(map(_encoded, value))}
    if (mapping := as_mapping(value)) is not None:
        return _encoded_mapping(mapping)
    return {_OTHER: [type(value).__name__, f"{value!r:.1000}"]}


def _encoded_mapping(mapping: Mapping[Any, Any]) -> Any:
    if all(isinstance(key, str) and not key.startswith("$") for key in mapping):
        return {key: _encoded(value) for key, value in mapping.items()}
    return {_PAIRS: [[_encoded(key), _encoded(value)] for key, value in mapping.items()]}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_decoded, value))
    if not isinstance(value, dict):
        return value
    match value:
        case {"$bytes": str(text)}:
            return b64decode(text, validate=True)
        case {"$tuple": list(items)}:
            return tuple(map(_decoded, items))
        case {"$pairs": list(pairs)}:
            return {_decoded(key): _decoded(item) for key, item in pairs}
        case {"$integer": str(digits)}:
            return int(digits, 16)
        case {"$other": [str(), str(described)]}:
            return described
    return {key: _decoded(item) for key, item in value.items()}
