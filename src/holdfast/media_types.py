"""MIME types: what a provider's short names stand for, and which of them are text."""

from __future__ import annotations

import re

__all__ = ["essence", "format_of", "is_textual", "media_type_of"]

_BY_FORMAT = {
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "webp": "image/webp",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
}
_FORMATS = {media_type: name for name, media_type in _BY_FORMAT.items() if name != "jpg"}
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,120}")
_TEXTUAL = re.compile(
    r"application/(x-)?(json|jsonl|ndjson|json-seq|xml|javascript|ecmascript|typescript|ya?ml|toml|sql|graphql|sh"
    r"|httpd-php|tex|rtf|csv)|[^/]*/[^/]*\+(json|xml|yaml)"
)


def essence(content_type: str) -> str:
    """Return a content type without its parameters, in small letters."""
    return content_type.partition(";")[0].strip().lower()


def media_type_of(given: str, default: str) -> str:
    """Return the MIME type for what a provider calls it, such as ``pdf`` or ``image/jpg``; *default* if it is odd."""
    name = essence(given)
    found = _BY_FORMAT.get(name.rpartition("/")[2] if name.startswith("image/") else name, name)
    return found if _MEDIA_TYPE.fullmatch(found) else default


def format_of(content_type: str) -> str:
    """Return the short name that providers use for a MIME type."""
    name = essence(content_type)
    return _FORMATS.get(name, name.rpartition("/")[2])


def is_textual(content_type: str) -> bool:
    """Say whether a content of that type is read as lines of text."""
    name = essence(content_type)
    return name.startswith("text/") or _TEXTUAL.fullmatch(name) is not None
