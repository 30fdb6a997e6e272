"""Histories of agents, as a provider would get them, for property tests: one grammar, drawn in two ways.

`random_history` is fast enough for tens of thousands in a test run; `histories` is a hypothesis strategy that shrinks.
Both vary what breaks managers of context: parallel calls, repeated ids, huge results, odd scripts, images, reasoning.

    >>> from random import Random
    >>> random_history(Random(7), "openai", max_turns=0)[-1]["role"]
    'user'
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from holdfast.errors import InvalidValueError
from holdfast.extras import import_extra
from holdfast.testing.providers import canonical_json

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["Dialect", "histories", "random_history", "without_metadata"]

T = TypeVar("T")
Dialect = Literal["converse", "anthropic", "openai"]
Message = dict[str, Any]
Block = dict[str, Any]

_MAX_TURNS = 20


def random_history(
    random: Random,
    dialect: Dialect,
    *,
    legal: bool = True,
    signed_reasoning: bool = False,
    pins: bool = False,
    max_turns: int = _MAX_TURNS,
) -> list[Message]:
    """One history of up to *max_turns* answers of the model, which it is now to continue.

    With `legal=False` some are broken, in up to three ways at once. With `signed_reasoning` every signature is the
    `prefix_signature` of the messages before. With `pins` some messages say so in a `metadata` that no provider takes.
    """
    options = _Options(dialect, legal, signed_reasoning, pins, max_turns)
    return _Grammar(_FastDice(random), options).history()


def histories(
    dialect: Dialect,
    *,
    legal: bool = True,
    signed_reasoning: bool = False,
    pins: bool = False,
    max_turns: int = _MAX_TURNS,
) -> SearchStrategy[list[Message]]:
    """The histories of `random_history` as a hypothesis strategy, which shrinks to one short message of the user."""
    options = _Options(dialect, legal, signed_reasoning, pins, max_turns)
    strategies = import_extra("hypothesis.strategies", extra="testing")

    def draw_history(draw: DrawFn) -> list[Message]:
        return _Grammar(_ShrinkingDice(draw, strategies), options).history()

    return cast("SearchStrategy[list[Message]]", strategies.composite(draw_history)())


def without_metadata(messages: Iterable[Message]) -> list[Message]:
    """The messages as a framework would send them: without the `metadata` it keeps beside their content."""
    return [{key: value for key, value in message.items() if key != "metadata"} for message in messages]


@dataclass(frozen=True)
class _Options:
    dialect: Dialect
    legal: bool
    signed_reasoning: bool
    pins: bool
    max_turns: int

    def __post_init__(self) -> None:
        if self.dialect not in _WIRES:
            raise InvalidValueError(f"dialect must be one of {', '.join(_WIRES)}, got {self.dialect!r}")
        if self.max_turns < 0:
            raise InvalidValueError(f"max_turns must be at least 0, got {self.max_turns}")


# Two kinds of dice. For both, the first, the least and the fewest are the simplest.


class _Dice(Protocol):
    def chance(self, percent: int) -> bool: ...

    def below(self, bound: int) -> int: ...

    def pick(self, options: Sequence[T]) -> T: ...

    def repeat(self, most: int, step: Callable[[], object]) -> None: ...


class _FastDice:
    """Draws by `Random.random` alone, several times faster than `randrange` and `choice`."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def chance(self, percent: int) -> bool:
        return self._random() * 100 < percent

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def repeat(self, most: int, step: Callable[[], object]) -> None:
        for _ in range(int(self._random() * (most + 1))):
            step()


class _ShrinkingDice:
    """Draws by hypothesis; asks before each repetition, so that any one of them can be left out."""

    def __init__(self, draw: DrawFn, strategies: Any) -> None:
        self._draw = draw
        self._strategies = strategies

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def below(self, bound: int) -> int:
        return cast(int, self._draw(self._strategies.integers(0, bound - 1)))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def repeat(self, most: int, step: Callable[[], object]) -> None:
        once = self._strategies.builds(lambda: self.below(most + 1) and (step(), True))
        for _ in range(most):
            if not self._draw(once):
                return


# Contents.


def _corpus(*parts: str, length: int = 60_000) -> str:
    whole = "".join(parts)
    return whole * (length // len(whole) + 1)


_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "a5f645400000000049454e44ae426082"
)
_PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
_PNG_BASE64 = base64.b64encode(_PNG).decode()
_PDF_BASE64 = base64.b64encode(_PDF).decode()
_REDACTED = bytes(range(64))

_SCRIPTS = (
    _corpus("the quick brown fox jumps over the lazy dog and runs on, ", "see line 42 of src/app.py for more\n"),
    _corpus("E   AssertionError: expected 3, got 4\n", '  File "/app/tests/test_cart.py", line 118, in test_total\n'),
    _corpus('{"id": 1042, "name": "widget", "tags": ["a", "b"], "price": 12.5, "note": null}, '),
    _corpus("0123456789abcdef"),
    _corpus("我们需要先读取配置文件，然后再运行测试。日本語のテキストも混ざっています。한국어 문장도 있다. "),
    _corpus("🙂👩‍👩‍👧‍👦🇩🇪🏳️‍🌈👍🏽 ok "),
    _corpus("e\u0301a\u0308o\u0302n\u0303 Z\u0351\u036b\u0343a\u0360\u0315l\u0321g\u0322o\u0327 "),
    _corpus("\x1b[31merror\x1b[0m\t\x00\x07\r\n\u200b\ufeff\u202eabc\u202c\x85 "),
    _corpus("Привет, мир. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया. "),
)
_LENGTHS = (20, 20, 20, 120, 120, 600, 3_000)
_HUGE_LENGTHS = (5_000, 12_000, 25_000, 50_000)
_OPENINGS = ("ok", "Done:", "error:", "見る", "🙂", "Result 1", "<html>", "#")
_TOOLS = ("read_file", "run_tests", "search", "http_get", "edit-file")
_BLANKS = ("", " ", "\n\n", "\t \n", "\u3000")
_NOT_UNICODE = "half a pair: \ud83d"


@dataclass(frozen=True)
class _Call:
    id: str
    name: str
    input: dict[str, Any]


class _Contents:
    """Texts, inputs and blocks of any dialect's parts, from dice."""

    def __init__(self, dice: _Dice) -> None:
        self._dice = dice

    def text(self) -> str:
        """Never blank, and rarely long."""
        return self._slice(self._dice.pick(_LENGTHS))

    def result_text(self) -> str:
        """Sometimes so long that any budget of tokens bites."""
        if self._dice.chance(3):
            return self._slice(self._dice.pick(_HUGE_LENGTHS), at_least=4_990)
        return self.text()

    def input(self) -> dict[str, Any]:
        kind = self._dice.below(4)
        if kind == 0:
            return {}
        if kind == 1:
            return {"path": f"src/module_{self._dice.below(50)}.py"}
        if kind == 2:
            return {"query": self.text(), "limit": self._dice.below(100)}
        return {"edits": [{"old": self.text(), "new": ""}], "dry_run": False, "at": None, "scale": 0.5}

    def _slice(self, longest: int, at_least: int = 0) -> str:
        dice = self._dice
        script = dice.pick(_SCRIPTS)
        length = at_least + dice.below(max(1, longest - at_least))
        start = dice.below(100)
        return dice.pick(_OPENINGS) + script[start : start + length]


# How each provider writes it.


class _Wire(Protocol):
    """A dialect: the same parts of a conversation, in the words of one provider."""

    ids_may_repeat: bool

    def opening(self) -> list[Message]: ...

    def user(self, text: str) -> list[Message]: ...

    def answer(self, text: str, calls: list[_Call], signature: str) -> Message: ...

    def results(self, calls: list[_Call]) -> list[Message]: ...


class _ConverseWire:
    ids_may_repeat = True

    def __init__(self, dice: _Dice) -> None:
        self._dice = dice
        self._contents = _Contents(dice)

    def opening(self) -> list[Message]:
        return []

    def user(self, text: str) -> list[Message]:
        content: list[Block] = [{"text": text}]
        if self._dice.chance(15):
            content.append(self._dice.pick((self._image, self._document))())
        return [{"role": "user", "content": self._cached(content)}]

    def answer(self, text: str, calls: list[_Call], signature: str) -> Message:
        content = self._reasoning(signature) if self._dice.chance(25) else []
        if text:
            content.append({"text": text})
        content += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.input}} for call in calls]
        return {"role": "assistant", "content": content}

    def results(self, calls: list[_Call]) -> list[Message]:
        content: list[Block] = [{"toolResult": self._result(call)} for call in calls]
        if self._dice.chance(8):
            content.append({"text": self._contents.text()})
        return [{"role": "user", "content": self._cached(content)}]

    def _result(self, call: _Call) -> Block:
        result: Block = {"toolUseId": call.id, "content": self._result_content()}
        status = self._dice.below(8)
        if status > 5:
            result["status"] = "error" if status == 7 else "success"
        return result

    def _result_content(self) -> list[Block]:
        kind = self._dice.below(20)
        text = {"text": self._contents.result_text()}
        if kind < 14:
            return [text]
        if kind < 16:
            return [{"json": {"rows": [self._contents.input()], "text": self._contents.text(), "total": 1}}]
        if kind == 16:
            return [text, {"text": self._contents.text()}, {"json": {"exit": 0}}]
        if kind == 17:
            return [text, self._image()]
        if kind == 18:
            return [text, self._document()]
        return self._dice.pick(([], [{"text": ""}]))

    def _reasoning(self, signature: str) -> list[Block]:
        kind = self._dice.below(4)
        if kind == 3:
            return [{"reasoningContent": {"redactedContent": _REDACTED}}]
        reasoning = {"text": self._contents.text()}
        if kind:
            reasoning["signature"] = signature
        return [{"reasoningContent": {"reasoningText": reasoning}}]

    def _cached(self, content: list[Block]) -> list[Block]:
        return [*content, {"cachePoint": {"type": "default"}}] if self._dice.chance(4) else content

    def _image(self) -> Block:
        return {"image": {"format": "png", "source": {"bytes": _PNG}}}

    def _document(self) -> Block:
        name = f"report {self._dice.below(9)}"
        return {"document": {"format": "pdf", "name": name, "source": {"bytes": _PDF}}}


class _AnthropicWire:
    ids_may_repeat = False

    def __init__(self, dice: _Dice) -> None:
        self._dice = dice
        self._contents = _Contents(dice)

    def opening(self) -> list[Message]:
        return []

    def user(self, text: str) -> list[Message]:
        kind = self._dice.below(10)
        if kind < 3:
            return [{"role": "user", "content": text}]
        content = [self._text(text)]
        if kind == 8:
            content.append(self._dice.pick((self._image, self._document))())
        if kind == 9:
            return [{"role": "user", "content": content}, {"role": "user", "content": self._contents.text()}]
        return [{"role": "user", "content": self._cached(content)}]

    def answer(self, text: str, calls: list[_Call], signature: str) -> Message:
        content = self._reasoning(signature) if self._dice.chance(25) else []
        if not content and not calls and self._dice.chance(30):
            return {"role": "assistant", "content": text}
        if text:
            content.append(self._text(text))
        content += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in calls]
        return {"role": "assistant", "content": content}

    def results(self, calls: list[_Call]) -> list[Message]:
        content = [self._result(call) for call in calls]
        kind = self._dice.below(20)
        if kind == 19:
            content.append(self._text(self._contents.text()))
        if kind == 18 and len(content) > 1:
            return [{"role": "user", "content": [block]} for block in content]
        return [{"role": "user", "content": self._cached(content)}]

    def _result(self, call: _Call) -> Block:
        result: Block = {"type": "tool_result", "tool_use_id": call.id}
        content = self._result_content()
        if content is not None:
            result["content"] = content
        if self._dice.chance(12):
            result["is_error"] = True
        return result

    def _result_content(self) -> str | list[Block] | None:
        kind = self._dice.below(20)
        text = self._contents.result_text()
        if kind < 9:
            return text
        if kind < 15:
            return [self._text(text)]
        if kind == 15:
            return [self._text(text), self._text(self._contents.text())]
        if kind == 16:
            return [self._text(text), self._image()]
        if kind == 17:
            return [self._document(), self._text(text)]
        return self._dice.pick((None, "", []))

    def _reasoning(self, signature: str) -> list[Block]:
        thinking = {"type": "thinking", "thinking": self._contents.text(), "signature": signature}
        redacted = {"type": "redacted_thinking", "data": _PDF_BASE64}
        return self._dice.pick(([thinking], [thinking], [redacted], [thinking, redacted]))

    def _cached(self, content: list[Block]) -> list[Block]:
        if self._dice.chance(4):
            content[-1]["cache_control"] = {"type": "ephemeral"}
        return content

    def _text(self, text: str) -> Block:
        return {"type": "text", "text": text}

    def _image(self) -> Block:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG_BASE64}}

    def _document(self) -> Block:
        source = {"type": "base64", "media_type": "application/pdf", "data": _PDF_BASE64}
        return {"type": "document", "source": source, "title": f"report {self._dice.below(9)}"}


class _OpenAIWire:
    ids_may_repeat = True

    def __init__(self, dice: _Dice) -> None:
        self._dice = dice
        self._contents = _Contents(dice)

    def opening(self) -> list[Message]:
        said: list[Message] = []
        self._dice.repeat(1, lambda: said.append(self._instruction()))
        return said

    def user(self, text: str) -> list[Message]:
        kind = self._dice.below(20)
        message: Message = {"role": "user", "content": text}
        if kind == 17:
            message["name"] = "alice"
        if kind == 18:
            return [self._instruction(), message]
        if kind > 14:
            message["content"] = [{"type": "text", "text": text}, self._dice.pick((self._image, self._file))()]
        return [message]

    def answer(self, text: str, calls: list[_Call], signature: str) -> Message:
        message: Message = {"role": "assistant", "content": text or None}
        if text and self._dice.chance(5):
            message["content"] = [{"type": "text", "text": text}]
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
            if not text and self._dice.chance(30):
                del message["content"]
        elif self._dice.chance(3):
            message |= {"content": None, "refusal": text}
        return message

    def results(self, calls: list[_Call]) -> list[Message]:
        results: list[Message] = [
            {"role": "tool", "tool_call_id": call.id, "content": self._result_content()} for call in calls
        ]
        if self._dice.chance(10):
            results.reverse()
        if self._dice.chance(5):
            results += self.user(self._contents.text())
        return results

    def _result_content(self) -> str | list[Block]:
        kind = self._dice.below(20)
        text = self._contents.result_text()
        if kind < 16:
            return text
        if kind == 16:
            return [{"type": "text", "text": text}, {"type": "text", "text": self._contents.text()}]
        return "" if kind == 19 else f"Error: {text}"

    def _call(self, call: _Call) -> Block:
        function = {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)}
        return {"id": call.id, "type": "function", "function": function}

    def _instruction(self) -> Message:
        return {"role": self._dice.pick(("system", "developer")), "content": self._contents.text()}

    def _image(self) -> Block:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG_BASE64}"}}

    def _file(self) -> Block:
        data = f"data:application/pdf;base64,{_PDF_BASE64}"
        return {"type": "file", "file": {"filename": "report.pdf", "file_data": data}}


_WIRES: dict[str, Callable[[_Dice], _Wire]] = {
    "converse": _ConverseWire,
    "anthropic": _AnthropicWire,
    "openai": _OpenAIWire,
}


# The grammar.

# How many in a hundred answers of the model call tools: agents with company, agents alone, plain chats.
_TOOL_SHARES = (75, 100, 0, 75, 100)


class _Grammar:
    """A user's message, then turns: the model calls tools and gets results, or answers and is asked again."""

    def __init__(self, dice: _Dice, options: _Options) -> None:
        self._dice = dice
        self._options = options
        self._contents = _Contents(dice)
        self._wire = _WIRES[options.dialect](dice)
        self._ids_repeat = self._wire.ids_may_repeat and dice.chance(30)
        self._calls_made = 0
        self._signed = hashlib.sha256()
        self._messages: list[Message] = []

    def history(self) -> list[Message]:
        tool_share = self._dice.pick(_TOOL_SHARES)
        self._say(self._wire.opening())
        self._say(self._wire.user(self._contents.text()))
        self._dice.repeat(self._options.max_turns, lambda: self._turn(calls_tools=self._dice.chance(tool_share)))
        if not self._options.legal:
            _break(self._messages, self._dice, self._options.dialect)
        if self._options.pins:
            self._pin()
        return self._messages

    def _turn(self, *, calls_tools: bool) -> None:
        calls = self._calls() if calls_tools else []
        text = "" if calls and self._dice.chance(50) else self._contents.text()
        self._say([self._wire.answer(text, calls, self._signature())])
        self._say(self._wire.results(calls) if calls else self._wire.user(self._contents.text()))

    def _calls(self) -> list[_Call]:
        parallel = self._dice.below(4) + self._dice.below(3) if self._dice.chance(25) else 0
        if self._ids_repeat:
            self._calls_made = 0
        return [self._call() for _ in range(max(1, min(5, parallel)))]

    def _call(self) -> _Call:
        self._calls_made += 1
        return _Call(f"call_{self._calls_made}", self._dice.pick(_TOOLS), self._contents.input())

    def _signature(self) -> str:
        return self._signed.hexdigest() if self._options.signed_reasoning else f"c2lnbmVk{self._dice.below(1000)}"

    def _say(self, messages: list[Message]) -> None:
        self._messages += messages
        if self._options.signed_reasoning:
            for message in messages:
                self._signed.update(canonical_json(message))

    def _pin(self) -> None:
        for message in self._messages:
            if self._dice.chance(15):
                message["metadata"] = {"custom": {"pinned": True}}


# Ways to break a history. Each takes it as it is, however broken already, and changes it in place.


def _break(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    dice.repeat(3, lambda: messages and dice.pick(_FAULTS)(messages, dice, dialect))


def _start_with_assistant(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    while messages and messages[0].get("role") != "assistant":
        del messages[0]


def _end_with_assistant(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    messages.append(_simple("assistant", "I am done. ", dialect))


def _lose_a_message(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    del messages[dice.below(len(messages))]


def _double_a_message(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    place = dice.below(len(messages))
    messages.insert(place, deepcopy(messages[place]))


def _double_a_role(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    role = dice.pick(("user", "assistant"))
    messages.insert(dice.below(len(messages) + 1), _simple(role, "once more", dialect))


def _move_results_away(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    places = [place for place, message in enumerate(messages) if _parts(message, _RESULTS)]
    if places:
        moved = messages.pop(dice.pick(places))
        messages.insert(dice.below(len(messages) + 1), moved)


def _lose_a_result(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    _change_a_part(messages, dice, _RESULTS, lambda parts, place: parts.pop(place))


def _lose_a_call(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    _change_a_part(messages, dice, _CALLS, lambda parts, place: parts.pop(place))


def _double_a_call(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    _change_a_part(messages, dice, _CALLS, lambda parts, place: parts.insert(place, deepcopy(parts[place])))


def _double_a_result(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    _change_a_part(messages, dice, _RESULTS, lambda parts, place: parts.insert(place, deepcopy(parts[place])))


def _add_an_orphan_result(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    orphan = _WIRES[dialect](dice).results([_Call(f"orphan_{dice.below(3)}", "search", {})])
    messages[(place := dice.below(len(messages) + 1)) : place] = orphan


def _spoil_content(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    spoilt: tuple[Any, ...] = ([], None, "", "plain text", 7, {}, [None], ["text"], [{}])
    dice.pick(messages)["content"] = dice.pick(spoilt)


def _lose_a_key(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    message = dice.pick(messages)
    if message:
        del message[dice.pick(list(message))]


def _use_an_unknown_role(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    roles: tuple[Any, ...] = ("system", "function", "", "User", None, 1)
    dice.pick(messages)["role"] = dice.pick(roles)


def _add_an_unknown_key(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    message = dice.pick(messages)
    blocks = [block for block in _blocks(message) if isinstance(block, dict)]
    dice.pick([message, *blocks])["tracking_id"] = "t-1"


def _add_an_unknown_block(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    block = {"hologram": {"depth": 3}} if dialect == "converse" else {"type": "hologram", "depth": 3}
    _blocks(dice.pick(messages)).append(block)


def _add_blank_text(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    _add_text(dice.pick(messages), dice.pick(_BLANKS), dialect)


def _add_half_a_surrogate_pair(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    _add_text(dice.pick(messages), _NOT_UNICODE, dialect)


def _repeat_an_id_of_another_turn(messages: list[Message], dice: _Dice, dialect: Dialect) -> None:
    ids = {id_key for parts in (_CALLS, _RESULTS) for id_key in parts.id_keys}
    for message in messages:
        for part in (*_parts(message, _CALLS), *_parts(message, _RESULTS)):
            body = _body(part)
            for key in ids & body.keys():
                body[key] = "call_1"


_Fault = Callable[[list[Message], _Dice, Dialect], None]
_FAULTS: tuple[_Fault, ...] = (
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


@dataclass(frozen=True)
class _Kind:
    """How to tell calls, or results, among the parts of any dialect's messages."""

    converse: str
    anthropic: str
    id_keys: tuple[str, ...]

    def matches(self, part: object) -> bool:
        return isinstance(part, dict) and (self.converse in part or part.get("type") in (self.anthropic, "function"))


_CALLS = _Kind("toolUse", "tool_use", ("toolUseId", "id"))
_RESULTS = _Kind("toolResult", "tool_result", ("toolUseId", "tool_use_id", "tool_call_id"))


def _simple(role: str, text: str, dialect: Dialect) -> Message:
    return {"role": role, "content": [{"text": text}] if dialect == "converse" else text}


def _blocks(message: Message) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _add_text(message: Message, text: str, dialect: Dialect) -> None:
    if isinstance(message.get("content"), str):
        message["content"] = text
    else:
        _blocks(message).append({"text": text} if dialect == "converse" else {"type": "text", "text": text})


def _holders(message: Message, kind: _Kind) -> list[Any]:
    """The list in which a message has its calls or results."""
    calls = message.get("tool_calls")
    return calls if kind is _CALLS and isinstance(calls, list) else _blocks(message)


def _parts(message: Message, kind: _Kind) -> list[Any]:
    if kind is _RESULTS and message.get("role") == "tool":
        return [message]
    return [part for part in _holders(message, kind) if kind.matches(part)]


def _body(part: Any) -> dict[str, Any]:
    body = part.get("toolUse", part.get("toolResult", part))
    return body if isinstance(body, dict) else part


def _change_a_part(
    messages: list[Message], dice: _Dice, kind: _Kind, change: Callable[[list[Any], int], object]
) -> None:
    """Let *change* change one call or result, given by its place in the list that holds it."""
    found = [
        (holder, place)
        for holder in (messages, *(_holders(message, kind) for message in messages))
        for place, part in enumerate(holder)
        if (kind is _RESULTS and isinstance(part, dict) and part.get("role") == "tool") or kind.matches(part)
    ]
    if found:
        change(*dice.pick(found))
