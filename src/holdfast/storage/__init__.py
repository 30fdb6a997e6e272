"""Where contents live when they leave the window."""

from holdfast.storage.files import FileStorage
from holdfast.storage.memory import InMemoryStorage
from holdfast.storage.protocols import (
    Entry,
    Part,
    Storage,
    SupportsClear,
    SupportsDelete,
    SupportsDiscard,
    SupportsEntries,
    SupportsEvict,
    SupportsInspect,
    SupportsLive,
    SupportsRange,
    SupportsTouch,
    SupportsTurns,
    SupportsWatch,
)
from holdfast.storage.s3 import S3Storage
from holdfast.storage.scopes import ScopedStorage

__all__ = [
    "Entry",
    "FileStorage",
    "InMemoryStorage",
    "Part",
    "S3Storage",
    "ScopedStorage",
    "Storage",
    "SupportsClear",
    "SupportsDelete",
    "SupportsDiscard",
    "SupportsEntries",
    "SupportsEvict",
    "SupportsInspect",
    "SupportsLive",
    "SupportsRange",
    "SupportsTouch",
    "SupportsTurns",
    "SupportsWatch",
]
