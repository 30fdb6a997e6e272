"""What a report says, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from holdfast.ledger.lines import WIDTH
from holdfast.reports.showing import checked_width, shown

__all__ = ["ContextReport", "Departure", "Item", "Subtotal"]

_LARGEST = 10


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing in the context. *share* is of the window. Messages are numbered from 1; what is no message is not.

    *tokens* are as the provider counts them, as far as that is known, *estimated* as they were before it said.
    """

    number: int | None = None
    role: str
    kind: str
    what: str
    tokens: int
    estimated: int
    share: float
    pinned: bool = False
    protected: bool = False
    references: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Departure:
    """What left the context, and how many tokens that saves; *record* is its number in the ledger.

    It opens by *references*. Those in *evicted* open nothing any more, and *more_references* are not listed.
    """

    record: int
    kind: str
    what: str
    tokens: int
    turn: int
    at: float
    references: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    more_references: int = 0


@dataclass(frozen=True)
class Subtotal:
    """How many there are of something, and their tokens."""

    count: int = 0
    tokens: int = 0

    def plus(self, tokens: int) -> Subtotal:
        """Return it with one more."""
        return Subtotal(self.count + 1, self.tokens + tokens)


@dataclass(frozen=True, kw_only=True)
class ContextReport:
    """What is in one context. Printed, it is a table of 100 columns.

    Of the *window* a request may take *limit*; the rest is for the answer. *used* is what the next request takes, with
    system prompt and tools, and the sum of the items. All tokens are as the provider counts them, as far as it said
    how; `estimated`, and all in the ledger, are as they were estimated before. Of what left, *forgotten* older records
    of the ledger may tell of more.
    """

    window: int
    limit: int
    used: int
    items: tuple[Item, ...] = field(repr=False)
    left: tuple[Departure, ...] = field(repr=False)
    forgotten: int = 0
    by_tool: Mapping[str, Subtotal] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def estimated(self) -> int:
        """The tokens of all items before the provider said what requests take."""
        return sum(item.estimated for item in self.items)

    @property
    def by_kind(self) -> dict[str, Subtotal]:
        """The items by kind, the costliest first."""
        found: dict[str, Subtotal] = {}
        for item in self.items:
            found[item.kind] = found.get(item.kind, Subtotal()).plus(item.tokens)
        return dict(sorted(found.items(), key=lambda entry: -entry[1].tokens))

    @property
    def largest(self) -> tuple[Item, ...]:
        """The ten costliest items, the costliest first."""
        return tuple(sorted(self.items, key=lambda item: -item.tokens)[:_LARGEST])

    def table(self, *, all: bool = False, width: int = WIDTH) -> str:
        """Return it for people, in *width* columns, from 60 to 200.

        Of many items only the largest and the latest are there, unless *all* are wanted; below 80 columns no shares.
        """
        return shown(self, all=all, width=checked_width(width))

    def __str__(self) -> str:
        return self.table()

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "window": self.window,
            "limit": self.limit,
            "used": self.used,
            "estimated": self.estimated,
            "items": [_plain(item) for item in self.items],
            "left": [_plain(left) for left in self.left],
            "forgotten": self.forgotten,
            "by_kind": {kind: asdict(total) for kind, total in self.by_kind.items()},
            "by_tool": {tool: asdict(total) for tool, total in self.by_tool.items()},
        }


def _plain(value: Item | Departure) -> dict[str, Any]:
    return {name: list(given) if isinstance(given, tuple) else given for name, given in asdict(value).items()}
