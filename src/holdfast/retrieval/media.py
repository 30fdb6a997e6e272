"""Images and documents, given back as what they were."""

from __future__ import annotations

import re

from holdfast.media_types import essence, format_of
from holdfast.messages import Document, Image

__all__ = ["media_block"]

_DOCUMENTS = frozenset({"pdf", "doc", "docx", "xls", "xlsx", "csv", "html", "txt", "md"})
# All that Bedrock allows in the name of a document, which it wants to have.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
_LONGEST_NAME = 100


def media_block(content: bytes, content_type: str, reference: str) -> Image | Document | None:
    """Return the block that shows a content; None if no provider would know what to do with it."""
    if essence(content_type).startswith("image/"):
        return Image(essence(content_type), content)
    if format_of(content_type) not in _DOCUMENTS:
        return None
    name = _NOT_IN_NAMES.sub("-", re.split(r"[/\\]", reference)[-1])[-_LONGEST_NAME:].strip("- ")
    return Document(essence(content_type), name or "document", content)
