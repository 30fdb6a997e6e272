"""Context management for long-running LLM agents. Importing it loads next to nothing; its parts load when used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.extras import lazily

if TYPE_CHECKING:
    from holdfast.compression import ContextCompression, pin_message
    from holdfast.errors import ContextOverflowError, HoldfastError, NotFoundError, StorageError
    from holdfast.eviction import EvictingStorage
    from holdfast.manager import ContextManager
    from holdfast.offload import ContextOffloader
    from holdfast.storage import Entry, FileStorage, InMemoryStorage, Part, S3Storage, ScopedStorage, Storage
    from holdfast.tokens import estimate_input_tokens

__all__ = [
    "ContextCompression",
    "ContextManager",
    "ContextOffloader",
    "ContextOverflowError",
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
    "estimate_input_tokens",
    "pin_message",
]

_IN_ERRORS = ("ContextOverflowError", "HoldfastError", "NotFoundError", "StorageError")
_IN_COMPRESSION = ("ContextCompression", "pin_message")

lazily(
    globals(),
    dict.fromkeys(__all__, "holdfast.storage")
    | dict.fromkeys(_IN_ERRORS, "holdfast.errors")
    | dict.fromkeys(_IN_COMPRESSION, "holdfast.compression")
    | {
        "ContextManager": "holdfast.manager",
        "ContextOffloader": "holdfast.offload",
        "EvictingStorage": "holdfast.eviction",
        "estimate_input_tokens": "holdfast.tokens",
    },
)
