"""Calls of tools and their results, by the ids that providers give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["calls_in", "first_orphan", "results_in", "without_orphans"]

_Ids = Callable[[Mapping[str, Any]], Iterator[Any]]


def calls_in(dialect: str, message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the calls in a message."""
    return (id for id in _READERS[dialect][0](message) if isinstance(id, str))


def results_in(dialect: str, message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the calls whose results are in a message; "" for a result that names none."""
    return (id if isinstance(id, str) else "" for id in _READERS[dialect][1](message))


def first_orphan(dialect: str, messages: Iterable[Mapping[str, Any]]) -> tuple[int, str] | None:
    """Return the place and the id of the first result without a call before it; None if there is none."""
    return next(_orphans(dialect, messages), None)


def without_orphans(dialect: str, messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the messages without results that answer no call, and the places from which something was left out."""
    orphans: dict[int, set[str]] = {}
    for place, id in _orphans(dialect, messages):
        orphans.setdefault(place, set()).add(id)
    if not orphans:
        return messages, []
    kept = (_without(dialect, message, orphans.get(place)) for place, message in enumerate(messages))
    return [message for message in kept if message is not None], list(orphans)


def _orphans(dialect: str, messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    called: set[str] = set()
    for place, message in enumerate(messages):
        called.update(calls_in(dialect, message))
        yield from ((place, id) for id in results_in(dialect, message) if id not in called)


def _without(dialect: str, message: dict[str, Any], ids: set[str] | None) -> dict[str, Any] | None:
    if not ids:
        return message
    if dialect == "openai":
        return None
    kept = [block for block in message["content"] if ids.isdisjoint(results_in(dialect, {"content": [block]}))]
    return {**message, "content": kept} if kept else None


def _openai_calls(message: Mapping[str, Any]) -> Iterator[Any]:
    calls = message.get("tool_calls")
    return (call.get("id") for call in calls if isinstance(call, dict)) if isinstance(calls, list) else iter(())


def _openai_results(message: Mapping[str, Any]) -> Iterator[Any]:
    if message.get("role") == "tool":
        yield message.get("tool_call_id")


def _blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    return (block for block in content if isinstance(block, dict)) if isinstance(content, list) else iter(())


def _anthropic_calls(message: Mapping[str, Any]) -> Iterator[Any]:
    return (block.get("id") for block in _blocks(message) if str(block.get("type")).endswith("tool_use"))


def _anthropic_results(message: Mapping[str, Any]) -> Iterator[Any]:
    return (block.get("tool_use_id") for block in _blocks(message) if block.get("type") == "tool_result")


def _converse(kind: str) -> _Ids:
    def ids(message: Mapping[str, Any]) -> Iterator[Any]:
        found = (block[kind] for block in _blocks(message) if kind in block)
        return (each.get("toolUseId") if isinstance(each, dict) else None for each in found)

    return ids


_READERS: Mapping[str, tuple[_Ids, _Ids]] = {
    "openai": (_openai_calls, _openai_results),
    "anthropic": (_anthropic_calls, _anthropic_results),
    "converse": (_converse("toolUse"), _converse("toolResult")),
}
