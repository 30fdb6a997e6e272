"""Contents kept as objects in an S3 bucket."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

from holdfast.errors import InvalidValueError, NotFoundError, StorageError
from holdfast.extras import require_extra
from holdfast.storage.checks import check_range, check_reference, check_store
from holdfast.storage.names import may_be_artifact, parse_stem, safe_key
from holdfast.storage.protocols import Entry, Part
from holdfast.storage.threads import WorkerThreads

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

    from holdfast.storage.s3_bucket import Bucket, Found

__all__ = ["S3Storage"]

T = TypeVar("T")

_AT_ONCE = 32
_THREADS = WorkerThreads(_AT_ONCE, name="holdfast-s3")
_NAMES_TO_TRY = 1_000
_USES_REMEMBERED = 10_000
_LONGEST_KEY_METADATA = 1_024
_KEY = "holdfast-key"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


class S3Storage:
    """Keeps contents as objects ``<prefix>/<ms>_<n>_<key>``, for any number of processes at once.

    The object's own Content-Type is the content type. S3 keeps no time of last use: `entries` tells the uses that
    this instance remembers, else the time of storing. If the network fails during an upload, `store` raises although
    the object may have arrived; it is then listed, but nobody holds its reference.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        boto_session: boto3.Session | None = None,
        boto_client_config: Config | None = None,
        region_name: str | None = None,
        *,
        endpoint_url: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(bucket, str) or not _BUCKET.fullmatch(bucket):
            raise InvalidValueError(f"bucket must be the bare name of a bucket, such as 'my-agents', got {bucket!r}")
        if endpoint_url is not None and not endpoint_url.startswith(("http://", "https://")):
            raise InvalidValueError(f"endpoint_url must start with http:// or https://, got {endpoint_url!r}")
        require_extra("boto3", extra="s3")
        self._name = bucket
        self._prefix = _normal(prefix)
        self._client_options = (boto_session, boto_client_config, region_name, endpoint_url)
        self._opened: Bucket | None = None
        self._clock = clock
        self._numbers = itertools.count(1)
        self._uses: dict[str, float] = {}

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Upload an object and return ``s3://<bucket>/<prefix>/<ms>_<n>_<key>``."""
        check_store(key, content, content_type)
        metadata = {} if safe_key(key) == key else {_KEY: _in_ascii(key)}
        for number in itertools.islice(self._numbers, _NAMES_TO_TRY):
            object_key = f"{self._prefix}{int(self._clock() * 1000)}_{number}_{safe_key(key)}"
            bucket = await self._bucket()
            if await self._call("store", bucket.put_new, object_key, content, content_type, metadata):
                return self._reference(object_key)
        raise StorageError(f"cannot store in {self._where}: {_NAMES_TO_TRY} keys in a row were taken")

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type. A raw object key does as well."""
        object_key = self._key_in(reference)
        answer = await self._call("read", (await self._bucket()).get, object_key)
        found = self._used(reference, object_key, answer)
        return found.content, found.content_type

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Download a part of an object without the rest."""
        check_range(start, end)
        object_key = self._key_in(reference)
        answer = await self._call("read", (await self._bucket()).get_range, object_key, start, end)
        found = self._used(reference, object_key, answer)
        return Part(found.content, found.content_type, start, found.total_size)

    async def delete(self, reference: str) -> None:
        """Remove one object. Quiet if there is none, or none of this bucket and prefix."""
        try:
            object_key = self._key_in(reference)
        except NotFoundError:
            return
        await self._call("delete", (await self._bucket()).delete, object_key)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield an entry for every artifact directly under the prefix. Asks S3 once for each: types are not listed."""
        head = (await self._bucket()).head
        async for object_keys in self._pages():
            answers = await asyncio.gather(*(self._call("list", head, key) for key in object_keys))
            for object_key, found in zip(object_keys, answers, strict=True):
                if found is not None:
                    yield self._entry(object_key, found)

    async def clear(self) -> None:
        """Remove every artifact directly under the prefix. Other objects stay."""
        delete_many = (await self._bucket()).delete_many
        async for object_keys in self._pages():
            await self._call("clear", delete_many, object_keys)

    @property
    def _where(self) -> str:
        return f"s3://{self._name}/{self._prefix}"

    async def _bucket(self) -> Bucket:
        """Import boto3 in a thread, at the first call: it takes a fifth of a second."""
        if self._opened is None:
            self._opened = await _THREADS.run(self._open)
        return self._opened

    def _open(self) -> Bucket:
        from holdfast.storage.s3_bucket import Bucket, make_client

        return Bucket(self._name, partial(make_client, *self._client_options, connections=_AT_ONCE))

    async def _call(self, verb: str, function: Callable[..., T], *args: Any) -> T:
        from holdfast.storage.s3_errors import explained

        with explained(f"{verb} in {self._where}"):
            return await _THREADS.run(function, *args)

    async def _pages(self) -> AsyncIterator[list[str]]:
        pages = (await self._bucket()).pages(self._prefix)
        while (page := await self._call("list", next, pages, None)) is not None:
            if artifacts := [key for key in page if may_be_artifact(key[len(self._prefix) :])]:
                yield artifacts

    def _reference(self, object_key: str) -> str:
        return f"s3://{self._name}/{object_key}"

    def _key_in(self, reference: str) -> str:
        object_key = check_reference(reference)
        if reference.startswith("s3://"):
            bucket, _, object_key = reference[len("s3://") :].partition("/")
            if bucket != self._name:
                raise NotFoundError(reference, f"it is of another bucket than {self._name}")
        if not object_key.startswith(self._prefix):
            raise NotFoundError(reference, f"it is outside {self._where}, which is all this storage may read")
        if not may_be_artifact(object_key[len(self._prefix) :]):
            raise NotFoundError(reference, "nothing stored here is named so; pass exactly what store() returned")
        return object_key

    def _used(self, reference: str, object_key: str, found: Found | None) -> Found:
        if found is None:
            raise NotFoundError(reference, "no such object: never stored here, deleted or expired")
        self._uses.pop(object_key, None)
        self._uses[object_key] = self._clock()
        if len(self._uses) > _USES_REMEMBERED:
            self._uses.pop(next(iter(self._uses)), None)
        return found

    def _entry(self, object_key: str, found: Found) -> Entry:
        stored_at, key = parse_stem(object_key[len(self._prefix) :])
        return Entry(
            reference=self._reference(object_key),
            key=_from_ascii(found.metadata.get(_KEY, "")) or key,
            content_type=found.content_type,
            size=found.total_size,
            stored_at=stored_at,
            last_used=self._uses.get(object_key, stored_at),
        )


def _normal(prefix: str) -> str:
    segments = prefix.strip("/").split("/")
    if prefix.strip("/") and not {"", ".", ".."}.isdisjoint(segments):
        raise InvalidValueError(f"prefix must be a path without empty, '.' and '..' segments, got {prefix!r}")
    return f"{'/'.join(segments)}/" if prefix.strip("/") else ""


def _in_ascii(key: str) -> str:
    """Return *key* for a header, which is ASCII and short: of a very long key, the beginning."""
    while len(encoded := quote(key, safe="", errors="surrogatepass")) > _LONGEST_KEY_METADATA:
        key = key[: len(key) // 2]
    return encoded


def _from_ascii(encoded: str) -> str | None:
    try:
        return unquote(encoded, errors="surrogatepass")
    except UnicodeDecodeError:
        return None
