"""The orders in which groups of entries leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

from holdfast.eviction.groups import Group

__all__ = ["Orders", "Queue"]

_FEW = 1_000


def _age(group: Group) -> tuple[float, int]:
    return group.stored_at, group.number


def _last_use(group: Group) -> tuple[float, int]:
    return group.last_used, group.order


def _last_turn(group: Group) -> tuple[float, int]:
    return group.last_turn, group.order


class Queue:
    """The live groups, or those that are not, the oldest first.

    A use costs nothing here: a group that became fresher is found at its old place when it comes to the front, and
    only then put where it belongs. One that is of the other kind then steps aside until it is of this kind again.
    """

    def __init__(self, key: Callable[[Group], tuple[float, int]], groups: Iterable[Group], *, live: bool) -> None:
        self._key = key
        self._live = live
        self._heap = [(*key(group), group) for group in groups]
        self._aside: set[Group] = set()
        heapify(self._heap)
        self._cleared_at = 2 * len(self._heap) + _FEW

    def push(self, group: Group) -> None:
        """Add a new group; now and then, throw out those that are gone."""
        heap = self._heap
        heappush(heap, (*self._key(group), group))
        if len(heap) + len(self._aside) > self._cleared_at:
            self._clear_out()

    def changed(self, group: Group) -> None:
        """Call back a group that stepped aside, if it may come."""
        if group in self._aside and (group.live > 0) is self._live:
            self._aside.remove(group)
            heappush(self._heap, (*self._key(group), group))

    def since(self) -> float:
        """Return a time or turn that nothing here is before."""
        return self._heap[0][0] if self._heap else inf

    def oldest(self, before: float = inf) -> Iterable[Group]:
        """Return those before a limit, in order. Until the iterator is closed, nothing may be pushed or changed."""
        return self._oldest(before) if self._heap and self._heap[0][0] < before else ()

    def first(self, before: float = inf) -> Group | None:
        """Return the oldest, if it is before a limit."""
        heap = self._heap
        while heap and heap[0][0] < before:
            number, order, group = heap[0]
            if group.gone:
                heappop(heap)
            elif (group.live > 0) is not self._live:
                self._aside.add(heappop(heap)[-1])
            elif (number, order) != self._key(group):
                heapreplace(heap, (*self._key(group), group))
            else:
                return group
        return None

    def _oldest(self, before: float) -> Iterator[Group]:
        taken = []
        try:
            while (group := self.first(before)) is not None:
                yield group
                taken.append(heappop(self._heap))
        finally:
            for item in taken:
                heappush(self._heap, item)

    def _clear_out(self) -> None:
        self._heap = [item for item in self._heap if not item[-1].gone]
        self._aside = {group for group in self._aside if not group.gone}
        heapify(self._heap)
        self._cleared_at = 2 * (len(self._heap) + len(self._aside)) + _FEW


class Orders:
    """The queues that policies asked for: each is kept up from the first time."""

    def __init__(self, groups: Callable[[], Iterable[Group]]) -> None:
        self._groups = groups
        self._queues: dict[str, Queue] = {}

    def by_age(self) -> Queue:
        """The oldest first."""
        return self._queues.get("age") or self._begin("age", _age)

    def by_use(self) -> Queue:
        """The least recently used first."""
        return self._queues.get("use") or self._begin("use", _last_use)

    def live_by_use(self) -> Queue:
        """The least recently used of the live ones first."""
        return self._queues.get("live use") or self._begin("live use", _last_use, live=True)

    def by_turn(self) -> Queue:
        """The one used in the earliest turn first."""
        return self._queues.get("turn") or self._begin("turn", _last_turn)

    def push(self, group: Group) -> None:
        """Add a new group to every queue."""
        for queue in self._queues.values():
            queue.push(group)

    def changed(self, group: Group) -> None:
        """Let the queues look again whether *group* is of their kind."""
        for queue in self._queues.values():
            queue.changed(group)

    def _begin(self, name: str, key: Callable[[Group], tuple[float, int]], *, live: bool = False) -> Queue:
        queue = self._queues[name] = Queue(key, self._groups(), live=live)
        return queue
