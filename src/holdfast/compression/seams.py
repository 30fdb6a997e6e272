"""What stands where messages left: at most one message that says something, and beside it what the provider needs."""

from __future__ import annotations

from dataclasses import replace

from holdfast.cuts import answers
from holdfast.messages import Message, Role

__all__ = ["BRIDGE", "bridge", "bridged", "seam"]

BRIDGE = "bridge"
_LEFT_OUT = "[Some earlier messages are no longer shown here.]"
_GOES_ON = "[The conversation goes on here.]"
_OTHER: dict[Role, Role] = {"user": "assistant", "assistant": "user"}


def seam(told: Message, before: Message | None, after: Message | None, *, may_repeat: bool) -> list[Message]:
    """Return *told* in the role that fits between two messages; where none does, with a bridge beside it.

    Without *before* it comes first of all, without *after* the user speaks next. *may_repeat*, as a dialect says it.
    """
    role = "user" if may_repeat else _between(before, after)
    if role is not None:
        return [replace(told, role=role)]
    beside, said = bridge("assistant", _GOES_ON), replace(told, role="user")
    return [beside, said] if before is not None and before.role == "user" else [said, beside]


def bridged(before: Message | None, after: Message | None, *, may_repeat: bool) -> list[Message]:
    """Return what has to stand between two messages, or before the first, where nothing else is told."""
    if before is None:
        return [bridge("user")] if after is not None and _cannot_be_first(after) else []
    follows = "user" if after is None else after.role
    if before.role != follows or may_repeat:
        return []
    # An earlier summary or marker has said already that messages left.
    return [bridge(_OTHER[follows], _LEFT_OUT if before.made_as is None else _GOES_ON)]


def bridge(role: Role, words: str = _LEFT_OUT) -> Message:
    """Return what is said where two of the other role would meet."""
    return Message.of_text(role, words, made_as=BRIDGE)


def _between(before: Message | None, after: Message | None) -> Role | None:
    """Return the role that is neither that of the one nor that of the other, if there is one."""
    follows = _OTHER["assistant" if before is None else before.role]
    return follows if follows == _OTHER["user" if after is None else after.role] else None


def _cannot_be_first(message: Message) -> bool:
    return message.role == "assistant" or answers(message)
