"""Which chains the entries that are held belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice

from holdfast.eviction.chains import Link, chain_of_reference, new_chain, tail
from holdfast.eviction.groups import Chain, Held, Linked
from holdfast.eviction.labels import MOST_CHAINS, scopes_in

__all__ = ["Ties", "last_to_first"]

_CHAINS_REMEMBERED = 10_000


class Ties:
    """Each entry is of a chain of its own, and of those that it was stored in; chains that share an entry are one.

    A chain that left does not come back: what would join it begins a new one, with a name of its own.
    """

    def __init__(self) -> None:
        self._group_of_chain: dict[str, Chain] = {}
        self._held_of_tail: dict[str, Linked] = {}
        self._successors: dict[str, str] = {}

    def chains_for(self, content_type: str, links: Iterable[Link], parent: str | None) -> tuple[str, ...]:
        """Return the chains that something stored inside *links* joins."""
        found = [*self._chain_of_parent(parent)]
        for link in links:
            found += self._latest(link.chain)
            found += self._chain_of_parent(link.parent)
            found += self._chains_named(link.words, scopes_in(content_type))
        return tuple(islice(dict.fromkeys(found), MOST_CHAINS))

    def groups(self, chains: Iterable[str]) -> list[Chain]:
        """Return the groups that hold these chains."""
        found = (self._group_of_chain.get(chain) for chain in chains)
        return list(dict.fromkeys(group for group in found if group is not None))

    def join(self, held: Linked, order: int) -> Chain:
        """Unite a new entry's group with those of its chains, and return what they are now."""
        chains = _chains_of(held)
        groups = [*self.groups(chains), held.group]
        largest = max(groups, key=lambda group: len(group.members))
        for other in groups:
            if other is not largest:
                self._group_of_chain.update(dict.fromkeys(other.names, largest))
                largest.absorb(other, order)
        self._group_of_chain.update(dict.fromkeys(chains, largest))
        largest.names.update(chains)
        for name in _names_of(held):
            self._held_of_tail[name] = held
        return largest

    def leave(self, held: Linked) -> None:
        """Forget an entry that left, and those of its chains that no other member has."""
        for name in _names_of(held):
            self._held_of_tail.pop(name, None)
        names = held.group.names
        names.subtract(_chains_of(held))
        for chain in [chain for chain in _chains_of(held) if names[chain] <= 0]:
            del names[chain]
            del self._group_of_chain[chain]
            self._successors[chain] = new_chain()
            if len(self._successors) > _CHAINS_REMEMBERED:
                del self._successors[next(iter(self._successors))]

    def _latest(self, chain: str | None) -> Iterator[str]:
        while chain in self._successors:
            chain = self._successors[chain]
        if chain is not None:
            yield chain

    def _chain_of_parent(self, parent: str | None) -> Iterator[str]:
        """Yield the chain of *parent*, also if it is not held yet; none if it left."""
        if parent is not None and (chain := chain_of_reference(parent)) not in self._successors:
            yield chain

    def _chains_named(self, words: Set[str], scope: str) -> Iterator[str]:
        """Yield the chains of the entries that *words* name, of one scope only: words come from a model."""
        for word in words & self._held_of_tail.keys():
            held = self._held_of_tail[word]
            if scopes_in(held.content_type) == scope:
                yield chain_of_reference(held.reference)


def last_to_first(members: Sequence[Held]) -> list[list[Held]]:
    """Return the members in steps: along the chains that tie them, those furthest from the first member come first."""
    by_chain: dict[str, list[Held]] = {}
    for held in members:
        for chain in _chains_of(held):
            by_chain.setdefault(chain, []).append(held)
    steps = [[members[0]]]
    reached = {members[0].reference}
    while step := _neighbours(steps[-1], by_chain, reached):
        steps.append(step)
    # What tied these to the others was deleted by itself.
    if apart := [held for held in members if held.reference not in reached]:
        steps.append(apart)
    return steps[::-1]


def _neighbours(step: Iterable[Held], by_chain: dict[str, list[Held]], reached: set[str]) -> list[Held]:
    found = []
    for chain in [chain for held in step for chain in _chains_of(held)]:
        for neighbour in by_chain.pop(chain, ()):
            if neighbour.reference not in reached:
                reached.add(neighbour.reference)
                found.append(neighbour)
    return found


def _names_of(held: Linked) -> set[str]:
    """Return what a call may name an entry by: the last segment of its reference, with or without an extension."""
    name = tail(held.reference)
    return {name, name.rpartition(".")[0] or name}


def _chains_of(held: Held) -> tuple[str, ...]:
    return (chain_of_reference(held.reference), *held.chains)
