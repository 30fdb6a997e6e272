"""``holdfast store``: look into a store, take from it, and keep it tidy, while agents go on using it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain

import click

from holdfast.cli.contents import ByteRange, for_a_terminal, parts_of
from holdfast.cli.listing import ORDERS, Amount, amounts, columns, in_order, usage
from holdfast.cli.locations import Location, StoreGroup, entries_at
from holdfast.cli.removal import remove_all
from holdfast.cli.terminal import complain, each, say
from holdfast.cli.upkeep import check, gc, lifecycle
from holdfast.storage import Entry

__all__ = ["store"]

_WIDEST_ON_A_TERMINAL = 28


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

    References are printed whole, however wide the terminal is.
    """
    entries = entries_at(location, "listing", quietly=order == "none")
    chosen = iter(in_order(entries, order, backwards=backwards, limit=limit))
    if (first := next(chosen, None)) is None:
        complain(f"nothing is stored in {location}")
        return
    chosen = chain([first], chosen)
    widest = _WIDEST_ON_A_TERMINAL if sys.stdout.isatty() else None
    for line in map(_as_json, chosen) if as_json else columns(chosen, time.time(), widest=widest):
        say(line)


@store.command()
@click.argument("reference")
@click.option("--range", "offsets", type=ByteRange(), metavar="START-END", help="Only these bytes, END not included.")
@click.option("--force", is_flag=True, help="Write to a terminal whatever it is.")
def cat(location: Location, reference: str, offsets: tuple[int, int] | None, force: bool) -> None:
    """Write the content behind REFERENCE to the standard output, byte for byte.

    REFERENCE is what `ls` prints. This counts as a use.
    """
    parts = each(parts_of(location.open(), reference, *(offsets or (0, sys.maxsize))))
    guarded = sys.stdout.isatty() and not force
    for part in for_a_terminal(parts) if guarded else parts:
        click.echo(part.content, nl=False)


@store.command()
@click.argument("references", nargs=-1, required=True, metavar="REFERENCE...")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
def rm(location: Location, references: Sequence[str], dry_run: bool) -> None:
    """Delete the contents behind REFERENCES, and say what was freed.

    A reference that leads to nothing is reported, and the others are removed all the same.
    """
    freed, failed = Amount(), False
    for removed in each(remove_all(location.open(), dict.fromkeys(references), dry_run=dry_run)):
        if removed.entry is None:
            failed = True
            complain(f"Error: {removed.failure}")
        else:
            freed.add(removed.entry.size)
            say(f"{'would remove' if dry_run else 'removed'} {removed.entry.reference}")
    say(f"{'would free' if dry_run else 'freed'} {freed}")
    sys.exit(failed)


@store.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with exact sizes.")
def du(location: Location, as_json: bool) -> None:
    """Say how much is stored at LOCATION: in total, by content type and by age."""
    found = usage(entries_at(location, "counting"), time.time())
    if as_json:
        say(json.dumps(asdict(found)))
        return
    say(str(found.total), bold=True)
    for title, named in (("by type", found.by_type), ("by age", found.by_age)):
        say("")
        say(title, bold=True)
        for line in amounts(named.items()):
            say(f"  {line}")


for _command in (check, gc, lifecycle):
    store.add_command(_command)


def _as_json(entry: Entry) -> str:
    return json.dumps(asdict(entry))
