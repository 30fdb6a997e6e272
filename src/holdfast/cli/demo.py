"""The storage at work on large outputs, which are made on the spot from the Python that runs.

Every call of the storage has an event loop of its own: making outputs and printing would block it.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import sysconfig
import textwrap
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from holdfast import Entry, FileStorage, NotFoundError

__all__ = ["Sample", "samples", "tell"]

_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_NOT_PART_OF_IT = {"__pycache__", "dist-packages", "site-packages"}
_MARGIN = "   "


@dataclass(frozen=True, slots=True)
class Sample:
    """An output as a tool of an agent returns it."""

    key: str
    title: str
    content: bytes
    content_type: str


def samples() -> list[Sample]:
    """Make outputs that are too large for a prompt: structured, plain, source and binary."""
    modules = sorted(_STANDARD_LIBRARY.glob("*.py"))
    longest = max(modules, key=lambda module: module.stat().st_size)
    return [
        Sample("packages", "all packages", _package_list(), "application/json"),
        Sample("files", "stdlib files", _file_list(), "text/plain"),
        Sample("code", longest.name, longest.read_bytes(), "text/x-python"),
        Sample("modules", "zipped modules", _zipped(modules), "application/zip"),
    ]


def tell(console: Console, folder: Path) -> None:
    """Tell the story in *folder*. Raises ClickException if a content does not come back as it was."""
    _headline(console, 1, "Tools return more than a prompt should hold. Each output becomes a file in")
    console.print(f"{_MARGIN}{folder}", style="cyan", soft_wrap=True)
    stored = _tell_of_the_first_run(console, FileStorage(folder))
    _tell_of_the_second_run(console, FileStorage(folder), stored)


def _tell_of_the_first_run(console: Console, storage: FileStorage) -> list[tuple[Sample, str]]:
    stored = asyncio.run(_store(storage, samples()))
    _tell_of_storing(console, stored)
    (packages, packages_reference), (files, files_reference), *_ = stored
    _tell_of_retrieving(console, storage, packages, packages_reference)
    _tell_of_a_range(console, storage, files, files_reference)
    return stored


def _tell_of_the_second_run(console: Console, storage: FileStorage, stored: list[tuple[Sample, str]]) -> None:
    _headline(console, 4, "After a restart, a new FileStorage knows nothing but the directory")
    entries = asyncio.run(_entries(storage))
    _say(console, f"entries: {len(entries)}, {decimal(sum(entry.size for entry in entries))} in total")
    for sample, reference in stored:
        _tell_of_finding_again(console, storage, sample, reference)
    _tell_of_wrong_references(console, storage)


def _tell_of_storing(console: Console, stored: list[tuple[Sample, str]]) -> None:
    console.print(_table_of(stored))
    size = decimal(sum(len(sample.content) for sample, _ in stored))
    characters = sum(len(reference) for _, reference in stored)
    _say(console, f"{size} shrink to {len(stored)} references, {characters} characters in the prompt.")


def _tell_of_retrieving(console: Console, storage: FileStorage, sample: Sample, reference: str) -> None:
    _headline(console, 2, "A reference brings all of it back")
    _say(console, f"retrieve({reference!r})", style="cyan")
    content, content_type = asyncio.run(storage.retrieve(reference))
    _require_identical(sample.key, content, sample.content)
    _say(console, f"sha256 in   {sha256(sample.content).hexdigest()}")
    _say(console, f"sha256 out  {sha256(content).hexdigest()}")
    _say(console, f"identical: yes, {len(content):,} bytes of {content_type}", style="green")


def _tell_of_a_range(console: Console, storage: FileStorage, sample: Sample, reference: str) -> None:
    _headline(console, 3, "Or a part of it, without reading the rest")
    start, end = _lines_in_the_middle(sample.content)
    _say(console, f"retrieve_range({reference!r}, {start}, {end})", style="cyan")
    part = asyncio.run(storage.retrieve_range(reference, start, end))
    _require_identical(sample.key, part.content, sample.content[start:end])
    _say(console, part.content.decode(errors="replace"))
    span = f"bytes {part.start:,} to {part.end:,} of {part.total_size:,}"
    _say(console, f"identical: yes, {span}", style="green")


def _tell_of_finding_again(console: Console, storage: FileStorage, sample: Sample, reference: str) -> None:
    content, content_type = asyncio.run(storage.retrieve(reference))
    _require_identical(sample.key, (content, content_type), (sample.content, sample.content_type))
    _say(console, f"identical: yes, {sample.key}, still {content_type}", style="green")


def _tell_of_wrong_references(console: Console, storage: FileStorage) -> None:
    _headline(console, 5, "A wrong reference leads to nothing, and the error says why")
    for reference in ("../../etc/passwd", "1700000000000_1_never_stored.txt"):
        _say(console, f"retrieve({reference!r})", style="cyan")
        _say(console, _refusal(storage, reference), style="yellow")


async def _store(storage: FileStorage, outputs: Iterable[Sample]) -> list[tuple[Sample, str]]:
    return [(each, await storage.store(each.key, each.content, each.content_type)) for each in outputs]


async def _entries(storage: FileStorage) -> list[Entry]:
    return [entry async for entry in storage.entries()]


def _refusal(storage: FileStorage, reference: str) -> str:
    try:
        asyncio.run(storage.retrieve(reference))
    except NotFoundError as error:
        return str(error)
    raise click.ClickException(f"{reference} should lead to nothing, but it was found")


def _require_identical(key: str, retrieved: object, stored: object) -> None:
    if retrieved != stored:
        raise click.ClickException(f"identical: no, {key} came back changed")


def _headline(console: Console, number: int, text: str) -> None:
    console.print(f"\n{number}. {text}", style="bold")


def _say(console: Console, text: str, style: str = "") -> None:
    """Print with a margin, wrapped between words only: a broken reference leads nowhere."""
    wrapper = textwrap.TextWrapper(console.width, _MARGIN, _MARGIN, break_long_words=False, break_on_hyphens=False)
    for line in text.splitlines():
        console.print(wrapper.fill(line), style=style, soft_wrap=True)


def _table_of(stored: Iterable[tuple[Sample, str]]) -> Table:
    table = Table("output", "content type", box=SIMPLE_HEAD)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("reference (file name)", style="cyan", no_wrap=True)
    for each, reference in stored:
        table.add_row(each.title, each.content_type, decimal(len(each.content)), os.path.basename(reference))
    return table


def _lines_in_the_middle(content: bytes) -> tuple[int, int]:
    start = content.index(b"\n", len(content) // 2) + 1
    return start, start + sum(map(len, content[start:].splitlines(keepends=True)[:5]))


def _package_list() -> bytes:
    return json.dumps([_package(package) for package in distributions()], indent=1, default=str).encode()


def _package(package: Distribution) -> dict[str, object]:
    files = [{"path": str(file), "size": file.size} for file in package.files or ()]
    return {**package.metadata.json, "files": files}


def _file_list() -> bytes:
    return "".join(f"{size:>10,}  {path}\n" for path, size in _files_and_sizes()).encode()


def _files_and_sizes() -> Iterator[tuple[Path, int]]:
    for folder, subfolders, names in os.walk(_STANDARD_LIBRARY):
        subfolders[:] = sorted(set(subfolders) - _NOT_PART_OF_IT)
        for path in (Path(folder, name) for name in sorted(names)):
            yield path.relative_to(_STANDARD_LIBRARY), path.lstat().st_size


def _zipped(files: Iterable[Path]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in files:
            archive.write(file, file.name)
    return target.getvalue()
