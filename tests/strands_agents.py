"""What tests of Strands agents share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import strands

from holdfast import Storage
from holdfast.adapters.strands import ContextManager
from holdfast.testing import Request, ScriptedModel

OFFLOADED = re.compile(r"\[Offloaded as ([^\n]{1,1000}?) : ")
RETRIEVE, SEARCH, PIN = "retrieve_offloaded_content", "search_context", "pin_message"
LONG = "\n".join(f"line {number}: the square is {number * number}" for number in range(1, 2_001))


@strands.tool
def squares() -> str:
    """Return many squares."""
    return LONG


def agent_with(manager: ContextManager, model: ScriptedModel, *tools: Any, **options: Any) -> strands.Agent:
    return strands.Agent(model=model, tools=list(tools), plugins=[manager], callback_handler=None, **options)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each)


def text_of(request: Request) -> str:
    return "\n".join(texts_in(request.messages))


def references_in(value: Any) -> list[str]:
    return [reference for text in texts_in(value) for reference in OFFLOADED.findall(text)]


async def dead_references(messages: list[Any], storage: Storage | ContextManager) -> list[str]:
    dead = []
    for reference in references_in(messages):
        try:
            await storage.retrieve(reference)
        except KeyError:
            dead.append(reference)
    return dead
