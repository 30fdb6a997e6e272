"""Asking policies, without letting a slow or broken one do harm."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from math import inf

from holdfast.eviction.groups import Group, Held
from holdfast.eviction.policies import Candidate, Moment, Policy
from holdfast.eviction.queues import Orders

__all__ = ["Asked", "View", "needs_of"]

logger = logging.getLogger(__name__)

# Each operation pays for this many looks of a policy that looks further than it drops.
_LOOKS_PER_OPERATION = 1_000


class View:
    """What a policy sees; it counts how much of it the policy looked at."""

    def __init__(self, held: Mapping[str, Held], orders: Orders) -> None:
        self._held = held
        self._orders = orders
        self._open: list[Generator[Candidate, None, None]] = []
        self.total_size = 0
        self.looks = 0

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Candidate]:
        for held in list(self._held.values()):
            self.looks += 1
            yield held

    def by_age(self, *, before: float = inf) -> Iterable[Candidate]:
        return self._members(self._orders.by_age().oldest(before))

    def by_use(self, *, before: float = inf) -> Iterable[Candidate]:
        return self._members(self._orders.by_use().oldest(before))

    def by_turn(self, *, before: float = inf) -> Iterable[Candidate]:
        return self._members(self._orders.by_turn().oldest(before))

    def live_by_use(self) -> Iterable[Candidate]:
        return self._members(self._orders.live_by_use().oldest())

    def surplus(self, count: int, size: int) -> Iterable[Candidate]:
        first = self._orders.by_use().first()
        if first is not None and len(first.members) >= count and first.size >= size:
            return tuple(first.members)
        return self._surplus(count, size)

    def _surplus(self, count: int, size: int) -> Iterator[Candidate]:
        for order in (self.by_use, self.live_by_use):
            for entry in order():
                yield entry
                count, size = count - 1, size - entry.size
                if count <= 0 and size <= 0:
                    return

    def stored_since(self) -> float:
        return self._orders.by_age().since()

    def used_since(self) -> float:
        return self._orders.by_use().since()

    def close(self) -> int:
        """Let the orders be changed again, even if a policy kept an iterator. Return how much it looked at."""
        while self._open:
            self._open.pop().close()
        looks, self.looks = self.looks, 0
        return looks

    def _members(self, groups: Iterable[Group]) -> Iterable[Candidate]:
        if groups == ():
            return ()
        members = self._each_member(groups)
        self._open.append(members)
        return members

    def _each_member(self, groups: Iterable[Group]) -> Generator[Candidate, None, None]:
        for group in groups:
            for member in group.members:
                self.looks += 1
                yield member


class Asked:
    """A policy, and what it says of itself. If it looks at much, it is asked less often."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._again_at = 0
        self._quiet_until: Callable[[View], float] | None = getattr(policy, "quiet_until", None)
        self.quiet_until = -inf
        self.heeds_stores: bool = getattr(policy, "heeds_stores", True)
        self.hard: bool = getattr(policy, "hard", False)
        self.by_use = bool(needs_of(policy))
        self.exceeds: Callable[[int, int], bool] | None = getattr(policy, "exceeds", None)

    @cached_property
    def because(self) -> str:
        """Why it drops, completing "it is gone because …"."""
        return getattr(self._policy, "because", None) or f"{self._policy!r} dropped it"

    @property
    def limits(self) -> str:
        """What it never lets be exceeded."""
        return getattr(self._policy, "limits", None) or repr(self._policy)

    def expired(self, view: View, now: Moment, operation: int, at_most: int | None) -> Sequence[str]:
        """Return the references of what the policy drops in the *operation*-th operation: *at_most* that many."""
        if self._again_at > operation:
            return ()
        found: Sequence[str] = ()
        try:
            dropped = self._policy.expired(view, now)
            # A policy may name what it drops. Bounded by what there is to drop, in case it never ends.
            if dropped != ():
                found = [
                    each if isinstance(each, str) else each.reference
                    for each in islice(dropped, at_most or len(view) + 1)
                ]
            if self._quiet_until is not None and len(found) != at_most:
                self.quiet_until = float(self._quiet_until(view))
        except Exception:
            # What was stored is stored; a policy that fails must not make it look lost.
            logger.exception("the eviction policy %r failed, so it drops nothing now", self._policy)
            found = ()
        finally:
            if (in_vain := view.close() - len(found)) > _LOOKS_PER_OPERATION:
                self._again_at = operation + in_vain // _LOOKS_PER_OPERATION
        return found


def needs_of(policy: Policy) -> frozenset[str]:
    """Return what must be written down with the entries for *policy*."""
    needs: frozenset[str] = getattr(policy, "needs", frozenset({"use", "turn"}))
    return needs
