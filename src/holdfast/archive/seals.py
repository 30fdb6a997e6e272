"""What tells a provider's message from others, whatever is noted on it."""

from __future__ import annotations

import hashlib
import json
from itertools import accumulate
from typing import Any

from holdfast.batches import Seal
from holdfast.batches.encoding import encoded
from holdfast.checks import is_count
from holdfast.dialects.wires import as_mapping

__all__ = ["BESIDE", "fingerprint", "is_as_left", "is_sealed", "sealed"]

BESIDE = ("metadata", "tracking_id")
"""What stands beside what a message says, and no provider sees."""


def fingerprint(wire: Any) -> str:
    """Return what tells a message from others."""
    return _digest(_said(wire))


def sealed(wire: Any, name: str) -> Seal:
    """Return what tells a message from others, whatever will stand in the place of *name*: nobody knows that yet."""
    parts = _said(wire).split(_quoted(name))
    *gaps, _ = accumulate(map(len, parts))
    return Seal(_digest("".join(parts)), tuple(gaps))


def is_sealed(wire: Any, seal: Seal, name: str) -> bool:
    """Say whether a message is the one that was sealed, with *name* where the other one stood."""
    said, quoted = _said(wire), _quoted(name)
    parts: list[str] = []
    passed = 0
    for number, gap in enumerate(seal.gaps):
        at = gap + number * len(quoted)
        if not said.startswith(quoted, at):
            return False
        parts.append(said[passed:at])
        passed = at + len(quoted)
    return _digest("".join([*parts, said[passed:]])) == seal.digest


def is_as_left(wire: Any, note: Any, name: str) -> bool:
    """Say whether a message is the one whose seal is noted on it. Of one without such a note nobody can tell."""
    match note:
        case [str(digest), list(gaps)] if all(map(is_count, gaps)):
            return is_sealed(wire, Seal(digest, tuple(gaps)), name)
    return False


def _said(wire: Any) -> str:
    mapping = as_mapping(wire)
    said = wire if mapping is None else {key: value for key, value in mapping.items() if key not in BESIDE}
    return json.dumps(_saved(encoded(said)), ensure_ascii=False, sort_keys=True)


def _saved(value: Any) -> Any:
    """Return an encoded value as it is after somebody saved it as JSON: tuples are lists by then, and keys strings.

    What JSON cannot hold is its description, as an undo gives it back.
    """
    match value:
        case list():
            return list(map(_saved, value))
        case {"$tuple": list(items)}:
            return list(map(_saved, items))
        case {"$pairs": list(pairs)}:
            return {_saved_key(key): _saved(item) for key, item in pairs}
        case {"$other": [str(), str(described)]}:
            return described
        case dict():
            return {key: _saved(item) for key, item in value.items()}
    return value


def _saved_key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)[1:-1]


def _digest(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
