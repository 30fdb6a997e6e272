"""Audits of what lies under a prefix of an S3 bucket. Needs boto3."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from holdfast.storage.audit import Checked, Finding
from holdfast.storage.checks import is_content_type
from holdfast.storage.names import may_be_artifact
from holdfast.storage.s3_bucket import Bucket, Found, make_client
from holdfast.storage.s3_errors import explained
from holdfast.storage.s3_metadata import key_in
from holdfast.storage.threads import WorkerThreads

__all__ = ["audit_bucket"]

_AT_ONCE = 32
_THREADS = WorkerThreads(_AT_ONCE, name="holdfast-audit-s3")
_OURS = "holdfast-"
_KEY = "holdfast-key"
_TYPE_OF_THE_UNTYPED = "binary/octet-stream"


async def audit_bucket(
    bucket: str,
    prefix: str = "",
    *,
    boto_session: Any = None,
    region_name: str | None = None,
    endpoint_url: str | None = None,
) -> AsyncIterator[Checked]:
    """Look at every object directly under *prefix*, and read the first byte of each that may be an entry.

    Nothing of it is fixable: an object appears whole or not at all, so there is nothing that only a crash leaves.
    """
    prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    objects = Bucket(bucket, partial(make_client, boto_session, None, region_name, endpoint_url, connections=_AT_ONCE))
    examine = partial(_examine, objects, f"s3://{bucket}/", prefix)
    with explained(f"check s3://{bucket}/{prefix}"):
        pages = objects.pages(prefix)
        while (page := await _THREADS.run(next, pages, None)) is not None:
            for checked in await asyncio.gather(*(_THREADS.run(examine, key) for key in page)):
                if checked is not None:
                    yield checked


def _examine(bucket: Bucket, root: str, prefix: str, key: str) -> Checked | None:
    """Look at one object; None if it is gone."""
    name = root + key
    if not may_be_artifact(key[len(prefix) :]):
        return Checked(name, "neighbour")
    try:
        found = bucket.get_range(key, 0, 1)
    except ClientError as error:
        return Checked(name, "entry", findings=(Finding(name, "unreadable", f"S3 refuses it: {error}"),))
    return None if found is None else Checked(name, "entry", found.total_size, tuple(_findings(name, found)))


def _findings(name: str, found: Found) -> Iterator[Finding]:
    if not is_content_type(found.content_type) or found.content_type == _TYPE_OF_THE_UNTYPED:
        yield Finding(name, "unknown type", f"it was stored without a type; S3 says {found.content_type!r}")
    if found.metadata.get(_KEY) and key_in(found.metadata) is None:
        yield Finding(name, "damaged", f"its key cannot be read in its metadata {_KEY!r}")
    # An empty content is nothing odd, if holdfast was told to store one.
    if found.total_size == 0 and not any(field.startswith(_OURS) for field in found.metadata):
        yield Finding(name, "empty", "it has no content, and was not stored by holdfast")
