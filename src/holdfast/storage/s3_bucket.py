"""One S3 bucket, reached by blocking calls. Needs boto3, so it is imported with the first S3Storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from holdfast.storage.checks import without_reserved
from holdfast.storage.s3_client import Clients, make_client
from holdfast.storage.s3_errors import has_no_lifecycle, is_missing, is_not_implemented, is_past_the_end, is_taken

__all__ = ["Bucket", "Found", "make_client"]

_WRITE_MARK = "holdfast-write"
_LARGEST_OFFSET = 2**63 - 1
# What a copy that replaces the metadata would lose, as far as S3 tells it.
_KEPT_IN_A_COPY = (
    "BucketKeyEnabled",
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "Expires",
    "SSEKMSKeyId",
    "ServerSideEncryption",
    "StorageClass",
    "WebsiteRedirectLocation",
)


@dataclass(frozen=True, slots=True)
class Found:
    """An object, or a part of it, as S3 answered."""

    content: bytes
    content_type: str
    total_size: int
    metadata: Mapping[str, str]
    etag: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)


class Bucket:
    """Safe in many threads and after a fork. Raises botocore's errors; None and False stand for plain answers."""

    def __init__(self, name: str, make_client: Callable[[], Any]) -> None:
        self._name = name
        self._clients = Clients(make_client)
        self._guards_copies = True

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

    def describe_anew(self, key: str, found: Found, content_type: str, metadata: Mapping[str, str]) -> bool:
        """Give an object another type and other metadata; False if it is no longer what was *found*.

        S3 changes neither in place, so the object is copied onto itself.
        """
        copy = partial(
            self._client.copy_object,
            Bucket=self._name,
            Key=key,
            CopySource={"Bucket": self._name, "Key": key},
            CopySourceIfMatch=found.etag,
            MetadataDirective="REPLACE",
            ContentType=content_type,
            Metadata=dict(metadata),
            **found.headers,
        )
        try:
            self._guarded(copy, found.etag)
        except ClientError as error:
            if not is_missing(error) and not is_taken(error):
                raise
            return False
        return True

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

    def change_lifecycle(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Set the bucket's rules to what *change* makes of them. They go back as they came, all in one request."""
        answer = self._lifecycle()
        rules = answer.get("Rules", [])
        changed = change(rules)
        if changed == rules:
            return
        if not changed:
            self._client.delete_bucket_lifecycle(Bucket=self._name)
            return
        kept = {name: answer[name] for name in ("TransitionDefaultMinimumObjectSize",) if name in answer}
        self._client.put_bucket_lifecycle_configuration(
            Bucket=self._name, LifecycleConfiguration={"Rules": changed}, **kept
        )

    def _lifecycle(self) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._client.get_bucket_lifecycle_configuration(Bucket=self._name)
        except ClientError as error:
            if not has_no_lifecycle(error):
                raise
            return {}
        return answer

    def _guarded(self, copy: Callable[..., Any], etag: str) -> None:
        """Copy only onto what has this etag, so that nothing deleted meanwhile comes back.

        An older botocore, and some servers, cannot do that; there, only the reading end of the copy is checked.
        """
        members = self._client.meta.service_model.operation_model("CopyObject").input_shape.members
        if not self._guards_copies or "IfMatch" not in members:
            copy()
            return
        try:
            copy(IfMatch=etag)
        except ClientError as error:
            if not is_not_implemented(error):
                raise
            self._guards_copies = False
            copy()

    @property
    def _client(self) -> Any:
        return self._clients.of_this_process()

    def _found(self, ask: Callable[[], dict[str, Any]]) -> Found | None:
        try:
            answer = ask()
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        content = answer["Body"].read() if "Body" in answer else b""
        metadata = answer.get("Metadata", {})
        content_type = answer.get("ContentType", "")
        return Found(
            content,
            # What another tool uploaded was not checked for what only wrappers may write.
            content_type if _WRITE_MARK in metadata else without_reserved(content_type),
            _total_size(answer),
            metadata,
            answer.get("ETag", ""),
            {name: answer[name] for name in _KEPT_IN_A_COPY if name in answer},
        )

    def _was_written_by(self, mark: str, key: str) -> bool:
        """Say whether an upload that met a used key met itself: S3 had taken it, and the answer was lost."""
        found = self.head(key)
        return found is not None and found.metadata.get(_WRITE_MARK) == mark


def _total_size(answer: Mapping[str, Any]) -> int:
    total = answer.get("ContentRange", "").rpartition("/")[2]
    return int(total) if total.isdigit() else int(answer["ContentLength"])
