"""Which contents belong together: a tool call, and all that it led to.

Code that runs tools says so around each call, and everything stored meanwhile, however deep inside, joins the chain:

    message = new_chain()                       # one for the parallel calls of one assistant message
    with in_chain(message, arguments=call["input"]):
        result = await run(call)                # a nested agent's calls join too
        await storage.store(call["id"], result)
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from holdfast.errors import InvalidValueError

__all__ = ["Link", "chain_of_reference", "check_parent", "current_links", "in_chain", "new_chain", "tail"]

_CHAIN = re.compile(r"[0-9a-f]{16}")
# Any backend's reference stands between blanks or brackets; ours have only these characters in their last segment.
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|]+")
_OWN = re.compile(r"[A-Za-z0-9_.-]+")
_TRAILING = ".:!?"
_LONGEST_SCAN = 100_000
_END = object()


@dataclass(frozen=True)
class Link:
    """One `in_chain` block: the chain and the parent joined, and the call's arguments, which may name references."""

    chain: str | None
    parent: str | None
    arguments: object

    @cached_property
    def words(self) -> frozenset[str]:
        """What in the arguments may be the last segment of a reference, up to a bound."""
        found: set[str] = set()
        budget = _LONGEST_SCAN
        for text in _strings(self.arguments):
            piece = text[:budget]
            found.update(tail(word.rstrip(_TRAILING)) for word in _WORD.findall(piece))
            found.update(word.rstrip(".") for word in _OWN.findall(piece))
            budget -= len(text)
            if budget <= 0:
                break
        return frozenset(found)


_LINKS: ContextVar[tuple[Link, ...]] = ContextVar("holdfast_links", default=())


def new_chain() -> str:
    """Return the name of a chain that nobody else has."""
    return secrets.token_hex(8)


@contextmanager
def in_chain(chain: str | None = None, *, parent: str | None = None, arguments: object = None) -> Iterator[None]:
    """Let all that is stored in this block, and in what it awaits and starts, join one chain.

    *chain* comes from `new_chain`; *parent* is a reference whose chain is joined; so are the chains of references
    that the call's *arguments* name (the first 100,000 characters are searched). Blocks nest, and add up.
    """
    if chain is not None and (not isinstance(chain, str) or not _CHAIN.fullmatch(chain)):
        raise InvalidValueError(f"chain must come from new_chain(), got {chain!r}")
    check_parent(parent)
    before = _LINKS.set((*_LINKS.get(), Link(chain, parent, arguments)))
    try:
        yield
    finally:
        _LINKS.reset(before)


def check_parent(parent: object) -> None:
    """Refuse what is no reference."""
    if parent is not None and (not isinstance(parent, str) or not parent):
        raise InvalidValueError(f"parent must be a reference that store() returned, got {parent!r}")


def current_links() -> tuple[Link, ...]:
    """Return the blocks that surround the caller."""
    return _LINKS.get()


def chain_of_reference(reference: str) -> str:
    """Return the chain that consists of what *reference* leads to, alone."""
    return blake2b(tail(reference).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def tail(reference: str) -> str:
    """Return the last segment of a reference, which names it however its directory is spelt."""
    return reference.rpartition("/")[2]


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in a JSON-like value, or in a text that is JSON, as far as a bound allows."""
    waiting: list[Iterator[object]] = [iter((_decoded(value),))]
    for _ in range(_LONGEST_SCAN):
        while waiting and (item := next(waiting[-1], _END)) is _END:
            waiting.pop()
        if not waiting:
            return
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += (iter(item.values()), iter(item.keys()))
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting.append(iter(item))


def _decoded(value: object) -> object:
    """Return what a text holds that is JSON, as some providers pass arguments; anything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= _LONGEST_SCAN:
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
