"""Context management for long-running LLM agents. Importing it loads next to nothing; its parts load when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.extras import lazily

if TYPE_CHECKING:
    from holdfast.errors import HoldfastError, NotFoundError, StorageError
    from holdfast.eviction import EvictingStorage
    from holdfast.storage import Entry, FileStorage, InMemoryStorage, Part, S3Storage, ScopedStorage, Storage

__all__ = [
    "Entry",
    "EvictingStorage",
    "FileStorage",
    "HoldfastError",
    "InMemoryStorage",
    "NotFoundError",
    "Part",
    "S3Storage",
    "ScopedStorage",
    "Storage",
    "StorageError",
]

_IN_ERRORS = dict.fromkeys(("HoldfastError", "NotFoundError", "StorageError"), "holdfast.errors")

_IN_EVICTION = {"EvictingStorage": "holdfast.eviction"}

lazily(globals(), dict.fromkeys(__all__, "holdfast.storage") | _IN_ERRORS | _IN_EVICTION)
