"""Where a store is: a directory, or a bucket and a prefix of S3."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from holdfast.cli.terminal import each, failures_told, tracked, warnings_told
from holdfast.errors import InvalidValueError, StorageError
from holdfast.storage import Entry, FileStorage, S3Storage
from holdfast.storage.audit import Checked, Finding
from holdfast.storage.audit_files import (
    audit_directory,
    find_broken,
    find_leftovers,
    find_misfits,
    repair_directory,
)

__all__ = ["DirectoryLocation", "Location", "S3Location", "StoreCommand", "StoreGroup", "entries_at", "parse_location"]

_SCHEME = "s3://"
_EXPECTED = "LOCATION is a directory or s3://bucket/prefix"
_AT_ONCE = 256
_HOST = re.compile(r"[A-Za-z0-9._:-]+")


@dataclass(frozen=True, slots=True)
class DirectoryLocation:
    """A directory of a FileStorage."""

    path: str

    def __str__(self) -> str:
        return self.path

    def open(self) -> FileStorage:
        """Return its storage. A directory that is not there is an error, and is not made."""
        if wrong := _what_is_wrong_with(self.path):
            raise StorageError(f"{self.path} {wrong}; {_EXPECTED}")
        return FileStorage(self.path)

    def audit(self, now: float) -> AsyncIterator[Checked]:
        """Look for what is wrong."""
        return audit_directory(self.path, now)

    async def leftovers(self, now: float) -> list[Finding]:
        """Return what crashes left behind."""
        return await find_leftovers(self.path, now)

    async def misfits(self, now: float) -> list[Checked]:
        """Return entries that are not of the size they were stored with."""
        return await find_misfits(self.path, now)

    async def broken(self, reference: str) -> Entry | None:
        """Return an entry that only a deletion still finds."""
        return await find_broken(self.path, reference)

    async def repair(self, findings: Sequence[Finding], now: float) -> list[Finding]:
        """Mend what can be mended, and return what remains."""
        return await repair_directory(self.path, findings, now)


@dataclass(frozen=True, slots=True)
class S3Location:
    """A bucket and prefix of an S3Storage."""

    bucket: str
    prefix: str
    endpoint_url: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}/{self.prefix}"

    def open(self) -> S3Storage:
        """Return its storage. Nothing is asked of S3 yet."""
        return S3Storage(self.bucket, self.prefix, region_name=self.region, endpoint_url=self.endpoint_url)

    def audit(self, now: float) -> AsyncIterator[Checked]:
        """Look for what is wrong."""
        from holdfast.storage.audit_s3 import audit_bucket

        return audit_bucket(self.bucket, self.prefix, region_name=self.region, endpoint_url=self.endpoint_url)

    async def leftovers(self, now: float) -> list[Finding]:
        """Return nothing: an object appears whole or not at all."""
        return []

    async def misfits(self, now: float) -> list[Checked]:
        """Return nothing: an object has the size that S3 says."""
        return []

    async def broken(self, reference: str) -> Entry | None:
        """Return nothing: S3 shows what it can delete."""
        return None

    async def repair(self, findings: Sequence[Finding], now: float) -> list[Finding]:
        """Return all: nothing of them can be mended without writing contents anew."""
        return list(findings)


Location = DirectoryLocation | S3Location


def parse_location(text: str, endpoint_url: str | None = None, region: str | None = None) -> Location:
    """Read a LOCATION as it was typed."""
    if not text:
        raise InvalidValueError(f"{_EXPECTED}, got ''")
    if not text.startswith(_SCHEME):
        return DirectoryLocation(text)
    if endpoint_url is not None and not _has_a_host(endpoint_url):
        raise InvalidValueError(f"--endpoint-url looks like http://host:port, got {endpoint_url!r}")
    bucket, _, prefix = text[len(_SCHEME) :].partition("/")
    return S3Location(bucket, prefix, endpoint_url, region)


def entries_at(location: Location, doing: str, *, quietly: bool = False) -> Iterator[Entry]:
    """Yield what is stored, and meanwhile show on a terminal how much was found, unless *quietly*."""
    entries = each(location.open().entries(), at_once=_AT_ONCE)
    return entries if quietly else tracked(entries, doing)


class StoreCommand(click.Command):
    """A command on one LOCATION, which its function takes as `location`. Errors of holdfast become one line."""

    def __init__(self, name: str | None, *, params: list[click.Parameter] | None = None, **options: Any) -> None:
        super().__init__(name, params=[_where(), *(params or []), _endpoint(), _region()], **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        where, endpoint_url, region = (ctx.params.pop(name) for name in ("where", "endpoint_url", "region"))
        with failures_told(), warnings_told():
            ctx.params["location"] = parse_location(where, endpoint_url, region)
            return super().invoke(ctx)


class StoreGroup(click.Group):
    """Commands that each work on one LOCATION."""

    command_class = StoreCommand


def _what_is_wrong_with(path: str) -> str:
    try:
        return "" if stat.S_ISDIR(os.stat(path).st_mode) else "is not a directory"
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return f"cannot be reached: {error.strerror}"


def _has_a_host(url: str) -> bool:
    try:
        return _HOST.fullmatch(urlsplit(url).hostname or "") is not None
    except ValueError:
        return False


def _where() -> click.Parameter:
    return click.Argument(["where"], metavar="LOCATION")


def _endpoint() -> click.Parameter:
    return click.Option(
        ["--endpoint-url"], metavar="URL", help="An S3 server other than Amazon's, as http://host:port."
    )


def _region() -> click.Parameter:
    variables = ["AWS_REGION", "AWS_DEFAULT_REGION"]
    return click.Option(["--region"], envvar=variables, show_envvar=True, help="The region of the S3 bucket.")
