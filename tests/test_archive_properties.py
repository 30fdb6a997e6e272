"""Nothing is lost, and everything can be put back: for random histories, windows, compressors and faults."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import ContextManager, InMemoryStorage
from holdfast.batches import Batch, Entry, Leaf, Removal, Seal, leaves_of, part_of, transcript
from holdfast.batches.encoding import decoded, encoded
from holdfast.dialects import dialect_named
from holdfast.errors import ContextOverflowError, InvalidValueError, StorageAccessError, StorageError
from holdfast.hooks import AfterInvocation, AfterModelCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.ledger import FailureRecord, ReductionRecord
from holdfast.testing.fakes import FlakyStorage
from holdfast.testing.histories import random_history
from holdfast.testing.providers import anthropic_problems, converse_problems, openai_problems

DIALECTS = ("converse", "anthropic", "openai")
PROBLEMS = {"converse": converse_problems, "anthropic": anthropic_problems, "openai": openai_problems}
COMPRESSIONS: tuple[Any, ...] = (
    "truncate",
    "summarize",
    {"method": "truncate", "window_size": 6},
    {"method": "truncate", "protect_first": 3, "shorten_results": False},
    {"method": "summarize", "summarizer": lambda request: "The work goes on."},
)


@dataclass
class Run:
    """A conversation that grows, with everything that was ever said in it."""

    manager: ContextManager
    conversation: Conversation
    messages: list[Any]
    said: list[Any]

    @property
    def leaves(self) -> list[Leaf]:
        assert self.manager.dialect is not None
        return [leaf for wire in self.said for leaf in leaves_in(wire, self.manager.dialect.name)]


@dataclass
class Faults(Collection[int]):
    """The numbers of calls that fail: any, with that chance."""

    share: float
    dice: Random

    def __contains__(self, number: object) -> bool:
        return self.dice.random() < self.share

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


def leaves_in(wire: Any, dialect: str) -> list[Leaf]:
    return [leaf for leaf in leaves_of(Entry(encoded(wire), 1), dialect) if leaf.content]


def with_rare_words(value: Any, dice: Random, key: str = "") -> Any:
    """Return a message with a word in each of its texts that stands nowhere else."""
    rare = f"rare{dice.randrange(10**12)}word"
    if isinstance(value, list):
        return [with_rare_words(item, dice) for item in value]
    if isinstance(value, str):
        if key == "arguments":
            return json.dumps({**json.loads(value), "note": rare})
        return f"{value} {rare}" if key in ("text", "thinking", "content") else value
    if not isinstance(value, dict):
        return value
    changed = {name: with_rare_words(item, dice, name) for name, item in value.items()}
    return {**changed, "note": rare} if key in ("input", "json") else changed


async def look_or_undo(manager: ContextManager, dice: Random) -> None:
    """Do what a user may do between turns, now and then."""
    if dice.random() < 0.1:
        manager.report()
        manager.preview()
    if dice.random() < 0.1:
        with contextlib.suppress(ContextOverflowError, InvalidValueError, StorageError):
            await manager.undo()


async def live(
    dialect: str,
    seed: int,
    compression: Any,
    window: int,
    failing: float,
    inner: InMemoryStorage | None = None,
    *,
    meddles: bool = False,
) -> Run:
    """Let a conversation grow in a small window, its storage failing now and then."""
    dice = Random(seed)
    history = [with_rare_words(wire, dice) for wire in random_history(dice, dialect, pins=seed % 3 == 0)]
    faults = Faults(failing, Random(seed))
    storage = FlakyStorage(inner or InMemoryStorage(evict_after_turns=None), faults)
    manager = ContextManager(
        compression=compression, offload_storage=storage, dialect=dialect, window=window, reserved=10
    )
    messages: list[Any] = []
    conversation = manager.converse(messages).conversation
    hooks = HookRegistry()
    manager.register_hooks(hooks)
    for wire in history:
        messages.append(copy.deepcopy(wire))
        if dice.random() < 0.6:
            await hooks.invoke(BeforeModelCall(conversation))
        if dice.random() < 0.1:
            await hooks.invoke(AfterInvocation(conversation))
        if meddles:
            await look_or_undo(manager, dice)
    faults.share = 0.0
    return Run(manager, conversation, messages, history)


def rare_word(leaf: Leaf) -> str:
    found = re.search(r"rare\d+word", leaf.text or "")
    return found[0] if found else ""


async def is_found(run: Run, leaf: Leaf) -> bool:
    """Say whether a search for the rare word of a part leads to all of it, among the first five."""
    for hit in (await run.manager.search_context(rare_word(leaf), 5)).hits:
        content, _ = await run.manager.retrieve(hit.reference)
        if content == leaf.content:
            return True
    return False


async def is_stored(run: Run, leaf: Leaf) -> bool:
    """Say whether a part is stored under a reference of its own."""
    assert run.manager.archive is not None
    latest = run.manager.archive.undoable[-1]
    for number in range(1, len(run.said) + 1):
        for part in ("", *(f".{place}" for place in range(1, 20))):
            try:
                content, _ = await run.manager.retrieve(f"{latest}#{number}{part}")
            except KeyError:
                break
            if content == leaf.content:
                return True
    return False


cases = given(
    dialect=st.sampled_from(DIALECTS),
    seed=st.integers(0, 10**9),
    compression=st.sampled_from(range(len(COMPRESSIONS))),
    window=st.integers(1_600, 4_000),
    failing=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
)


@cases
@settings(max_examples=25, deadline=None)
async def test_every_block_is_in_the_window_or_found_by_one_of_its_rare_words(
    dialect, seed, compression, window, failing
):
    run = await live(dialect, seed, COMPRESSIONS[compression], window, failing, meddles=True)
    shown = {leaf.content for wire in run.messages for leaf in leaves_in(wire, dialect)}
    for leaf in run.leaves:
        if leaf.content in shown:
            continue
        assert await (is_found(run, leaf) if rare_word(leaf) else is_stored(run, leaf))
    await run.manager.aclose()


@cases
@settings(max_examples=25, deadline=None)
async def test_as_many_undos_as_reductions_give_the_identical_list(dialect, seed, compression, window, failing):
    run = await live(dialect, seed, COMPRESSIONS[compression], window, failing)
    reductions = len(run.manager.ledger.of(ReductionRecord))
    assert run.manager.compression is not None
    run.conversation.window = 10_000_000
    for _ in range(reductions):
        await run.manager.undo()
    assert run.messages == run.said
    assert run.manager.compression.removed_message_count == 0
    if failing == 1.0:
        assert reductions == 0
    await run.manager.aclose()


@cases
@settings(max_examples=10, deadline=None)
async def test_an_undo_of_all_at_once_is_the_same(dialect, seed, compression, window, failing):
    run = await live(dialect, seed, COMPRESSIONS[compression], window, failing)
    reductions = run.manager.ledger.of(ReductionRecord)
    run.conversation.window = 10_000_000
    if reductions:
        await run.manager.undo(to=reductions[0])
    assert run.messages == run.said
    await run.manager.aclose()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_any_value_comes_back_as_it_was(value):
    written = json.dumps(encoded(value), ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert decoded(json.loads(written.decode("utf-8", "surrogatepass"))) == value


def test_an_integer_too_long_for_decimal_digits_comes_back_as_it_was():
    assert decoded(json.loads(json.dumps(encoded({"n": [10**5_000, -(10**5_000)]})))) == {
        "n": [10**5_000, -(10**5_000)]
    }


class SmallStorage(InMemoryStorage):
    """Memory that refuses what is larger than so many bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(evict_after_turns=None)
        self.most = most

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        if len(content) > self.most:
            raise StorageAccessError("item too large")
        return await super().store(key, content, content_type)


@given(
    dialect=st.sampled_from(DIALECTS),
    seed=st.integers(0, 10**9),
    compression=st.sampled_from(range(len(COMPRESSIONS))),
    window=st.integers(1_600, 4_000),
    most=st.integers(1_000, 20_000),
    overflows=st.booleans(),
)
@settings(max_examples=20, deadline=None)
async def test_in_portions_too_nothing_is_lost_and_every_request_is_legal(
    dialect, seed, compression, window, most, overflows
):
    storage = SmallStorage(most)
    run = await live(dialect, seed, COMPRESSIONS[compression], window, 0.0, storage)
    archive, hooks = run.manager.archive, HookRegistry()
    assert archive is not None
    if overflows:
        run.manager.register_hooks(hooks)
        await hooks.invoke(AfterModelCall(run.conversation, error=RuntimeError("prompt is too long")))
    said, shown = (dialect_named(dialect).sendable(wires) for wires in (run.said, run.messages))
    if await asyncio.to_thread(PROBLEMS[dialect], said) == []:
        assert await asyncio.to_thread(PROBLEMS[dialect], shown) == []
    # What a model refused is known of it from then on.
    run.conversation.model, run.conversation.window = "a larger one", 10_000_000
    is_lost = any("is lost" in failure.what for failure in run.manager.ledger.of(FailureRecord))
    if not is_lost:
        while archive.undoable:
            await run.manager.undo()
        assert run.messages == run.said
    await run.manager.aclose()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_storage_that_never_works_costs_nothing_but_room(dialect):
    run = await live(dialect, 7, "truncate", 2_000, 1.0)
    assert run.messages == run.said
    assert run.manager.ledger.of(FailureRecord)
    await run.manager.aclose()


BATCH = Batch(
    dialect="openai",
    entries=tuple(Entry({"role": "user", "content": f"say {n}\n“{n}”"}, n, turn=n, at=1.5) for n in range(1, 9)),
    removals=(Removal(1, 8, (Seal("print", (3, 9)),), False, "after"),),
    before=("one", "two"),
    reason="full",
)


def test_a_batch_is_read_as_it_was_written():
    assert Batch.read(BATCH.written()) == BATCH


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_to_one_message_costs_no_other(data):
    lines = BATCH.written().split(b"\n")
    number = data.draw(st.integers(1, 8))
    start = data.draw(st.integers(0, len(lines[number]) - 1))
    end = data.draw(st.integers(start, len(lines[number])))
    lines[number] = lines[number][:start] + data.draw(st.binary(max_size=8)) + lines[number][end:]
    read = Batch.read(b"\n".join(lines))
    others = [entry for entry in read.entries if entry.number != number]
    assert others == [entry for entry in BATCH.entries if entry.number != number]
    assert transcript([("R", read)])
    if read.entries[number - 1].damage:
        with pytest.raises(InvalidValueError, match=f"message {number} of R is damaged"):
            part_of("R", read, f"{number}")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2_000), st.binary(max_size=8), st.integers(0, 500))
def test_any_damage_is_told_as_such(at, put, without):
    written = BATCH.written()
    try:
        read = Batch.read(written[:at] + put + written[at + without :])
    except InvalidValueError:
        return
    assert transcript([("R", read)])
