"""Compression measured beside strands-agents, beside itself in a short history, and beside writing a history as JSON.

Every figure is a ratio, measured in one run on one machine: rounds of the contenders alternate, and the median counts.
Prints the table; with --write, the figures go to results.json and the pages as well.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import time
import warnings
from collections.abc import Awaitable, Callable
from itertools import pairwise
from random import Random
from typing import Any

from reporting import Benchmark, Row, alternating, at_most, faster

from holdfast.compression import ContextCompression, Plan, Truncate
from holdfast.hooks import BeforeModelCall, Conversation

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import strands
    from strands.hooks import BeforeModelCallEvent
    from strands.models import Model

MANY, FEW = 10_000, 100
TURNS = 20
# Far more than the histories here take, so that nobody has a reason to act.
HUGE_WINDOW = 1_000_000_000


# Histories: an agent that reads, runs and edits. Its messages are as long as in recorded runs of coding agents, 1.2 KB
# on average, but for results above 5.5 KB: strands would cut those, and the turns here are such in which nobody acts.

LENGTHS_OF_RESULTS = (20, 100, 100, 350, 350, 800, 1_700, 1_700, 4_800, 5_500)
WORDS = re.findall(
    r"\w+",
    "the parser returns an error when a line is empty, so we read the file again and check each value before it is "
    "written to disk; tests fail in module session because the cursor of that query was closed after the commit",
)
TOOLS = ("read_file", "run_tests", "search", "edit_file")


def prose(chance: Random, length: int) -> str:
    return " ".join(chance.choices(WORDS, k=length // 5))


def log(chance: Random, length: int) -> str:
    lines = (f"2026-11-16 02:{n % 60:02} WARN worker-{chance.randrange(9)} {prose(chance, 40)}" for n in range(length))
    return "\n".join(line for _, line in zip(range(length // 80 + 1), lines, strict=False))


def code(chance: Random, length: int) -> str:
    names = chance.choices(WORDS, k=length // 45 + 2)
    return "\n".join(f"    {one}_{other} = self._{other}({one!r}, {len(one)})" for one, other in pairwise(names))


def records(chance: Random, length: int) -> str:
    rows = [{"id": chance.randrange(10_000), "name": prose(chance, 20)} for _ in range(length // 50 + 1)]
    return json.dumps(rows)


def history(length: int) -> list[dict[str, Any]]:
    """A history of so many messages, ready for the model's next answer; its beginning is the same for any length."""
    chance, messages = Random(4), [said("user", prose(Random(4), 400))]
    while len(messages) < length:
        number = len(messages)
        if number % 20 == 19:
            messages += [said("assistant", prose(chance, 900)), said("user", prose(chance, 200))]
        else:
            messages += called(f"tooluse_{number}", chance)
    return messages[:length]


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"text": text}]}


def called(tool_use_id: str, chance: Random) -> list[dict[str, Any]]:
    name, write = chance.choice(TOOLS), chance.choice((prose, log, code, records))
    arguments = {"path": f"src/module_{chance.randrange(99)}.py", "text": code(chance, chance.choice((50, 200, 1_000)))}
    use = {"toolUseId": tool_use_id, "name": name, "input": arguments}
    length = chance.choice(LENGTHS_OF_RESULTS)
    result = {"toolUseId": tool_use_id, "status": "success", "content": [{"text": write(chance, length)[:length]}]}
    return [
        {"role": "assistant", "content": [{"text": prose(chance, 300)}, {"toolUse": use}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]


# The turns, which come after every history.
NEXT = [message for number in range(TURNS + 1) for message in called(f"next_{number}", Random(number))]


# A turn in which nothing leaves


def measure_turns() -> list[Row]:
    """a turn that leaves the history as it is, beside strands' "auto" """
    many, few = history(MANY - 1), history(FEW - 1)
    medians = alternating(
        {
            "many": lambda: asyncio.run(seconds_per_turn(ours(many))),
            "few": lambda: asyncio.run(seconds_per_turn(ours(few))),
            "strands": lambda: asyncio.run(seconds_per_turn(theirs(many))),
        },
        rounds=9,
    )
    turn = "a turn that reads what is new, looks for edits made by others, estimates, and does not act"
    return [
        at_most(f"{turn}, at 10,000 messages against 100", 3, medians["many"], medians["few"]),
        faster(
            '… at 10,000 messages, against the hook of strands\' `"auto"`', 100, medians["many"], medians["strands"]
        ),
    ]


Turn = Callable[[], Awaitable[object]]


def ours(messages: list[Any]) -> tuple[list[Any], Turn]:
    """The history of an agent with holdfast, and what happens before each of its model calls."""
    conversation = Conversation(list(messages), window=HUGE_WINDOW)
    plugin = ContextCompression("truncate")
    return conversation.messages, lambda: plugin.before_model_call(BeforeModelCall(conversation))


def theirs(messages: list[Any]) -> tuple[list[Any], Turn]:
    """The history of an agent of strands, and the hooks that run before each of its model calls."""
    agent = strands.Agent(model=Silent(), messages=list(messages), context_manager="auto", callback_handler=None)

    async def turn() -> object:
        return await agent.hooks.invoke_callbacks_async(BeforeModelCallEvent(agent, projected_input_tokens=1_000))

    return agent.messages, turn


class Silent(Model):
    """A model with a huge window, which is never called."""

    def get_config(self) -> Any:
        return {"context_window_limit": HUGE_WINDOW}

    def update_config(self, **model_config: Any) -> None:
        raise NotImplementedError

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def seconds_per_turn(agent: tuple[list[Any], Turn]) -> float:
    """The processor time of a turn with two new messages, once the history before them is known."""
    messages, turn = agent
    before = len(messages)
    await with_next(messages, 0, turn)
    gc.collect()
    seconds = [await with_next(messages, number, turn) for number in range(1, TURNS + 1)]
    assert messages[before:] == NEXT, "somebody acted"
    return sum(seconds) / TURNS


async def with_next(messages: list[Any], number: int, turn: Turn) -> float:
    messages += NEXT[2 * number : 2 * number + 2]
    began = time.process_time()
    await turn()
    return time.process_time() - began


# Truncation


def measure_truncation() -> list[Row]:
    """truncating a long history, beside writing it as JSON"""
    messages = history(MANY)
    medians = alternating(
        {
            "ours": lambda: asyncio.run(seconds_to_truncate(messages)),
            "dropping": lambda: asyncio.run(seconds_to_truncate(messages, shorten_results=False)),
            "verified": lambda: asyncio.run(seconds_to_truncate(messages, verified=True)),
            "json": lambda: seconds_of(lambda: json.dumps(messages)),
        },
        rounds=9,
    )
    measure = "truncating 10,000 messages to the low-water mark, against one `json.dumps` of them"
    return [
        at_most(measure, 1, medians["ours"], medians["json"]),
        at_most("… where whole messages leave and none is shortened", 1, medians["dropping"], medians["json"]),
        at_most(
            "… including the look at every message that each reduction begins with",
            1,
            medians["verified"],
            medians["json"],
        ),
    ]


async def seconds_to_truncate(messages: list[Any], *, shorten_results: bool = True, verified: bool = False) -> float:
    """The processor time of a plan and of carrying it out, with a history that was read in the turns before."""
    conversation = Conversation(list(messages), window=HUGE_WINDOW)
    plugin = ContextCompression(Truncate(shorten_results=shorten_results))
    await plugin.before_model_call(BeforeModelCall(conversation))
    window, history = plugin.window, plugin.window.history
    conversation.window = history.total * 10 // 7

    def truncate() -> None:
        if verified:
            history.verify(conversation.messages)
        plan = plugin.compressor.plan(history, window.budget(conversation))
        assert isinstance(plan, Plan)
        window.carry_out(plan, conversation)

    seconds = seconds_of(truncate)
    target = window.budget(conversation).target
    assert 0.9 * target < history.total <= target, "not down to the low-water mark"
    return seconds


def seconds_of(act: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    act()
    return time.process_time() - began


BENCHMARK = Benchmark(
    name="compression",
    measures=(measure_turns, measure_truncation),
    packages=("strands-agents",),
)

if __name__ == "__main__":
    BENCHMARK.run()
