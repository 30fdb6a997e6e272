"""The commands of ``holdfast store`` that keep a store tidy."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict
from typing import Any

import click

from holdfast.cli.collecting import collect, plan, policies_for, report
from holdfast.cli.listing import Amount, aligned
from holdfast.cli.locations import Location, S3Location, StoreCommand, entries_at
from holdfast.cli.quantities import DURATION, SIZE
from holdfast.cli.terminal import complain, each, say, tracked
from holdfast.errors import InvalidValueError
from holdfast.storage.audit import Checked, Finding

__all__ = ["check", "gc", "lifecycle"]


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
    for line in _as_json(findings, remaining) if as_json else _as_text(looked_at, findings, remaining):
        say(line)
    sys.exit(bool(remaining))


@click.command(cls=StoreCommand)
@click.option("--max-age", type=DURATION, help="Delete what was stored longer ago: 90s, 15m, 12h, 7d, 2w, 1d12h.")
@click.option("--idle", type=DURATION, help="Delete what was neither stored nor read for so long.")
@click.option("--max-bytes", type=SIZE, help="Delete the least recently used beyond so much: 500KB, 2GB, 1.5GiB.")
@click.option("--max-entries", type=click.IntRange(min=1), help="Delete the least recently used beyond so many.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
def gc(location: Location, dry_run: bool, **limits: Any) -> None:
    """Delete what is too old, unused or too much, and what crashes left behind.

    At least one limit is needed. A tool call and what it led to leave together or not at all. What is used meanwhile
    stays. The exit code is 1 if something could not be deleted.
    """
    now, policies = time.time(), policies_for(**limits)
    if not policies:
        raise click.UsageError("name at least one limit: --max-age, --idle, --max-bytes or --max-entries")
    entries = list(entries_at(location, "listing"))
    departures = plan(entries, policies.values(), now)
    outcomes = each(collect(location.open(), departures, entries, dry_run=dry_run))
    collected = list(tracked(outcomes, "looking" if dry_run else "deleting", total=len(departures)))
    for line in report(entries, collected, policies, dry_run=dry_run):
        say(line)
    failures = [one.failure for one in collected if one.failure]
    failures += _sweep(location, now, dry_run=dry_run)
    for failure in failures:
        complain(f"Error: {failure}")
    sys.exit(bool(failures))


@click.command(cls=StoreCommand)
@click.option("--max-age", type=DURATION, required=True, help="How long to keep, rounded up to whole days.")
@click.option("--install", is_flag=True, help="Put the rule into the bucket's configuration. Other rules stay.")
def lifecycle(location: Location, max_age: float, install: bool) -> None:
    """Print the rule by which S3 itself deletes old objects, or install it.

    It needs no process of yours to run, and knows nothing of reads and of chains. LOCATION needs a prefix.
    """
    if not isinstance(location, S3Location):
        raise InvalidValueError(f"only S3 has lifecycle rules; for a directory, run: holdfast store gc {location}")
    storage = location.open()
    rule = storage.lifecycle_rule(max_age)
    if install:
        asyncio.run(storage.install_lifecycle_rule(max_age))
        complain(f"installed in the bucket {location.bucket}:")
    for line in json.dumps(rule, indent=2).splitlines():
        say(line)


def _sweep(location: Location, now: float, *, dry_run: bool) -> Iterator[str]:
    """Remove what crashes left behind and say so; yield what resists."""
    leftovers = asyncio.run(location.leftovers(now))
    remaining = [] if dry_run else asyncio.run(location.repair(leftovers, now))
    if swept := len(leftovers) - len(remaining):
        say(f"{'would remove' if dry_run else 'removed'} {_count(swept, 'leftover')} of crashes")
    return (f"cannot remove {finding.name}: {finding.what}" for finding in remaining)


def _as_json(findings: Sequence[Finding], remaining: Set[Finding]) -> Iterator[str]:
    return (json.dumps({**asdict(finding), "fixed": finding not in remaining}) for finding in findings)


def _as_text(looked_at: Sequence[Checked], findings: Sequence[Finding], remaining: Set[Finding]) -> Iterator[str]:
    yield from aligned((_state(finding, remaining), finding.kind, finding.name, finding.what) for finding in findings)
    entries = Amount()
    for checked in looked_at:
        if checked.role == "entry":
            entries.add(checked.size)
    neighbours = sum(checked.role == "neighbour" for checked in looked_at)
    aside = f", and left {_count(neighbours, 'neighbour')} alone" if neighbours else ""
    yield f"checked {entries}{aside}: {_verdict(findings, remaining)}"


def _verdict(findings: Sequence[Finding], remaining: Set[Finding]) -> str:
    fixable = sum(finding.fixable for finding in remaining)
    parts = (
        f"{_count(len(findings), 'finding')}" if findings else "nothing is wrong",
        f"{len(findings) - len(remaining)} fixed" if len(findings) > len(remaining) else "",
        f"{fixable} can be mended by --fix" if fixable else "",
    )
    return ", ".join(filter(None, parts))


def _state(finding: Finding, remaining: Set[Finding]) -> str:
    if finding not in remaining:
        return "fixed"
    return "fixable" if finding.fixable else "-"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
