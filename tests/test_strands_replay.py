"""Recorded runs of real agents, lived through again by a Strands agent: the task and the request are always in view."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from recorded import Run, recorded_runs

strands = pytest.importorskip("strands")

from strands.tools.tools import PythonAgentTool  # noqa: E402

from holdfast.adapters.strands import ContextManager  # noqa: E402
from holdfast.testing import Call, Request, ScriptedModel  # noqa: E402

pytestmark = [pytest.mark.strands, pytest.mark.extended]

EVERY = 6
ILLEGAL_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def legal(name: str) -> str:
    return ILLEGAL_IN_A_NAME.sub("_", name)[:60]


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content)


def exchanges(run: Run) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield each request of the user, and the answers that were given until the next."""
    prompt, answers = "Hello.", list[list[Any]]()
    for message in run.messages:
        if message["role"] == "user":
            if answers:
                yield prompt, answers
            prompt, answers = text_of(message).strip() or "(nothing)", []
        elif message["role"] == "assistant":
            said = [text_of(message)] if text_of(message).strip() else []
            answers.append([*said, *map(call_of, message.get("tool_calls") or ())] or ["(nothing)"])
    if answers:
        yield prompt, answers


def call_of(call: dict[str, Any]) -> Call:
    return Call(legal(call["function"]["name"]), json.loads(call["function"]["arguments"]), legal(call["id"]))


def tools_of(run: Run) -> list[PythonAgentTool]:
    """The tools of a run, which answer each call as it was answered then."""
    results = {legal(m["tool_call_id"]): text_of(m) for m in run.messages if m["role"] == "tool"}
    names = {legal(call["function"]["name"]) for m in run.messages for call in m.get("tool_calls") or ()}

    async def answer(tool_use: Any, **state: Any) -> Any:
        text = results[tool_use["toolUseId"]]
        content = [{"text": text if text.strip() else "(nothing)"}]
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": content}

    return [PythonAgentTool(name, spec_of(name), answer) for name in sorted(names)]


def spec_of(name: str) -> dict[str, Any]:
    return {"name": name, "description": name, "inputSchema": {"json": {"type": "object"}}}


class Replay:
    """One run, and what the model saw of it."""

    def __init__(self, run: Run, window: int) -> None:
        self.seen = Counter[str]()
        self.steps = deque[list[Any]]()
        self.task = self.request = ""
        self.model = ScriptedModel(self.answer, window=window, keep=1)
        self.agent = strands.Agent(
            model=self.model,
            tools=tools_of(run),
            system_prompt=run.system,
            plugins=[ContextManager("auto")],
            callback_handler=None,
        )

    def answer(self, request: Request) -> Any:
        shown = [block.get("text") for message in request.messages for block in message["content"]]
        self.seen.update(calls=1, task=self.task in shown, request=self.request in shown)
        return self.steps.popleft() if self.steps else "done."

    async def live(self, run: Run) -> None:
        for prompt, answers in exchanges(run):
            self.task, self.request = self.task or prompt, prompt
            self.steps.extend(answers)
            while self.steps:
                await self.agent.invoke_async(self.request)
                self.request = "Go on."


@pytest.mark.parametrize("name", ["swe", "tau", "web"])
@pytest.mark.parametrize("window", [32_000])
async def test_the_task_and_the_request_are_in_every_call_and_every_call_is_legal_and_fits(name, window):
    seen, overflows = Counter[str](), 0
    for run in islice(recorded_runs(name), 0, None, EVERY):
        lived = Replay(run, window)
        await lived.live(run)
        assert lived.model.violations == []
        seen.update(lived.seen)
        overflows += lived.model.overflows
    assert seen["calls"] > 50
    assert seen["task"] == seen["request"] == seen["calls"]
    # An overflow is mended by a second, smaller request; there should be next to none.
    assert overflows <= seen["calls"] / 100
