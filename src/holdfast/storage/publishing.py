"""How a file comes into a directory that others read and write at the same time.

A content is written to ``.<name>.part`` and then renamed to its name. The part is also the lock on the name: it is
created exclusively and kept flocked until it is renamed. So two writers never publish one name, and a part that
nobody holds was left behind by a crash.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

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


def publish(folder: str, name: str, content: bytes, sidecar: str | None, now: float, *, fsync: bool) -> None:
    """Make *content* appear as *name*, whole or not at all. FileExistsError says that the name is taken."""
    target = os.path.join(folder, name)
    visible, beside = _part(folder, name), os.path.join(folder, sidecar_name(name))
    descriptor = _claim(visible, target)
    try:
        if sidecar is not None:
            _write_sidecar(beside, sidecar.encode(), fsync=fsync)
        _write(descriptor, content, fsync=fsync)
        os.utime(descriptor, (now, now))
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
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        make_private_directory(os.path.dirname(path), fsync=fsync)
        make_private_directory(path, fsync=fsync)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    else:
        if fsync:
            _sync_directory(os.path.dirname(path))


def sweep(folder: str, now: float) -> None:
    """Remove what writers left behind when they died. What a living writer works on stays."""
    with os.scandir(folder) as listing:
        hidden = [entry.name for entry in listing if entry.name.startswith(".")]
    for name in (name for name in hidden if _is_of_artifact(name, ".part")):
        _remove_abandoned_part(os.path.join(folder, name))
    for name in (name for name in hidden if _is_of_artifact(name, ".meta")):
        _remove_orphaned_sidecar(folder, name, now)


def _part(folder: str, name: str) -> str:
    return os.path.join(folder, f".{name}.part")


def _claim(part: str, target: str) -> int:
    """Create the part, locked. Whoever holds it decides alone whether its name is free."""
    descriptor = os.open(part, _CREATE, 0o600)
    try:
        if not _lock(descriptor, if_unsupported=True) or os.fstat(descriptor).st_nlink == 0:
            raise FileExistsError(errno.EEXIST, "taken for abandoned by a sweep", part)
        if os.path.lexists(target):
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


def _is_of_artifact(hidden_name: str, suffix: str) -> bool:
    return hidden_name.endswith(suffix) and parse(hidden_name[1 : -len(suffix)]) is not None


def _remove_abandoned_part(part: str) -> None:
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.EACCES):
            raise
        return
    try:
        if _lock(descriptor, if_unsupported=False) and _is_still_at(part, descriptor):
            _remove(part)
    finally:
        os.close(descriptor)


def _remove_orphaned_sidecar(folder: str, sidecar: str, now: float) -> None:
    """Remove a sidecar without content. A fresh one may belong to a sandbox that writes content second."""
    name, path = sidecar[1 : -len(".meta")], os.path.join(folder, sidecar)
    with suppress(FileNotFoundError):
        if now - os.lstat(path).st_mtime < _SIDECAR_GRACE:
            return
    # In this order: a part becomes the content in one step, so whoever is neither is not being written.
    if not os.path.lexists(_part(folder, name)) and not os.path.lexists(os.path.join(folder, name)):
        _remove(path)


def _is_still_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
