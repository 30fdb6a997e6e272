"""What users write to configure a manager, plain data or typed options, made into the parts that it composes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeAlias, TypedDict

from holdfast.compression import CompressionConfig, ContextCompression, Summarize, Truncate, compressor_from
from holdfast.defaults import METHOD
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.eviction import EvictingStorage
from holdfast.offload import ContextOffloader, OffloadRules
from holdfast.storage import FileStorage, InMemoryStorage, S3Storage, Storage

__all__ = [
    "CompressionChoice",
    "OffloaderChoice",
    "StorageChoice",
    "StorageOptions",
    "compression_from",
    "known",
    "offloader_from",
    "storage_from",
]

CompressionChoice: TypeAlias = CompressionConfig | ContextCompression | None
OffloaderChoice: TypeAlias = bool | Mapping[str, Any] | OffloadRules | ContextOffloader | None

_WHEN = ("proactive", "low_water", "on_reduction")
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


StorageChoice: TypeAlias = Storage | str | StorageOptions | None

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
        _refuse_beside("a ContextCompression of your own", {**protect, **options})
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
        _refuse_beside("a ContextOffloader of your own", {"offload_storage": storage, **options})
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


def storage_from(given: StorageChoice) -> Storage | None:
    """Return a storage for ``"memory"``, a directory, ``"s3://bucket/prefix"`` or a mapping; one made already as it is.

    None for None.
    """
    if given is None or isinstance(given, type):
        # A class is refused by whoever is to use it, with what to write instead.
        return given
    if isinstance(given, str):
        return _storage_at(given)
    return _storage_of(given) if isinstance(given, Mapping) else given


def known(what: str, given: Mapping[str, Any], allowed: Iterable[str]) -> dict[str, Any]:
    """Return the options given, or raise for one that is not *allowed*."""
    for name in given:
        if name not in allowed:
            raise InvalidValueError(f"unknown option {name!r:.80} of {what}: allowed are {', '.join(sorted(allowed))}")
    return dict(given)


def _parted(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Part the options of a method from those that say when it acts."""
    method = given.get("method", METHOD)
    options = _TYPES.get(method) if isinstance(method, str) else None
    if options is not None:
        known(f"compression by {method!r}", given, ("method", *_WHEN, *(option.name for option in fields(options))))
    when = {name: given[name] for name in _WHEN if name in given}
    return {name: value for name, value in given.items() if name not in _WHEN}, when


_TYPES: dict[str, type[Truncate] | type[Summarize]] = {"truncate": Truncate, "summarize": Summarize}


def _protecting(compressor: Any, protect: Mapping[str, Any]) -> Any:
    """Return a compressor that keeps the task, unless it was told otherwise, and what *protect* names."""
    said = {name: value for name, value in protect.items() if value is not None}
    if not isinstance(compressor, (Truncate, Summarize)):
        _refuse_beside("a compressor of your own", said)
        return compressor
    for name, value in said.items():
        if getattr(compressor, name) is not None:
            raise InvalidValueError(f"{name} is given twice: {value!r:.80}, and in compression; leave one of them out")
    if isinstance(compressor.protect, Mapping):
        said = {"protect": {"task": True, **compressor.protect}} | said
    elif compressor.protect is None and compressor.protect_task is None:
        said = {"protect_task": True} | said
    return replace(compressor, **said)


def _refuse_beside(part: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidValueError(f"{name} has no effect beside {part}; give it to that instead")


def _storage_at(place: str) -> Storage:
    if place == "memory":
        return InMemoryStorage()
    if not place.startswith("s3://"):
        return FileStorage(place)
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    return S3Storage(bucket, prefix)


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
    return EvictingStorage(storage, **known("evict", bounds, _BOUNDS))
