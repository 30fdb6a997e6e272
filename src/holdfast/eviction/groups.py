"""Entries that are held, and which of them leave together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["Alone", "Chain", "Freshness", "Group", "Held", "Linked"]


class Freshness:
    """How fresh one entry, or a chain of them, is. `order` counts uses, and `number` is its first: no two are equal."""

    __slots__ = ("gone", "last_turn", "last_used", "live", "number", "order", "size", "stored_at")

    def __init__(self, size: int, stored_at: float, last_used: float, turn: int, order: int, live: int) -> None:
        self.size = size
        self.stored_at = stored_at
        self.last_used = last_used
        self.last_turn = turn
        self.order = self.number = order
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
        self.order = self.number = order
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
    """Entries that leave together, and the names of their chain, with how many members have each."""

    __slots__ = ("members", "names")

    def __init__(self, member: Linked, last_used: float, turn: int, order: int, live: int) -> None:
        Freshness.__init__(self, member.size, member.first_stored_at, last_used, turn, order, live)
        self.members = {member: None}
        self.names: Counter[str] = Counter()
        member.group = self

    def absorb(self, other: Chain, order: int) -> None:
        """Take over the members and the freshness of *other*, which is gone then."""
        for member in other.members:
            member.group = self
        self.members.update(other.members)
        self.names.update(other.names)
        self.size += other.size
        self.live += other.live
        self.stored_at = max(self.stored_at, other.stored_at)
        self.use(other.last_used, other.last_turn, order)
        other.gone = True

    def remove(self, member: Held) -> None:
        """Let one member go. A chain without members is gone."""
        self.members.pop(member, None)  # type: ignore[arg-type]
        self.size -= member.size
        self.gone = not self.members


Held = Alone | Linked
Group = Alone | Chain
