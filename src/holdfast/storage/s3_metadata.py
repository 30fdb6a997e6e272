"""What an S3 object carries beside its bytes and its type: the key it was stored with, and its last use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from holdfast.storage.names import safe_key

__all__ = ["key_in", "metadata_for", "use_in", "with_use"]

_KEY = "holdfast-key"
_USED = "holdfast-used"
_LONGEST_KEY = 1_024
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)


def metadata_for(key: str) -> dict[str, str]:
    """Return what has to be kept of *key* beside the object's name."""
    return {} if safe_key(key) == key else {_KEY: _in_ascii(key)}


def key_in(metadata: Mapping[str, str]) -> str | None:
    """Return the key that was stored with, if the object's name does not tell it."""
    try:
        return unquote(metadata.get(_KEY, ""), errors="surrogatepass") or None
    except UnicodeDecodeError:
        return None


def use_in(metadata: Mapping[str, str]) -> float:
    """Return the last use that was written down; 0 if none was, or if what is there is no time."""
    written = metadata.get(_USED, "")
    return float(written) if _SECONDS.fullmatch(written) else 0.0


def with_use(metadata: Mapping[str, str], used_at: float) -> dict[str, str]:
    """Return *metadata* with a use written down, in seconds since the epoch."""
    return {**metadata, _USED: f"{used_at:.6f}"}


def _in_ascii(key: str) -> str:
    """Return *key* for a header, which is ASCII and short: of a very long key, the beginning."""
    while len(encoded := quote(key, safe="", errors="surrogatepass")) > _LONGEST_KEY:
        key = key[: len(key) // 2]
    return encoded
