"""A recorded run, lived through again by a loop of one's own with holdfast: where is later what the agent then used?"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recall_runs import Bill, Message, Part, Probe, Run, recorded, request_of, text_of, tokens_of, words_of_another

from holdfast import ContextManager
from holdfast.turns import Allowance, Turn

SEARCHES = ("search_context", "search_offloaded_content")
OPENS = ("retrieve_offloaded_content",)
ANY_LENGTH = 1_000_000_000
BY_CHANCE = "found by chance"
IN_TWO_STEPS = "found in two steps"

logger = logging.getLogger("recall")


class TooLongError(Exception):
    """What a provider says of a request above its window."""


@dataclass
class Replayed:
    """What became of one run: where the value of each probe was, what the run cost, and how often what happened."""

    run: Run
    bill: Bill = field(default_factory=Bill)
    places: dict[Probe, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        """Let a failure end the run: what would have come after it is lost."""
        try:
            yield
        except Exception as error:
            self.counts["failed"] += 1
            logger.warning("%s ended early: %.200r", self.run.id, error)
        self.places |= {probe: "lost" for probe in self.run.probes if probe not in self.places}


def replay(name: str, number: int, window: int, options: Mapping[str, Any]) -> Replayed:
    """Return what becomes of one run of a file under a manager with these options."""
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    return asyncio.run(Replay(recorded(name)[number], window, options).live())


class Replay:
    """One run under one manager. Tools answer what they answered then, and so does the model."""

    def __init__(self, run: Run, window: int, options: Mapping[str, Any]) -> None:
        self.run = run
        self.window = window
        self.result = Replayed(run)
        self.manager = ContextManager("auto", dialect="openai", window=window, **options)
        self.conversation = self.manager.converse([], system_prompt=run.system)
        calls = (call for message in run.messages for call in message.get("tool_calls") or ())
        self.called = {call["id"]: call["function"] for call in calls}

    async def live(self) -> Replayed:
        """Go through the run, message by message."""
        with self.result.to_the_end():
            for number, message in enumerate(self.run.messages):
                self.conversation.messages.append(await self._next(number, message))
        return self.result

    async def _next(self, number: int, message: Message) -> Message:
        """Return what the loop appends where *message* was recorded."""
        if message["role"] == "assistant":
            return (await self.conversation.call_model(lambda sent: self._answer(number, sent)))["message"]
        if message["role"] == "tool":
            return await self._result(message)
        if number and self.run.messages[number - 1]["role"] == "assistant":
            await self.conversation.end()
        return message

    async def _result(self, message: Message) -> Message:
        function, call = self.called[message["tool_call_id"]], message["tool_call_id"]
        result = await self.conversation.call_tool(
            function["name"], call, function["arguments"], lambda *_: message["content"]
        )
        self.result.counts["offloads"] += len(result["content"]) < len(message["content"] or "")
        return result

    async def _answer(self, number: int, sent: list[Message]) -> dict[str, Any]:
        """Answer as it was answered then, after a look at what the model was sent."""
        request = request_of(self.run.system, self.conversation.tool_specs, sent)
        if (tokens := tokens_of(request)) > self.window:
            self.result.counts["overflows"] += 1
            raise TooLongError(f"prompt is too long: {tokens} tokens > {self.window} maximum")
        self.result.bill.add(request)
        for probe in self.run.probes_at(number):
            self.result.places[probe] = await self._place_of(probe, request)
        return {"message": self.run.messages[number], "usage": {"prompt_tokens": tokens}}

    async def _place_of(self, probe: Probe, request: Sequence[Part]) -> str:
        """Say where a value is for a model that was just sent a request, and add what it takes to look it up."""
        sent = text_of(request)
        if probe.value in sent:
            return "kept"
        self.result.counts[BY_CHANCE] += probe.value in await self._found(words_of_another(self.run, probe))
        answer = await self._found(probe.hint)
        if probe.value in answer:
            self.result.bill.add_look_up(request, answer)
            return "searchable"
        opened = [await self._opened(reference) for reference in await self._stored() if reference in sent]
        if (content := next((text for text in opened if probe.value in text), None)) is not None:
            self.result.bill.add_look_up(request, answer, content)
            return "recoverable"
        self.result.counts[IN_TWO_STEPS] += await self._is_named_in(opened, probe)
        return "lost"

    async def _is_named_in(self, opened: Sequence[str], probe: Probe) -> bool:
        """Say whether a value is behind a reference that one of these texts shows."""
        shown = [reference for reference in await self._stored() if any(reference in text for text in opened)]
        return any([probe.value in await self._opened(reference) for reference in shown])

    async def _found(self, query: str) -> str:
        with without_taking_room():
            return await self._told(SEARCHES, {"query": query})

    async def _opened(self, reference: str) -> str:
        """Return all that paging through a content would show."""
        with without_taking_room(of_any_length=True):
            return await self._told(OPENS, {"reference": reference})

    async def _told(self, names: Sequence[str], arguments: Mapping[str, Any]) -> str:
        """Return what the first tool there is of these names answers. It becomes no part of the conversation."""
        tools = {tool.name: tool for tool in self.manager.agent_tools}
        tool = next(tools[name] for name in names if name in tools)
        return (await tool.run(self.conversation.conversation, arguments)).text

    async def _stored(self) -> list[str]:
        return [entry.reference async for entry in self.manager.offloader.storage.entries()]


@contextmanager
def without_taking_room(*, of_any_length: bool = False) -> Iterator[None]:
    """Let an answer of a tool be the first of its turn, and take nothing of the room for those that follow."""

    @contextmanager
    def answer(turn: Turn, most: int) -> Iterator[Allowance]:
        yield Allowance(ANY_LENGTH if of_any_length else min(most, turn.limit // 2), 0)

    usual, Turn.answer = Turn.answer, answer
    try:
        yield
    finally:
        Turn.answer = usual
