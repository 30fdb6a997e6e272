"""Contents kept as objects in an S3 bucket."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from holdfast.errors import InvalidTypeError, InvalidValueError, NotFoundError, StorageError
from holdfast.extras import require_extra
from holdfast.storage.checks import check_range, check_reference, check_store, check_touch
from holdfast.storage.names import may_be_artifact, parse_stem, safe_key
from holdfast.storage.protocols import Entry, Part
from holdfast.storage.s3_lifecycle import expiry_rule, rule_id, with_rule, without_rule
from holdfast.storage.s3_metadata import key_in, metadata_for, use_in, with_use
from holdfast.storage.threads import WorkerThreads

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

    from holdfast.storage.s3_bucket import Bucket, Found

__all__ = ["S3Storage"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_AT_ONCE = 32
_THREADS = WorkerThreads(_AT_ONCE, name="holdfast-s3")
_NAMES_TO_TRY = 1_000
_USES_REMEMBERED = 10_000
_TOUCHES_TO_TRY = 3
_LARGEST_COPY = 5 * 1024**3
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


class S3Storage:
    """Keeps contents as objects ``<prefix>/<ms>_<n>_<key>``, for any number of processes at once.

    The object's own Content-Type is the content type. S3 keeps no time of last use: `entries` tells the latest use
    that this instance remembers or that a `touch` wrote down, else the time of storing. If the network fails during
    an upload, `store` raises although the object may have arrived; it is then listed, but nobody holds its reference.
    """

    notes_uses = False

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
        for name, text in (("prefix", prefix), ("region_name", region_name), ("endpoint_url", endpoint_url)):
            if not isinstance(text, str) and (text is not None or name == "prefix"):
                raise InvalidTypeError(f"{name} must be a string, got {text!r:.80}")
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
        self._locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()

    @property
    def clock(self) -> Callable[[], float]:
        """Where times come from: seconds since the epoch."""
        return self._clock

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Upload an object and return ``s3://<bucket>/<prefix>/<ms>_<n>_<key>``."""
        check_store(key, content, content_type)
        for number in itertools.islice(self._numbers, _NAMES_TO_TRY):
            object_key = f"{self._prefix}{int(self._clock() * 1000)}_{number}_{safe_key(key)}"
            bucket = await self._bucket()
            if await self._call("store", bucket.put_new, object_key, content, content_type, metadata_for(key)):
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

    async def inspect(self, reference: str) -> Entry:
        """Return what is known of one object, under its URI. Costs one HEAD."""
        object_key = self._key_in(reference)
        answer = await self._call("inspect", (await self._bucket()).head, object_key)
        return self._entry(object_key, _must_be_there(reference, answer))

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Write down a use, and another content type, by copying the object onto itself: a HEAD and a COPY.

        Costs what an upload costs, moves the object's LastModified, and makes a new version in a versioned bucket.
        If two processes touch one object in the same moment, what the later one writes stays.
        """
        check_touch(used_at, content_type)
        with suppress(NotFoundError):
            object_key = self._key_in(reference)
            bucket = await self._bucket()
            async with self._held(object_key):
                await self._call("touch", self._touch, bucket, object_key, used_at, content_type)
            self._remember(object_key, used_at)

    async def delete(self, reference: str) -> None:
        """Remove one object. Quiet if there is none, or none of this bucket and prefix."""
        with suppress(NotFoundError):
            object_key = self._key_in(reference)
            bucket = await self._bucket()
            async with self._held(object_key):
                await self._call("delete", bucket.delete, object_key)

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
            async with self._held(*object_keys):
                await self._call("clear", delete_many, object_keys)

    def lifecycle_rule(self, seconds: float) -> dict[str, Any]:
        """Return the rule by which S3 expires what was not written for *seconds*, rounded up to whole days.

        A touch writes; a retrieve does not. The rule covers all objects whose keys begin with the prefix, so also
        what lies deeper than this storage looks. A storage without a prefix has none.
        """
        return expiry_rule(self._prefix, seconds)

    async def install_lifecycle_rule(self, seconds: float) -> None:
        """Put `lifecycle_rule` into the bucket's configuration, in place of an earlier one. Other rules stay.

        S3 replaces a configuration as a whole, so whoever else changes it in the same moment may be overwritten: for
        a deployment, not for every process.
        """
        rule = self.lifecycle_rule(seconds)
        bucket = await self._bucket()
        await self._call("install a lifecycle rule", bucket.change_lifecycle, lambda rules: with_rule(rules, rule))

    async def remove_lifecycle_rule(self) -> None:
        """Take this prefix's rule out of the bucket's configuration. Quiet if it has none."""
        ours = rule_id(self._prefix)
        bucket = await self._bucket()
        await self._call("remove a lifecycle rule", bucket.change_lifecycle, lambda rules: without_rule(rules, ours))

    @property
    def _where(self) -> str:
        return f"s3://{self._name}/{self._prefix}"

    async def _bucket(self) -> Bucket:
        """Import boto3 in a thread, at the first call: it takes a fifth of a second."""
        if self._opened is None:
            opened = await _THREADS.run(self._open)
            # Of many first calls at once, all use the client of the first that is through.
            self._opened = self._opened or opened
        return self._opened

    def _open(self) -> Bucket:
        from holdfast.storage.s3_bucket import Bucket, make_client

        return Bucket(self._name, partial(make_client, *self._client_options, connections=_AT_ONCE))

    async def _call(self, verb: str, function: Callable[..., T], *args: Any) -> T:
        from holdfast.storage.s3_errors import explained

        with explained(f"{verb} in {self._where}"):
            return await _THREADS.run(function, *args)

    @asynccontextmanager
    async def _held(self, *object_keys: str) -> AsyncIterator[None]:
        """Let nobody else touch or delete these: a copy under way would bring a deleted object back."""
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            for object_key in object_keys:
                await stack.enter_async_context(self._locks.setdefault((loop, object_key), asyncio.Lock()))
            yield

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
        found = _must_be_there(reference, found)
        self._remember(object_key, self._clock())
        return found

    def _remember(self, object_key: str, used_at: float) -> None:
        self._uses[object_key] = max(used_at, self._uses.pop(object_key, 0.0))
        if len(self._uses) > _USES_REMEMBERED:
            self._uses.pop(next(iter(self._uses)), None)

    def _touch(self, bucket: Bucket, object_key: str, used_at: float, content_type: str | None) -> None:
        """Work on what is there now, and again if that changes meanwhile."""
        for _ in range(_TOUCHES_TO_TRY):
            found = bucket.head(object_key)
            if found is None or self._write_down(bucket, object_key, found, used_at, content_type):
                return

    def _write_down(
        self, bucket: Bucket, object_key: str, found: Found, used_at: float, content_type: str | None
    ) -> bool:
        noted = max(use_in(found.metadata), parse_stem(object_key[len(self._prefix) :])[0])
        if used_at <= noted and content_type in (None, found.content_type):
            return True
        if found.total_size > _LARGEST_COPY:
            logger.warning(
                "cannot write down a use of %s: S3 copies at most 5 GB at once, and it has %d bytes. Its use is "
                "remembered in this process only, and its content type stays",
                self._reference(object_key),
                found.total_size,
            )
            return True
        metadata = with_use(found.metadata, max(noted, used_at))
        return bucket.describe_anew(object_key, found, content_type or found.content_type, metadata)

    def _entry(self, object_key: str, found: Found) -> Entry:
        stored_at, key = parse_stem(object_key[len(self._prefix) :])
        return Entry(
            reference=self._reference(object_key),
            key=key_in(found.metadata) or key,
            content_type=found.content_type,
            size=found.total_size,
            stored_at=stored_at,
            last_used=max(self._uses.get(object_key, 0.0), use_in(found.metadata), stored_at),
        )


def _normal(prefix: str) -> str:
    segments = prefix.strip("/").split("/")
    if prefix.strip("/") and not {"", ".", ".."}.isdisjoint(segments):
        raise InvalidValueError(f"prefix must be a path without empty, '.' and '..' segments, got {prefix!r}")
    return f"{'/'.join(segments)}/" if prefix.strip("/") else ""


def _must_be_there(reference: str, found: Found | None) -> Found:
    if found is None:
        raise NotFoundError(reference, "no such object: never stored here, deleted or expired")
    return found
