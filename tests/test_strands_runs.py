"""Real Strands agents with a manager: long runs, failing storages, many agents in one loop, and cancellation."""

from __future__ import annotations

import asyncio
import copy
import gc
import itertools
import json
import random
import re
import sys
import time
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import FileStorage, InMemoryStorage, ScopedStorage, Storage
from holdfast.errors import ContextOverflowError, InvalidValueError, SharedStorageError
from holdfast.eviction import EvictingStorage, TimeToLive
from holdfast.storage.audit_files import audit_directory
from holdfast.testing import Call, FakeClock, FlakyStorage, ScriptedModel, SlowStorage, converse_problems

strands = pytest.importorskip("strands")

from pydantic import BaseModel  # noqa: E402
from strands import sandbox as sandboxes  # noqa: E402
from strands.agent import conversation_manager as managers  # noqa: E402
from strands.hooks import BeforeToolCallEvent  # noqa: E402
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor  # noqa: E402
from strands.types.exceptions import ContextWindowOverflowException  # noqa: E402
from strands_agents import (  # noqa: E402
    LONG,
    OFFLOADED,
    PIN,
    RETRIEVE,
    SEARCH,
    agent_with,
    dead_references,
    references_in,
    squares,
    text_of,
)

from holdfast.adapters.strands import ContextManager  # noqa: E402

pytestmark = pytest.mark.strands

# --- One agent -------------------------------------------------------------------------------------------------------


async def test_its_tools_are_registered_and_work():
    model = ScriptedModel(
        [
            Call("squares"),
            lambda request: Call(RETRIEVE, {"reference": references_in(request.messages)[0], "pattern": "line 777:"}),
            Call(SEARCH, {"query": "line 1234"}),
            Call(PIN, {"containing": "Look at the squares"}),
        ]
    )
    agent = agent_with(ContextManager("auto"), model, squares)
    await agent.invoke_async("Look at the squares.")
    _, preview, retrieved, found, pinned = (request.latest_text for request in model.requests)
    assert "line 777:" not in preview
    assert f"line 777: the square is {777 * 777}" in retrieved
    assert f"the square is {1234 * 1234}" in found
    assert "Pinned 1 message" in pinned
    assert {RETRIEVE, SEARCH, PIN} < set(agent.tool_names)


async def test_a_pin_of_the_model_holds_as_long_as_it_talks():
    steps = ["I see.", "I see.", Call(PIN, {"containing": "azure"}), "Pinned.", *["So it is. " * 300] * 30]
    model = ScriptedModel(steps, window=8_000)
    agent = agent_with(ContextManager("auto"), model)
    for prompt in (
        "Let us talk.",
        "The codeword is azure.",
        "The colour is crimson.",
        *map("Question {}?".format, range(30)),
    ):
        await agent.invoke_async(prompt)
    assert model.violations == []
    assert "azure" in text_of(model.requests[-1])
    assert "crimson" not in text_of(model.requests[-1])


async def test_a_model_cannot_pin_its_window_full():
    steps = [step for _ in range(40) for step in (Call(PIN, {"last": 6}), "So it is. " * 300)]
    model = ScriptedModel(steps, window=16_000)
    agent = agent_with(ContextManager("auto"), model)
    for number in range(40):
        await agent.invoke_async(f"Question {number}?")
    assert (model.overflows, model.violations) == (0, [])
    assert "pin fewer messages, or unpin some first" in text_of(model.requests[-1])


def test_the_default_sliding_window_is_out_of_the_way():
    history = [{"role": role, "content": [{"text": "x"}]} for _ in range(50) for role in ("user", "assistant")]
    agent = agent_with(ContextManager(compression={"window_size": 1_000}), ScriptedModel(), messages=history)
    agent("Go.")
    assert len(agent.messages) == 102


EARLY = {"compression_threshold": 0.1}


@pytest.mark.parametrize(
    "rival",
    [
        lambda: managers.SlidingWindowConversationManager(window_size=4, per_turn=True),
        lambda: managers.SlidingWindowConversationManager(window_size=4, proactive_compression=EARLY),
        lambda: managers.SummarizingConversationManager(proactive_compression=EARLY),
    ],
)
def test_a_conversation_manager_of_the_user_does_nothing_and_is_told_so_once(rival):
    history = [{"role": role, "content": [{"text": LONG[:25_000]}]} for _ in range(8) for role in ("user", "assistant")]
    manager = ContextManager(compression={"proactive": False})
    with pytest.warns(UserWarning, match=r"its \w+ does nothing any more; leave conversation_manager out") as caught:
        agent = agent_with(manager, ScriptedModel(window=200_000), messages=history, conversation_manager=rival())
    agent("Go.")
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]
    assert (len(agent.messages), agent.model.overflows) == (18, 0)


def test_a_conversation_manager_that_does_nothing_is_no_rival():
    agent_with(ContextManager("auto"), ScriptedModel(), conversation_manager=managers.NullConversationManager())


def test_an_offloader_alone_leaves_the_sliding_window_alone():
    history = [{"role": role, "content": [{"text": "x"}]} for _ in range(50) for role in ("user", "assistant")]
    agent = agent_with(ContextManager(offloader=True), ScriptedModel([Call("squares")]), squares, messages=history)
    agent("Go.")
    assert type(agent.conversation_manager) is managers.SlidingWindowConversationManager
    assert len(agent.messages) == 40
    assert len(references_in(agent.messages)) == 1


def test_a_manager_of_nothing_changes_nothing():
    with_nothing, without = (
        strands.Agent(model=ScriptedModel([Call("squares")]), tools=[squares], plugins=plugins, callback_handler=None)
        for plugins in ([ContextManager()], [])
    )
    for agent in (with_nothing, without):
        agent("Go.")
    assert with_nothing.tool_names == without.tool_names == ["squares"]
    assert type(with_nothing.conversation_manager) is type(without.conversation_manager)
    assert [message["content"] for message in with_nothing.messages] == [m["content"] for m in without.messages]
    assert LONG in text_of(with_nothing.model.requests[-1])


def test_a_manager_belongs_to_one_agent():
    manager = ContextManager("auto")
    agent_with(manager, ScriptedModel())
    with pytest.raises(InvalidValueError, match="belongs to another agent already; make one for each"):
        agent_with(manager, ScriptedModel())


class DictSandbox(sandboxes.Sandbox):
    """A sandbox over a dictionary."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def execute_streaming(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def execute_code_streaming(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def read_file(self, path: str, **kwargs: Any) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:
        self.files[path] = content

    async def remove_file(self, path: str, **kwargs: Any) -> None:
        del self.files[path]

    async def list_files(self, path: str, **kwargs: Any) -> list[Any]:
        return [sandboxes.FileInfo(name=Path(name).name) for name in self.files]


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda inner: inner,
        lambda inner: ScopedStorage(inner, "tenant"),
        lambda inner: EvictingStorage(inner, TimeToLive(seconds=3_600)),
        lambda inner: ScopedStorage(EvictingStorage(inner, TimeToLive(seconds=3_600)), "tenant"),
    ],
)
async def test_files_are_written_where_the_agent_works(wrapped, tmp_path):
    sandbox = DictSandbox()
    manager = ContextManager("auto", offload_storage=wrapped(FileStorage(tmp_path / "artifacts")))
    looking = Call(SEARCH, {"query": "line 1234"})
    agent = agent_with(manager, ScriptedModel([Call("squares"), looking]), squares, sandbox=sandbox)
    await agent.invoke_async("Go.")
    assert LONG.encode() in sandbox.files.values()
    assert f"the square is {1234 * 1234}" in agent.model.requests[-1].latest_text
    assert list(tmp_path.iterdir()) == []


async def test_what_can_never_fit_is_one_clear_error():
    model = ScriptedModel(window=3_000)
    agent = agent_with(ContextManager("auto"), model)
    with pytest.raises(
        ContextWindowOverflowException, match=r"the context does not fit.*use a model with a larger"
    ) as e:
        await agent.invoke_async(LONG)
    assert isinstance(e.value, ContextOverflowError)
    assert model.overflows <= 2


def test_each_call_may_have_an_event_loop_of_its_own():
    def looking(request: Any) -> Any:
        return Call(RETRIEVE, {"reference": references_in(request.messages)[0], "pattern": "line 777:"})

    steps = [Call("squares"), "Seen.", looking, Call(SEARCH, {"query": "line 1234"}), "Found.", Call("squares"), "Ok."]
    model = ScriptedModel([*steps, Call(SEARCH, {"query": "line 55"}), "Found."], keep=None)
    agent = agent_with(ContextManager("auto"), model, squares)
    for _ in range(4):
        agent("Go.")
    texts = [request.latest_text for request in model.requests]
    assert f"line 777: the square is {777 * 777}" in texts[3]
    assert f"the square is {1234 * 1234}" in texts[4]
    assert f"the square is {55 * 55}" in texts[-1]


async def test_while_a_model_summarizes_the_loop_goes_on():
    asked, allowed = asyncio.Event(), asyncio.Event()

    async def answer(request: Any) -> str:
        if request.tool_specs:
            return "So it is. " * 300
        asked.set()
        await allowed.wait()
        return "## Facts\n- So it was."

    async def allow() -> None:
        await asked.wait()
        allowed.set()

    model = ScriptedModel(answer, window=8_000)
    agent = agent_with(ContextManager("auto", compression="summarize"), model)
    other = asyncio.create_task(allow())
    for number in range(12):
        await agent.invoke_async(f"Question {number}?")
    await other
    assert "So it was." in text_of(model.requests[-1])
    assert (model.overflows, model.violations) == (0, [])


class Finding(BaseModel):
    number: int
    square: int


async def test_structured_output_goes_on_working():
    steps = [Call("squares"), "It is 49.", Call("Finding", {"number": 7, "square": 49})]
    agent = agent_with(ContextManager("auto"), ScriptedModel(steps * 2), squares)
    for _ in range(2):
        result = await agent.invoke_async("Seven?", structured_output_model=Finding)
        assert result.structured_output == Finding(number=7, square=49)
    assert agent.model.violations == []


async def test_an_agent_that_waits_for_a_human_goes_on_where_it_was():
    def ask(event: Any) -> None:
        if event.tool_use["name"] == "squares" and event.interrupt("allowed?", reason="many") != "yes":
            event.cancel_tool = "not allowed"

    history = [{"role": role, "content": [{"text": "x"}]} for _ in range(9) for role in ("user", "assistant")]
    steps = [[Call("squares"), Call("fetch", {"kind": "log", "size": 90_000, "seed": 1})], "Done."]
    manager = ContextManager("auto", compression={"window_size": 2})
    agent = agent_with(manager, ScriptedModel(steps, window=32_000), squares, fetch, messages=history)
    agent.add_hook(ask, BeforeToolCallEvent)
    waiting = await agent.invoke_async("Go.")
    assert waiting.stop_reason == "interrupt"
    [interrupt] = waiting.interrupts
    done = await agent.invoke_async([{"interruptResponse": {"interruptId": interrupt.id, "response": "yes"}}])
    assert str(done).strip() == "Done."
    assert len(references_in(agent.model.requests[-1].messages)) == 2
    assert agent.model.violations == []


def test_what_a_tool_returns_to_the_user_directly_is_offloaded_in_the_history():
    agent = agent_with(ContextManager("auto"), ScriptedModel(["Fine."]), squares)
    agent.tool.squares()
    agent("And?")
    assert len(references_in(agent.messages)) == 1
    assert agent.model.violations == []


# --- Long runs -------------------------------------------------------------------------------------------------------


class Library:
    """Texts, logs and JSON of any size, always the same for the same arguments."""

    def __init__(self) -> None:
        chance = random.Random(1)
        self.words = [
            "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(3_000)
        ]
        levels = ("INFO", "INFO", "WARN", "ERROR")
        logs = (
            f"10:{n // 60 % 60:02}:{n % 60:02} {chance.choice(levels)} request {n} took {n % 97} ms"
            for n in range(9_000)
        )
        self._pages = {"text": " ".join(chance.choices(self.words, k=60_000)), "log": "\n".join(logs)}
        self._rows = [json.dumps({"id": n, "name": chance.choice(self.words), "value": n * 1.5}) for n in range(9_000)]

    def read(self, kind: str, size: int, seed: int) -> str:
        if kind == "json":
            rows = self._rows[seed % 1_000 :]
            return f"[{','.join(rows[n % len(rows)] for n in range(size // 50))}]"
        page = self._pages[kind]
        whole = page[seed % len(page) :] + page * (size // len(page) + 1)
        return whole[:size]


LIBRARY = Library()


@strands.tool
def fetch(kind: str, size: int, seed: int) -> str:
    """Fetch a text, a log or some JSON."""
    return LIBRARY.read(kind, size, seed)


class Analyst:
    """Plays a model that calls tools for 20 to 50 turns, looks at what was offloaded, and then answers."""

    def __init__(self, seed: int, *, largest: int = 5_000_000) -> None:
        self.turns = 0
        self._largest = largest
        self._chance = random.Random(seed)
        self._left = 0
        self._seen: list[str] = []

    def __call__(self, request: Any) -> Any:
        self._seen = [*self._seen, *OFFLOADED.findall(request.latest_text)][-20:]
        self._left = (self._left or self._chance.randint(20, 50)) - 1
        if not self._left:
            return "This is what I found out. " * 20
        self.turns += 1
        return self._chance.choices(
            [self._fetching, self._retrieving, self._searching, self._pinning], [880, 100, 5, 15]
        )[0]()

    def _fetching(self) -> list[Any]:
        said = ["I look at it."] if self._chance.random() < 0.5 else []
        return said + [Call("fetch", self._wish()) for _ in range(self._chance.choice((1, 1, 1, 1, 2, 3)))]

    def _wish(self) -> dict[str, Any]:
        least, most = (100, 30_000) if self._chance.random() < 0.96 else (30_000, self._largest)
        size = least * (most / least) ** self._chance.random()
        return {
            "kind": self._chance.choice(("text", "json", "log")),
            "size": int(size),
            "seed": self._chance.randrange(10**6),
        }

    def _retrieving(self) -> Any:
        if not self._seen:
            return self._fetching()
        return Call(RETRIEVE, {"reference": self._chance.choice(self._seen), "line_range": {"start": 1, "end": 40}})

    def _searching(self) -> Any:
        return Call(SEARCH, {"query": self._chance.choice(LIBRARY.words)})

    def _pinning(self) -> Any:
        return Call(PIN, {"action": self._chance.choice(("pin", "unpin", "unpin")), "last": 2})


async def work(agent: Any, analyst: Analyst, turns: int) -> None:
    while analyst.turns < turns:
        await agent.invoke_async(f"Look at what happened in week {analyst.turns}. " + "Mind the details. " * 30)


async def test_two_hundred_turns_fit_a_small_window(tmp_path):
    analyst, storage = Analyst(7, largest=200_000), FileStorage(tmp_path)
    model = ScriptedModel(analyst, window=32_000, keep=1)
    manager = ContextManager("auto", offload_storage=storage)
    agent = agent_with(manager, model, fetch)
    await work(agent, analyst, 200)
    assert (model.overflows, model.violations) == (0, [])
    assert manager.compression.removed_message_count > 200
    assert await dead_references(agent.messages, manager) == []
    await manager.aclose()


@pytest.mark.extended
async def test_two_thousand_turns_fit_a_small_window_in_the_same_memory():
    analyst, storage = Analyst(7), InMemoryStorage()
    model = ScriptedModel(analyst, window=32_000, keep=1)
    manager = ContextManager("auto", offload_storage=storage)
    agent = agent_with(manager, model, fetch)
    await work(agent, analyst, 500)
    after_500 = await bytes_held_beside_the_search_index(agent, manager)
    await work(agent, analyst, 2_000)
    after_2000 = await bytes_held_beside_the_search_index(agent, manager)
    assert (model.overflows, model.violations) == (0, [])
    assert sum([entry.size async for entry in storage.entries()]) < 100_000_000
    assert after_2000 - after_500 < 10_000_000
    assert await dead_references(agent.messages, manager) == []


async def bytes_held_beside_the_search_index(agent: Any, manager: ContextManager) -> int:
    """All that Python can reach, without what Strands remembers of every turn, and what is offloaded right now."""
    await manager.aclose()
    agent.event_loop_metrics.traces.clear()
    gc.collect()
    seen, todo = {}, gc.get_objects()
    while todo:
        new = {id(value): value for value in todo if id(value) not in seen}
        seen |= new
        todo = gc.get_referents(*new.values())
    offloaded = sum([entry.size async for entry in manager.offloader.storage.entries()])
    # What is measured with does not count: a dict doubles now and then.
    return sum(map(sys.getsizeof, seen.values())) - sys.getsizeof(seen) - offloaded


async def test_strands_does_not_remember_what_was_offloaded():
    model = ScriptedModel([Call("fetch", {"kind": "log", "size": 300_000, "seed": 0})] * 3)
    agent = agent_with(ContextManager("auto"), model, fetch)
    result = await agent.invoke_async("Look at the log.")
    assert len(json.dumps(result.metrics.get_summary(), default=str)) < 60_000


@pytest.mark.parametrize("names_figures", [True, False])
async def test_a_window_that_nobody_told_is_found_by_overflows(names_figures, caplog):
    analyst = Analyst(8, largest=100_000)
    model = ScriptedModel(
        analyst, window=32_000, tells_window=False, names_figures=names_figures, usage_factor=1.3, keep=1
    )
    agent = agent_with(ContextManager("auto"), model, fetch)
    await work(agent, analyst, 40)
    assert model.violations == []
    # One is enough: where it names no figures, what was refused is the most that the window can be.
    assert model.overflows == 1
    assert "nobody said how many tokens the model 'scripted' takes, so 128,000 are assumed" in caplog.text


@pytest.mark.parametrize("factor", [0.8, 1.3])
async def test_a_model_that_counts_otherwise_never_overflows(factor):
    analyst = Analyst(9, largest=100_000)
    model = ScriptedModel(analyst, window=32_000, usage_factor=factor, keep=200)
    manager = ContextManager("auto")
    agent = agent_with(manager, model, fetch)
    await work(agent, analyst, 40)
    assert (model.overflows, model.violations) == (0, [])
    assert manager.compression.window.meter.calibration.ratio("scripted") == pytest.approx(factor, rel=0.05)
    assert max(request.tokens for request in model.requests) > 20_000


# --- A storage that fails --------------------------------------------------------------------------------------------

LINES = 400


def ledger(number: int) -> str:
    return "\n".join(
        f"ledger {number} line {line}: amount {(number * 7919 + line * 104729) % 100_003}" for line in range(LINES)
    )


@strands.tool
def read_ledger(number: int) -> str:
    """Read a ledger."""
    return ledger(number)


class Accountant:
    """Plays a model that reports one amount of each ledger. What it does not see it looks up until it is told."""

    def __init__(self, *, ledgers: int = 5) -> None:
        self.promised: dict[str, int] = {}
        self.lookups = 0
        self._ledgers = ledgers
        self._number = 0
        self._amounts: list[str] = []

    def __call__(self, request: Any) -> Any:
        for reference in OFFLOADED.findall(request.latest_text):
            self.promised[reference] = self._number
            where = {"line_range": {"start": 252, "end": 252}} if self._number % 2 else {"pattern": "line 251:"}
            self._query = {"reference": reference, **where}
        if found := re.search(rf"ledger {self._number} line 251: amount (\d+)", request.latest_text):
            return self._noted(found[1])
        return self._next() if request.latest_text == "Report." else self._look_up()

    def _noted(self, amount: str) -> Any:
        self._amounts.append(amount)
        if len(self._amounts) < self._ledgers:
            return self._next()
        answer, self._amounts = ", ".join(self._amounts), []
        return answer

    def _next(self) -> Any:
        self._number += 1
        return Call("read_ledger", {"number": self._number})

    def _look_up(self) -> Any:
        self.lookups += 1
        return Call(RETRIEVE, self._query)


async def reports(storage: Storage, accountant: Accountant, most_overflows: int = 0, **options: Any) -> list[str]:
    model = ScriptedModel(accountant, window=32_000)
    manager = ContextManager("auto", offload_storage=storage, offloader=options)
    agent = agent_with(manager, model, read_ledger)
    answers = [str(await agent.invoke_async("Report.")).strip() for _ in range(3)]
    await manager.aclose()
    assert model.overflows <= most_overflows
    assert model.violations == []
    return answers


def at_random() -> set[int]:
    chance = random.Random(3)
    return {call for call in range(1, 1_000) if chance.random() < 0.1}


FAULTS: dict[str, Callable[[Storage], Any]] = {
    "works": lambda inner: inner,
    "fails at random": lambda inner: FlakyStorage(inner, at_random()),
    "loses answers at random": lambda inner: FlakyStorage(inner, at_random(), lose_answers=True),
    "raises what nobody expects": lambda inner: FlakyStorage(inner, at_random(), error=lambda: OSError("no route")),
    "is down for a while": lambda inner: FlakyStorage(inner, range(8, 30)),
    "is slow": lambda inner: SlowStorage(inner, 0.002),
    "is slow and fails": lambda inner: SlowStorage(FlakyStorage(inner, at_random()), 30.0, sleep=FakeClock().sleep),
}


def right_answers() -> list[str]:
    amounts = [ledger(number).splitlines()[251].rpartition(" ")[2] for number in range(1, 16)]
    return [", ".join(amounts[first : first + 5]) for first in (0, 5, 10)]


@pytest.mark.parametrize("fault", FAULTS)
async def test_whatever_the_storage_does_the_answers_are_the_same(fault):
    accountant, inner = Accountant(), InMemoryStorage(evict_after_turns=None)
    assert await reports(FAULTS[fault](inner), accountant) == right_answers()
    for reference, number in accountant.promised.items():
        assert (await inner.retrieve(reference))[0].decode() == ledger(number)
    it_worked = len(accountant.promised) == accountant.lookups == 15
    assert it_worked is (fault in ("works", "is slow"))


async def test_a_storage_that_never_answers_in_time_costs_only_room():
    accountant, slow = Accountant(), SlowStorage(InMemoryStorage(evict_after_turns=None), 0.03)
    # What cannot be stored leaves only when the model took no more.
    assert await reports(slow, accountant, most_overflows=5, store_timeout=0.01) == right_answers()
    assert accountant.promised == {}


async def test_a_search_while_the_storage_is_down_shows_what_is_indexed_and_says_so():
    storage = FlakyStorage(InMemoryStorage(evict_after_turns=None), range(2, 5))
    search = Call(SEARCH, {"query": "ledger 3 line 251"})
    model = ScriptedModel([Call("read_ledger", {"number": 3}), *[search] * 6])
    await agent_with(ContextManager("auto", offload_storage=storage), model, read_ledger).invoke_async("Search.")
    answers = [request.latest_text for request in model.requests][2:]
    assert "whether these can be opened just now is not known" in answers[0]
    assert "injected fault" in answers[0]
    assert "injected fault" not in answers[-1]
    assert all("ledger 3 line 251: amount" in answer for answer in answers)


# --- Many agents in one loop -----------------------------------------------------------------------------------------

AGENTS = 50


class Tenant:
    """Plays a model that looks at a secret log of its own, searches, and tries the reference of another."""

    def __init__(self, name: str, board: list[str]) -> None:
        self.name = name
        self.seen: list[str] = []
        self._board = board
        self._steps = self._script()

    def __call__(self, request: Any) -> Any:
        self.seen.append(request.latest_text)
        for reference in OFFLOADED.findall(request.latest_text):
            self._board.append(reference)
            self.own = reference
        return next(self._steps)

    def _script(self) -> Iterator[Any]:
        yield Call("secret_log", {"name": self.name})
        yield Call(RETRIEVE, {"reference": self.own, "line_range": {"start": 51, "end": 51}})
        yield Call(SEARCH, {"query": "the secret", "limit": 20})
        foreign = next(reference for reference in self._board if reference != self.own)
        yield Call(RETRIEVE, {"reference": foreign, "pattern": "secret"})
        yield f"I am {self.name}."


@strands.tool
async def secret_log(name: str) -> str:
    """Read the secret log of somebody."""
    await asyncio.sleep(0)
    return "\n".join(f"line {line + 1}: the secret of {name} is {name}-{line}" for line in range(80))


def open_shared(kind: str, folder: Path) -> Storage:
    return FileStorage(folder / "shared") if kind == "files" else InMemoryStorage(evict_after_turns=None)


@pytest.mark.parametrize(("kind", "scoped"), [("memory", True), ("files", True), ("files", False)])
async def test_fifty_agents_in_one_loop_share_a_storage(kind, scoped, tmp_path):
    shared, board = open_shared(kind, tmp_path), []
    tenants = [Tenant(f"tenant{number:02}", board) for number in range(AGENTS)]
    models = [ScriptedModel(tenant, window=32_000) for tenant in tenants]

    def storage_of(tenant: Tenant) -> Storage:
        return ScopedStorage(shared, tenant.name) if scoped else shared

    small = {"threshold": 500, "preview_tokens": 200}
    managers = [ContextManager("auto", offload_storage=storage_of(tenant), offloader=small) for tenant in tenants]
    agents = [agent_with(manager, model, secret_log) for manager, model in zip(managers, models, strict=True)]
    answers = await asyncio.gather(*(agent.invoke_async("Go.") for agent in agents))
    assert [str(answer).strip() for answer in answers] == [f"I am {tenant.name}." for tenant in tenants]
    assert all(model.violations == [] for model in models)
    for tenant in tenants:
        assert f"line 51: the secret of {tenant.name} is {tenant.name}-50" in tenant.seen[2]
        # Searches tell of one's own only. With scopes, so does everything else.
        assert ("not stored in the scope" in tenant.seen[4]) is scoped
        assert {name for text in tenant.seen[: 5 if scoped else 4] for name in re.findall(r"tenant\d\d", text)} == {
            tenant.name
        }
    await asyncio.gather(*(manager.aclose() for manager in managers))


async def test_one_memory_that_forgets_by_turns_serves_one_agent_only():
    storage = InMemoryStorage()
    first = agent_with(ContextManager("auto", offload_storage=storage), ScriptedModel())
    await first.invoke_async("Go.")
    with pytest.raises(SharedStorageError, match="evict_after_turns=None"):
        await agent_with(ContextManager("auto", offload_storage=storage), ScriptedModel()).invoke_async("Go.")


# --- Cancellation ----------------------------------------------------------------------------------------------------

NOTES = "\n".join(f"note {number}: nothing new on day {number}" for number in range(40))
EARLIER = [
    {"role": role, "content": [{"text": f"{NOTES} {number}"}]} for number in range(4) for role in ("user", "assistant")
]


@strands.tool
def read_notes(part: int) -> str:
    """Read notes, in a thread."""
    return f"part {part}\n{NOTES}"


@strands.tool
async def read_more_notes(part: int) -> str:
    """Read notes, in the event loop."""
    await asyncio.sleep(0)
    return f"part {part}\n{NOTES}"


class Cancellation:
    """Runs a coroutine, and cancels it at a moment of some number: an await of its own, or when `reach` is called."""

    def __init__(self, number: int) -> None:
        self._left = number

    async def strikes(self, coroutine: Any) -> bool:
        """Return whether it came to that."""
        self._task = asyncio.create_task(self._run(coroutine))
        await asyncio.wait([self._task])
        return self._task.cancelled() or self._task.result()

    async def reach(self, seconds: float = 0.0) -> None:
        self._count()
        await asyncio.sleep(0)

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._task.cancel()

    async def _run(self, coroutine: Any) -> bool:
        await self._step_by_step(coroutine)
        return False

    @types.coroutine
    def _step_by_step(self, coroutine: Any) -> Generator[Any, Any, None]:
        step, argument = coroutine.send, None
        while True:
            try:
                awaited = step(argument)
            except StopIteration:
                return
            self._count()
            try:
                yield awaited
            except BaseException as error:
                step, argument = coroutine.throw, error
            else:
                step, argument = coroutine.send, None


def busy_agent(cancellation: Cancellation, storage: Storage, method: str, executor: type) -> tuple[Any, ContextManager]:
    """An agent that offloads, reduces and looks things up within one invocation of four turns."""

    async def summarizer(prompt: str) -> str:
        await cancellation.reach()
        return "## Facts\n- There were notes."

    def answer(request: Any) -> Any:
        turn, seen = request.number % 4, references_in(request.messages)
        if turn == 0:
            return "That is all."
        if turn == 3 and seen:
            return [Call(RETRIEVE, {"reference": seen[-1], "pattern": "day 7"}), Call(SEARCH, {"query": "day 9"})]
        return [Call("read_notes", {"part": turn}), Call("read_more_notes", {"part": turn})]

    compression = {"summarizer": summarizer, "method": method} if method == "summarize" else {"method": method}
    manager = ContextManager(
        "auto",
        compression={**compression, "window_size": 10},
        offload_storage=SlowStorage(storage, 0.0, sleep=cancellation.reach),
        offloader={"threshold": 300, "preview_tokens": 100},
    )
    options = {"messages": copy.deepcopy(EARLIER), "tool_executor": executor()}
    model = ScriptedModel(answer, window=6_000)
    return agent_with(manager, model, read_notes, read_more_notes, **options), manager


async def findings_in(folder: Path) -> list[Any]:
    return [
        finding async for checked in audit_directory(str(folder), time.time() + 86_400) for finding in checked.findings
    ]


@pytest.mark.parametrize(
    ("method", "executor"), [("truncate", ConcurrentToolExecutor), ("summarize", SequentialToolExecutor)]
)
async def test_cancelled_at_any_await_the_history_stays_whole(method, executor, tmp_path):
    storage = FileStorage(tmp_path)
    for number in itertools.count(1):
        agent, manager = busy_agent(cancellation := Cancellation(number), storage, method, executor)
        if not await cancellation.strikes(agent.invoke_async("Look at the notes.")):
            break
        await manager.aclose()
        await assert_whole(agent.messages)
        assert await dead_references(agent.messages, storage) == []
        assert json.dumps(manager.get_state())
        await agent.invoke_async("Go on.")
        assert (agent.model.violations, agent.model.overflows) == ([], 0)
        assert await dead_references(agent.messages, storage) == []
        await manager.aclose()
    assert manager.compression.removed_message_count > 0
    assert number > 25
    assert await findings_in(tmp_path) == []


async def assert_whole(messages: list[Any]) -> None:
    """At the end, a call may stand without its result, which Strands mends when the user speaks again, or an answer."""
    sent = [{"role": message["role"], "content": message["content"]} for message in messages]
    ends_with_model = sent[-1]["role"] == "assistant"
    assert await asyncio.to_thread(converse_problems, sent[:-1] if ends_with_model else sent) == []


@pytest.mark.parametrize("moment", ["tool", "model"])
async def test_an_agent_that_was_told_to_stop_goes_on_later(moment):
    @strands.tool
    def stop() -> str:
        """Return a lot, after somebody stopped the agent."""
        agent.cancel()
        return LONG

    def answer(request: Any) -> Any:
        if request.number == 1 and moment == "model":
            agent.cancel()
        return "Done." if "Go on." in request.latest_text else [Call("stop"), Call("squares")]

    model, storage = ScriptedModel(answer, window=32_000), InMemoryStorage()
    agent = agent_with(ContextManager("auto", offload_storage=storage), model, stop, squares)
    assert (await agent.invoke_async("Go.")).stop_reason == "cancelled"
    assert str(await agent.invoke_async("Go on.")).strip() == "Done."
    assert model.violations == []
    assert await dead_references(agent.messages, storage) == []


async def test_a_user_who_speaks_again_after_a_failed_call_is_understood():
    model = ScriptedModel([RuntimeError("the network is down"), "Hello."])
    agent = agent_with(ContextManager("auto"), model)
    with pytest.raises(RuntimeError, match="the network is down"):
        await agent.invoke_async("Hello?")
    await agent.invoke_async("Anybody there?")
    assert model.violations == []
    assert [message["role"] for message in agent.messages] == ["user", "user", "assistant"]
    assert model.requests[-1].latest_text == "Hello?\nAnybody there?"


async def test_what_a_tool_returns_in_the_background_is_offloaded():
    model = ScriptedModel([Call("squares"), "I wait.", "Done."], window=32_000)
    agent = agent_with(ContextManager("auto"), model, squares, background_tasks={"always": ["squares"]})
    await agent.invoke_async("Go.")
    assert (model.violations, model.overflows) == ([], 0)
    assert LONG not in text_of(model.requests[-1])
    assert len(references_in(agent.messages)) == 1
