"""How a file comes into a directory that others read and write at the same time.

A content is written to ``.<name>.part`` and then renamed to its name. The part is also the lock on the name: it is
created exclusively and kept flocked until it is renamed. So two writers never publish one name, and a part that
nobody holds was left behind by a crash.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from os.path import lexists

from holdfast.storage.metadata import sidecar_name
from holdfast.storage.names import parse

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_private_directory", "publish", "supported", "sweep"]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
_SIDECAR_GRACE = 3_600.0


def supported() -> bool:
    """Say whether this system has the locks that publishing needs."""
    return fcntl is not None


def publish(folder: str, name: str, content: bytes, sidecar: str | None, *, fsync: bool) -> None:
    """Make *content* appear as *name*, whole or not at all. FileExistsError says that the name is taken."""
    target = os.path.join(folder, name)
    visible, beside = _part(folder, name), os.path.join(folder, sidecar_name(name))
    descriptor = _claim(visible, target)
    try:
        if sidecar is not None:
            _write_sidecar(beside, sidecar.encode(), fsync=fsync)
        _write(descriptor, content, fsync=fsync)
        os.rename(visible, target)
        visible = target
        if fsync:
            _sync_directory(folder)
    except BaseException:
        _remove(visible)
        if sidecar is not None:
            _remove(beside)
        raise
    finally:
        os.close(descriptor)


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
    """Remove what writers left behind when they died. What a living writer works on stays."""
    with os.scandir(folder) as listing:
        hidden = [entry.name for entry in listing if entry.name.startswith(".")]
    for name in _artifacts_of(hidden, ".part"):
        _remove_abandoned(folder, name)
    for name in _artifacts_of(hidden, ".meta"):
        _remove_orphaned_sidecar(folder, name, now)


def _part(folder: str, name: str) -> str:
    return os.path.join(folder, f".{name}.part")


def _claim(part: str, target: str) -> int:
    """Create the part, locked. Whoever holds it decides alone whether its name is free."""
    descriptor = os.open(part, _CREATE, 0o600)
    try:
        if not _lock(descriptor, if_unsupported=True) or os.fstat(descriptor).st_nlink == 0:
            raise FileExistsError(errno.EEXIST, "taken for abandoned by a sweep", part)
        if lexists(target):
            _remove(part)
            raise FileExistsError(errno.EEXIST, "already published", target)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


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


def _remove_abandoned(folder: str, name: str) -> None:
    part = _part(folder, name)
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.EACCES):
            raise
        return
    try:
        if _lock(descriptor, if_unsupported=False) and _is_still_at(part, descriptor):
            _remove(os.path.join(folder, sidecar_name(name)))
            _remove(part)
    finally:
        os.close(descriptor)


def _remove_orphaned_sidecar(folder: str, name: str, now: float) -> None:
    """Remove a sidecar without content. A fresh one may be a sandbox's, which writes the content second."""
    sidecar = os.path.join(folder, sidecar_name(name))
    try:
        age = now - os.lstat(sidecar).st_mtime
    except FileNotFoundError:
        return
    # In this order: a part becomes the content in one step, so what is neither now is not being written.
    if age > _SIDECAR_GRACE and not lexists(_part(folder, name)) and not lexists(os.path.join(folder, name)):
        _remove(sidecar)


def _is_still_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
