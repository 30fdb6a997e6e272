"""What a turn of a Strands agent takes inside hooks: ours beside strands' "auto" and its sliding window.

The agent, its model, its tool and its history are the same for all; only who manages the context differs. A turn is
what hooks do from one model call to the next: the model has answered, a tool is called, both messages are added, and
the history is looked at before the next call. What strands does outside of hooks counts for nobody, such as its copies
of all messages for every call. The window is so large that nobody has a reason to reduce anything: what is measured is
the standing cost. The first turns do not count, in which everybody reads the whole history.

Every figure is a ratio of processor times, measured in one run on one machine: the turns of all agents alternate, and
the median counts. Prints the table; with --write, the figures go to results.json and the pages as well.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import cycle
from random import Random
from statistics import median
from typing import Any

from compression import HUGE_WINDOW, log, prose, said
from reporting import Benchmark, Row, at_most, faster

from holdfast import FileStorage, InMemoryStorage, Storage
from holdfast.adapters.strands import ContextManager
from holdfast.testing import Call, Request, ScriptedModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import strands
    from strands.agent.conversation_manager import SlidingWindowConversationManager
    from strands.session import FileSessionManager

FEW, SOME, MANY = 100, 1_000, 10_000
TURNS, FIRST_TURNS = 8, 2
# Of so many results, one is large: with us it leaves the window, and strands' "auto" cuts it.
ONE_LARGE_IN = 8


# Histories: an agent that reads a log, piece by piece.

CHANCE = Random(6)
RESULTS = [log(CHANCE, length)[:length] for length in range(1_000, 2_000, 10)]
WORDS = [prose(CHANCE, 300) for _ in range(100)]
LARGE = log(CHANCE, 40_000)
EXTRACT = f"text/plain, 40 KB, about 11,000 tokens, 500 lines]\n{LARGE[:2_000]}"


def result_of(part: int) -> str:
    return LARGE if part % ONE_LARGE_IN == 0 else RESULTS[part % len(RESULTS)]


@strands.tool
def read_log(part: int) -> str:
    """Read a part of the log."""
    return result_of(part)


def history(length: int, references: Sequence[str]) -> list[Any]:
    """So many messages as strands leaves them. *references* lead to the large results, of which extracts are left."""
    names, messages = cycle(references), [said("user", "Find out why the workers were restarted last night.")]
    while len(messages) < length - 1:
        part = len(messages) // 2
        messages += called(part, next(names)) if part % ONE_LARGE_IN == 0 else called(part)
    messages.append(answered(WORDS[0]))
    return [{**message, "tracking_id": f"message-{number}"} for number, message in enumerate(messages)]


def called(part: int, reference: str = "") -> list[Any]:
    text = f"[Offloaded as {reference} : {EXTRACT}" if reference else result_of(part)
    use = {"toolUseId": f"call_{part}", "name": "read_log", "input": {"part": part}}
    result = {"toolUseId": f"call_{part}", "status": "success", "content": [{"text": text}]}
    return [
        answered(WORDS[part % len(WORDS)], {"toolUse": use}),
        {"role": "user", "content": [{"toolResult": result}]}
        | ({"metadata": {"custom": {"offloaded": [reference]}}} if reference else {}),
    ]


def answered(text: str, *blocks: Any) -> dict[str, Any]:
    usage = {"inputTokens": 10_000, "outputTokens": 100, "totalTokens": 10_100}
    metadata = {"usage": usage, "metrics": {"latencyMs": 900, "timeToFirstByteMs": 200}}
    return {"role": "assistant", "content": [{"text": text}, *blocks], "metadata": metadata}


# Who manages the context


def ours(storage: Storage, **options: Any) -> strands.Agent:
    return strands.Agent(**options, plugins=[ContextManager("auto", offload_storage=storage)])


def auto(storage: Storage, **options: Any) -> strands.Agent:
    return strands.Agent(**options, context_manager="auto")


def sliding(storage: Storage, **options: Any) -> strands.Agent:
    """Looks at the history in every turn as the others do, and not only after the last; it finds nothing to do."""
    manager = SlidingWindowConversationManager(window_size=HUGE_WINDOW, per_turn=True)
    return strands.Agent(**options, conversation_manager=manager)


Contender = Callable[..., strands.Agent]


# Turns


class Run:
    """The turns of one agent, which alternate with those of others, and the seconds that hooks took in each."""

    def __init__(self, length: int, baton: asyncio.Lock) -> None:
        self.length = length
        self.turns: list[float] = []
        self._baton = baton
        self._inside = 0.0

    async def prepare(self, contender: Contender, storage: Storage, **options: Any) -> Run:
        """Make the agent, with a history of so many messages."""
        large = range(0, self.length // 2, ONE_LARGE_IN)
        references = [await storage.store(f"call_{part}", LARGE.encode()) for part in large]
        model = ScriptedModel(self._answer, window=HUGE_WINDOW, validate=False, keep=1, count=about)
        given = {"model": model, "messages": history(self.length, references), "tools": [read_log], **options}
        self._agent = contender(storage, callback_handler=None, **given)
        self._measure_hooks(self._agent)
        return self

    async def go(self) -> float:
        """Return the median over the turns."""
        async with self._baton:
            await self._agent.invoke_async("Go on, please.")
        return median(self.turns[FIRST_TURNS:])

    def _measure_hooks(self, agent: strands.Agent) -> None:
        """The conversation manager does nothing outside of hooks before the agent is done."""
        invoke = agent.hooks.invoke_callbacks_async

        async def invoke_and_measure(event: Any) -> Any:
            began = time.process_time()
            try:
                return await invoke(event)
            finally:
                self._inside += time.process_time() - began

        agent.hooks.invoke_callbacks_async = invoke_and_measure

    async def _answer(self, request: Request) -> Any:
        """The model's script: here one turn ends, and the next begins when all others had theirs."""
        turn, inside, self._inside = len(self.turns), self._inside, 0.0
        assert len(request.messages) == self.length + 1 + 2 * turn, "somebody reduced the history"
        self.turns.append(inside)
        self._baton.release()
        await self._baton.acquire()
        return Call("read_log", {"part": turn}) if turn < FIRST_TURNS + TURNS - 1 else "That is all."


def about(messages: list[Any], *_: Any) -> int:
    """A count that takes no time; it is not part of what is measured."""
    return 400 * len(messages)


Medians = dict[tuple[Contender, int], float]


async def medians(agents: Sequence[tuple[Contender, int]], options: Callable[[int], dict[str, Any]]) -> Medians:
    """The seconds per turn of each agent. *options* are for its number."""
    baton = asyncio.Lock()
    runs = [await Run(length, baton).prepare(who, **options(at)) for at, (who, length) in enumerate(agents)]
    gc.collect()
    # Else whoever makes the collector run pays for the histories of all others.
    gc.freeze()
    return dict(zip(agents, await asyncio.gather(*(run.go() for run in runs)), strict=True))


def measure_turns() -> list[Row]:
    """turns of an agent, beside strands' "auto" and its sliding window"""
    lengths, contenders = (FEW, SOME, MANY), (ours, auto, sliding)
    agents = [(who, length) for length in lengths for who in contenders]
    found = asyncio.run(medians(agents, lambda at: {"storage": InMemoryStorage()}))
    by_auto = " and ".join(f"{found[auto, length] / found[ours, length]:.1f}× at {length:,}" for length in (FEW, SOME))
    by_sliding = ", ".join(f"{found[ours, length] / found[sliding, length]:.1f}×" for length in lengths)
    return [
        at_most("all hooks of a turn, at 10,000 messages against 100", 3, found[ours, MANY], found[ours, FEW]),
        faster(
            f'… at 10,000 messages, against those of strands\' `"auto"` ({by_auto})',
            50,
            found[ours, MANY],
            found[auto, MANY],
        ),
        Row(
            "… at 100, 1,000 and 10,000 messages, against strands' sliding window, which only counts messages",
            "none",
            by_sliding,
            True,
        ),
    ]


# Turns that are written down


def measure_sessions() -> list[Row]:
    """turns of an agent with a session, beside strands' sliding window"""
    agents = [(who, length) for length in (FEW, SOME) for who in (ours, sliding)]
    with tempfile.TemporaryDirectory() as directory:

        def options(at: int) -> dict[str, Any]:
            session = FileSessionManager(f"session-{at}", storage_dir=directory)
            return {"storage": FileStorage(f"{directory}/offloaded-{at}"), "session_manager": session}

        found = asyncio.run(medians(agents, options))
    compared = ", ".join(f"{found[ours, length] / found[sliding, length]:.1f}×" for length in (FEW, SOME))
    measure = "… with a `FileSessionManager`, at 100 and 1,000 messages, against the sliding window with one"
    return [Row(measure, "none", compared, True)]


BENCHMARK = Benchmark(
    name="strands_turns",
    measures=(measure_turns, measure_sessions),
    packages=("strands-agents",),
)

if __name__ == "__main__":
    BENCHMARK.run()
