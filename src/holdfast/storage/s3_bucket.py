"""One S3 bucket, reached by blocking calls. Needs boto3, so it is imported with the first S3Storage."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.utils import determine_content_length

from holdfast.storage.s3_errors import is_missing, is_past_the_end, is_taken

__all__ = ["Bucket", "Found", "make_client"]

_WRITE_MARK = "holdfast-write"
_SMALL_BODY = 1_000_000
_LARGEST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Found:
    """An object, or a part of it, as S3 answered."""

    content: bytes
    content_type: str
    total_size: int
    metadata: Mapping[str, str]


def make_client(
    session: boto3.Session | None,
    config: Config | None,
    region_name: str | None,
    endpoint_url: str | None,
    *,
    connections: int,
) -> Any:
    """Build a boto3 client. What *config* says wins; else boto3 waits less and tries fewer times than by default."""
    defaults = Config(
        max_pool_connections=connections,
        connect_timeout=10,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    agent = " ".join(filter(None, (getattr(config, "user_agent_extra", None), "holdfast")))
    merged = defaults.merge(config or Config()).merge(Config(user_agent_extra=agent))
    session = session or boto3.Session(region_name=region_name)
    client = session.client("s3", config=merged, endpoint_url=endpoint_url)
    client.meta.events.register_last("before-call.s3", _send_small_bodies_at_once)
    return client


def _send_small_bodies_at_once(params: dict[str, Any], **_: Any) -> None:
    """Do without botocore's ``Expect: 100-continue``, a round trip that only pays when a large body is refused."""
    if (determine_content_length(params["body"]) or 0) <= _SMALL_BODY:
        params["headers"].pop("Expect", None)


class _ForkSafeLock:
    """A lock that a forked process gets anew, in case a thread of its parent held it."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.Lock()


_MAKING_CLIENTS = _ForkSafeLock()


class Bucket:
    """Safe in many threads and after a fork. Raises botocore's errors; None and False stand for plain answers."""

    def __init__(self, name: str, make_client: Callable[[], Any]) -> None:
        self._name = name
        self._make_client = make_client
        self._client_of_process: tuple[int, Any] | None = None

    def put_new(self, key: str, content: bytes, content_type: str, metadata: Mapping[str, str]) -> bool:
        """Upload unless the key is in use; False if it is."""
        mark = os.urandom(8).hex()
        try:
            self._client.put_object(
                Bucket=self._name,
                Key=key,
                Body=content,
                ContentType=content_type,
                Metadata={**metadata, _WRITE_MARK: mark},
                IfNoneMatch="*",
            )
        except ClientError as error:
            if not is_taken(error):
                raise
            return self._was_written_by(mark, key)
        return True

    def get(self, key: str) -> Found | None:
        """Download an object."""
        return self._found(lambda: self._client.get_object(Bucket=self._name, Key=key))

    def get_range(self, key: str, start: int, end: int) -> Found | None:
        """Download bytes *start* up to *end*; fewer, or none, if the object is shorter."""
        end = min(end, _LARGEST_OFFSET)
        if start >= end:
            return self.head(key)
        ask = partial(self._client.get_object, Bucket=self._name, Key=key, Range=f"bytes={start}-{end - 1}")
        try:
            found = self._found(ask)
        except ClientError as error:
            if not is_past_the_end(error):
                raise
            return self.head(key)
        # A server may answer a range with the whole, which is then cut here.
        if found is not None and len(found.content) == found.total_size:
            return replace(found, content=found.content[start:end])
        return found

    def head(self, key: str) -> Found | None:
        """Ask for an object without its content."""
        return self._found(lambda: self._client.head_object(Bucket=self._name, Key=key))

    def delete(self, key: str) -> None:
        """Remove an object. Quiet if there is none."""
        self._client.delete_object(Bucket=self._name, Key=key)

    def delete_many(self, keys: Sequence[str]) -> None:
        """Remove up to 1,000 objects in one request."""
        answer = self._client.delete_objects(
            Bucket=self._name, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        for failure in answer.get("Errors", ()):
            raise ClientError({"Error": failure}, "DeleteObjects")

    def pages(self, prefix: str) -> Iterator[list[str]]:
        """Yield the keys directly under *prefix*, up to 1,000 at a time."""
        paginator = self._client.get_paginator("list_objects_v2")
        for page in paginator.paginate(Bucket=self._name, Prefix=prefix, Delimiter="/"):
            yield [item["Key"] for item in page.get("Contents", ())]

    @property
    def _client(self) -> Any:
        """The client of this process: after a fork, its connections belong to the parent."""
        with _MAKING_CLIENTS.lock:
            if self._client_of_process is None or self._client_of_process[0] != os.getpid():
                self._client_of_process = (os.getpid(), self._make_client())
            return self._client_of_process[1]

    def _found(self, ask: Callable[[], dict[str, Any]]) -> Found | None:
        try:
            answer = ask()
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        content = answer["Body"].read() if "Body" in answer else b""
        return Found(content, answer.get("ContentType", ""), _total_size(answer), answer.get("Metadata", {}))

    def _was_written_by(self, mark: str, key: str) -> bool:
        """Say whether an upload that met a used key met itself: S3 had taken it, and the answer was lost."""
        found = self.head(key)
        return found is not None and found.metadata.get(_WRITE_MARK) == mark


def _total_size(answer: Mapping[str, Any]) -> int:
    total = answer.get("ContentRange", "").rpartition("/")[2]
    return int(total) if total.isdigit() else int(answer["ContentLength"])
