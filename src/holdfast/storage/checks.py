"""Arguments that come from callers, models and tools, checked in one place for every backend."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeGuard

from holdfast.errors import InvalidTypeError, InvalidValueError, NotFoundError

__all__ = [
    "LONGEST_MIME_TYPE",
    "check_range",
    "check_reference",
    "check_store",
    "check_touch",
    "is_content_type",
    "is_time",
    "require_positive",
    "reserved_parameters",
    "without_reserved",
]

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_QUOTED = r'"(?:[^"\\\x00-\x1f\x7f-\U0010ffff]|\\[\x20-\x7e])*"'
_MIME_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|{_QUOTED}))*")
LONGEST_MIME_TYPE = 2_000
_RESERVED = re.compile(rf";[ \t]*holdfast-[^;=]*=(?:{_QUOTED}|[^;]*)", re.IGNORECASE)
_MAY_USE_RESERVED: ContextVar[bool] = ContextVar("holdfast_may_use_reserved", default=False)
# Names hold 15 digits of milliseconds, so no content was ever stored later.
_END_OF_TIME = 1e12


def check_store(key: object, content: object, content_type: object) -> None:
    """Refuse what no backend can store, before anything is written."""
    # The rule, at once: this is asked in every store, by every wrapper again.
    if type(key) is str and key and type(content) is bytes and is_content_type(content_type):
        _check_reserved(content_type)
        return
    if not isinstance(key, str):
        raise InvalidTypeError(f"key must be a string, got {type(key).__name__}")
    if not key:
        raise InvalidValueError("key must not be empty; name the content, for example by its tool-use id")
    if not isinstance(content, bytes):
        raise InvalidTypeError(f"content must be bytes, got {type(content).__name__}; {_how_to_get_bytes(content)}")
    _check_content_type(content_type)


def check_reference(reference: object) -> str:
    """Return *reference* if it could lead anywhere at all."""
    if not isinstance(reference, str):
        raise InvalidTypeError(f"reference must be a string, got {type(reference).__name__}")
    if not reference:
        raise NotFoundError(reference, "it is empty; pass what store() returned")
    return reference


def check_range(start: object, end: object) -> None:
    """Refuse anything but 0 <= start <= end."""
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidTypeError(f"{name} must be an integer, got {type(value).__name__}")
    if not 0 <= start <= end:  # type: ignore[operator]
        raise InvalidValueError(f"a range needs 0 <= start <= end, got start={start}, end={end}")


def check_touch(used_at: object, content_type: object) -> None:
    """Refuse what is no time, and what is neither None nor a MIME type."""
    if not isinstance(used_at, (int, float)) or isinstance(used_at, bool):
        raise InvalidTypeError(f"used_at must be a number of seconds since the epoch, got {type(used_at).__name__}")
    if not is_time(used_at):
        raise InvalidValueError(
            f"used_at must be seconds since the epoch, from 0 to {_END_OF_TIME:.0f}, got {used_at!r}; "
            "divide milliseconds by 1000"
        )
    if content_type is not None:
        _check_content_type(content_type)


def require_positive(name: str, value: object) -> None:
    """Refuse anything but an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValueError(f"{name} must be a positive integer, got {value!r}")


def is_content_type(value: object) -> TypeGuard[str]:
    """Say whether *value* is a MIME type, with or without parameters."""
    return isinstance(value, str) and len(value) <= LONGEST_MIME_TYPE and _is_mime_type(value)


def is_time(seconds: float) -> bool:
    """Say whether *seconds* since the epoch can be written down by every backend."""
    return math.isfinite(seconds) and 0 <= seconds < _END_OF_TIME


@lru_cache(maxsize=256)
def _is_mime_type(value: str) -> bool:
    return _MIME_TYPE.fullmatch(value) is not None


def _check_content_type(content_type: object) -> None:
    if not isinstance(content_type, str):
        raise InvalidTypeError(f"content_type must be a string, got {type(content_type).__name__}")
    if not is_content_type(content_type):
        raise InvalidValueError(
            f"content_type must be a MIME type such as 'text/plain' or 'application/json', got {content_type[:80]!r}"
        )
    _check_reserved(content_type)


@contextmanager
def reserved_parameters() -> Iterator[None]:
    """Let a wrapper write into a content type what nobody else may: whose it is, and what eviction needs to know."""
    before = _MAY_USE_RESERVED.set(True)
    try:
        yield
    finally:
        _MAY_USE_RESERVED.reset(before)


def without_reserved(content_type: str) -> str:
    """Return a content type from outside without what only wrappers may write into it."""
    return _RESERVED.sub("", content_type)


@lru_cache(maxsize=256)
def _has_reserved(content_type: str) -> bool:
    return _RESERVED.search(content_type) is not None


def _check_reserved(content_type: str) -> None:
    if _has_reserved(content_type) and not _MAY_USE_RESERVED.get():
        raise InvalidValueError(
            f"content_type must not have parameters that begin with 'holdfast-', got {content_type[:80]!r}; "
            "they are kept for wrappers such as ScopedStorage and EvictingStorage"
        )


def _how_to_get_bytes(content: object) -> str:
    if isinstance(content, str):
        return "encode it first: text.encode()"
    if isinstance(content, (bytearray, memoryview)):
        return "make an unchanging copy first: bytes(content)"
    return "serialise it first, for example with json.dumps(value).encode()"
