"""How a file comes into a directory that others read and write at the same time.

A content is written to ``.<name>.part`` and then renamed to its name. The part is also the lock on the name: it is
created exclusively and kept flocked until it is renamed. So two writers never publish one name, and a part that
nobody holds was left behind by a crash. The sidecar of a published file is replaced by way of the same part, so what
a crash leaves of that is swept like the rest.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os.path import lexists

from holdfast.storage.metadata import sidecar_name
from holdfast.storage.names import parse

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "SIDECAR_GRACE",
    "lock_for_a_touch",
    "make_private_directory",
    "publish",
    "replace_sidecar",
    "supported",
    "sweep",
]

logger = logging.getLogger(__name__)

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# EBADF: network file systems lock only what was opened for writing.
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF)
# A sandbox writes a content after its sidecar, and neither in one step; it is given so many seconds.
SIDECAR_GRACE = 3_600.0
_WAITS = 2_000
_WAIT_SECONDS = 0.005


def supported() -> bool:
    """Say whether this system has the locks that publishing needs."""
    return fcntl is not None


def publish(folder: str, name: str, content: bytes, sidecar: str | None, *, fsync: bool) -> None:
    """Make *content* appear as *name*, whole or not at all. FileExistsError says that the name is taken."""
    target, part, beside = (os.path.join(folder, file) for file in (name, _part_name(name), sidecar_name(name)))
    written = part
    descriptor = _claim(part, target)
    try:
        if sidecar is not None:
            _write_sidecar(beside, sidecar.encode(), fsync=fsync)
        _write(descriptor, content, fsync=fsync)
        os.rename(part, target)
        written = target
        if fsync:
            _sync_directory(folder)
    except BaseException:
        # The sidecar first: once the part is gone, the name and its sidecar may be another writer's.
        if sidecar is not None:
            _remove(beside)
        _remove(written)
        raise
    finally:
        os.close(descriptor)


def lock_for_a_touch(descriptor: int) -> None:
    """Wait until no other process or thread touches this file. Closing the descriptor lets the next one in."""
    for _ in range(_WAITS):
        if _lock(descriptor, if_unsupported=True):
            return
        time.sleep(_WAIT_SECONDS)
    raise _held_by_another()


def replace_sidecar(folder: str, name: str, sidecar: str, *, fsync: bool) -> None:
    """Make *sidecar* describe the published file *name* from now on. Leaves nothing if the file is gone meanwhile."""
    target, part, beside = (os.path.join(folder, file) for file in (name, _part_name(name), sidecar_name(name)))
    descriptor = _await_part(folder, name)
    try:
        _write(descriptor, sidecar.encode(), fsync=fsync)
        if not lexists(target):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target)
        os.rename(part, beside)
    except BaseException:
        _remove(part)
        raise
    finally:
        os.close(descriptor)
    if fsync:
        _sync_directory(folder)
    # Whoever deletes removes the content first: if it is there now, its deleter will see this sidecar.
    if not lexists(target):
        _remove_sidecar_of_nothing(folder, name)


def make_private_directory(path: str, *, fsync: bool) -> None:
    """Create *path* and what is missing above it, for this user only."""
    if os.path.isdir(path):
        return
    make_private_directory(os.path.dirname(path), fsync=fsync)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    if fsync:
        _sync_directory(os.path.dirname(path))


def sweep(folder: str, now: float) -> None:
    """Remove what writers left behind when they died. What a living writer works on stays, and so does what resists."""
    with os.scandir(folder) as listing:
        hidden = [entry.name for entry in listing if entry.name.startswith(".")]
    for name in _artifacts_of(hidden, ".part"):
        with _resistance_logged(folder, name):
            _remove_abandoned(folder, name)
    for name in _artifacts_of(hidden, ".meta"):
        with _resistance_logged(folder, name):
            _remove_orphaned_sidecar(folder, name, now)


def _part_name(name: str) -> str:
    return f".{name}.part"


def _claim(part: str, target: str) -> int:
    """Create the part, locked. Whoever holds it decides alone whether its name is free."""
    descriptor = _create_locked(part)
    if lexists(target):
        _remove(part)
        os.close(descriptor)
        raise FileExistsError(errno.EEXIST, "already published", target)
    return descriptor


def _create_locked(part: str) -> int:
    descriptor = os.open(part, _CREATE, 0o600)
    try:
        if not _lock(descriptor, if_unsupported=True) or os.fstat(descriptor).st_nlink == 0:
            raise FileExistsError(errno.EEXIST, "taken for abandoned by a sweep", part)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _await_part(folder: str, name: str) -> int:
    """Create the part of a published name, locked, as soon as nobody else has it."""
    for _ in range(_WAITS):
        try:
            return _create_locked(os.path.join(folder, _part_name(name)))
        except FileExistsError:
            _remove_abandoned(folder, name)
            time.sleep(_WAIT_SECONDS)
    raise _held_by_another()


def _held_by_another() -> OSError:
    return BlockingIOError(errno.EAGAIN, "another process has been changing it for too long")


def _lock(descriptor: int, *, if_unsupported: bool) -> bool:
    """Lock without waiting; False if someone else holds it. Some network file systems have no locks at all."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise
        return if_unsupported
    return True


def _write(descriptor: int, content: bytes, *, fsync: bool) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    if fsync:
        os.fsync(descriptor)


def _write_sidecar(path: str, content: bytes, *, fsync: bool) -> None:
    _remove(path)
    descriptor = os.open(path, _CREATE, 0o600)
    try:
        _write(descriptor, content, fsync=fsync)
    finally:
        os.close(descriptor)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _artifacts_of(hidden: list[str], suffix: str) -> list[str]:
    """Return the names that hidden files with *suffix* belong to."""
    names = [name[1 : -len(suffix)] for name in hidden if name.endswith(suffix)]
    return [name for name in names if parse(name) is not None]


@contextmanager
def _resistance_logged(folder: str, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        logger.warning("cannot clean up what a crash left of %s in %s: %s", name, folder, error)


def _remove_abandoned(folder: str, name: str) -> None:
    part = os.path.join(folder, _part_name(name))
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        if _lock(descriptor, if_unsupported=False) and _is_still_at(part, descriptor):
            # A part of a published name is a second writer's, who died before it looked; the sidecar is the first's.
            if not lexists(os.path.join(folder, name)):
                _remove(os.path.join(folder, sidecar_name(name)))
            _remove(part)
    finally:
        os.close(descriptor)


def _remove_sidecar_of_nothing(folder: str, name: str) -> None:
    """Remove the sidecar of a name that is free. If it is free no longer, the sidecar may be the new owner's."""
    target, part = os.path.join(folder, name), os.path.join(folder, _part_name(name))
    with suppress(FileExistsError):
        descriptor = _claim(part, target)
        _remove(os.path.join(folder, sidecar_name(name)))
        _remove(part)
        os.close(descriptor)


def _remove_orphaned_sidecar(folder: str, name: str, now: float) -> None:
    """Remove a sidecar without content. A fresh one may be a sandbox's, which writes the content second."""
    target, part, sidecar = (os.path.join(folder, file) for file in (name, _part_name(name), sidecar_name(name)))
    try:
        age = now - os.lstat(sidecar).st_mtime
    except FileNotFoundError:
        return
    # In this order: a part becomes the content in one step, so what is neither now is not being written.
    if age > SIDECAR_GRACE and not lexists(part) and not lexists(target):
        _remove(sidecar)


def _is_still_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
