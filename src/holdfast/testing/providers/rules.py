"""Rules on single messages that providers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.testing.providers.reading import Message, Rule, shown

__all__ = [
    "Fields",
    "blocks_have_their_role",
    "messages_are_objects",
    "roles_are_known",
    "starts_with_user",
    "text_is_unicode",
]


@dataclass(frozen=True)
class Fields:
    """The fields of an object with the types of their values; any other field is refused."""

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)

    def problems(self, value: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with *value*, in words that follow its name."""
        known = {**self.optional, **self.required}
        yield from (f"lacks {name!r}" for name in self.required if name not in value)
        for name, content in value.items():
            if name not in known:
                yield f"has an unknown key {shown(name)}"
            elif not isinstance(content, known[name]):
                yield f"cannot have a {name!r} of type {type(content).__name__}"


def messages_are_objects(messages: list[Message]) -> Iterator[str]:
    """No message is something other than an object."""
    for message in messages:
        if not isinstance(message.raw, dict):
            yield message.says(f"must be an object, got {type(message.raw).__name__}")


def roles_are_known(*known: str) -> Rule:
    """Every role is one of *known*."""

    def rule(messages: list[Message]) -> Iterator[str]:
        for message in messages:
            if isinstance(message.raw, dict) and message.role not in known:
                yield message.says(f"its role must be one of {', '.join(known)}, got {shown(message.get('role'))}")

    return rule


def starts_with_user(messages: list[Message]) -> Iterator[str]:
    """The first message is the user's."""
    if messages[0].role != "user":
        yield messages[0].says("the first message must be the user's")


def text_is_unicode(messages: list[Message]) -> Iterator[str]:
    """Every text, at any depth, can be sent."""
    for message in messages:
        if not _is_unicode(message.raw):
            yield message.says("holds half a surrogate pair, which no JSON can carry")


def _is_unicode(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() or _can_be_encoded(value)
    if isinstance(value, dict):
        return all(map(_is_unicode, value)) and all(map(_is_unicode, value.values()))
    return not isinstance(value, list) or all(map(_is_unicode, value))


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def blocks_have_their_role(kinds: Callable[[dict[str, Any]], Iterable[str]], homes: Mapping[str, str]) -> Rule:
    """Blocks of the kinds in *homes* are only in messages of the role given there."""

    def rule(messages: list[Message]) -> Iterator[str]:
        for message in messages:
            for kind in sorted({kind for block in message.blocks for kind in kinds(block)}):
                if message.role != homes.get(kind, message.role):
                    yield message.says(f"only the {homes[kind]} may send {kind} blocks")

    return rule
