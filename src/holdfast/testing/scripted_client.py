"""A provider's client that answers from a script, for loops without a framework.

client = ScriptedClient("openai", [Call("read_file", {"path": "a.txt"}), "It says hello."], window=32_000)
answer = await client.create(messages=messages, tools=tools)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.dialects import dialect_named
from holdfast.errors import InvalidTypeError
from holdfast.messages import Block, Message, Text, ToolUse
from holdfast.testing.providers import anthropic_problems, converse_problems, openai_problems
from holdfast.testing.refusals import IllegalRequestError
from holdfast.testing.scripts import STEPS, Call, Request, ids_of, returned, steps_of
from holdfast.tokens import estimate_input_tokens

__all__ = ["ScriptedClient"]

_PROBLEMS = {"openai": openai_problems, "anthropic": anthropic_problems, "converse": converse_problems}


class ScriptedClient:
    """Answers each request with the next step of *script*, in the form of *dialect*, and with "done." after the last.

    Steps are those of a `ScriptedModel`, but for whole messages. Requests that the provider would refuse, and those of
    more than *window* tokens, raise an error and take no step.
    """

    def __init__(
        self, dialect: str, script: Iterable[Any] | Callable[[Request], Any] = (), *, window: int | None = None
    ) -> None:
        self._dialect = dialect_named(dialect)
        self._next_step = steps_of(script)
        self._next_id = ids_of(None)
        self._window = window
        self.requests: deque[Request] = deque(maxlen=100)
        self.calls = 0
        self.overflows = 0

    async def create(self, *, messages: list[Any], tools: Any = (), system: Any = None, **options: Any) -> Any:
        """Return what the provider's API would, as plain data."""
        self.calls += 1
        tokens = estimate_input_tokens(messages, system, list(tools))
        request = Request(list(messages), system, list(tools), tokens, self.calls)
        self.requests.append(request)
        await self._refuse(request)
        step = await returned(self._next_step(request), request)
        if isinstance(step, BaseException):
            raise step
        parts = step if isinstance(step, list) else [step]
        [message] = self._dialect.write(Message("assistant", tuple(map(self._block, parts))))
        return _FORMS[self._dialect.name](message, tokens, estimate_input_tokens([message]))

    async def _refuse(self, request: Request) -> None:
        # Converse's rules are read from a file.
        if problems := await asyncio.to_thread(_PROBLEMS[self._dialect.name], request.messages):
            raise IllegalRequestError(request.number, problems)
        if self._window is not None and request.tokens > self._window:
            self.overflows += 1
            raise RuntimeError(f"prompt is too long: {request.tokens} tokens > {self._window} maximum")

    def _block(self, part: Any) -> Block:
        match part:
            case str():
                return Text(part)
            case Call(name, arguments, given):
                return ToolUse(self._next_id() if given is None else given, name, arguments)
        raise InvalidTypeError(f"a step must be {STEPS}, got {part!r:.80}")


def _openai(message: Any, sent: int, written: int) -> dict[str, Any]:
    usage = {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}
    return {"choices": [{"index": 0, "message": message}], "usage": usage}


def _anthropic(message: Any, sent: int, written: int) -> dict[str, Any]:
    return {"type": "message", **message, "usage": {"input_tokens": sent, "output_tokens": written}}


def _converse(message: Any, sent: int, written: int) -> dict[str, Any]:
    usage = {"inputTokens": sent, "outputTokens": written, "totalTokens": sent + written}
    return {"output": {"message": message}, "usage": usage}


_FORMS: dict[str, Callable[[Any, int, int], dict[str, Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "converse": _converse,
}
