"""Names for stored contents: safe in any file system and bucket, telling to a reader.

A file is named ``<ms>_<n>_<key>.<ext>``, an S3 object ``<ms>_<n>_<key>``. Where the name alone gives back key and
content type, nothing has to be written beside the content.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "ArtifactName",
    "describes",
    "file_name",
    "known_extensions",
    "may_be_artifact",
    "parse",
    "parse_stem",
    "safe_key",
]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]|\.{2,}")
_STEM = re.compile(r"([0-9]{1,15})_([0-9]{1,20})_([^\x00-\x1f/\\]+)")
_LONGEST_NAME = 255
_LONGEST_KEY = 120
_LONGEST_EXTENSION = 40

_TYPE_OF_EXTENSION = {
    "css": "text/css",
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "json": "application/json",
    "markdown": "text/markdown",
    "octet-stream": "application/octet-stream",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "webp": "image/webp",
    "xml": "application/xml",
    "zip": "application/zip",
}


class ArtifactName(NamedTuple):
    """What a file name says of its content. `content_type` is None where the extension does not settle it."""

    stored_at: float
    key: str
    content_type: str | None


def safe_key(key: str) -> str:
    """Return *key* with only letters, digits, ``_``, ``-`` and single dots, at most 120 characters."""
    return _UNSAFE.sub("_", key[:_LONGEST_KEY])


def file_name(milliseconds: int, number: int, key: str, content_type: str) -> str:
    """Name the file for a content."""
    return f"{milliseconds}_{number}_{safe_key(key)}.{_extension_for(content_type)}"


def describes(key: str, content_type: str) -> bool:
    """Say whether a file name made of these gives both back unchanged."""
    return safe_key(key) == key and _TYPE_OF_EXTENSION.get(_extension_for(content_type)) == content_type


def parse(name: str) -> ArtifactName | None:
    """Read a file name, or return None if it is not an artifact's."""
    stem, dot, extension = name.rpartition(".")
    if not dot or not extension or _STEM.fullmatch(stem) is None:
        return None
    stored_at, key = parse_stem(stem)
    return ArtifactName(stored_at, key, _TYPE_OF_EXTENSION.get(extension))


def parse_stem(stem: str) -> tuple[float, str]:
    """Return the time of storing and the safe key of a name without extension."""
    milliseconds, _, key = stem.split("_", 2)
    return int(milliseconds) / 1000, key


def may_be_artifact(name: str) -> bool:
    """Say whether an untrusted *name* has the form of an artifact's, with or without its extension."""
    if _STEM.fullmatch(name) is None:
        return False
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def known_extensions() -> tuple[str, ...]:
    """The extensions that settle a content type, the likeliest first."""
    return tuple(sorted(_TYPE_OF_EXTENSION, key=lambda extension: extension not in ("txt", "json")))


def _extension_for(content_type: str) -> str:
    essence = content_type.partition(";")[0].strip().lower()
    if essence == "text/plain":
        return "txt"
    return safe_key(essence.partition("/")[2]).replace(".", "-")[:_LONGEST_EXTENSION]
