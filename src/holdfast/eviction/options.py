"""What an EvictingStorage is built from: checked, and brought into one form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from typing import Any

from holdfast.checks import check_flag
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.eviction.asking import needs_of
from holdfast.eviction.policies import Chains, LeastRecentlyUsed, Policy, TimeToLive, TurnsToLive, require_seconds
from holdfast.storage.protocols import Storage, SupportsDelete, offers

__all__ = ["able_to_delete", "checked_policies", "short_forms", "with_policies_of"]

_WRITTEN_DOWN = ("use", "turn")


def short_forms(
    max_entries: int | None, max_bytes: int | None, ttl: float | timedelta | None, turns: int | None, *, chains: bool
) -> Iterator[Policy]:
    """Yield the policies that the short forms stand for."""
    if max_entries is not None or max_bytes is not None:
        yield LeastRecentlyUsed(max_entries=max_entries, max_bytes=max_bytes)
    if ttl is not None:
        seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
        require_seconds("ttl in seconds", seconds)
        yield TimeToLive(seconds=seconds)
    if turns is not None:
        yield TurnsToLive(turns=turns)
    check_flag("chains", chains)
    if chains:
        yield Chains()


def with_policies_of(inner: object, policies: list[Policy]) -> list[Policy]:
    """Add what *inner* would do by itself, unless a policy is given that does the same."""
    turns = getattr(inner, "evict_after_turns", None)
    if turns is None or any(isinstance(policy, TurnsToLive) for policy in policies):
        return policies
    return [*policies, TurnsToLive(turns=turns)]


def checked_policies(policies: Iterable[Policy]) -> list[Policy]:
    """Return *policies* if they are a collection of policies."""
    if not isinstance(policies, Iterable):
        raise InvalidTypeError(f"policies must be a list of policies, got {policies!r}")
    checked = list(policies)
    for policy in checked:
        if isinstance(policy, type) or not callable(getattr(policy, "expired", None)):
            raise InvalidTypeError(
                f"a policy needs a method expired(entries, now), got {policy!r}; "
                "for example TimeToLive(seconds=3600) or LeastRecentlyUsed(max_entries=100)"
            )
        _check_needs(policy)
    return checked


def _check_needs(policy: Policy) -> None:
    needs: Any = needs_of(policy)
    is_set = isinstance(needs, Collection) and not isinstance(needs, str)
    if not is_set or any(need not in _WRITTEN_DOWN for need in needs):
        raise InvalidValueError(
            f"needs of a policy must be a set of 'use', 'turn', both or nothing, got {needs!r} in {policy!r}"
        )


def able_to_delete(storage: Storage) -> Storage:
    """Return *storage* if it, and what it wraps, can delete."""
    if not offers(storage, SupportsDelete):
        unable: Any = storage
        while isinstance(unable, SupportsDelete):
            unable = getattr(unable, "inner", None)
        raise InvalidTypeError(
            f"EvictingStorage needs a storage that can delete, and {type(unable).__name__} has no "
            "`async delete(reference)`; add one, or use InMemoryStorage, FileStorage or S3Storage"
        )
    return storage
