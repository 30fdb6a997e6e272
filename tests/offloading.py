"""What tests of the offloader share: a conversation, tool results, and calls of its tools."""

from __future__ import annotations

from typing import Any

from holdfast import ContextOffloader
from holdfast.agent_tools import ToolAnswer
from holdfast.hooks import AfterToolCall, BeforeModelCall, Conversation

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1_568).to_bytes(4, "big") * 2 + bytes(range(256)) * 40
LOG = "\n".join(f"2026-11-16 10:{n // 60 % 60:02}:{n % 60:02} INFO request {n} took {n % 97} ms" for n in range(4_000))


def conversation(*messages: Any) -> Conversation:
    return Conversation(list(messages) or [{"role": "user", "content": [{"text": "Look at the logs."}]}])


def converse_result(*content: Any, tool_use_id: str = "t1", status: str = "success") -> dict[str, Any]:
    return {"toolUseId": tool_use_id, "status": status, "content": list(content)}


async def offloaded(offloader: ContextOffloader, result: Any, talk: Conversation, **names: str) -> Any:
    """Let the offloader see a result, and return what it made of it."""
    call = {"tool_name": "read_log", "tool_use_id": "t1"} | names
    event = AfterToolCall(talk, call["tool_name"], call["tool_use_id"], result)
    await offloader.after_tool_call(event)
    return event.result


async def retrieved(offloader: ContextOffloader, talk: Conversation, reference: str, **arguments: Any) -> ToolAnswer:
    retrieve = next(tool for tool in offloader.tools if tool.name == "retrieve_offloaded_content")
    return await retrieve.run(talk, {"reference": reference, **arguments})


async def searched(offloader: ContextOffloader, talk: Conversation, query: str, **arguments: Any) -> ToolAnswer:
    search = next(tool for tool in offloader.tools if tool.name == "search_offloaded_content")
    return await search.run(talk, {"query": query, **arguments})


async def turns(offloader: ContextOffloader, talk: Conversation, count: int) -> None:
    for _ in range(count):
        await offloader.before_model_call(BeforeModelCall(talk))


def references_of(offloader: ContextOffloader) -> list[str]:
    return [reference for reference, *_ in offloader.get_state()["references"]]
