"""The commands of ``holdfast store`` that keep a store tidy."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict
from typing import Any

import click

from holdfast.cli.collecting import Collected, collect, plan, policies_for, report
from holdfast.cli.listing import Amount, aligned
from holdfast.cli.locations import Location, S3Location, StoreCommand, entries_at
from holdfast.cli.quantities import DURATION, SIZE, duration_text
from holdfast.cli.terminal import complain, each, say, tracked
from holdfast.errors import InvalidValueError
from holdfast.storage.audit import Checked, Finding

__all__ = ["check", "gc", "lifecycle"]

# What a shell says of a program that Ctrl-C ended.
_INTERRUPTED = 130
_A_WEEK = 604_800.0


@click.command(cls=StoreCommand)
@click.option("--fix", is_flag=True, help="Mend what can be mended without losing a whole content.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each finding, and no summary.")
def check(location: Location, fix: bool, as_json: bool) -> None:
    """Look for what is damaged or left behind at LOCATION.

    Every content of a directory is read, and the first byte of an S3 object. That is no use, and nothing changes
    without --fix. With it, leftovers of crashes are removed, and contents that were never completed; damaged
    descriptions are dropped, so that types come from file extensions. The exit code is 1 if findings remain.
    """
    location.open()
    now = time.time()
    looked_at = list(tracked(each(location.audit(now)), "checking"))
    findings = [finding for checked in looked_at for finding in checked.findings]
    remaining = set(asyncio.run(location.repair(findings, now)) if fix else findings)
    for line in _as_json(findings, remaining) if as_json else _as_text(looked_at, findings, remaining, fix=fix):
        say(line)
    sys.exit(bool(remaining))


@click.command(cls=StoreCommand)
@click.option("--max-age", type=DURATION, help="Delete what was stored longer ago: 90s, 15m, 12h, 7d, 2w, 1d12h.")
@click.option(
    "--idle",
    type=DURATION,
    help="Delete what was neither stored nor read for so long; on S3, only reads that were written down count.",
)
@click.option("--max-bytes", type=SIZE, help="Delete the least recently used beyond so much: 500K, 2GB, 1.5GiB.")
@click.option("--max-entries", type=click.IntRange(min=1), help="Delete the least recently used beyond so many.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
def gc(location: Location, dry_run: bool, **limits: Any) -> None:
    """Delete what is too old, unused or too much, and what crashes left behind.

    At least one limit is needed. A tool call and what it led to leave together or not at all. What is used meanwhile
    stays. S3 keeps no time of use: there, --idle and the order of --max-bytes and --max-entries know only the uses that
    an EvictingStorage or `cat` wrote down. The exit code is 1 if something could not be deleted, 130 after Ctrl-C.
    """
    now, policies = time.time(), policies_for(**limits)
    if not policies:
        raise click.UsageError("name at least one limit: --max-age, --idle, --max-bytes or --max-entries")
    entries = list(entries_at(location, "listing"))
    departures = plan(entries, policies.values(), now)
    collected: list[Collected] = []
    outcomes = each(collect(location.open(), departures, entries, collected, dry_run=dry_run))
    finished = _finishes(tracked(outcomes, "looking" if dry_run else "deleting", total=len(departures)))
    for line in report(entries, collected, policies, dry_run=dry_run):
        say(line)
    failures = [one.failure for one in collected if one.failure]
    failures += _sweep(location, now, dry_run=dry_run) if finished else ["interrupted; the next run goes on"]
    for failure in failures:
        complain(f"Error: {failure}")
    sys.exit(bool(failures) if finished else _INTERRUPTED)


@click.command(cls=StoreCommand)
@click.option("--max-age", type=DURATION, help="How long to keep, rounded up to whole days.")
@click.option("--install", is_flag=True, help="Put the rule into the bucket's configuration. Other rules stay.")
@click.option("--remove", is_flag=True, help="Take the rule out of the bucket's configuration again.")
def lifecycle(location: Location, max_age: float | None, install: bool, remove: bool) -> None:
    """Print the rule by which S3 itself deletes old objects, install it, or remove it.

    It needs no process of yours to run, and knows nothing of reads and of chains. LOCATION needs a prefix.
    """
    if (max_age is None) != remove or (install and remove):
        raise click.UsageError("name --max-age, with or without --install; or --remove alone")
    bucket = _with_a_prefix(location, max_age)
    storage = bucket.open()
    if max_age is None:
        asyncio.run(storage.remove_lifecycle_rule())
        say(f"no rule of holdfast for {location} is in the bucket {bucket.bucket} any more")
        return
    rule = storage.lifecycle_rule(max_age)
    if install:
        asyncio.run(storage.install_lifecycle_rule(max_age))
        complain(f"installed in the bucket {bucket.bucket}:")
    for line in json.dumps(rule, indent=2).splitlines():
        say(line)


def _with_a_prefix(location: Location, max_age: float | None) -> S3Location:
    if not isinstance(location, S3Location):
        command = f"holdfast store gc {shlex.quote(str(location))} --max-age {duration_text(max_age or _A_WEEK)}"
        raise InvalidValueError(f"only S3 has lifecycle rules; for a directory, run now and then: {command}")
    if not location.prefix.strip("/"):
        raise InvalidValueError(
            f"a rule for {location} would be one for every object in the bucket; "
            f"name a LOCATION with a prefix, such as s3://{location.bucket}/agents"
        )
    return location


def _finishes(work: Iterable[object]) -> bool:
    """Do all of it, and say whether nobody interrupted that."""
    try:
        deque(work, maxlen=0)
    except KeyboardInterrupt:
        return False
    return True


def _sweep(location: Location, now: float, *, dry_run: bool) -> Iterator[str]:
    """Remove what crashes left behind and say so; yield what resists."""
    leftovers = asyncio.run(location.leftovers(now))
    remaining = [] if dry_run else asyncio.run(location.repair(leftovers, now))
    if swept := len(leftovers) - len(remaining):
        say(f"{'would remove' if dry_run else 'removed'} {_count(swept, 'leftover')} of crashes")
    return (f"cannot remove {finding.name}: {finding.what}" for finding in remaining)


def _as_json(findings: Sequence[Finding], remaining: Set[Finding]) -> Iterator[str]:
    return (json.dumps({**asdict(finding), "fixed": finding not in remaining}) for finding in findings)


def _as_text(
    looked_at: Sequence[Checked], findings: Sequence[Finding], remaining: Set[Finding], *, fix: bool
) -> Iterator[str]:
    yield from aligned(
        (_state(finding, remaining, fix=fix), finding.kind, finding.name, finding.what) for finding in findings
    )
    entries = Amount()
    for checked in looked_at:
        if checked.role == "entry":
            entries.add(checked.size)
    neighbours = sum(checked.role == "neighbour" for checked in looked_at)
    aside = f", and left {_count(neighbours, 'neighbour')} alone" if neighbours else ""
    yield f"checked {entries}{aside}: {_verdict(findings, remaining, fix=fix)}"


def _verdict(findings: Sequence[Finding], remaining: Set[Finding], *, fix: bool) -> str:
    fixable = sum(finding.fixable for finding in remaining)
    parts = (
        f"{_count(len(findings), 'finding')}" if findings else "nothing is wrong",
        f"{len(findings) - len(remaining)} fixed" if len(findings) > len(remaining) else "",
        f"{fixable} {'could not be mended now' if fix else 'can be mended by --fix'}" if fixable else "",
    )
    return ", ".join(filter(None, parts))


def _state(finding: Finding, remaining: Set[Finding], *, fix: bool) -> str:
    if finding not in remaining:
        return "fixed"
    return ("resists" if fix else "fixable") if finding.fixable else "-"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
