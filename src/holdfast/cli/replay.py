"""``holdfast replay`` and ``holdfast recommend``: recorded conversations under other policies."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click
import yaml

from holdfast.cli.outputs import check_places, write_text
from holdfast.cli.replay_progress import Reading
from holdfast.cli.replay_tables import print_candidates, print_policies
from holdfast.cli.terminal import complain, failures_told, say
from holdfast.errors import HoldfastError, InvalidValueError
from holdfast.recordings import FORMATS, Unreadable
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
    check_places([*files, *map(Path, names)], html, None if str(data) == "-" else data)
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
    check_places(files, save)
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
        write_text(save, "\n".join([*lines, ""]))
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
    with Reading(files, form) as reading:
        for result in running.all(reading.recordings()):
            reading.done(result)
            results.append(result)
    if not any(isinstance(result, Replayed) for result in results):
        raise InvalidValueError("no recording could be replayed")
    return results, running


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


def _write(report: Report, html: Path | None, data: Path | None) -> None:
    if data is not None:
        # Names may hold what no encoding has, and what a terminal obeys: in ASCII, neither does harm.
        text = json.dumps(report)
        if str(data) == "-":
            click.echo(text)
        else:
            write_text(data, text)
    if html is not None:
        write_text(html, page_of(report))


def _as_yaml(policy: Policy) -> list[str]:
    if policy.config is None:
        return ["{}  # no manager at all"]
    text: str = yaml.safe_dump(dict(policy.config), sort_keys=False)
    return text.rstrip().splitlines()
