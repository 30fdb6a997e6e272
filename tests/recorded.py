"""Recorded runs of real agents, from the folder `HOLDFAST_DATA` or `../shared/data`, in the three wire formats.

The runs are OpenAI chats; `as_converse` and `as_anthropic` translate what a model would get as its next input, so an
answer at the very end is left out.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Run", "as_anthropic", "as_converse", "needs_recorded_runs", "recorded_runs"]

Message = dict[str, Any]
Block = dict[str, Any]

NAMES = ("swe", "tau", "web")
WIRE_KEYS = ("role", "content", "tool_calls", "tool_call_id")
OPENING = "Hello."


def data_folder() -> Path | None:
    named = os.environ.get("HOLDFAST_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


needs_recorded_runs = pytest.mark.skipif(
    data_folder() is None, reason="no recorded runs here; set HOLDFAST_DATA to the folder that has them"
)


@dataclass(frozen=True)
class Run:
    """One run: *messages* are what OpenAI takes, without the system prompt, which is beside them."""

    id: str
    source: str
    system: str | None
    messages: list[Message]
    meta: dict[str, Any]


def recorded_runs(*names: str) -> Iterator[Run]:
    """The runs of `swe`, `tau` and `web`, or of those named; skips the test if there are none on this machine."""
    folder = data_folder()
    if folder is None:
        pytest.skip("no recorded runs here; set HOLDFAST_DATA to the folder that has them")
    for name in names or NAMES:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            yield from (_run(json.loads(line)) for line in lines)


def _run(line: dict[str, Any]) -> Run:
    messages = [{key: message[key] for key in WIRE_KEYS if key in message} for message in line["messages"]]
    return Run(line["id"], line["source"], line["system"], messages, line["meta"])


def as_converse(messages: Iterable[Message]) -> list[Message]:
    """An OpenAI chat without system messages, as Bedrock's Converse takes it."""
    return _turns((_role(message), _converse_blocks(message)) for message in messages)


def as_anthropic(messages: Iterable[Message]) -> list[Message]:
    """An OpenAI chat without system messages, as Anthropic's Messages API takes it."""
    return _turns((_role(message), _anthropic_blocks(message)) for message in messages)


def _role(message: Message) -> str:
    return "assistant" if message["role"] == "assistant" else "user"


def _turns(said: Iterable[tuple[str, list[Block]]]) -> list[Message]:
    """Neighbours of one role become one message; the first and the last are the user's."""
    blocks_by_role = groupby(((role, blocks) for role, blocks in said if blocks), key=lambda turn: turn[0])
    turns = [
        {"role": role, "content": [block for _, blocks in turn for block in blocks]} for role, turn in blocks_by_role
    ]
    if turns and turns[-1]["role"] == "assistant":
        del turns[-1]
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{**_text_block_like(turns[0]), "text": OPENING}]})
    return turns


def _text_block_like(turn: Message) -> Block:
    return {"type": "text"} if any("type" in block for block in turn["content"]) else {}


def _converse_blocks(message: Message) -> list[Block]:
    if message["role"] == "tool":
        answered = _id(message["tool_call_id"])
        return [{"toolResult": {"toolUseId": answered, "content": [{"text": message["content"]}]}}]
    calls = [
        {"toolUse": {"toolUseId": _id(call["id"]), "name": call["function"]["name"], "input": _input(call)}}
        for call in message.get("tool_calls") or ()
    ]
    return [*({"text": text} for text in _texts(message)), *calls]


def _anthropic_blocks(message: Message) -> list[Block]:
    if message["role"] == "tool":
        answered = _id(message["tool_call_id"])
        return [{"type": "tool_result", "tool_use_id": answered, "content": message["content"]}]
    calls = [
        {"type": "tool_use", "id": _id(call["id"]), "name": call["function"]["name"], "input": _input(call)}
        for call in message.get("tool_calls") or ()
    ]
    return [*({"type": "text", "text": text} for text in _texts(message)), *calls]


def _texts(message: Message) -> list[str]:
    text = message.get("content") or ""
    return [text] if text.strip() else []


def _id(call: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call)


def _input(call: Block) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(call["function"]["arguments"])
    return arguments
