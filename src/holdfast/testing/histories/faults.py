"""Ways to break a history. Each takes it as it is, however broken already, and changes it in place."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from holdfast.testing.histories.dice import Dice
from holdfast.testing.histories.parts import CALLS, RESULTS, Kind, blocks_of, parts_of, places_of
from holdfast.testing.histories.wire import Call, Message, Wire

__all__ = ["break_history"]

_BLANKS = ("", " ", "\n\n", "\t \n", "\u3000")
_NOT_UNICODE = "half a pair: \ud83d"
_ID_KEYS = {"toolUseId", "id", "tool_use_id", "tool_call_id"}


def break_history(messages: list[Message], dice: Dice, wire: Wire) -> None:
    """Change *messages* in place, in up to three ways at once, none of which minds what the others left."""
    dice.repeat(3, lambda: messages and dice.pick(_FAULTS)(messages, dice, wire))


def _start_with_assistant(messages: list[Message], dice: Dice, wire: Wire) -> None:
    while messages and messages[0].get("role") != "assistant":
        del messages[0]


def _end_with_assistant(messages: list[Message], dice: Dice, wire: Wire) -> None:
    messages.append(wire.plain("assistant", "I am done. "))


def _lose_a_message(messages: list[Message], dice: Dice, wire: Wire) -> None:
    del messages[dice.below(len(messages))]


def _double_a_message(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _double(messages, dice.below(len(messages)))


def _double_a_role(messages: list[Message], dice: Dice, wire: Wire) -> None:
    role = dice.pick(("user", "assistant"))
    messages.insert(dice.below(len(messages) + 1), wire.plain(role, "once more"))


def _move_results_away(messages: list[Message], dice: Dice, wire: Wire) -> None:
    places = [place for place, message in enumerate(messages) if parts_of(message, RESULTS)]
    if places:
        moved = messages.pop(dice.pick(places))
        messages.insert(dice.below(len(messages) + 1), moved)


def _lose_a_result(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _change_a_part(messages, dice, RESULTS, list.pop)


def _lose_a_call(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _change_a_part(messages, dice, CALLS, list.pop)


def _double_a_call(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _change_a_part(messages, dice, CALLS, _double)


def _double_a_result(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _change_a_part(messages, dice, RESULTS, _double)


def _add_an_orphan_result(messages: list[Message], dice: Dice, wire: Wire) -> None:
    orphan = wire.results([Call(f"orphan_{dice.below(3)}", "search", {})])
    place = dice.below(len(messages) + 1)
    messages[place:place] = orphan


def _spoil_content(messages: list[Message], dice: Dice, wire: Wire) -> None:
    spoilt: tuple[Any, ...] = ([], None, "", "plain text", 7, {}, [None], ["text"], [{}])
    dice.pick(messages)["content"] = dice.pick(spoilt)


def _lose_a_key(messages: list[Message], dice: Dice, wire: Wire) -> None:
    message = dice.pick(messages)
    if message:
        del message[dice.pick(list(message))]


def _use_an_unknown_role(messages: list[Message], dice: Dice, wire: Wire) -> None:
    roles: tuple[Any, ...] = ("system", "function", "", "User", None, 1)
    dice.pick(messages)["role"] = dice.pick(roles)


def _add_an_unknown_key(messages: list[Message], dice: Dice, wire: Wire) -> None:
    message = dice.pick(messages)
    blocks = [block for block in blocks_of(message) if isinstance(block, dict)]
    dice.pick([message, *blocks])["tracking_id"] = "t-1"


def _add_an_unknown_block(messages: list[Message], dice: Dice, wire: Wire) -> None:
    blocks_of(dice.pick(messages)).append(wire.unknown())


def _add_blank_text(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _add_text(dice.pick(messages), dice.pick(_BLANKS), wire)


def _add_half_a_surrogate_pair(messages: list[Message], dice: Dice, wire: Wire) -> None:
    _add_text(dice.pick(messages), _NOT_UNICODE, wire)


def _repeat_an_id_of_another_turn(messages: list[Message], dice: Dice, wire: Wire) -> None:
    for message in messages:
        for part in (*parts_of(message, CALLS), *parts_of(message, RESULTS)):
            body = part.get("toolUse", part.get("toolResult", part))
            body |= dict.fromkeys(_ID_KEYS & body.keys(), "call_1")


def _change_a_part(messages: list[Message], dice: Dice, kind: Kind, change: Callable[[list[Any], int], object]) -> None:
    """Let *change* change one call or result, given by its place in the list that holds it."""
    found = places_of(messages, kind)
    if found:
        change(*dice.pick(found))


def _double(parts: list[Any], place: int) -> None:
    parts.insert(place, deepcopy(parts[place]))


def _add_text(message: Message, text: str, wire: Wire) -> None:
    if isinstance(message.get("content"), str):
        message["content"] = text
    else:
        blocks_of(message).append(wire.text(text))


_FAULTS: tuple[Callable[[list[Message], Dice, Wire], None], ...] = (
    _add_blank_text,
    _lose_a_message,
    _lose_a_result,
    _lose_a_call,
    _move_results_away,
    _add_an_orphan_result,
    _double_a_call,
    _double_a_result,
    _double_a_message,
    _double_a_role,
    _start_with_assistant,
    _end_with_assistant,
    _spoil_content,
    _lose_a_key,
    _use_an_unknown_role,
    _add_an_unknown_key,
    _add_an_unknown_block,
    _add_half_a_surrogate_pair,
    _repeat_an_id_of_another_turn,
)
