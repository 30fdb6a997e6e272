"""Values that an agent used again long after it had seen them: what tells, without a model, whether a policy hurts.

A value is what cannot be guessed or said in other words: an address, a path, an id, a number, a name in code. Of a path
its last two parts count, as tools show it now from here and now from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.agent_tools import OWN_TOOLS
from holdfast.messages import Message, ToolUse, as_json_text
from holdfast.replay.texts import text_of

__all__ = ["LONG_AGO", "MASK", "Use", "holds", "uses_in", "values_in"]

LONG_AGO = 8
"""A value that stood in one of so many last messages is at hand whatever the policy."""
MASK = "___"
"""What stands for the value in the words that its agent would look for it with."""

_MOST_OF_A_CALL, _MOST_LEAVES = 8, 2_000
_SHORTEST, _LONGEST = 4, 200
_WORDS_BEFORE, _WORDS_AROUND = 120, 60
# Every repeat ends where a character of another class stands, and paths are looked for only where they may begin, so
# this takes linear time.
_WORD = re.compile(r"https?://[^\s\"'<>`\\)\]}]{4,}|(?<![\w.@~+-])[\w.@~+-]*(?:/[\w.@~+-]+)+|[\w@+-]+(?:\.[\w@+-]+)*")
_AROUND = ".,:;!?+-~@"
_NUMBER = re.compile(r"\d{4,}|\d+\.\d{2,}")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{7,64}(?:-[0-9a-f]{4,12})*", re.IGNORECASE)
# With a hump or an underscore inside, or with letters and digits; a word with a digit or two at its end is just a word.
_NAME = re.compile(r"[^\W_]_+[^\W_]|[a-z][A-Z]|[A-Z]{2,}[a-z]{2}|[^\W\d_]-?\d|\d-?[^\W\d_]")
_NUMBERED_WORD = re.compile(r"[A-Za-z][a-z]+\d{1,2}")
_ENDING = re.compile(r"[a-z]\w{0,4}")
_SIGN_OF_A_PATH = re.compile(r"[\d_.-]")
# In JSON inside of JSON, or in code: it would be taken for the first letter of what follows.
_ESCAPED = re.compile(r"\\[nrt\"]")


@dataclass(frozen=True)
class Use:
    """A *value* that the answer with number *at* called a tool with; it had last stood in message *last*.

    *query* is what its agent would look for it with: its words right before, with the values from long ago masked.
    """

    at: int
    value: str
    last: int
    query: str


class _Call(NamedTuple):
    """A call of a tool: its name, and what it was given, without the names of its arguments."""

    name: str
    given: str


class _Values(dict[str, tuple[str, ...]]):
    """The values that words hold. Each word is judged once."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        # A value has to be found again where it was found, in whatever is sent.
        values = self[word] = tuple(value for value in _values_of(word) if holds(word, value))
        return values

    def of(self, text: str) -> dict[str, None]:
        """Return each value in *text* once, in order."""
        words = dict.fromkeys(_WORD.findall(_ESCAPED.sub(" ", text) if "\\" in text else text))
        return {value: None for word in words for value in self[word]}


def values_in(text: str) -> tuple[str, ...]:
    """Return each value in *text* once, in order."""
    return tuple(_Values().of(text))


def holds(text: str, value: str) -> bool:
    """Say whether *value* stands in *text* by itself, and not as a part of a longer word."""
    at = text.find(value)
    while at >= 0:
        before, after = text[max(at - 2, 0) : at], text[at + len(value) : at + len(value) + 1]
        if not (_joins(_ESCAPED.sub("", before)[-1:], value[0]) or _joins(after, value[-1])):
            return True
        at = text.find(value, at + 1)
    return False


def uses_in(messages: Sequence[Message]) -> tuple[Use, ...]:
    """Return the uses of what a user or a tool had shown, and what had stood in none of the last messages.

    Of a call that names very many such values, some from all over it are taken.
    """
    return tuple(_uses(messages, _Values()))


def _uses(messages: Sequence[Message], values: _Values) -> Iterator[Use]:
    last_seen: dict[str, int] = {}
    was_shown: set[str] = set()
    for number, message in enumerate(messages):
        for call in _calls(message):
            old = [value for value in values.of(call.given) if last_seen.get(value, number) <= number - LONG_AGO]
            for value in _spread([value for value in old if value in was_shown]):
                yield Use(number, value, last_seen[value], _query(message.text, call, value, old))
        found = values.of(text_of(message))
        last_seen.update(dict.fromkeys(found, number))
        if message.role != "assistant":
            was_shown.update(found)


def _calls(message: Message) -> Iterator[_Call]:
    for block in message.blocks:
        if isinstance(block, ToolUse) and block.name not in OWN_TOOLS:
            yield _Call(block.name, "\n".join(_leaves(block.input)))


def _leaves(given: Any) -> Iterator[str]:
    """Yield what a tool was given, in order, without the names of arguments; of very much, the first."""
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    waiting = [given]
    for _ in range(_MOST_LEAVES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += reversed(list(value.values()))
        elif isinstance(value, (list, tuple)):
            waiting += reversed(value)
        elif value is not None and not isinstance(value, bool):
            yield value if isinstance(value, str) else as_json_text(value)


def _spread(values: Sequence[str]) -> Sequence[str]:
    if len(values) <= _MOST_OF_A_CALL:
        return values
    return [values[place * len(values) // _MOST_OF_A_CALL] for place in range(_MOST_OF_A_CALL)]


def _query(said: str, call: _Call, value: str, old: Iterable[str]) -> str:
    at = max(call.given.find(value), 0)
    around = call.given[max(at - _WORDS_AROUND, 0) : at + len(value) + _WORDS_AROUND]
    query = f"{said[-_WORDS_BEFORE:]} {call.name} {around}"
    # An agent that lacks one of them may lack the others.
    for each in sorted(old, key=len, reverse=True):
        query = query.replace(each, MASK)
    return query


def _values_of(word: str) -> Iterator[str]:
    if "://" in word:
        address = word.rstrip(_AROUND)
        yield from [address] if len(address) <= _LONGEST else []
    elif "/" in word:
        yield from _values_of_path(word)
    else:
        yield from filter(_is_value, _names_in(word.strip(_AROUND)))


def _values_of_path(path: str) -> Iterator[str]:
    parts = path.strip("/").split("/")
    named = [part for part in parts if part.strip(".~")]
    end = "/".join(parts[-2:]).rstrip(_AROUND)
    is_path = path[0] in "/~." or len(named) > 2 or any(map(_SIGN_OF_A_PATH.search, named))
    if is_path and len(parts) > 1 and all(part.strip(".~") for part in parts[-2:]) and len(end) <= _LONGEST:
        yield end
    else:
        yield from (value for part in named for value in _values_of(part))


def _names_in(word: str) -> list[str]:
    """Return a word, or what stands between its dots as in `module.ClassName`; a number or a file is whole."""
    parts = word.split(".")
    is_whole = len(parts) == 1 or word[0].isdigit() or _ENDING.fullmatch(parts[-1])
    return [word] if is_whole else parts


def _is_value(word: str) -> bool:
    if not _SHORTEST <= len(word) <= _LONGEST:
        return False
    if _NUMBER.fullmatch(word) or _HEX.fullmatch(word):
        return True
    return bool(_NAME.search(word)) and not _NUMBERED_WORD.fullmatch(word)


def _joins(neighbour: str, end: str) -> bool:
    return bool(neighbour) and (neighbour.isalnum() or neighbour == "_") and (end.isalnum() or end == "_")
