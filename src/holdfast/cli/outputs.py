"""Files that commands write: nothing that is read is written over, and what cannot be written is told in time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from holdfast.cli.terminal import printable
from holdfast.recordings.sources import Source, sources

__all__ = ["check_places", "write_text"]


def check_places(files: Sequence[Path], *places: Path | None) -> None:
    """Refuse a place that nothing can be written to, or that is read from, before the work, not after it."""
    given = [place for place in places if place is not None]
    for place in given:
        if reason := _why_not(place, files, given):
            raise click.UsageError(printable(f"{place} cannot be written: {reason}"))


def _why_not(place: Path, files: Sequence[Path], places: Sequence[Path]) -> str:
    if str(place) == "-":
        return "only --json prints to the standard output"
    if not place.absolute().parent.is_dir():
        return f"there is no folder {place.parent}"
    if len([other for other in places if os.path.realpath(other) == os.path.realpath(place)]) > 1:
        return "another option names it, too"
    return "it is read from" if _is_among(place, files) else ""


def _is_among(place: Path, files: Sequence[Path]) -> bool:
    """Say whether a file is one of those that are given, or in a folder that is."""
    if not place.exists():
        return False
    found = (source for source in sources(map(str, files)) if isinstance(source, Source))
    return any(os.path.samefile(place, path) for source in found for path in source.logged or (source.name,))


def write_text(path: Path, text: str) -> None:
    """Write a file, or end the command with a line that says why not."""
    try:
        # Names may hold what no encoding has; they are shown as they can be.
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.ClickException(printable(f"{path} cannot be written: {error.strerror or error}")) from None
