"""Reasoning that a provider signed together with the messages before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.testing.providers.reading import items_of, mapping_of, read_messages

__all__ = ["canonical_json", "prefix_signature", "signed_reasoning_problems"]


def signed_reasoning_problems(messages: object, sign: Callable[[list[Any]], str]) -> list[str]:
    """Every signed reasoning block, of Converse or Anthropic, that was signed for other messages than precede it.

    Newer Claude models refuse such blocks ("preserved thinking"). *sign* stands in for theirs: it is given the
    messages before the one with the block, as they would be sent.
    """
    sent = items_of(messages)
    signed = ((message, _signature(block)) for message in read_messages(sent) for block in message.blocks)
    return [
        message.says("its reasoning was signed for other messages than those before it")
        for message, signature in signed
        if isinstance(signature, str) and signature != sign(sent[: message.index])
    ]


def _signature(block: dict[str, Any]) -> object:
    """What a reasoning block, of either kind, has for its signature; None if there is none."""
    if block.get("type") == "thinking":
        return block.get("signature")
    return mapping_of(mapping_of(block.get("reasoningContent")).get("reasoningText")).get("signature")


def prefix_signature(messages: Iterable[object]) -> str:
    """A signature that any change of *messages* changes, whatever the order of their keys: a `sign` for the above."""
    digest = hashlib.sha256()
    for message in messages:
        digest.update(canonical_json(message))
    return digest.hexdigest()


def canonical_json(message: object) -> bytes:
    """One line for one message: equal for equal messages only, whatever the order of their keys."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), default=_json_of_bytes).encode() + b"\n"


def _json_of_bytes(value: object) -> dict[str, str]:
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    raise TypeError(f"{type(value).__name__} cannot be sent")
