"""Audits of a directory: what is damaged, what crashes left behind, and how to mend what can be mended.

An audit changes nothing, not even a time of use, and may run beside any number of writers.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import cached_property
from os.path import lexists

from holdfast.errors import CorruptMetadataError
from holdfast.storage.audit import Checked, Finding, Role
from holdfast.storage.faults import explained
from holdfast.storage.metadata import (
    LARGEST_METADATA,
    LEGACY_RECORD,
    describe,
    describe_by_name,
    read_legacy_record,
    sidecar_name,
)
from holdfast.storage.names import may_be_artifact, parse
from holdfast.storage.protocols import Entry
from holdfast.storage.publishing import SIDECAR_GRACE, sweep
from holdfast.storage.threads import WorkerThreads

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["audit_directory", "find_broken", "find_leftovers", "find_misfits", "repair_directory", "role_of"]

logger = logging.getLogger(__name__)

_THREADS = WorkerThreads(4, name="holdfast-audit")
_STEP = 16
_CHUNK = 1_000_000
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# Times of access are times of use, which an audit is not. Only a file's owner may leave them as they are.
_UNSEEN = getattr(os, "O_NOATIME", 0)


async def audit_directory(folder: str, now: float) -> AsyncIterator[Checked]:
    """Look at everything in *folder*, and read every content to its end."""
    with explained(f"check {folder}"):
        directory = await _THREADS.run(_Directory, folder, now)
        names = await _THREADS.run(directory.names)
        for first in range(0, len(names), _STEP):
            for checked in await _THREADS.run(directory.examine_all, names[first : first + _STEP]):
                yield checked


async def find_leftovers(folder: str, now: float) -> list[Finding]:
    """Return what crashes left behind in *folder*, and contents never completed, without reading a content."""
    with explained(f"check {folder}"):
        directory = await _THREADS.run(_Directory, folder, now)
        traces = [name for name in await _THREADS.run(directory.names) if role_of(name) == "trace"]
        found = [*await _THREADS.run(directory.examine_all, traces), *await _THREADS.run(directory.misfits)]
    return [
        finding
        for checked in found
        for finding in checked.findings
        if finding.fixable and finding.kind in ("leftover", "incomplete")
    ]


async def find_misfits(folder: str, now: float) -> list[Checked]:
    """Return entries of another size than their sidecars say, which a storage neither lists nor retrieves."""
    with explained(f"check {folder}"):
        return await _THREADS.run((await _THREADS.run(_Directory, folder, now)).misfits)


async def find_broken(folder: str, reference: str) -> Entry | None:
    """Return what a storage does not show but deletes when it is named, as far as its name tells; None if not there."""
    with explained(f"inspect {reference}"):
        return await _THREADS.run(_broken, folder, reference)


async def repair_directory(folder: str, findings: Iterable[Finding], now: float) -> list[Finding]:
    """Mend what is fixable of *findings*, as far as it is still so, and return those that remain."""
    with explained(f"repair {folder}"):
        directory = await _THREADS.run(_Directory, folder, now)
        return await _THREADS.run(directory.repair, tuple(findings))


def role_of(name: str) -> Role:
    """Say what a file is by its name."""
    if may_be_artifact(name) and parse(name) is not None:
        return "entry"
    return "trace" if name == LEGACY_RECORD or _belongs_to(name) else "neighbour"


class _Directory:
    """A directory under audit at one moment. Every method blocks."""

    def __init__(self, folder: str, now: float) -> None:
        self._path = os.path.abspath(folder)
        self._now = now

    def names(self) -> list[str]:
        return sorted(os.listdir(self._path))

    def examine_all(self, names: Sequence[str]) -> list[Checked]:
        return [checked for name in names if (checked := self._examine(name)) is not None]

    def misfits(self) -> list[Checked]:
        names = self.names()
        there = frozenset(names)
        described = (name for name in names if sidecar_name(name) in there and role_of(name) == "entry")
        return [checked for name in described if (checked := self._misfit(name)) is not None]

    def repair(self, findings: Sequence[Finding]) -> list[Finding]:
        if any(finding.kind == "leftover" for finding in findings):
            sweep(self._path, self._now)
        for finding in findings:
            if finding.fixable and finding.kind != "leftover" and self._still_finds(finding):
                self._mend(finding)
        return [finding for finding in findings if self._still_finds(finding)]

    def _still_finds(self, finding: Finding) -> bool:
        checked = self._examine(finding.name)
        return checked is not None and finding in checked.findings

    def _mend(self, finding: Finding) -> None:
        """Let a type come from the extension, or remove what is incomplete, the content first as every deleter does."""
        beside = sidecar_name(finding.name)
        try:
            for name in (finding.name, beside) if finding.kind == "incomplete" else (beside,):
                os.unlink(self._at(name))
        except OSError as error:
            logger.warning("cannot mend %s in %s: %s", finding.name, self._path, error.strerror)

    def _examine(self, name: str) -> Checked | None:
        """Look at one file; None if it is gone."""
        try:
            status = os.lstat(self._at(name))
        except FileNotFoundError:
            return None
        role: Role = role_of(name) if stat.S_ISREG(status.st_mode) else "neighbour"
        findings = tuple(self._findings(name, role, status))
        # What is wrong with a file that somebody deletes meanwhile is of no interest.
        if findings and not lexists(self._at(name)):
            return None
        return Checked(name, role, status.st_size, findings)

    def _findings(self, name: str, role: Role, status: os.stat_result) -> Iterator[Finding]:
        if role == "entry":
            yield from self._about_description(name, status)
            yield from self._about_content(name)
        elif role == "trace":
            yield from self._about_trace(name, status)

    def _misfit(self, name: str) -> Checked | None:
        try:
            status = os.lstat(self._at(name))
            about = describe(name, self._sidecar_of(name), self._legacy_types, folder=self._path)
        except (OSError, CorruptMetadataError):
            return None
        if not stat.S_ISREG(status.st_mode) or about.size in (None, status.st_size):
            return None
        return Checked(name, "entry", status.st_size, (self._of_wrong_size(name, status, about.size or 0),))

    def _about_description(self, name: str, status: os.stat_result) -> Iterator[Finding]:
        try:
            sidecar = self._sidecar_of(name)
            about = describe(name, sidecar, self._legacy_types, folder=self._path)
        except OSError as error:
            yield Finding(name, "unreadable", f"its sidecar cannot be read: {error.strerror}")
        except CorruptMetadataError:
            yield self._damaged(name)
        else:
            if about.size not in (None, status.st_size):
                yield self._of_wrong_size(name, status, about.size or 0)
            if sidecar is None and self._is_of_unknown_type(name):
                yield Finding(name, "unknown type", f"nothing tells its type; it is read as {about.content_type}")

    def _is_of_unknown_type(self, name: str) -> bool:
        parsed = parse(name)
        return parsed is not None and parsed.content_type is None and name not in self._legacy_types()

    def _damaged(self, name: str) -> Finding:
        by_name, beside = describe_by_name(name), self._at(sidecar_name(name))
        if not _is_regular(beside):
            return Finding(name, "unknown type", f"only {LEGACY_RECORD} tells its type, and that is damaged")
        what = f"its sidecar is damaged, so it cannot be retrieved; without it, it is {by_name.content_type}"
        return Finding(name, "damaged", what, fixable=self._is_settled(os.lstat(beside)))

    def _of_wrong_size(self, name: str, status: os.stat_result, expected: int) -> Finding:
        what = f"it has {status.st_size:,} bytes, and its sidecar says {expected:,}"
        if status.st_size > expected:
            return Finding(name, "damaged", f"{what}, so it cannot be retrieved; `holdfast store rm` removes it")
        return Finding(name, "incomplete", what, fixable=self._is_settled(status))

    def _about_content(self, name: str) -> Iterator[Finding]:
        try:
            _read_through(self._at(name))
        except OSError as error:
            yield Finding(name, "unreadable", f"it cannot be read: {error.strerror}")

    def _about_trace(self, name: str, status: os.stat_result) -> Iterator[Finding]:
        if name == LEGACY_RECORD:
            yield from self._about_legacy_record()
        elif name.endswith(".part") and _is_abandoned(self._at(name)):
            yield Finding(name, "leftover", "the writer of this part died", fixable=True)
        elif name.endswith(".meta") and self._is_orphaned(_belongs_to(name), status):
            yield Finding(name, "leftover", "the content that this describes is gone", fixable=True)

    def _is_orphaned(self, artifact: str, status: os.stat_result) -> bool:
        # In this order: a part becomes the content in one step, so what is neither now is not being written.
        paths = (self._at(f".{artifact}.part"), self._at(artifact))
        return self._is_settled(status) and not any(map(lexists, paths))

    def _about_legacy_record(self) -> Iterator[Finding]:
        try:
            self._legacy_types()
        except CorruptMetadataError:
            what = "it is damaged; restore it from a backup, or remove it to have types taken from file extensions"
            yield Finding(LEGACY_RECORD, "damaged", what)

    def _is_settled(self, status: os.stat_result) -> bool:
        """Say whether nobody has written to a file for so long that nobody will."""
        return self._now - status.st_mtime > SIDECAR_GRACE

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name)

    def _legacy_types(self) -> dict[str, str]:
        if isinstance(self._legacy_record, CorruptMetadataError):
            raise self._legacy_record
        return self._legacy_record

    @cached_property
    def _legacy_record(self) -> dict[str, str] | CorruptMetadataError:
        try:
            raw = self._content_of(LEGACY_RECORD)
            return {} if raw is None else read_legacy_record(raw, self._at(LEGACY_RECORD))
        except CorruptMetadataError as error:
            return error
        except OSError as error:
            return CorruptMetadataError(f"{LEGACY_RECORD} cannot be read: {error.strerror}")

    def _sidecar_of(self, name: str) -> bytes | None:
        return self._content_of(sidecar_name(name))

    def _content_of(self, name: str) -> bytes | None:
        """Read a regular file; whatever else has its name counts as absent, as for a storage."""
        try:
            if not _is_regular(self._at(name)):
                return None
            with open(self._at(name), "rb", opener=_open_unseen) as file:
                return file.read(LARGEST_METADATA)
        except FileNotFoundError:
            return None


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _broken(folder: str, reference: str) -> Entry | None:
    parent, name = os.path.split(reference)
    here = {os.path.normpath(folder), os.path.abspath(folder), os.path.realpath(folder)}
    path = os.path.join(folder, name)
    if role_of(name) != "entry" or (parent and os.path.normpath(parent) not in here) or not _is_regular(path):
        return None
    about = describe_by_name(name)
    return Entry(path, about.key, about.content_type, os.lstat(path).st_size, about.stored_at, about.stored_at)


def _belongs_to(name: str) -> str:
    """Return the artifact that a hidden file is a trace of, or nothing."""
    for suffix in (".part", ".meta"):
        artifact = name[1:].removesuffix(suffix)
        if name.startswith(".") and name.endswith(suffix) and parse(artifact) is not None:
            return artifact
    return ""


def _open_unseen(path: str, _: int) -> int:
    try:
        return os.open(path, _OPEN | _UNSEEN)
    except PermissionError:
        return os.open(path, _OPEN)


def _read_through(path: str) -> None:
    with open(path, "rb", buffering=0, opener=_open_unseen) as file:
        while file.read(_CHUNK):
            pass


def _is_abandoned(part: str) -> bool:
    """Say whether nobody holds a part. Where that cannot be told, it counts as held.

    A writer that created its part in this very moment meets our lock, takes another name, and leaves the part.
    """
    try:
        with open(part, "rb", opener=_open_unseen) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return os.path.samestat(os.lstat(part), os.fstat(file.fileno()))
    except OSError:
        return False
