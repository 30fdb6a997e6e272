"""A strands model that answers from a script, and refuses what a provider would refuse.

    model = ScriptedModel([Call("read_file", {"path": "a.txt"}), "It says hello."], window=32_000)
    agent = strands.Agent(model=model, tools=[read_file])

Needs ``pip install 'holdfast[strands]'``.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.extras import require_extra
from holdfast.storage.checks import require_positive
from holdfast.testing.providers import prefix_signature
from holdfast.testing.refusals import CountOnce, IllegalRequestError, Refusals
from holdfast.testing.scripts import STEPS, Call, Request, ids_of, returned, steps_of

# Without strands the module can be read, and a ScriptedModel says what is missing when it is made.
if TYPE_CHECKING or find_spec("strands"):
    from strands.models.model import Model
else:
    Model = object

__all__ = ["ScriptedModel"]


class ScriptedModel(Model):
    """Answers each request with the next step of *script*, and with "done." after the last.

    A step is text, a `Call`, a list of these and of Converse blocks, an assistant's message of Converse, an exception
    to raise, or a function, sync or async, that is given the `Request` and returns a step. *script* is an iterable of
    steps, read one by one, or one such function for every request. A request that is refused takes no step.

    Refused are requests of more than *window* tokens, and with *validate* those that Bedrock's Converse would refuse.
    With *checks_signatures* the model signs its reasoning together with the messages before it, and refuses reasoning
    that comes back after other messages. *count* is called like `estimate_input_tokens`, which stands in for it.
    *usage_factor* makes a provider that counts more, or fewer, than that. *ids* are those of tool calls: an iterable
    that begins anew at its end, or a function.

    `calls` counts all requests and `overflows` those above the window; `violations` says what was wrong with each
    illegal one, and `requests` holds the latest *keep* of all: with strands' own copy of the messages.
    """

    def __init__(
        self,
        script: Iterable[Any] | Callable[[Request], Any] = (),
        *,
        window: int | None = None,
        tells_window: bool = True,
        names_figures: bool = True,
        model_id: str = "scripted",
        max_tokens: int | None = None,
        validate: bool = True,
        checks_signatures: bool = False,
        count: Callable[[list[Any], Any, list[Any]], int] | None = None,
        usage_factor: float = 1.0,
        delay: float = 0.0,
        keep: int | None = 100,
        ids: Iterable[str] | Callable[[], str] | None = None,
    ) -> None:
        require_extra("strands", extra="strands")
        _check_options(window=window, max_tokens=max_tokens, usage_factor=usage_factor, delay=delay, keep=keep)
        told = {"max_tokens": max_tokens, "context_window_limit": window if tells_window else None}
        self.config: dict[str, Any] = {"model_id": model_id, **{k: v for k, v in told.items() if v is not None}}
        self.window = window
        self.requests: deque[Request] = deque(maxlen=keep)
        self.calls = 0
        self.overflows = 0
        self.violations: list[str] = []
        self._next_step = steps_of(script)
        self._next_id = ids_of(ids)
        self._refusals = Refusals(checks_signatures) if validate else None
        self._signs = checks_signatures
        self._count = count or CountOnce()
        self._usage_factor = usage_factor
        self._names_figures = names_figures
        self._delay = delay

    def update_config(self, **model_config: Any) -> None:
        """Change what the model tells of itself. The window that it keeps to is `window`."""
        self.config.update(model_config)

    def get_config(self) -> dict[str, Any]:
        """Return what the model tells of itself."""
        return self.config

    async def stream(
        self,
        messages: Any,
        tool_specs: Any = None,
        system_prompt: Any = None,
        *,
        system_prompt_content: Any = None,
        **kwargs: Any,
    ) -> AsyncGenerator[Any, None]:
        """Answer in the events of Converse's stream, with the usage in the last."""
        request = self._received(messages, tool_specs, system_prompt or system_prompt_content)
        answer = self._answer(await self._accepted(request), request)
        for event in [*_events(answer), self._usage(answer, request)]:
            yield event

    async def structured_output(
        self, output_model: Any, prompt: Any, system_prompt: str | None = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Answer with the next step, which is an *output_model* or a dict of its values."""
        tool = {"name": output_model.__name__, "inputSchema": {"json": output_model.model_json_schema()}}
        request = self._received(copy.deepcopy(prompt), [tool], system_prompt)
        step = await self._accepted(request)
        if not isinstance(step, (output_model, dict)):
            raise InvalidTypeError(
                f"a step must be a {output_model.__name__} or a dict of its values, got {step!r:.80}"
            )
        yield {"output": output_model(**step) if isinstance(step, dict) else step}

    def _received(self, messages: Any, tool_specs: Any, system_prompt: Any) -> Request:
        self.calls += 1
        given, tools = list(messages), list(tool_specs or ())
        tokens = self._in_its_own_tokens(self._count(given, system_prompt, tools))
        request = Request(given, system_prompt, tools, tokens, self.calls)
        self.requests.append(request)
        return request

    async def _accepted(self, request: Request) -> Any:
        """Return the step for a request, or raise what a provider would."""
        if self._refusals and (problems := await self._refusals.of(request)):
            error = IllegalRequestError(request.number, problems)
            self.violations.append(str(error))
            raise error
        if self.window is not None and request.tokens > self.window:
            self.overflows += 1
            raise self._overflow(request.tokens, self.window)
        await asyncio.sleep(self._delay)
        step = await returned(self._next_step(request), request)
        if isinstance(step, BaseException):
            raise step.with_traceback(None)
        return step

    def _overflow(self, tokens: int, window: int) -> Exception:
        from strands.types.exceptions import ContextWindowOverflowException

        figures = f"prompt is too long: {tokens} tokens > {window} maximum"
        return ContextWindowOverflowException(
            figures if self._names_figures else "Input is too long for requested model."
        )

    def _answer(self, step: Any, request: Request) -> dict[str, Any]:
        message = _message(step, self._next_id)
        return _signed(message, request.messages) if self._signs else message

    def _usage(self, answer: dict[str, Any], request: Request) -> dict[str, Any]:
        written = self._in_its_own_tokens(self._count([answer], None, []))
        usage = {"inputTokens": request.tokens, "outputTokens": written, "totalTokens": request.tokens + written}
        return {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}

    def _in_its_own_tokens(self, tokens: int) -> int:
        return round(tokens * self._usage_factor)


def _signed(message: dict[str, Any], before: list[Any]) -> dict[str, Any]:
    def signed(block: dict[str, Any]) -> dict[str, Any]:
        said = block.get("reasoningContent", {}).get("reasoningText")
        return (
            {"reasoningContent": {"reasoningText": {**said, "signature": prefix_signature(before)}}} if said else block
        )

    return {**message, "content": [signed(block) for block in message["content"]]}


def _message(step: Any, next_id: Callable[[], str]) -> dict[str, Any]:
    if isinstance(step, dict) and step.get("role") == "assistant" and isinstance(step.get("content"), list):
        return step
    parts = step if isinstance(step, (list, tuple)) else [step]
    return {"role": "assistant", "content": [_block(part, next_id) for part in parts]}


def _block(part: Any, next_id: Callable[[], str]) -> dict[str, Any]:
    match part:
        case str():
            return {"text": part}
        case Call(name, arguments, given):
            return {"toolUse": {"toolUseId": next_id() if given is None else given, "name": name, "input": arguments}}
        case {"text": _} | {"toolUse": _} | {"reasoningContent": _} | {"citationsContent": _}:
            return dict(part)
    raise InvalidTypeError(f"a step must be {STEPS}, got {part!r:.80}")


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"messageStart": {"role": "assistant"}}
    for block in message["content"]:
        yield {"contentBlockStart": {"start": _start(block)}}
        yield from ({"contentBlockDelta": {"delta": delta}} for delta in _deltas(block))
        yield {"contentBlockStop": {}}
    reason = "tool_use" if any("toolUse" in block for block in message["content"]) else "end_turn"
    yield {"messageStop": {"stopReason": reason}}


def _start(block: dict[str, Any]) -> dict[str, Any]:
    use = block.get("toolUse")
    return {"toolUse": {key: value for key, value in use.items() if key != "input"}} if use else {}


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match block:
        case {"text": text}:
            yield {"text": text}
        case {"toolUse": {"input": given}}:
            yield {"toolUse": {"input": given if isinstance(given, str) else json.dumps(given)}}
        case {"reasoningContent": {"reasoningText": said}}:
            yield from ({"reasoningContent": {key: said[key]}} for key in ("text", "signature") if key in said)
        case {"reasoningContent": {"redactedContent": hidden}}:
            yield {"reasoningContent": {"redactedContent": hidden}}
        case {"citationsContent": {"citations": citations, "content": content}}:
            yield from ({"citation": citation} for citation in citations)
            yield from ({"text": part["text"]} for part in content)
        case _:
            raise InvalidValueError(f"no model streams a block like {block!r:.80}")


def _check_options(
    *, window: int | None, max_tokens: int | None, usage_factor: float, delay: float, keep: int | None
) -> None:
    for name, value in (("window", window), ("max_tokens", max_tokens), ("keep", keep)):
        if value is not None:
            require_positive(name, value)
    if not usage_factor > 0:
        raise InvalidValueError(f"usage_factor must be above 0, got {usage_factor!r}")
    if not delay >= 0:
        raise InvalidValueError(f"delay must be 0 or more seconds, got {delay!r}")
