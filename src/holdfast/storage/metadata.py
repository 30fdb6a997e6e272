"""What is known of a file beside its bytes: from its name, from a sidecar, or from an older tool's record.

A file whose name does not give back its key and content type has a sidecar ``.<name>.meta``, written before the
file appears. It is replaced, or comes to a file that had none, only when a touch changes the content type.
strands-agents keeps one ``.metadata.json`` for a whole directory; it is read, never written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import CorruptMetadataError, NotFoundError
from holdfast.storage import names
from holdfast.storage.checks import is_content_type, without_reserved

__all__ = [
    "LARGEST_METADATA",
    "LEGACY_RECORD",
    "Description",
    "describe",
    "describe_by_name",
    "encode_sidecar",
    "read_legacy_record",
    "sidecar_name",
]

LEGACY_RECORD = ".metadata.json"
# More than any record of ours, as keys may be long; what is cut there does not parse, so it counts as damaged.
LARGEST_METADATA = 100_000_000
_UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Description:
    """One file's metadata. `size` is what the complete content has, where that was written down."""

    key: str
    content_type: str
    stored_at: float
    size: int | None = None


def sidecar_name(name: str) -> str:
    """Name the file that describes the file *name*."""
    return f".{name}.meta"


def encode_sidecar(key: str, content_type: str, size: int) -> str:
    """Write down what the name of a file does not tell."""
    return json.dumps({"key": key, "content_type": content_type, "size": size})


def describe(
    name: str, sidecar: bytes | str | None, legacy_types: Callable[[], Mapping[str, str]], *, folder: str
) -> Description:
    """Describe the artifact *name* in *folder*; what an older tool recorded is asked for only if need be."""
    by_name = describe_by_name(name)
    if sidecar is not None:
        return _from_sidecar(os.path.join(folder, sidecar_name(name)), sidecar, by_name.stored_at)
    try:
        recorded = legacy_types().get(name)
    except CorruptMetadataError:
        if by_name.content_type == _UNKNOWN_TYPE:
            raise
        return by_name
    return by_name if recorded is None else replace(by_name, content_type=recorded)


def describe_by_name(name: str) -> Description:
    """Describe an artifact by what its name alone tells."""
    parsed = names.parse(name)
    if parsed is None:
        raise NotFoundError(name, "nothing stored here is named so")
    return Description(parsed.key, parsed.content_type or _UNKNOWN_TYPE, parsed.stored_at)


def read_legacy_record(raw: bytes | str, path: str) -> dict[str, str]:
    """Return the content types that strands-agents recorded for a directory, by file name."""
    record = _decode(raw, path)
    return {name: without_reserved(kind) if is_content_type(kind) else _UNKNOWN_TYPE for name, kind in record.items()}


def _from_sidecar(path: str, raw: bytes | str, stored_at: float) -> Description:
    fields = _decode(raw, path)
    key, content_type, size = fields.get("key"), fields.get("content_type"), fields.get("size")
    if not isinstance(key, str) or not is_content_type(content_type) or not isinstance(size, int):
        raise _corrupt(path, "key, content_type or size is missing")
    return Description(key, content_type, stored_at, size)


def _decode(raw: bytes | str, path: str) -> dict[str, Any]:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _corrupt(path, str(error)) from error
    if not isinstance(fields, dict):
        raise _corrupt(path, "it is not a JSON object")
    return fields


def _corrupt(path: str, what: str) -> CorruptMetadataError:
    return CorruptMetadataError(
        f"{path} is damaged ({what}), so a content type is unknown. The contents are whole: restore {path} from a "
        "backup, or remove it to have types taken from file extensions"
    )
