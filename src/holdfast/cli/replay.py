"""``holdfast replay`` and ``holdfast recommend``: recorded conversations under other policies."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click
import yaml
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

from holdfast.cli.replay_tables import print_candidates, print_policies
from holdfast.cli.terminal import complain, failures_told, printable, say
from holdfast.errors import HoldfastError, InvalidValueError
from holdfast.recordings import FORMATS, Recording, Unreadable, read_recordings, size_of
from holdfast.recordings.sources import Source, sources
from holdfast.replay import (
    GRID,
    Policy,
    Prices,
    Replay,
    Replayed,
    Report,
    Result,
    policies_from,
    prices_from,
    recommended,
    report_of,
)
from holdfast.replay.page import page_of
from holdfast.replay.policies import BUILT_IN, NONE
from holdfast.replay.prices import DEFAULT, PRICES

__all__ = ["recommend", "replay"]

_MOST_LINES = 10


class _PricesType(click.ParamType):  # type: ignore[type-arg]
    """A model whose prices are known, or prices of one's own."""

    name = "prices"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Prices:
        """Return the prices."""
        if isinstance(value, Prices):
            return value
        try:
            return prices_from(_own_prices(str(value)) if "=" in str(value) else str(value))
        except HoldfastError as error:
            self.fail(str(error), param, ctx)


def _own_prices(text: str) -> dict[str, float]:
    pairs = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(amount) for name, _, amount in pairs}
    except ValueError:
        raise InvalidValueError(
            "own prices are dollars for a million tokens, such as input=2,cache_read=0.2,cache_write=2.5, "
            f"got {text!r:.80}"
        ) from None


_FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
_COMMON = (
    _FILES,
    click.option(
        "--window",
        type=click.IntRange(min=1_000),
        default=100_000,
        show_default=True,
        help="Tokens that the model takes.",
    ),
    click.option(
        "--format", "form", type=click.Choice(FORMATS), help="What the files hold. By default it is found out."
    ),
    click.option(
        "--prices",
        type=_PricesType(),
        default=DEFAULT,
        show_default=True,
        help=f"Whose prices: {', '.join(PRICES)}; or your own, as input=2,cache_read=0.2,cache_write=2.5,output=10.",
    ),
    click.option(
        "--exact", is_flag=True, help="Count tokens (o200k) instead of estimating them; needs holdfast[tokenizer]."
    ),
    click.option(
        "--jobs", "-j", type=click.IntRange(min=1), help="How many processes to use. By default one for each core."
    ),
)


def _with_common(command: Any) -> Any:
    for option in reversed(_COMMON):
        command = option(command)
    return command


@click.command()
@_with_common
@click.option(
    "--policy",
    "-p",
    "names",
    multiple=True,
    default=(NONE, "auto"),
    show_default=True,
    help=f"{', '.join(BUILT_IN)}, or a YAML or JSON file of a ContextManager's options. Name several to compare them.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with pictures here.")
@click.option(
    "--json", "data", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here; - prints them."
)
def replay(names: Sequence[str], html: Path | None, data: Path | None, files: Sequence[Path], **options: Any) -> None:
    """Live recorded conversations through again under one or several policies, and say what came of it.

    FILE is JSON or JSONL, also gzipped, or a folder: messages of OpenAI, Anthropic or Converse, sessions of Strands,
    session files of Claude Code. No model is called, and nothing is written but what --html and --json name.
    """
    _check_places([*files, *map(Path, names)], html, None if str(data) == "-" else data)
    with failures_told():
        results, replayed = _replayed(files, policies_from(tuple(names)), **options)
        report = report_of(results, replayed, options["prices"], made=date.today().isoformat())
    tell = complain if str(data) == "-" else say
    if tell is say:
        print_policies(report)
    for line in _early_ends(results):
        complain(line)
    _write(report, html, data)
    if html is not None:
        tell(f"the page: {html}")
    sys.exit(bool(report["unreadable"]))


@click.command()
@_with_common
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the policy here, as YAML.")
def recommend(save: Path | None, files: Sequence[Path], prices: Prices, **options: Any) -> None:
    """Try a small grid of policies on recorded conversations; name the cheapest that loses nothing.

    It loses nothing if no request is above the window, and all values that the agent used again were in the window or
    one look-up away. The figures of all policies are shown, the cheapest first.
    """
    _check_places(files, save)
    with failures_told():
        results, _ = _replayed(files, GRID, prices=prices, **options)
        found = recommended([result for result in results if isinstance(result, Replayed)], GRID, prices)
    print_candidates(found)
    for line in () if found.chosen.fits else _early_ends(results, found.chosen.policy.name):
        complain(line)
    say(f"{found.chosen.policy.name}: {found.why}", bold=True)
    lines = _as_yaml(found.chosen.policy)
    for line in lines:
        say(f"  {line}")
    if save is not None:
        _write_text(save, "\n".join([*lines, ""]))
        say(f"saved: {save}; compare it with others by: holdfast replay … --policy {save}")
    sys.exit(any(isinstance(result, Unreadable) for result in results))


def _replayed(
    files: Sequence[Path],
    policies: tuple[Policy, ...],
    *,
    window: int,
    form: str | None,
    exact: bool,
    jobs: int | None,
    prices: Prices,
) -> tuple[list[Result], Replay]:
    """Return what became of all recordings. What cannot be read is told at once. ``-`` is the standard input."""
    files = [Path("/dev/stdin") if str(file) == "-" else file for file in files]
    running = Replay(policies=policies, window=window, exact=exact, workers=jobs or os.cpu_count() or 1)
    results: list[Result] = []
    with _Reading(files, form) as reading:
        for result in running.all(reading.recordings()):
            reading.done(result)
            results.append(result)
    if not any(isinstance(result, Replayed) for result in results):
        raise InvalidValueError("no recording could be replayed")
    return results, running


class _Reading:
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

    def __enter__(self) -> _Reading:
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
        if self._faults[unreadable.file] <= _MOST_LINES:
            complain(f"Error: {unreadable}")

    def _tell_of_more(self) -> None:
        for file, count in self._faults.items():
            if count > _MOST_LINES:
                complain(f"Error: {file}: and {count - _MOST_LINES:,} more")

    def _count(self, read: int) -> None:
        self._read += read


def _early_ends(results: Sequence[Result], policy: str | None = None) -> list[str]:
    """Return a line for each run that ended early, under one policy or any, and why; of many, for the first."""
    outcomes = [(each.name, outcome) for each in results if isinstance(each, Replayed) for outcome in each.outcomes]
    lines = [
        f"Warning: {name} under {outcome.policy} ended early, at request {len(outcome.requests) + 1}: {outcome.failure}"
        for name, outcome in outcomes
        if outcome.failure and policy in (None, outcome.policy)
    ]
    more = [f"Warning: and {len(lines) - _MOST_LINES:,} more"] if len(lines) > _MOST_LINES else []
    return lines[:_MOST_LINES] + more


def _check_places(files: Sequence[Path], *places: Path | None) -> None:
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


def _write(report: Report, html: Path | None, data: Path | None) -> None:
    if data is not None:
        # Names may hold what no encoding has, and what a terminal obeys: in ASCII, neither does harm.
        text = json.dumps(report)
        if str(data) == "-":
            click.echo(text)
        else:
            _write_text(data, text)
    if html is not None:
        _write_text(html, page_of(report))


def _write_text(path: Path, text: str) -> None:
    try:
        # Names may hold what no encoding has; they are shown as they can be.
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise click.ClickException(printable(f"{path} cannot be written: {error.strerror or error}")) from None


def _as_yaml(policy: Policy) -> list[str]:
    if policy.config is None:
        return ["{}  # no manager at all"]
    text: str = yaml.safe_dump(dict(policy.config), sort_keys=False)
    return text.rstrip().splitlines()
