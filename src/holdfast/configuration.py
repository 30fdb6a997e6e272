"""What users write to configure a manager, plain data or typed options, made into the parts that it composes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeAlias, TypedDict

from holdfast.archive import Archive
from holdfast.checks import check_flag
from holdfast.compression import CompressionConfig, ContextCompression, Summarize, Truncate, compressor_from
from holdfast.compression.config import METHODS
from holdfast.compression.options import with_options
from holdfast.defaults import METHOD
from holdfast.dialects import dialect_named
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.eviction import EvictingStorage
from holdfast.hold import Hold
from holdfast.names import Names
from holdfast.offload import ContextOffloader, OffloadRules
from holdfast.storage import FileStorage, InMemoryStorage, S3Storage, Storage
from holdfast.tokens import TokenEstimator, estimate_text
from holdfast.turns import Turn

__all__ = [
    "CompressionChoice",
    "OffloaderChoice",
    "StorageChoice",
    "StorageOptions",
    "archive_for",
    "compression_from",
    "hold_for",
    "known",
    "offloader_from",
    "storage_from",
]

CompressionChoice: TypeAlias = CompressionConfig | ContextCompression | None
OffloaderChoice: TypeAlias = bool | Mapping[str, Any] | OffloadRules | ContextOffloader | None

_WHEN = ("proactive", "low_water", "marker_tokens", "on_reduction")
_OF_OFFLOADER = (*(rule.name for rule in fields(OffloadRules)), "include_retrieval_tool", "on_event")


class StorageOptions(TypedDict, total=False):
    """A storage as plain data. What is not of its *kind* is an error."""

    kind: str
    """``memory``, ``file`` or ``s3``."""
    evict_after_turns: int | None
    """Of memory: after how many turns without use it forgets; None for never."""
    artifact_dir: str
    """Of files: where they are."""
    fsync: bool
    """Of files: whether each survives a power failure."""
    bucket: str
    """Of S3."""
    prefix: str
    """Of S3."""
    region_name: str
    """Of S3."""
    endpoint_url: str
    """Of S3: a server other than Amazon's."""
    evict: Mapping[str, Any]
    """What keeps it within bounds: ``max_entries``, ``max_bytes``, ``ttl`` in seconds, ``turns``, ``chains``."""


StorageChoice: TypeAlias = Storage | str | os.PathLike[str] | StorageOptions | None

_KINDS: dict[str, tuple[Callable[..., Storage], tuple[str, ...]]] = {
    "memory": (InMemoryStorage, ("evict_after_turns",)),
    "file": (FileStorage, ("artifact_dir", "fsync")),
    "s3": (S3Storage, ("bucket", "prefix", "region_name", "endpoint_url")),
}
_BOUNDS = ("max_entries", "max_bytes", "ttl", "turns", "chains")


def compression_from(given: CompressionChoice, protect: Mapping[str, Any], **options: Any) -> ContextCompression | None:
    """Return the compression that *given* asks for, None for none. *protect* is what else is said of protection."""
    if given is None or given is False:
        return None
    if isinstance(given, ContextCompression):
        own = {name: options[name] for name in ("count_text", "names")}
        _refuse_beside("a ContextCompression of your own", {**protect, **own})
        return given
    when: dict[str, Any] = {}
    if isinstance(given, Mapping):
        given, when = _parted(given)
    return ContextCompression(_protecting(compressor_from(given), protect), **when, **options)


def offloader_from(given: OffloaderChoice, storage: StorageChoice, **options: Any) -> ContextOffloader | None:
    """Return the offloader that *given* asks for, None for none."""
    if given is None or given is False:
        return None
    if isinstance(given, ContextOffloader):
        own = {"offload_storage": storage, **{name: options[name] for name in ("count_text", "embedder", "names")}}
        _refuse_beside("a ContextOffloader of your own", own)
        return given
    if isinstance(given, OffloadRules):
        given = {rule.name: getattr(given, rule.name) for rule in fields(OffloadRules)}
    if given is True:
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            "offloader must be True, False, a mapping of options, OffloadRules(…) or ContextOffloader(…), "
            f"got {given!r:.80}"
        )
    return ContextOffloader(storage_from(storage), **known("offloader", given, _OF_OFFLOADER), **options)


def hold_for(
    offloader: ContextOffloader | None, wanted: Any, storage: StorageChoice, *, dialect: str | None, **options: Any
) -> Hold | None:
    """Return where what leaves is held: with the results that do, or by itself if none do; None if it is not wanted."""
    if offloader is not None:
        return offloader.hold
    if wanted is None or wanted is False:
        return None
    rules = OffloadRules()
    count_text, embedder = options["count_text"], options["embedder"]
    return Hold(
        storage_from(storage),
        estimator=TokenEstimator(count_text or estimate_text),
        turn=Turn(rules.limit_of_turn),
        answer_tokens=rules.limit_of_answer,
        timeout=rules.store_timeout,
        dialect=None if dialect is None else dialect_named(dialect),
        embedder=embedder,
        names=Names.from_options(options["names"]),
    )


def archive_for(compression: ContextCompression | None, hold: Hold | None, wanted: bool | None) -> Archive | None:
    """Return what stores messages before they leave, and have *compression* use it; None if it is not wanted."""
    if wanted is not None:
        check_flag("archive", wanted)
    if compression is None or hold is None or wanted is False:
        return None
    archive = Archive(hold)
    compression.archive = archive
    return archive


def storage_from(given: StorageChoice) -> Storage | None:
    """Return a storage for ``"memory"``, a directory, ``"s3://bucket/prefix"`` or a mapping; one made already as it is.

    None for None.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return _storage_at(given)
    if isinstance(given, Mapping):
        return _storage_of(given)
    if isinstance(given, type) or not isinstance(given, (Storage, os.PathLike)):
        got = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise InvalidTypeError(f"offload_storage must have store() and retrieve(), or be {_FORMS}, got {got}")
    return given if isinstance(given, Storage) else _made(given, FileStorage, given)


def known(what: str, given: Mapping[str, Any], allowed: Iterable[str]) -> dict[str, Any]:
    """Return the options given, or raise for one that is not *allowed*."""
    for name in given:
        if name not in allowed:
            raise InvalidValueError(f"unknown option {name!r:.80} of {what}: allowed are {', '.join(sorted(allowed))}")
    return dict(given)


def _parted(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Part the options of a method from those that say when it acts."""
    method = given.get("method", METHOD)
    options = METHODS.get(method) if isinstance(method, str) else None
    if options is not None:
        known(f"compression by {method!r}", given, ("method", *_WHEN, *(option.name for option in fields(options))))
    when = {name: given[name] for name in _WHEN if name in given}
    return {name: value for name, value in given.items() if name not in _WHEN}, when


def _protecting(compressor: Any, protect: Mapping[str, Any]) -> Any:
    """Return a compressor that keeps the task, unless it was told otherwise, and what *protect* names."""
    said = {name: value for name, value in protect.items() if value is not None}
    if not isinstance(compressor, (Truncate, Summarize)):
        _refuse_beside("a compressor of your own", said)
        return compressor
    for name, value in said.items():
        if getattr(compressor, name) is not None:
            raise InvalidValueError(f"{name} is given twice: {value!r:.80}, and in compression; leave one of them out")
    if compressor.protect is not None:
        if compressor.protection.task is None:
            said["protect"] = replace(compressor.protection, task=True)
    elif compressor.protect_task is None:
        said = {"protect_task": True} | said
    return with_options(compressor, **said)


def _refuse_beside(part: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidValueError(f"{name} has no effect beside {part}; give it to that instead")


_FORMS = "'memory', a directory, 's3://bucket/prefix', a mapping with kind, or a storage such as InMemoryStorage()"


def _storage_at(place: str) -> Storage:
    if place == "memory":
        return InMemoryStorage()
    if place.startswith("s3://"):
        bucket, _, prefix = place.removeprefix("s3://").partition("/")
        return _made(place, S3Storage, bucket, prefix)
    if not place or "://" in place:
        raise InvalidValueError(f"offload_storage must be {_FORMS}, got {place!r:.80}")
    if (kind := place.lower()) in _KINDS:
        raise InvalidValueError(
            f"offload_storage={place!r} could mean two things: write './{place}' for a directory of that name, "
            f"or a mapping with kind: {kind!r}"
        )
    return _made(place, FileStorage, place)


def _made(given: object, make: Callable[..., Storage], *options: Any) -> Storage:
    """Make a storage. What is wrong is told of offload_storage, as its own options were not named."""
    try:
        return make(*options)
    except InvalidValueError as error:
        raise InvalidValueError(f"offload_storage cannot be {given!r:.80}: {error}") from None


def _storage_of(given: Mapping[str, Any]) -> Storage:
    options = dict(given)
    kind, bounds = options.pop("kind", None), options.pop("evict", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        kinds = ", ".join(map(repr, _KINDS))
        raise InvalidValueError(f"the kind of offload_storage must be one of {kinds}, got {kind!r:.80}")
    make, allowed = _KINDS[kind]
    if kind == "s3" and "bucket" not in options:
        raise InvalidValueError("offload_storage of kind 's3' needs a bucket")
    storage = make(**known(f"offload_storage of kind {kind!r}", options, allowed))
    if bounds is None:
        return storage
    if not isinstance(bounds, Mapping):
        raise InvalidTypeError(f"evict must be a mapping of bounds, got {bounds!r:.80}")
    evicting = EvictingStorage(storage, **known("evict", bounds, _BOUNDS))
    if all(bound is None or bound is False for bound in bounds.values()):
        raise InvalidValueError(f"evict bounds nothing: name at least one of {', '.join(_BOUNDS)}")
    return evicting
