"""Entries that leave together, and the orders in which they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

__all__ = ["Alone", "Chain", "Group", "Held", "Linked", "Orders", "Queue"]

_FEW = 1_000


class Freshness:
    """How fresh one entry, or a chain of them, is. `order` counts uses: no two ever have the same."""

    __slots__ = ("gone", "last_turn", "last_used", "live", "order", "size", "stored_at")

    def __init__(self, size: int, stored_at: float, last_used: float, turn: int, order: int, live: int) -> None:
        self.size = size
        self.stored_at = stored_at
        self.last_used = last_used
        self.last_turn = turn
        self.order = order
        self.live = live
        self.gone = False

    def use(self, now: float, turn: int, order: int) -> None:
        """Note a use. Nothing ever gets older."""
        if now > self.last_used:
            self.last_used = now
        if turn > self.last_turn:
            self.last_turn = turn
        self.order = order


class Alone(Freshness):
    """An entry that is held where there are no chains: a group of its own."""

    __slots__ = ("content_type", "key", "reference")

    chains: tuple[str, ...] = ()

    def __init__(
        self,
        reference: str,
        key: str,
        content_type: str,
        size: int,
        stored_at: float,
        last_used: float,
        turn: int,
        order: int,
        live: int,
    ) -> None:
        # Spelt out instead of calling the base class: this happens in every store.
        self.reference = reference
        self.key = key
        self.content_type = content_type
        self.size = size
        self.stored_at = stored_at
        self.last_used = last_used
        self.last_turn = turn
        self.order = order
        self.live = live
        self.gone = False

    @property
    def first_stored_at(self) -> float:
        """When it was stored."""
        return self.stored_at

    @property
    def group(self) -> Alone:
        """What leaves with it: itself."""
        return self

    @property
    def members(self) -> Sequence[Alone]:
        """What leaves with it: itself."""
        return (self,)

    def remove(self, member: Held) -> None:
        """Let the one member go."""
        self.gone = True


class Linked:
    """An entry that is held where there are chains, as policies see it: it is as fresh as its group."""

    __slots__ = ("chains", "content_type", "first_stored_at", "group", "key", "reference", "size")

    def __init__(
        self, reference: str, key: str, content_type: str, size: int, stored_at: float, chains: tuple[str, ...]
    ) -> None:
        self.reference = reference
        self.key = key
        self.content_type = content_type
        self.size = size
        self.first_stored_at = stored_at
        self.chains = chains
        self.group: Chain

    @property
    def stored_at(self) -> float:
        """When the freshest member was stored."""
        return self.group.stored_at

    @property
    def last_used(self) -> float:
        """When the freshest member was used."""
        return self.group.last_used

    @property
    def last_turn(self) -> int:
        """The turn in which the freshest member was used."""
        return self.group.last_turn


class Chain(Freshness):
    """Entries that leave together, and the names of their chain: it has several once chains were united."""

    __slots__ = ("members", "names")

    def __init__(self, member: Linked, last_used: float, turn: int, order: int, live: int) -> None:
        Freshness.__init__(self, member.size, member.first_stored_at, last_used, turn, order, live)
        self.members = [member]
        self.names: list[str] = []
        member.group = self

    def absorb(self, other: Chain, order: int) -> None:
        """Take over the members and the freshness of *other*, which is gone then."""
        for member in other.members:
            member.group = self
        self.members += other.members
        self.names += other.names
        self.size += other.size
        self.live += other.live
        self.stored_at = max(self.stored_at, other.stored_at)
        self.use(other.last_used, other.last_turn, order)
        other.gone = True

    def remove(self, member: Held) -> None:
        """Let one member go. A chain without members is gone."""
        self.members = [each for each in self.members if each is not member]
        self.size -= member.size
        self.gone = not self.members


Held = Alone | Linked
Group = Alone | Chain


def _age(group: Group) -> tuple[float, int]:
    # Groups come into being with rising orders, but their orders change; the identity does not.
    return group.stored_at, id(group)


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
        if len(heap) > self._cleared_at:
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
        self._cleared_at = 2 * len(self._heap) + _FEW


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
