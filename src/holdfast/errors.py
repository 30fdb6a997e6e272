"""Everything holdfast raises on purpose.

* HoldfastError
  x InvalidValueError      (also ValueError)    an argument is outside what is allowed
  x InvalidTypeError       (also TypeError)     an argument is of the wrong type
  x MissingExtraError      (also ImportError)   an optional dependency is not installed
  x ContextOverflowError                        nothing more can leave, and the context still does not fit
  x StorageError
    + NotFoundError        (also KeyError)      this reference leads to nothing; `.reason` says why
      - EvictedError                            it led to something that was evicted or deleted; tells the story
    + StorageAccessError   (also OSError)       the disk, the sandbox or the network refused
      - StorageFullError                        no space left; nothing was written
        · TooLargeError                         larger than the storage may ever hold; nothing was written
      - StorageTimeoutError (also TimeoutError) no answer in time; what was asked may still happen
    + CorruptMetadataError                      a file that describes entries cannot be read
    + DamagedContentError  (also ValueError)    messages that were stored are not what was stored
    + SharedStorageError   (also ValueError)    a storage that serves one agent was given to two

`holdfast.storage.s3_errors` adds `S3RefusedError`, a StorageError that is also botocore's ClientError, and
`S3UnreachableError`, a StorageAccessError.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ContextOverflowError",
    "CorruptMetadataError",
    "DamagedContentError",
    "EvictedError",
    "HoldfastError",
    "InvalidTypeError",
    "InvalidValueError",
    "MissingExtraError",
    "NotFoundError",
    "SharedStorageError",
    "StorageAccessError",
    "StorageError",
    "StorageFullError",
    "StorageTimeoutError",
    "TooLargeError",
]


class HoldfastError(Exception):
    """Root of every error that holdfast raises on purpose."""


class InvalidValueError(HoldfastError, ValueError):
    """An argument is outside what is allowed."""


class InvalidTypeError(HoldfastError, TypeError):
    """An argument is of the wrong type."""


class MissingExtraError(HoldfastError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""


class ContextOverflowError(HoldfastError):
    """Nothing more can leave, and the context still does not fit. `best` is the plan that comes nearest, if any."""

    def __init__(self, message: str, tokens: int, limit: int, best: Any = None) -> None:
        super().__init__(message, tokens, limit, best)
        self.tokens = tokens
        self.limit = limit
        self.best = best

    def __str__(self) -> str:
        return str(self.args[0])


class StorageError(HoldfastError):
    """A storage could not do what it was asked."""


class NotFoundError(StorageError, KeyError):
    """A reference leads to nothing. `reason` says why, in words that help a model as well as a person."""

    def __init__(self, reference: str, reason: str) -> None:
        super().__init__(reference, reason)
        self.reference = reference
        self.reason = reason

    def __str__(self) -> str:
        return f"reference not found: {_shortened(self.reference)} ({self.reason})"


class EvictedError(NotFoundError):
    """A reference leads to something that was here and left. Times are seconds since the epoch."""

    def __init__(
        self,
        reference: str,
        reason: str,
        key: str,
        content_type: str,
        size: int,
        stored_at: float,
        evicted_at: float,
        because: str,
    ) -> None:
        super().__init__(reference, reason)
        self.args = (reference, reason, key, content_type, size, stored_at, evicted_at, because)
        self.key = key
        self.content_type = content_type
        self.size = size
        self.stored_at = stored_at
        self.evicted_at = evicted_at
        self.because = because


class StorageAccessError(StorageError, OSError):
    """The disk, the sandbox or the network refused. What was stored before is unharmed."""


class StorageFullError(StorageAccessError):
    """No space left. Nothing was written; what was stored before is unharmed."""


class TooLargeError(StorageFullError):
    """A content, alone or with its chain, is larger than the storage may ever hold. Nothing was written."""


class StorageTimeoutError(StorageAccessError, TimeoutError):
    """A storage did not answer in time. What it was asked to do may still happen."""


class CorruptMetadataError(StorageError):
    """A file that describes entries cannot be read. The contents themselves are unharmed."""


class DamagedContentError(StorageError, InvalidValueError):
    """Messages are in the storage, but are no longer what was stored."""


class SharedStorageError(StorageError, ValueError):
    """A storage that evicts by one agent's turns was given to a second agent."""


def _shortened(reference: str, limit: int = 200) -> str:
    text = repr(reference)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(reference)} characters)"
