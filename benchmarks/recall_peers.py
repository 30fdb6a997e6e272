"""A recorded run, lived through again by a Strands agent under strands' own managers.

Summaries are made of what the model is asked to summarize by the same rules as holdfast's without a model.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from recall_replay import Replayed
from recall_runs import Message, Part, Probe, Run, recorded, request_of, text_of, tokens_of
from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.tools.tools import PythonAgentTool

from holdfast import messages as core
from holdfast.compression.extractive import extractive_summary
from holdfast.testing import Call, Request, ScriptedModel

POLICIES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "strands, sliding window": lambda: {"conversation_manager": SlidingWindowConversationManager()},
    'strands, "auto"': lambda: {"context_manager": "auto"},
}
ILLEGAL_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
ROLE = re.compile(r"\n---\n\[(user|assistant)\]")
Step = tuple[int, list[Any]]


def replay(name: str, number: int, window: int, policy: str) -> Replayed:
    """Return what becomes of one run of a file under one of the policies."""
    logging.getLogger("strands").setLevel(logging.CRITICAL)
    return asyncio.run(PeerReplay(recorded(name)[number], window, policy).live())


class PeerReplay:
    """One run under one of strands' managers."""

    def __init__(self, run: Run, window: int, policy: str) -> None:
        self.run = run
        self.tools = {tool.tool_name: tool for tool in tools_of(run)}
        self.steps = deque[Step]()
        self.result = Replayed(run)
        self.model = ScriptedModel(self._answer, window=window, keep=1, validate=False, count=self._count)
        self.agent = Agent(
            model=self.model,
            tools=list(self.tools.values()),
            system_prompt=run.system,
            callback_handler=None,
            **POLICIES[policy](),
        )

    async def live(self) -> Replayed:
        """Go through the run, request by request."""
        with self.result.to_the_end():
            for prompt, answers in exchanges(self.run):
                await self._answer_all(prompt, answers)
        self.result.counts["overflows"] = self.model.overflows
        return self.result

    async def _answer_all(self, prompt: str, answers: Iterable[Step]) -> None:
        self.steps.extend(answers)
        while self.steps:
            await self.agent.invoke_async(prompt)
            prompt = "Go on."

    async def _answer(self, request: Request) -> Any:
        if _is_for_summary(request):
            self.result.counts["summaries"] += 1
            self.result.bill.add_apart(self._sent(request.messages, request.system_prompt, []))
            return _summary_of(request)
        sent = self._sent(request.messages, self.run.system, request.tool_specs)
        self.result.bill.add(sent)
        number, step = self.steps.popleft() if self.steps else (-1, ["done."])
        for probe in self.run.probes_at(number):
            self.result.places[probe] = await self._place_of(probe, sent)
        return step

    def _sent(self, messages: Iterable[Any], system: Any, tools: Iterable[Any]) -> list[Part]:
        """Return a request without the run's own tools, of which nobody knows what was told."""
        given = [spec for spec in tools if spec["name"] not in self.tools]
        return request_of(system, given, [{key: message[key] for key in ("role", "content")} for message in messages])

    def _count(self, messages: list[Any], system: Any, tools: list[Any]) -> int:
        return tokens_of(self._sent(messages, system, tools))

    async def _place_of(self, probe: Probe, request: Sequence[Part]) -> str:
        sent = text_of(request)
        if probe.value in sent:
            return "kept"
        stash = self.agent.context_manager.stash if self.agent.context_manager else None
        for reference in await stash.list() if stash else ():
            if f"ref: {reference}]" in sent and probe.value in (content := str(await stash.retrieve(reference))):
                self.result.bill.add_look_up(request, content)
                return "recoverable"
        return "lost"


def exchanges(run: Run) -> Iterator[tuple[str, list[Step]]]:
    """Yield each request of the user, and the answers that were given until the next, with their numbers."""
    asked, answers = list[str](), list[Step]()
    for number, message in enumerate(run.messages):
        if message["role"] == "user":
            if answers:
                yield _prompt(asked), answers
                asked, answers = [], []
            asked.append(_text_of(message))
        elif message["role"] == "assistant":
            answers.append((number, _step(message)))
    if answers:
        yield _prompt(asked), answers


def _prompt(asked: Iterable[str]) -> str:
    return "\n".join(text for text in asked if text.strip()) or "Hello."


def _step(message: Message) -> list[Any]:
    said = [_text_of(message)] if _text_of(message).strip() else []
    return [*said, *map(_call, message.get("tool_calls") or ())] or ["(nothing)"]


def _call(call: dict[str, Any]) -> Call:
    return Call(_legal(call["function"]["name"]), json.loads(call["function"]["arguments"]), _legal(call["id"]))


def tools_of(run: Run) -> list[PythonAgentTool]:
    """Return the tools of a run, which answer each call as it was answered then."""
    results = {_legal(said["tool_call_id"]): _text_of(said) for said in run.messages if said["role"] == "tool"}
    names = {_legal(call["function"]["name"]) for said in run.messages for call in said.get("tool_calls") or ()}

    async def answer(tool_use: Any, **state: Any) -> Any:
        text = results[tool_use["toolUseId"]]
        content = [{"text": text if text.strip() else "(nothing)"}]
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": content}

    return [PythonAgentTool(name, _spec(name), answer) for name in sorted(names)]


def _spec(name: str) -> dict[str, Any]:
    return {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}


def _text_of(message: Message) -> str:
    return message.get("content") or ""


def _legal(name: str) -> str:
    return ILLEGAL_IN_A_NAME.sub("_", name)[:60]


def _is_for_summary(request: Request) -> bool:
    return not request.tool_specs and "summarization" in str(request.system_prompt)


def _summary_of(request: Request) -> str:
    """Return a summary without a model, of messages that strands wrote one behind the other."""
    text = "\n".join(block["text"] for block in request.messages[0]["content"][1:-1] if "text" in block)
    _, *parts = ROLE.split(text)
    said = [core.Message.of_text(role, part) for role, part in zip(parts[::2], parts[1::2], strict=True)]
    return extractive_summary(said) or "(nothing)"
