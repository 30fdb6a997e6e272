"""What a recording is lived through under: nothing, or the options of a `ContextManager`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast.compression.summary_request import SummaryRequest
from holdfast.errors import HoldfastError, InvalidValueError
from holdfast.manager import ContextManager
from holdfast.replay.policy_files import ENDINGS, read_policy
from holdfast.replay.steady import make_steady

__all__ = ["BUILT_IN", "NONE", "UNMANAGED", "Policy", "policies_from", "policy_from"]

NONE = "none"
BUILT_IN: Mapping[str, Mapping[str, Any] | None] = MappingProxyType(
    {
        NONE: None,
        "auto": {"strategy": "auto"},
        "truncate": {"compression": "truncate"},
        "summarize": {"compression": "summarize"},
    }
)
"""Policies by name: nothing at all, everything, and either way of compression without offloading."""

_STORAGES = ("memory", "file", "s3")
# What the recording and the replay say, not the policy.
_OF_THE_REPLAY = ("window", "dialect")


@dataclass(frozen=True)
class Policy:
    """Options of a manager under a *name*; None for no manager."""

    name: str
    config: Mapping[str, Any] | None

    def manager(self, *, dialect: str, summarize: Callable[[SummaryRequest], str], **options: Any) -> ContextManager:
        """Return a manager for one run: what leaves stays in memory, and *summarize* stands in for a model."""
        if self.config is None:
            raise InvalidValueError(f"the policy {self.name!r} has no manager")
        config = {name: value for name, value in self.config.items() if name not in _OF_THE_REPLAY}
        compression = _summarizing(config.get("compression"), summarize)
        storage = _in_memory(config.get("offload_storage"))
        manager = ContextManager.from_config(
            {**config, "compression": compression, "offload_storage": storage, "dialect": dialect, **options}
        )
        make_steady(manager, storage.get("evict") if isinstance(storage, Mapping) else None)
        return manager


UNMANAGED = Policy(NONE, None)


def policies_from(given: list[str] | tuple[str, ...]) -> tuple[Policy, ...]:
    """Return the policies that names and files stand for, each under a name of its own."""
    policies = tuple(map(policy_from, given))
    names = [policy.name for policy in policies]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidValueError(f"the policy {twice!r:.80} is given twice; leave one out, or rename its file")
    return policies


def policy_from(given: str) -> Policy:
    """Return a policy by its name, or from a YAML or JSON file of a manager's options."""
    if given in BUILT_IN:
        return Policy(given, BUILT_IN[given])
    path = Path(given)
    if path.suffix.lower() not in ENDINGS:
        raise InvalidValueError(
            f"policy must be one of {', '.join(BUILT_IN)}, or a .yaml or .json file of options, got {given!r:.80}"
        )
    policy = Policy(path.stem, read_policy(path))
    try:
        policy.manager(dialect="openai", summarize=lambda request: "")
    except HoldfastError as error:
        raise InvalidValueError(f"the policy {path}: {error}") from error
    return policy


def _summarizing(compression: Any, summarize: Callable[[SummaryRequest], str]) -> Any:
    """Return the choice of compression with a summarizer, where summaries are asked for."""
    if compression == "summarize":
        compression = {"method": "summarize"}
    if isinstance(compression, Mapping) and compression.get("method") == "summarize":
        return {"summarizer": summarize, **compression}
    return compression


def _in_memory(storage: Any) -> Any:
    """Return what stands in for a storage of the same bounds: a replay writes nothing where agents do."""
    if storage is None or storage == "memory":
        return storage
    if isinstance(storage, str):
        return {"kind": "memory", "evict_after_turns": None}
    if not isinstance(storage, Mapping) or storage.get("kind") not in _STORAGES:
        kinds = ", ".join(_STORAGES)
        raise InvalidValueError(f"offload_storage must be a place, or a mapping whose kind is one of {kinds}")
    if storage["kind"] == "memory":
        return storage
    bounds = {"evict": storage["evict"]} if "evict" in storage else {}
    return {"kind": "memory", "evict_after_turns": None, **bounds}
