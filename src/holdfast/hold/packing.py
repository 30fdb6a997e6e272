"""Plain data packed into a short text: a session's state is written often, and thousands of references look alike."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from typing import Any

from holdfast.errors import InvalidValueError

__all__ = ["packed", "unpacked"]

# Of a state that anybody may have changed, no more than that is read.
_MOST_BYTES = 20_000_000


def packed(value: Any) -> str:
    """Return JSON as a text of letters and digits."""
    return b64encode(zlib.compress(json.dumps(value).encode())).decode()


def unpacked(text: object) -> Any:
    """Return what `packed` was given. Raises InvalidValueError for what it never returned."""
    try:
        if not isinstance(text, str):
            raise TypeError(f"it is no text but {type(text).__name__}")
        return json.loads(zlib.decompressobj().decompress(b64decode(text, validate=True), _MOST_BYTES))
    except (TypeError, ValueError, RecursionError, zlib.error) as error:
        raise InvalidValueError(f"this is not what was saved: {error!r:.120}") from error
