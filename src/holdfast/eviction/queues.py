"""The orders in which groups of entries leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf

from holdfast.eviction.groups import Group

__all__ = ["Orders", "Queue"]

_Item = tuple[float, int, Group]

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
        # What comes in order, as nearly everything does, waits in a run, and only the rest in a heap.
        self._run: deque[_Item] = deque(sorted((*key(group), group) for group in groups))
        self._heap: list[_Item] = []
        self._aside: set[Group] = set()
        self._clear_out()

    def push(self, group: Group) -> None:
        """Add a new group; now and then, throw out those that are gone."""
        run = self._run
        item = (*self._key(group), group)
        if not run or item > run[-1]:
            run.append(item)
        else:
            heappush(self._heap, item)
        self._until_cleared -= 1
        if not self._until_cleared:
            self._clear_out()

    def changed(self, group: Group) -> None:
        """Call back a group that stepped aside, if it may come."""
        if group in self._aside and (group.live > 0) is self._live:
            self._aside.remove(group)
            heappush(self._heap, (*self._key(group), group))

    def since(self) -> float:
        """Return a time or turn that nothing here is before."""
        front = self._front()
        return inf if front is None else front[0]

    def oldest(self, before: float = inf) -> Iterable[Group]:
        """Return those before a limit, in order. Until the iterator is closed, nothing may be pushed or changed."""
        return self._oldest(before) if self.since() < before else ()

    def first(self, before: float = inf) -> Group | None:
        """Return the oldest, if it is before a limit."""
        while (front := self._front()) is not None and front[0] < before:
            number, order, group = front
            if group.gone:
                self._pop()
            elif (group.live > 0) is not self._live:
                self._pop()
                self._aside.add(group)
            elif (number, order) != self._key(group):
                self._pop()
                heappush(self._heap, (*self._key(group), group))
            else:
                return group
        return None

    def _front(self) -> _Item | None:
        run, heap = self._run, self._heap
        if not heap:
            return run[0] if run else None
        return run[0] if run and run[0] < heap[0] else heap[0]

    def _pop(self) -> _Item:
        run, heap = self._run, self._heap
        return run.popleft() if run and (not heap or run[0] < heap[0]) else heappop(heap)

    def _oldest(self, before: float) -> Iterator[Group]:
        taken = []
        try:
            while (group := self.first(before)) is not None:
                yield group
                taken.append(self._pop())
        finally:
            self._run.extendleft(reversed(taken))

    def _clear_out(self) -> None:
        self._run = deque(item for item in self._run if not item[-1].gone)
        self._heap = [item for item in self._heap if not item[-1].gone]
        self._aside = {group for group in self._aside if not group.gone}
        heapify(self._heap)
        self._until_cleared = len(self._run) + len(self._heap) + len(self._aside) + _FEW


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
