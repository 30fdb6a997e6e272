"""What the conversations that share a storage show, and who says so."""

from __future__ import annotations

import inspect
import weakref
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast.errors import InvalidTypeError
from holdfast.storage.protocols import SupportsLive

__all__ = ["LiveReferences", "Showing", "checked_live", "takes_owner"]


class _Unnamed:
    """Whoever says what is visible without saying who it is."""


_UNNAMED = _Unnamed()
_NONE: frozenset[str] = frozenset()


class Change(NamedTuple):
    """What is visible to anybody from now on, what to nobody any more, and whether whoever spoke shows less."""

    came: list[str]
    went: list[str]
    shows_less: bool


class LiveReferences:
    """All that its owners say is visible. An owner is held weakly, and what it said ends with it.

    That somebody is gone is noticed when the next one speaks. Not safe from several threads at once.
    """

    def __init__(self) -> None:
        self._said: list[tuple[weakref.ref[object], frozenset[str]]] = []
        self._counts: Counter[str] = Counter()

    def __contains__(self, reference: object) -> bool:
        return reference in self._counts

    def all(self) -> frozenset[str]:
        """Return what any of them says is visible."""
        return frozenset(self._counts)

    def say(self, live: frozenset[str], owner: object | None) -> Change:
        """Let *owner* say what is visible, in the place of what it said before."""
        who = _UNNAMED if owner is None else owner
        before, ended = self._taken_from(who)
        if live:
            self._said.append((weakref.ref(who), live))
        # Most often it is the very same object: nothing changed.
        more, less = (_NONE, _NONE) if live is before else (live - before, before - live)
        came = [reference for reference in more if self._comes(reference)]
        went = [reference for said in (less, *ended) for reference in said if self._goes(reference)]
        return Change(came, went, bool(less))

    def _taken_from(self, who: object) -> tuple[frozenset[str], list[frozenset[str]]]:
        """Take out and return what one of them said, and what those said who are gone."""
        before, ended, others = _NONE, [], []
        for speaker, said in self._said:
            if (other := speaker()) is who:
                before = said
            elif other is None:
                ended.append(said)
            else:
                others.append((speaker, said))
        self._said = others
        return before, ended

    def _comes(self, reference: str) -> bool:
        self._counts[reference] += 1
        return self._counts[reference] == 1

    def _goes(self, reference: str) -> bool:
        self._counts[reference] -= 1
        if self._counts[reference]:
            return False
        del self._counts[reference]
        return True


class Showing:
    """Tells a storage what one conversation shows. It is the owner of that, which ends with this object."""

    def __init__(self, storage: object) -> None:
        # Asked once: to look for a protocol takes longer than to tell the storage.
        self._sparing: Any = storage if isinstance(storage, SupportsLive) else None
        self._is_told_apart = takes_owner(storage)

    def tell(self, references: frozenset[str]) -> None:
        """Say what is visible now, if the storage wants to know."""
        if self._is_told_apart:
            self._sparing.set_live(references, owner=self)
        elif self._sparing is not None:
            self._sparing.set_live(references)


def takes_owner(storage: object) -> bool:
    """Say whether a storage tells apart who shows what. One of somebody else may know of one conversation only."""
    try:
        return "owner" in inspect.signature(storage.set_live).parameters  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        return False


def checked_live(references: Iterable[str], owner: object | None) -> frozenset[str]:
    """Return *references* as a set. Refuses what is none, and an owner that cannot be held weakly."""
    if isinstance(references, str):
        raise InvalidTypeError("references must be a collection of references, got one string")
    try:
        weakref.ref(owner) if owner is not None else None
    except TypeError:
        raise InvalidTypeError(
            f"owner must be an object whose end is the end of what it shows, such as a conversation of yours; "
            f"a {type(owner).__name__} cannot be held weakly"
        ) from None
    return frozenset(references)
