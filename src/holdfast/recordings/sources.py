"""Which files are read: those given, and in folders those whose names say so, and the logs of sessions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from stat import S_ISDIR, S_ISREG

from holdfast.errors import InvalidTypeError
from holdfast.recordings.values import Unreadable

__all__ = ["Given", "Source", "checked_paths", "disk_reason", "size_of", "sources"]

Given = Iterable["str | os.PathLike[str]"]

_ENDINGS = tuple(f"{ending}{packed}" for ending in (".json", ".jsonl", ".ndjson") for packed in ("", ".gz"))
_LOGGED = re.compile(r"message_([0-9]{1,18})\.json")
_LOG = "messages"
# Beside conversations, and none themselves: indexes, what describes a session, the states of Strands' graphs, and the
# requests by which Claude Code makes its summaries.
_BESIDE = re.compile(r"(sessions-index|session|agent|multi_agent|agent-.*\.meta)\.json|agent-acompact-.*\.jsonl")
_FOLDERS_BESIDE = {("snapshots", "immutable_history"), ("scopes", "multiAgent")}


@dataclass(frozen=True)
class Source:
    """One file; or a log of Strands, whose *logged* files hold one message each, in order. *size* is bytes on disk."""

    name: str
    size: int
    logged: tuple[str, ...] = ()

    @property
    def real_path(self) -> str:
        """By which it is known again; "" for what has no size, as a pipe."""
        return os.path.realpath(self.logged[0] if self.logged else self.name) if self.size else ""


def size_of(paths: Given) -> int:
    """Return the bytes on disk that `read_recordings` reads of *paths*. What cannot be read counts nothing."""
    return sum(source.size for source in sources(checked_paths(paths)) if isinstance(source, Source))


def checked_paths(paths: Given) -> list[str]:
    """Return the paths as texts. Refuses one path where several are asked for: its letters would pass for paths."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise InvalidTypeError(f"paths must be a list of paths, got one {type(paths).__name__}; write [path]")
    return [os.fsdecode(path) for path in paths]


def sources(paths: Iterable[str]) -> Iterator[Source | Unreadable]:
    """Yield what there is to read, in order: of a folder its files, then its folders, each by name.

    In a folder no symbolic link is followed. A path that is given may be one, or a pipe. What is given twice is read
    once.
    """
    seen: set[str] = set()
    for source in _all_sources(paths):
        real = source.real_path if isinstance(source, Source) else ""
        if real not in seen:
            yield source
        seen.update({real} - {""})


def _all_sources(paths: Iterable[str]) -> Iterator[Source | Unreadable]:
    for path in paths:
        try:
            found = os.stat(path)
        except (OSError, ValueError) as error:
            yield Unreadable(path, None, disk_reason(error))
            continue
        if S_ISDIR(found.st_mode):
            yield from _sources_in(path)
        else:
            yield Source(path, found.st_size if S_ISREG(found.st_mode) else 0)


def disk_reason(error: OSError | ValueError) -> str:
    """Return in words why the disk gave nothing. A ValueError's own words differ between Pythons."""
    told = "no file can have this name" if isinstance(error, ValueError) else error.strerror or str(error)
    return f"it cannot be read: {told[:1].lower()}{told[1:]}"


def _sources_in(path: str) -> Iterator[Source | Unreadable]:
    any_found, folders = False, [path]
    while folders:
        try:
            files, inner = _listed(folder := folders.pop())
        except (OSError, ValueError) as error:
            any_found = True
            yield Unreadable(folder, None, disk_reason(error))
            continue
        folders += reversed(inner)
        for source in _of_folder(folder, files):
            any_found = True
            yield source
    if not any_found:
        yield Unreadable(path, None, f"no {', '.join(_ENDINGS[::2])} or their .gz in it")


def _listed(folder: str) -> tuple[dict[str, int], list[str]]:
    """Return the files of a folder with their sizes, and its folders, both by name."""
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    files = {entry.name: entry.stat().st_size for entry in entries if entry.is_file(follow_symlinks=False)}
    inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    within = os.path.basename(os.path.abspath(folder))
    return files, [os.path.join(folder, name) for name in inner if (within, name) not in _FOLDERS_BESIDE]


def _of_folder(folder: str, files: dict[str, int]) -> Iterator[Source]:
    logged = sorted((int(match[1]), name) for name in files if (match := _LOGGED.fullmatch(name)))
    if logged:
        names = tuple(os.path.join(folder, name) for _, name in logged)
        yield Source(_agent_of(folder), sum(files[name] for _, name in logged), names)
    for name, size in files.items():
        if name.lower().endswith(_ENDINGS) and not _LOGGED.fullmatch(name) and not _BESIDE.fullmatch(name):
            yield Source(os.path.join(folder, name), size)


def _agent_of(folder: str) -> str:
    """Return the folder of the agent whose messages are in *folder*."""
    return os.path.dirname(folder) or os.curdir if os.path.basename(folder) == _LOG else folder
