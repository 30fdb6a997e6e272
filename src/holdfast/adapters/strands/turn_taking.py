"""Requests in which user and assistant take turns, as providers want them to."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter, ne
from typing import Any

from strands.middleware import InvokeModelContext

__all__ = ["take_turns"]

_role = itemgetter("role")


def take_turns(context: InvokeModelContext) -> InvokeModelContext:
    """Return a request in which neighbouring messages of the user are one; the history stays as it is.

    They are neighbours after a model call that failed or was cancelled, when the user speaks again.
    """
    roles = list(map(_role, context.messages))
    if all(map(ne, roles, roles[1:])):
        return context
    turns = (list(turn) for _, turn in groupby(context.messages, _role))
    return context.replace(messages=[message for turn in turns for message in _in_one(turn)])


def _in_one(turn: list[Any]) -> list[Any]:
    if len(turn) == 1 or turn[0]["role"] != "user":
        return turn
    return [{**turn[0], "content": [block for message in turn for block in message["content"]]}]
