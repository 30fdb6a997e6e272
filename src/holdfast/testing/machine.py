"""A storage compared with a dictionary, step by step, by hypothesis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule

__all__ = ["storage_machine"]

T = TypeVar("T")

KEYS = st.text(min_size=1, max_size=40) | st.sampled_from(["tooluse_1", "..", "/etc/passwd", "a\0b", "CON"])
CONTENT_TYPES = st.sampled_from(
    ["text/plain", "application/json", "image/png", "text/csv; charset=utf-8", "application/x-odd"]
)


class StorageMachine(RuleBasedStateMachine):
    """The steps: whatever is done to the storage is done to a dictionary, and both have to agree."""

    references = Bundle("references")
    open_storage: Callable[[], Any]
    survives_reopening: bool

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.storage = self.open_storage()
        self.run(_awaited(self.storage.clear))
        self.model: dict[str, tuple[str, bytes, str]] = {}
        self.issued: set[str] = set()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def teardown(self) -> None:
        self.loop.close()

    @rule(target=references, key=KEYS, content=st.binary(max_size=300), content_type=CONTENT_TYPES)
    def store(self, key: str, content: bytes, content_type: str) -> str:
        reference = self.run(self.storage.store(key, content, content_type))
        assert reference not in self.issued
        self.issued.add(reference)
        self.model[reference] = (key, content, content_type)
        return reference  # type: ignore[no-any-return]

    @rule(reference=references)
    def retrieve(self, reference: str) -> None:
        if reference in self.model:
            assert self.run(self.storage.retrieve(reference)) == self.model[reference][1:]
            return
        with pytest.raises(KeyError):
            self.run(self.storage.retrieve(reference))

    @rule(reference=references, data=st.data())
    def retrieve_range(self, reference: str, data: st.DataObject) -> None:
        if reference not in self.model:
            with pytest.raises(KeyError):
                self.run(self.storage.retrieve_range(reference, 0, 1))
            return
        content = self.model[reference][1]
        offsets = st.integers(0, len(content) + 2)
        start, end = sorted((data.draw(offsets), data.draw(offsets)))
        part = self.run(self.storage.retrieve_range(reference, start, end))
        assert (part.content, part.start, part.total_size) == (content[start:end], start, len(content))

    @rule(reference=references)
    def delete(self, reference: str) -> None:
        self.run(self.storage.delete(reference))
        self.model.pop(reference, None)

    @rule()
    def clear(self) -> None:
        self.run(_awaited(self.storage.clear))
        self.model.clear()

    @rule()
    def reopen(self) -> None:
        if self.survives_reopening:
            self.storage = self.open_storage()

    @rule()
    def entries_agree(self) -> None:
        entries = self.run(_listed(self.storage))
        held = {e.reference: (e.key, e.content_type, e.size) for e in entries}
        assert held == {r: (key, kind, len(content)) for r, (key, content, kind) in self.model.items()}
        assert len(held) == len(entries)


def storage_machine(
    open_storage: Callable[[], Any], *, survives_reopening: bool = False
) -> type[RuleBasedStateMachine]:
    """Return a state machine class; its ``TestCase`` attribute is what pytest collects.

    *open_storage* returns the same store each time it is called; it is cleared before each run. With
    *survives_reopening*, it is opened anew now and then, as a restarted process would. It needs all optional verbs.
    """
    options = {"open_storage": staticmethod(open_storage), "survives_reopening": survives_reopening}
    return type("StorageMachine", (StorageMachine,), options)


async def _awaited(function: Callable[[], Any]) -> None:
    await function()


async def _listed(storage: Any) -> list[Any]:
    return [entry async for entry in storage.entries()]
