"""The parts of a manager: those that its user asked for, and those that the user brought along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from holdfast.archive import Archive
from holdfast.compression import ContextCompression
from holdfast.configuration import (
    CompressionChoice,
    OffloaderChoice,
    StorageChoice,
    archive_for,
    compression_from,
    hold_for,
    offloader_from,
)
from holdfast.errors import InvalidValueError
from holdfast.hold import Hold
from holdfast.hooks import Plugin
from holdfast.offload import ContextOffloader

__all__ = ["Parts", "composed", "restore_all"]

_Part = TypeVar("_Part", ContextCompression, ContextOffloader)


class Parts(NamedTuple):
    """What a manager is made of. *plugins* are those of others."""

    compression: ContextCompression | None
    offloader: ContextOffloader | None
    hold: Hold | None
    archive: Archive | None
    plugins: tuple[Plugin, ...]


def composed(
    strategy: str | None,
    plugins: Sequence[Plugin],
    *,
    compression: CompressionChoice,
    offloader: OffloaderChoice,
    storage: StorageChoice,
    archive: bool | None,
    embedder: Any,
    protect: Mapping[str, Any],
    limits: Mapping[str, int | None],
    **shared: Any,
) -> Parts:
    """Return the parts for the options of a manager. What is wrong, has no effect or is there twice is an error."""
    is_auto = _is_auto(strategy)
    compression = _chosen("compression", compression, is_auto, _brought(ContextCompression, plugins))
    offloader = _chosen("offloader", offloader, is_auto, _brought(ContextOffloader, plugins))
    stores = offloader or (compression if archive is not False else None)
    _refuse_without("compression", compression, {**protect, **limits, "archive": archive})
    if not compression and not offloader and shared["names"] is not None:
        raise InvalidValueError(
            "names has no effect without offloader or compression; "
            "add offloader=True or compression=True, or leave it out"
        )
    _refuse_where_nothing_is_stored(stores, {"offload_storage": storage, "embedder": embedder})
    compresses = compression_from(compression, protect, window=limits["window"], **shared)
    offloads = offloader_from(offloader, storage, embedder=embedder, **shared)
    hold = hold_for(offloads, stores, storage, embedder=embedder, **shared)
    others = tuple(part for part in plugins if not isinstance(part, (ContextCompression, ContextOffloader)))
    return Parts(compresses, offloads, hold, archive_for(compresses, hold, archive), others)


def restore_all(parts: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Have the parts go on from what they saved in a *state*. If one of them refuses, nothing changes."""
    there = [name for name in parts if name in state]
    _rehearse({name: state[name] for name in there})
    # The ledger first: it is not rehearsed, as it refuses nothing but what is no mapping.
    for name in sorted(there, key=lambda name: name != "ledger"):
        parts[name].restore(state[name])


def _rehearse(state: Mapping[str, Any]) -> None:
    """Refuse a state of which any part is not what it saved, by restoring it into parts that nobody uses."""
    blank = composed(
        None,
        (),
        compression=True,
        offloader=None,
        storage=None,
        archive=None,
        embedder=None,
        protect={},
        limits={"window": None},
        dialect=None,
        count_text=None,
        names=None,
    )
    for name, part in (("compression", blank.compression), ("offloader", blank.hold), ("archive", blank.archive)):
        if name in state and part is not None:
            part.restore(state[name])


def _is_auto(strategy: object) -> bool:
    if strategy is None or strategy == "auto":
        return strategy is not None
    raise InvalidValueError(f"strategy must be 'auto', or left out to add parts one by one, got {strategy!r:.80}")


def _brought(kind: type[_Part], plugins: Sequence[Any]) -> _Part | None:
    """Return the part of that kind that a user brought along, by type."""
    found = [plugin for plugin in plugins if isinstance(plugin, kind)]
    if len(found) > 1:
        raise InvalidValueError(f"plugins holds {len(found)} of {kind.__name__}; one conversation needs one")
    return found[0] if found else None


def _chosen(name: str, given: Any, is_auto: bool, brought: Any) -> Any:
    if brought is None:
        return is_auto if given is None else given
    if given is None or given is True:
        return brought
    raise InvalidValueError(f"{name} is given twice: as an option, and among the plugins; leave one of them out")


def _refuse_without(part: str, choice: Any, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None and (choice is None or choice is False):
            raise InvalidValueError(f"{name} has no effect without {part}; add {part}=True, or leave it out")


def _refuse_where_nothing_is_stored(stores: Any, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None and not stores:
            raise InvalidValueError(
                f"{name} has no effect without offloader, nor without compression and its archive: nothing is stored; "
                "add offloader=True or compression=True, do not say archive=False, or leave it out"
            )
