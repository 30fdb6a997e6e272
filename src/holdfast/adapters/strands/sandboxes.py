"""Files that belong into the sandbox of their agent."""

from __future__ import annotations

from typing import Any

from strands import Agent

from holdfast.storage import Storage
from holdfast.storage.sandbox_directory import is_the_host

__all__ = ["in_sandbox_of", "innermost"]


def in_sandbox_of(agent: Agent, storage: Storage) -> Storage:
    """Return *storage*; if it writes files of the host and the agent has a sandbox, one that writes them there."""
    if is_the_host(agent.sandbox) or not hasattr(innermost(storage), "for_sandbox"):
        return storage
    bound: Storage = storage.for_sandbox(agent.sandbox)  # type: ignore[attr-defined]
    return bound


def innermost(storage: Any) -> Any:
    """Return what all wrappers of a storage wrap."""
    while (inner := getattr(storage, "inner", None)) is not None:
        storage = inner
    return storage
