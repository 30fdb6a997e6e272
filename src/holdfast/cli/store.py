"""``holdfast store``: look into a store, take from it, and keep it tidy, while agents go on using it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain

import click

from holdfast.cli.contents import ByteRange, for_a_terminal, parts_of
from holdfast.cli.listing import ORDERS, Amount, amounts, columns, in_order, usage
from holdfast.cli.locations import Location, StoreGroup, entries_at
from holdfast.cli.removal import departures_alone, departures_of, find_all, remove_all
from holdfast.cli.terminal import complain, each, prints_to_a_terminal, say
from holdfast.cli.upkeep import check, gc, lifecycle
from holdfast.errors import StorageError
from holdfast.eviction.inventory import Departure
from holdfast.storage import Entry, SupportsTouch

__all__ = ["store"]

_WIDEST_ON_A_TERMINAL = 28
_WIDEST_ELSEWHERE = 100


@click.group(cls=StoreGroup)
def store() -> None:
    """Look into a store and keep it tidy, also while agents use it.

    LOCATION is a directory or s3://bucket/prefix. Credentials and endpoint of S3 come from where the AWS command line
    finds them: AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL_S3 and the like.
    """


@store.command()
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(ORDERS)),
    default="stored",
    show_default=True,
    help="stored: the oldest first; used: the least recently used first; size: the largest first; none: as they come.",
)
@click.option("--reverse", "-r", "backwards", is_flag=True, help="The other way round.")
@click.option("--limit", "-n", type=click.IntRange(min=1), help="Show only the first so many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with exact times, sizes and types.")
def ls(location: Location, order: str, backwards: bool, limit: int | None, as_json: bool) -> None:
    """List what is stored at LOCATION, the oldest first.

    References are printed whole, however wide the terminal is; long keys and types are cut, except in --json.
    """
    if backwards and order == "none":
        raise click.UsageError("--reverse needs an order; --sort none has none")
    entries = entries_at(location, "listing", quietly=order == "none")
    chosen = iter(in_order(entries, order, backwards=backwards, limit=limit))
    if (first := next(chosen, None)) is None:
        complain(f"nothing is stored in {location}")
        return
    chosen = chain([first], chosen)
    widest = _WIDEST_ON_A_TERMINAL if prints_to_a_terminal() else _WIDEST_ELSEWHERE
    for line in map(_as_json, chosen) if as_json else columns(chosen, time.time(), widest=widest):
        say(line)


@store.command()
@click.argument("reference")
@click.option("--range", "offsets", type=ByteRange(), metavar="START-END", help="Only these bytes, END not included.")
@click.option("--force", is_flag=True, help="Write to a terminal whatever it is.")
def cat(location: Location, reference: str, offsets: tuple[int, int] | None, force: bool) -> None:
    """Write the content behind REFERENCE to the standard output, byte for byte.

    REFERENCE is what `ls` prints. This counts as a use, which S3 writes down by a copy of the object onto itself.
    """
    storage = location.open()
    parts = each(parts_of(storage, reference, *(offsets or (0, sys.maxsize))))
    guarded = prints_to_a_terminal() and not force
    for part in for_a_terminal(parts) if guarded else parts:
        click.echo(part.content, nl=False)
    if not storage.notes_uses:
        _write_down_a_use(storage, reference)


@store.command()
@click.argument("references", nargs=-1, required=True, metavar="REFERENCE...")
@click.option("--alone", is_flag=True, help="Leave the rest of the chain. Costs no listing of the store.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def rm(location: Location, references: Sequence[str], alone: bool, dry_run: bool) -> None:
    """Delete the contents behind REFERENCES, each with its chain, and say what was freed.

    A chain is a tool call and what it led to. A reference that leads to nothing is reported, and the others are
    removed all the same.
    """
    found = list(each(find_all(location, dict.fromkeys(references))))
    named = {entry.reference: entry for entry in found if isinstance(entry, Entry)}
    failures = [failure for failure in found if isinstance(failure, str)]
    freed, companions = Amount(), Amount()
    for removed in each(remove_all(location.open(), _departures(location, named, alone=alone), dry_run=dry_run)):
        failures += filter(None, [removed.failure])
        for eviction in removed.freed:
            freed.add(eviction.size)
            if eviction.reference not in named:
                companions.add(eviction.size)
            say(f"{'would remove' if dry_run else 'removed'} {eviction.reference}")
    aside = f", {companions.entries:,} of them as parts of chains" if companions.entries else ""
    for failure in failures:
        complain(f"Error: {failure}")
    say(f"{'would free' if dry_run else 'freed'} {freed}{aside}")
    sys.exit(bool(failures))


@store.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with exact sizes.")
def du(location: Location, as_json: bool) -> None:
    """Say how much is stored at LOCATION: in total, by content type and by age.

    Contents of another size than they were stored with are no entries, and have a line of their own.
    """
    now = time.time()
    found = usage(entries_at(location, "counting"), now)
    for misfit in asyncio.run(location.misfits(now)):
        found.wrong_size.add(misfit.size)
    if as_json:
        say(json.dumps(asdict(found)))
        return
    say(str(found.total), bold=True)
    if found.wrong_size.entries:
        say(f"and {found.wrong_size} of a wrong size; `holdfast store check` tells more")
    for title, named in (("by type", found.by_type), ("by age", found.by_age)):
        say("")
        say(title, bold=True)
        for line in amounts(named.items()):
            say(f"  {line}")


for _command in (check, gc, lifecycle):
    store.add_command(_command)


def _as_json(entry: Entry) -> str:
    return json.dumps(asdict(entry))


def _write_down_a_use(storage: SupportsTouch, reference: str) -> None:
    """Let a reading count, or say that it does not: what may only be read has been read all the same."""
    try:
        asyncio.run(storage.touch(reference, time.time()))
    except StorageError as error:
        complain(f"Warning: this does not count as a use: {error}")


def _departures(location: Location, named: Mapping[str, Entry], *, alone: bool) -> list[Departure]:
    now = time.time()
    if alone or not named:
        return departures_alone(named, now)
    return departures_of(named, entries_at(location, "listing"), now)
