"""What a turn of a Strands agent costs inside hooks: ours beside strands' "auto" and its sliding window.

The agent, its model, its tool and its history are the same for all; only who manages the context differs. A turn is what
hooks do from one model call to the next: the model has answered, a tool is called, both messages are added, and the
history is looked at before the next call. What strands does outside of hooks counts for nobody, such as its copy of all
messages for every call. The window is so large that nobody has a reason to reduce anything: it is the standing cost that
is measured. The first turn does not count, in which everybody reads the whole history.

Every figure with a bar is a ratio, measured in one run on one machine: rounds of the contenders alternate, and the
median counts. Prints the table and writes benchmarks/strands_turns.latest.json; with --readme, the figures go to README
and benchmarks/strands_turns.json instead.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from compression import HUGE_WINDOW, log, prose, said
from reporting import Benchmark, Row, alternating, at_most, faster

from holdfast import InMemoryStorage
from holdfast.adapters.strands import ContextManager
from holdfast.references import offloaded_as
from holdfast.testing import Call, Request, ScriptedModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import strands
    from strands.agent.conversation_manager import SlidingWindowConversationManager
    from strands.session import FileSessionManager

FEW, SOME, MANY = 100, 1_000, 10_000
TURNS = 10
# Of so many results, one is large: it leaves the window with us, and is cut by strands' "auto".
ONE_LARGE_IN = 8


# Histories: an agent that reads a log, piece by piece.

_chance = Random(6)
RESULTS = [log(_chance, length)[:length] for length in range(1_000, 2_000, 10)]
WORDS = [prose(_chance, 300) for _ in range(100)]
LARGE = log(_chance, 40_000)
PREVIEW = f"text/plain, 40 KB, 500 lines, about 11,000 tokens. Preview (log):]\n{LARGE[:2_000]}\n[End of the preview.]"


@strands.tool
def read_log(part: int) -> str:
    """Read a part of the log."""
    return LARGE if part % ONE_LARGE_IN == 0 else RESULTS[part % len(RESULTS)]


def history(length: int, references: list[str]) -> list[Any]:
    """So many messages as strands leaves them; large results left the window before, and *references* lead to them."""
    names, messages = cycle(references), [said("user", "Find out why the workers of last night were restarted.")]
    while len(messages) < length - 1:
        part = len(messages) // 2
        messages += called(part, f"{offloaded_as(next(names))}{PREVIEW}" if part % ONE_LARGE_IN == 0 else None)
    return [*messages, *answered(WORDS[0])]


def called(part: int, preview: str | None) -> list[Any]:
    use = {"toolUseId": f"call_{part}", "name": "read_log", "input": {"part": part}}
    text = preview or RESULTS[part % len(RESULTS)]
    result = {"toolUseId": f"call_{part}", "status": "success", "content": [{"text": text}]}
    [answer] = answered(WORDS[part % len(WORDS)], {"toolUse": use})
    return [answer, {"role": "user", "content": [{"toolResult": result}], "tracking_id": f"result-{part}"}]


def answered(text: str, *blocks: Any) -> list[Any]:
    usage = {"inputTokens": 10_000, "outputTokens": 100, "totalTokens": 10_100}
    metadata = {"usage": usage, "metrics": {"latencyMs": 900, "timeToFirstByteMs": 200}}
    return [{"role": "assistant", "content": [{"text": text}, *blocks], "metadata": metadata}]


# Turns


class Stopwatch:
    """Adds up the time inside hooks from one model call to the next."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self._inside = 0.0

    def watch(self, agent: strands.Agent) -> None:
        """Measure the hooks of *agent* from now on. Its conversation manager has no work that is not in them."""
        invoke = agent.hooks.invoke_callbacks_async

        async def invoke_and_measure(event: Any) -> Any:
            began = time.perf_counter()
            try:
                return await invoke(event)
            finally:
                self._inside += time.perf_counter() - began

        agent.hooks.invoke_callbacks_async = invoke_and_measure

    def answer(self, request: Request) -> Any:
        """The script of the model, in which one turn ends and the next begins."""
        self.turns.append(self._inside)
        self._inside = 0.0
        return Call("read_log", {"part": len(self.turns)}) if len(self.turns) <= TURNS else "That is all."


Contender = Callable[..., strands.Agent]


async def seconds_per_turn(contender: Contender, length: int, **options: Any) -> float:
    """The median of the turns with so many messages, and a few more with each."""
    storage, stopwatch = InMemoryStorage(), Stopwatch()
    references = [await storage.store(f"call_{number}", LARGE.encode()) for number in range(length // 2 // ONE_LARGE_IN)]
    model = ScriptedModel(stopwatch.answer, window=HUGE_WINDOW, validate=False, keep=1)
    agent = contender(storage, model=model, tools=[read_log], callback_handler=None, **options)
    agent.messages = before = history(length, references)
    stopwatch.watch(agent)
    gc.collect()
    await agent.invoke_async("Go on, please.")
    assert len(model.requests[-1].messages) == length + 1 + 2 * TURNS, "somebody reduced the history"
    return median(stopwatch.turns[2:])


def ours(storage: InMemoryStorage, **options: Any) -> strands.Agent:
    return strands.Agent(**options, plugins=[ContextManager("auto", offload_storage=storage)])


def auto(storage: InMemoryStorage, **options: Any) -> strands.Agent:
    return strands.Agent(**options, context_manager="auto")


def sliding(storage: InMemoryStorage, **options: Any) -> strands.Agent:
    """Looks at the history in every turn, too, and like the others finds nothing to do."""
    manager = SlidingWindowConversationManager(window_size=HUGE_WINDOW, per_turn=True)
    return strands.Agent(**options, conversation_manager=manager)

if __name__ == "__main__":
    for c in (ours, auto, sliding):
        for n in (100,1000,10000):
            t=time.time()
            s = asyncio.run(seconds_per_turn(c, n))
            print(c.__name__, n, f"{s*1e3:.3f} ms", f"{time.time()-t:.1f} s")
