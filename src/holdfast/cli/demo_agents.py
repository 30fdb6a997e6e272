"""The agent of the demo: one of Strands where that is installed, else a plain loop. Its model answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from holdfast.cli.demo_script import SYSTEM, TASK, Journal
from holdfast.cli.demo_tools import TOOLS, DemoTool
from holdfast.extras import import_extra
from holdfast.ledger import Ledger
from holdfast.manager import ContextManager
from holdfast.testing import Request, ScriptedClient

__all__ = ["AGENTS", "Agent", "TooLongError", "Work", "agent_for"]


class TooLongError(Exception):
    """The model refused a request above its window, and the run ended there."""


@dataclass(frozen=True)
class Work:
    """What an agent is to do: with ``ContextManager("auto")`` if there is a *storage*, else with no manager.

    The model gives its *answers*, and refuses requests above the *window*. *watch* is given the manager's ledger.
    """

    answers: Callable[[Request], Any]
    journal: Journal
    window: int
    storage: Path | None
    watch: Callable[[Ledger], object]


class Agent(Protocol):
    """Works on the task until its model says that it is done."""

    kind: str

    def run(self, work: Work) -> None:
        """Do it. Raises TooLongError if a request is above the window."""
        ...


class _PlainLoop:
    """A loop in the form of OpenAI's API, without any framework."""

    kind = "A plain loop"

    def run(self, work: Work) -> None:
        manager = ContextManager(dialect="openai")
        if work.storage is not None:
            manager = ContextManager("auto", dialect="openai", window=work.window, offload_storage=work.storage)
        work.watch(manager.ledger)
        client = ScriptedClient("openai", work.answers, window=work.window)
        try:
            asyncio.run(self._loop(client, work.journal, manager))
        except RuntimeError as error:
            if "too long" not in str(error):
                raise
            raise TooLongError(str(error)) from None

    async def _loop(self, client: ScriptedClient, journal: Journal, manager: ContextManager) -> None:
        messages: list[Any] = [{"role": "user", "content": TASK}]
        conversation = manager.converse(messages, system_prompt=SYSTEM, tool_specs=[tool.spec for tool in TOOLS])
        send = partial(client.create, system=SYSTEM, tools=conversation.tool_specs)

        async def run(name: str, arguments: Any) -> str:
            return await asyncio.to_thread(journal.run, name, arguments)

        while True:
            reply = await conversation.call_model(lambda sent: send(messages=sent))
            messages.append(message := reply["choices"][0]["message"])
            if not message.get("tool_calls"):
                return
            for call in message["tool_calls"]:
                asked = call["function"]
                messages.append(await conversation.call_tool(asked["name"], call["id"], asked["arguments"], run))


class _StrandsAgent:
    """An agent of Strands. Without a manager it has none of its own framework's either."""

    kind = "A Strands agent"

    def run(self, work: Work) -> None:
        # Strands takes a second to import.
        from strands import Agent as FrameworkAgent
        from strands.agent.conversation_manager import NullConversationManager
        from strands.types.exceptions import ContextWindowOverflowException

        from holdfast.adapters.strands import ContextManager as Plugin
        from holdfast.testing import ScriptedModel

        plugins: list[Any] = [] if work.storage is None else [Plugin("auto", offload_storage=work.storage)]
        for plugin in plugins:
            work.watch(plugin.ledger)
        agent = FrameworkAgent(
            model=ScriptedModel(work.answers, window=work.window, keep=1),
            system_prompt=SYSTEM,
            tools=[_strands_tool(tool, work.journal) for tool in TOOLS],
            plugins=plugins,
            conversation_manager=NullConversationManager(),
            callback_handler=None,
        )
        try:
            # Called without a loop, it runs in a thread that Ctrl-C does not reach.
            asyncio.run(agent.invoke_async(TASK))
        except ContextWindowOverflowException as error:
            raise TooLongError(str(error)) from None


def _strands_tool(tool: DemoTool, journal: Journal) -> Any:
    from strands.tools import PythonAgentTool

    def run(tool_use: Any, **_: Any) -> Any:
        result = journal.run(tool.name, tool_use["input"])
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": result}]}

    spec: Any = {"name": tool.name, "description": tool.description, "inputSchema": {"json": dict(tool.schema)}}
    return PythonAgentTool(tool.name, spec, run)


AGENTS: dict[str, Callable[[], Agent]] = {"strands": _StrandsAgent, "loop": _PlainLoop}


def agent_for(name: str | None = None) -> Agent:
    """Return the agent of that name; if none is given, that of Strands where it is installed, else the plain loop."""
    if name == "strands":
        import_extra("holdfast.adapters.strands.plugin", extra="strands")
    return AGENTS[name or ("strands" if _has_strands() else "loop")]()


def _has_strands() -> bool:
    try:
        import_module("holdfast.adapters.strands.plugin")
    except ImportError:
        return False
    return True
