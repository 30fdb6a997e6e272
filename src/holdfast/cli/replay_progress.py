"""How far a replay has come, shown on a terminal, and what could not be read on the way."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from holdfast.cli.terminal import complain
from holdfast.recordings import Recording, Unreadable, read_recordings, size_of
from holdfast.replay import Result

__all__ = ["Reading"]

_MOST_FAULTS = 10


class Reading:
    """Reads recordings, and shows on a terminal how far they are lived through: by the bytes of their files."""

    def __init__(self, files: Sequence[Path], form: str | None) -> None:
        self._files = files
        self._form = form
        self._read = 0
        self._reached: list[int] = []
        self._faults: Counter[str] = Counter()
        console = Console(stderr=True)
        columns = (
            SpinnerColumn(),
            TextColumn("replaying"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[recordings]}"),
        )
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, *times, console=console, transient=True, disable=not sys.stderr.isatty())
        self._task = self._progress.add_task("", total=max(size_of(files), 1), recordings="")
        self._done = 0

    def __enter__(self) -> Reading:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        self._tell_of_more()

    def recordings(self) -> Iterator[Recording | Unreadable]:
        """Yield what is in the files, and remember how far each is from their beginning."""
        for recording in read_recordings(self._files, format=self._form, on_read=self._count):
            self._reached.append(self._read)
            yield recording

    def done(self, result: Result) -> None:
        """Take in that the next one is done with. Of a file with very many faults, the first are told."""
        if isinstance(result, Unreadable):
            self._tell(result)
        self._done += 1
        reached = self._reached[self._done - 1]
        self._progress.update(self._task, completed=reached, recordings=f"{self._done:,} done")

    def _tell(self, unreadable: Unreadable) -> None:
        self._faults[unreadable.file] += 1
        if self._faults[unreadable.file] <= _MOST_FAULTS:
            complain(f"Error: {unreadable}")

    def _tell_of_more(self) -> None:
        for file, count in self._faults.items():
            if count > _MOST_FAULTS:
                complain(f"Error: {file}: and {count - _MOST_FAULTS:,} more")

    def _count(self, read: int) -> None:
        self._read += read
