"""Replays of a recorded run: by a plain loop with holdfast, and by a Strands agent with one of strands' managers.

Model and tools answer as they did when the run was recorded.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from recall_runs import Message, Observer, Run, charged, counter, recorded, request_of, tokens_of
from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.tools.tools import PythonAgentTool

from holdfast import ContextManager
from holdfast.testing import Call, Request, ScriptedModel

STRANDS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "strands, sliding window": lambda: {"conversation_manager": SlidingWindowConversationManager()},
    'strands, "auto"': lambda: {"context_manager": "auto"},
}
ILLEGAL_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
SUMMARY_TOKENS, SUMMARY_OF_BLOCK = 1_500, 200


# holdfast


def with_holdfast(name: str, window: int, number: int) -> Counter[str]:
    """Return the counts of one run of a file under `ContextManager("auto")`."""
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    return asyncio.run(HoldfastReplay(recorded(name)[number], window).play())


class TooLongError(Exception):
    """What a provider says of a request above its window."""


class HoldfastReplay:
    """One run in a loop of one's own."""

    def __init__(self, run: Run, window: int) -> None:
        self.run = run
        self.window = window
        self.manager = ContextManager("auto", dialect="openai", window=window)
        self.conversation = self.manager.converse([], system_prompt=run.system)
        self.observer = Observer(run, self._search)
        calls = (call for message in run.messages for call in message.get("tool_calls") or ())
        self.called = {call["id"]: call["function"] for call in calls}

    async def play(self) -> Counter[str]:
        """Go through the run, message by message."""
        for number, message in enumerate(self.run.messages):
            self.conversation.messages.append(await self._next(number, message))
        return self.observer.counts

    async def _next(self, number: int, message: Any) -> Any:
        """Return what the loop appends where *message* was recorded."""
        if message["role"] == "assistant":
            return (await self.conversation.call_model(lambda sent: self._answer(number, sent)))["message"]
        if message["role"] == "tool":
            called = self.called[message["tool_call_id"]]
            given = message["tool_call_id"], called["arguments"]
            return await self.conversation.call_tool(called["name"], *given, lambda *_: message["content"])
        if number and self.run.messages[number - 1]["role"] == "assistant":
            await self.conversation.end()
        return message

    async def _answer(self, number: int, sent: list[Any]) -> dict[str, Any]:
        request = request_of(self.run.system, self.conversation.tool_specs, sent)
        if (tokens := tokens_of(request)) > self.window:
            raise TooLongError(f"prompt is too long: {tokens} tokens > {self.window} maximum")
        await self.observer.observe(number, request)
        return {"message": self.run.messages[number], "usage": {"prompt_tokens": tokens}}

    async def _search(self, query: str) -> str:
        """Return what the search tool answers, outside of the conversation and without using the room of its turn."""
        [tool] = [tool for tool in self.manager.agent_tools if tool.name == "search_context"]
        with self.manager.hold.turn.aside():
            return (await tool.run(self.conversation.conversation, {"query": query})).text


# strands


def with_strands(manager: str, name: str, window: int, number: int) -> Counter[str]:
    """Return the counts of one run of a file under one of strands' managers."""
    logging.getLogger("strands").setLevel(logging.CRITICAL)
    return asyncio.run(StrandsReplay(recorded(name)[number], window, STRANDS[manager]()).play())


class StrandsReplay:
    """One run by a Strands agent. Its managers have no search, and the run's own tools are no part of the requests."""

    def __init__(self, run: Run, window: int, options: Mapping[str, Any]) -> None:
        self.run = run
        self.observer = Observer(run)
        self.answers = deque[tuple[int, list[Any]]]()
        self.tools = {tool.tool_name: tool for tool in tools_of(run)}
        self.agent = Agent(
            model=ScriptedModel(self._answer, window=window, keep=1, validate=False, count=self._count),
            tools=list(self.tools.values()),
            system_prompt=run.system,
            callback_handler=None,
            **options,
        )

    async def play(self) -> Counter[str]:
        """Go through the run, exchange by exchange."""
        for prompt, answers in exchanges(self.run):
            self.answers.extend(answers)
            while self.answers:
                await self.agent.invoke_async(prompt)
                prompt = "Go on."
        return self.observer.counts

    async def _answer(self, request: Request) -> Any:
        if not request.tool_specs and "summarization" in str(request.system_prompt):
            sent = request_of(request.system_prompt, (), request.messages)
            self.observer.counts["cost"] += charged((), sent)["cost"]
            return summary_of(sent[-1].texts)
        if not self.answers:
            return "done."
        number, answer = self.answers.popleft()
        await self.observer.observe(number, self._sent(request.messages, self.run.system, request.tool_specs))
        return answer

    def _count(self, messages: list[Any], system: Any, tools: Sequence[Any]) -> int:
        said = system if isinstance(system, str) else "".join(block.get("text", "") for block in system or ())
        return tokens_of(self._sent(messages, said, tools))

    def _sent(self, messages: Iterable[Any], system: Any, tools: Iterable[Any]) -> list[Message]:
        own = [tool for tool in tools if tool["name"] not in self.tools]
        return request_of(system, own, ({"content": message["content"]} for message in messages))


def exchanges(run: Run) -> Iterator[tuple[str, list[tuple[int, list[Any]]]]]:
    """Yield each request of the user, and the answers that were given until the next, with their numbers."""
    asked, answers = list[str](), list[tuple[int, list[Any]]]()
    for number, message in enumerate(run.messages):
        if message["role"] == "user":
            if answers:
                yield "\n".join(asked) or "Hello.", answers
                asked, answers = [], []
            asked += [message["content"]] if message["content"].strip() else []
        elif message["role"] == "assistant":
            answers.append((number, answer_of(message)))
    yield "\n".join(asked) or "Hello.", answers


def answer_of(message: Mapping[str, Any]) -> list[Any]:
    """Return a recorded answer as a step for `ScriptedModel`."""
    said = message["content"] or ""
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
    steps = [Call(legal(called["name"]), json.loads(called["arguments"]), legal(id)) for id, called in calls]
    return [*([said] if said.strip() else []), *steps] or ["(nothing)"]


def tools_of(run: Run) -> Iterator[PythonAgentTool]:
    """Yield the tools of a run, which answer each call as it was answered then."""
    results = {legal(each["tool_call_id"]): each["content"] for each in run.messages if each["role"] == "tool"}
    calls = (call for message in run.messages for call in message.get("tool_calls") or ())

    async def answer(tool_use: Any, **state: Any) -> Any:
        use, text = tool_use["toolUseId"], results[tool_use["toolUseId"]]
        return {"toolUseId": use, "status": "success", "content": [{"text": text if text.strip() else "(nothing)"}]}

    for name in sorted({legal(call["function"]["name"]) for call in calls}):
        spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}
        yield PythonAgentTool(name, spec, answer)


def legal(name: str) -> str:
    return ILLEGAL_IN_A_NAME.sub("_", name)[:60]


def summary_of(texts: Iterable[str]) -> str:
    """Return what stands for a model's summary: how each text begins, until the summary is full."""
    summary, tokens = list[str](), 0
    for text in (text.strip()[:SUMMARY_OF_BLOCK] for text in texts):
        tokens += counter()(text) + 1
        if tokens > SUMMARY_TOKENS:
            break
        summary.append(text)
    return "\n".join(summary)
