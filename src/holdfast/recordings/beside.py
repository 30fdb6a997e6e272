"""What stands beside the messages of a conversation: system prompt, tools, model, a name, and the answer of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from holdfast.recordings.values import quoted

__all__ = ["answer_in", "dialect_beside", "joined_prompt", "model_in", "name_in", "prompts_in", "tools_in"]

_PROMPTS = ("system", "system_prompt")
_TOOLS = ("tools", "tool_specs", "functions")
_MODELS = ("model", "modelId", "model_id")
_RESPONSES = ("response", "output")
_BODIES = ("body", "outputBodyJson")
_NAMES = ("id", "name", "trace_id", "custom_id")


def prompts_in(body: dict[str, Any]) -> list[Any]:
    """Return the system prompts that are no messages."""
    return [body[name] for name in _PROMPTS if body.get(name) and isinstance(body[name], (str, list))][:1]


def joined_prompt(prompts: Iterable[Any]) -> Any:
    """Return one system prompt: the only one as it is, several as text with blank lines between, or as blocks."""
    given = [prompt for prompt in prompts if prompt and isinstance(prompt, (str, list))]
    if len(given) < 2:
        return given[0] if given else None
    texts = [_text_of(prompt) for prompt in given]
    if None not in texts:
        return "\n\n".join(text for text in texts if text)
    return [block for prompt in given for block in ([{"type": "text", "text": prompt}] if _is_text(prompt) else prompt)]


def tools_in(body: dict[str, Any]) -> tuple[Any, ...]:
    """Return the tools as they were sent."""
    config = body.get("toolConfig")
    given = [config.get("tools")] if isinstance(config, dict) else [body.get(name) for name in _TOOLS]
    tools: list[Any] = next((each for each in given if isinstance(each, list)), [])
    return tuple(tool for tool in tools if isinstance(tool, dict))


def model_in(body: dict[str, Any]) -> str:
    """Return the name of the model, on one line; "" if there is none."""
    return next((quoted(body[name], 100) for name in _MODELS if isinstance(body.get(name), str)), "")


def name_in(value: dict[str, Any]) -> str:
    """Return what a conversation calls itself, on one line; "" if it has no name."""
    names = (value.get(name) for name in _NAMES)
    return next((quoted(str(name)) for name in names if isinstance(name, (str, int)) and str(name).strip()), "")


def answer_in(value: dict[str, Any]) -> list[Any]:
    """Return what the model answered to a request that was logged together with its response."""
    return list(islice((answer for body in _responses(value) for answer in _answers(body)), 1))


def dialect_beside(body: dict[str, Any]) -> str:
    """Return the dialect of messages that are the same in several: by the tools, by the prompt, or openai."""
    is_claude = model_in(body).startswith("claude")
    if is_claude or "anthropic_version" in body or any("input_schema" in tool for tool in tools_in(body)):
        return "anthropic"
    if "toolConfig" in body or "inferenceConfig" in body:
        return "converse"
    return "openai"


def _responses(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for response in (value[name] for name in _RESPONSES if isinstance(value.get(name), dict)):
        bodies = (response.get(name) for name in _BODIES)
        yield next((body for body in bodies if isinstance(body, dict)), response)


def _answers(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    choices = body["choices"] if isinstance(body.get("choices"), list) else []
    output = [body["output"]] if isinstance(body.get("output"), dict) else []
    for holder in (*choices, *output):
        if isinstance(holder, dict) and isinstance(holder.get("message"), dict):
            yield {"role": "assistant", **holder["message"]}
    if body.get("role") == "assistant":
        yield body


def _text_of(prompt: Any) -> str | None:
    """Return a prompt that is nothing but text; None for any other."""
    if _is_text(prompt):
        return str(prompt)
    texts = [block["text"] for block in prompt if _is_plain(block)]
    return "\n".join(texts) if len(texts) == len(prompt) else None


def _is_text(prompt: Any) -> bool:
    return isinstance(prompt, str)


def _is_plain(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str) and set(block) <= {"type", "text"}
