"""Faults of disks and sandboxes, told so that a person knows what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import StorageAccessError, StorageFullError

__all__ = ["explained"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ADVICE = {
    errno.ENOSPC: "free some space or store elsewhere",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EACCES: "check the owner and the mode of the directory and of those above it",
    errno.EPERM: "check the owner and the mode of the directory and of those above it",
    errno.ENOENT: "choose a directory that can be created",
    errno.EROFS: "choose a directory on a writable file system",
    errno.ENOTDIR: "a file is in the way; choose another directory or move the file",
    errno.EEXIST: "a file is in the way; choose another directory or move the file",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n) or store less at once",
}


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn an OSError of the body into a StorageAccessError that says what to do."""
    try:
        yield
    except StorageAccessError:
        raise
    except OSError as error:
        kind = StorageFullError if error.errno in _FULL else StorageAccessError
        what = os.strerror(error.errno) if error.errno else str(error)
        advice = _ADVICE.get(error.errno or 0, "try again when the cause is mended")
        told = kind(f"cannot {doing}: {what}. What was stored before is unharmed; {advice}")
        told.errno = error.errno
        raise told from error
