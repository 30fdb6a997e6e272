"""What a value of a file is: a conversation, a message, an entry of a session, or a list of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from holdfast.recordings.json_values import Placed

__all__ = ["CONVERSATION", "ENTRY", "LOGGED", "MESSAGE", "SNAPSHOT", "WHAT", "body_of", "flat", "kind_of", "logged_in"]

CONVERSATION, MESSAGE, ENTRY, SNAPSHOT, LOGGED = "conversation", "message", "entry", "snapshot", "logged"

WHAT: Mapping[str, str] = {
    CONVERSATION: "conversations of a provider",
    MESSAGE: "messages of a provider",
    ENTRY: "entries of a Claude Code session",
    SNAPSHOT: "a session of Strands",
    LOGGED: "a session of Strands",
}
"""In words for people."""

_WRAPPERS = ("request", "body", "params", "input", "inputBodyJson", "conversation")
_WRAPPED_AT_MOST = 3
_OF_ENTRIES = ("uuid", "parentUuid", "sessionId", "session_id", "leafUuid", "messageId")
_LOOKED_AT = 100


def kind_of(value: Any) -> str | None:
    """Return what a value is; None if nobody knows. A list of messages is a conversation."""
    if isinstance(value, list):
        return CONVERSATION if _first_kind(value) == MESSAGE else None
    if not isinstance(value, dict):
        return None
    if _is_snapshot(value):
        return SNAPSHOT
    if body_of(value) is not None:
        return CONVERSATION
    if isinstance(value.get("role"), str):
        return MESSAGE
    if logged_in(value) is not None:
        return LOGGED
    is_entry = isinstance(value.get("type"), str) and any(name in value for name in _OF_ENTRIES)
    return ENTRY if is_entry else None


def body_of(value: Any) -> dict[str, Any] | None:
    """Return the object that has the messages: the value itself, or what it wraps, as logs of requests do."""
    for _ in range(_WRAPPED_AT_MOST + 1):
        if not isinstance(value, dict):
            return None
        if isinstance(value.get("messages"), list):
            return value
        value = next((value[name] for name in _WRAPPERS if isinstance(value.get(name), dict)), None)
    return None


def logged_in(value: Any) -> dict[str, Any] | None:
    """Return the message of a file of Strands' log: the one that replaced it, if it was redacted."""
    if not isinstance(value, dict) or not isinstance(value.get("message"), dict) or "message_id" not in value:
        return None
    redacted = value.get("redact_message")
    message: dict[str, Any] = redacted if isinstance(redacted, dict) else value["message"]
    return message if isinstance(message.get("role"), str) else None


def flat(placed: Placed) -> Iterator[Placed]:
    """Yield the items of a list of conversations or entries, each with its number, and anything else as it is."""
    if isinstance(placed.value, list) and _first_kind(placed.value) in (CONVERSATION, ENTRY, SNAPSHOT):
        for number, item in enumerate(placed.value, 1):
            yield Placed(item, placed.line, number if len(placed.value) > 1 else None)
    else:
        yield placed


def _first_kind(items: list[Any]) -> str | None:
    kinds = (kind_of(item) for item in islice(items, _LOOKED_AT) if not isinstance(item, list) or item)
    return next(filter(None, kinds), None)


def _is_snapshot(value: dict[str, Any]) -> bool:
    data = value.get("data")
    return "schema_version" in value and isinstance(data, dict) and isinstance(data.get("messages"), list)
