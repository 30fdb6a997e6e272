"""Errors with which providers say that a request is too long.

Each table names wordings, not guesses: an error that only mentions tokens, limits or a context is no overflow. Every
gap in a pattern is bounded, so that a hostile message costs no more than a long one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast.errors import ContextOverflowError

__all__ = ["Figures", "figures_in", "is_context_overflow"]

_NAMES = frozenset({"ContextWindowOverflowException", "ContextWindowExceededError", "ContextLengthExceededError"})
_CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded", "request_too_large"})
_LOOKED_AT = 4_000
_MOST_CAUSES = 8


def _compiled(patterns: Mapping[str, str]) -> tuple[re.Pattern[str], ...]:
    """Compile *patterns*, in which `<name>` stands for a number to be read."""
    number = r"(?P<\1>\\d[\\d,]{0,14})(?:\\.0)?"
    return tuple(re.compile(re.sub(r"<(\w+)>", number, each), re.IGNORECASE) for each in patterns.values())


_OVERFLOWS = _compiled(
    {
        "too long": r"\b(?:prompt|input|context|conversation) (?:is )?too long",
        "exceeds the context": r"exceed(?:s|ed)?[ _](?:[\w',()-]{1,20} ){0,4}context[ _](?:window|length|size|limit)",
        "exceeds the model's context": r"exceed(?:s|ed)? the model's (?:maximum )?context\b",
        "context exceeded": r"context[ _]?(?:window|length|size|limit)[ _]?(?:limit |is |was |has been )?exceed",
        "context too long": r"context (?:window|length|size) (?:is )?too (?:long|large)",
        "context overflow": r"context[ _]?window[ _]?overflow",
        "maximum length": r"maximum (?:context|prompt) length is \d",
        "longer than the context": (
            r"\b(?:prompt|input|request|messages)\b.{0,40} (?:longer|larger|greater) than (?:[\w']{1,20} ){0,4}"
            r"(?:context (?:window|length|size)|maximum model length)"
        ),
        "token count": r"\b(?:input|prompt|request|requested) token count .{0,40}(?:exceeds|only supports)",
        "input tokens": r"\binput tokens? exceed|too many input tokens|too many tokens in the (?:prompt|input|request)",
        "input length": r"\b(?:input|prompt) length .{0,30}exceeds the maximum allowed .{0,30}tokens",
        "shorten it": r"reduce the length of the (?:messages|prompt|input)",
        "token limit": r"(?<!output[ _])(?<!completion[ _])(?<!max[ _])token[ _]limit[ _]exceeded",
        "model's token limit": r"exceed(?:s|ed)? (?:the )?(?:model|model's|input|prompt) token limit",
        "body": r"request[ _](?:(?:entity|body)[ _])?too[ _]large|413 (?:payload|content) too large",
        "body, anthropic": r"request exceeds the maximum size",
        "cohere": r"too many tokens: (?:total number of tokens in the prompt|size limit exceeded)",
        "dashscope": r"range of input length should be \[",
        "ds4": r"prompt has [\d,]{1,15} tokens?, but the configured context size is \d",
        "lm studio": r"tokens when context the overflows|\bn_keep\b.{0,20}>= ?n_ctx\b",
        "mistral": r"too large for model with \d[\d,]{0,14} maximum context length",
        "text generation inference": r"`inputs` (?:must have less than \d|tokens \+ `max_new_tokens` must be <=)",
        "zhipu": r"prompt exceeds max(?:imum)? length",
    }
)
_NEVER = _compiled(
    {
        # Bedrock throttles with "Too many tokens, please wait before trying again": a shorter history would not help.
        "rate limit": r"throttl|rate.?limit|too many requests|please wait|(?:try again|retry) later",
        "rate": r"tokens? per (?:min|hour|day)|per.minute|\btpm\b|^429\b|(?:code|status)\W{1,3}429\b",
        "quota": r"\bquota\b|\b(?:hourly|daily|weekly|monthly)\b",
        "timeout": r"deadline.?exceeded|timed out|\btimeout\b",
        "image": r"\bimage(?: size| dimensions?)? (?:exceeds?|(?:is )?too (?:large|big))\b",
        "answer": (
            r"(?<!and )(?<!and [`'])\bmax_(?:\w{1,12}_)?tokens\b\W{1,3}(?:[\d,]{1,15}\W{1,3})?"
            r"(?:exceeds?|(?:is|must be) (?:greater|larger|less)) "
        ),
    }
)
# The first that is found counts: the wordings that tell prompt and answer apart come before those that do not.
_FIGURES = _compiled(
    {
        "anthropic": r"<sent> tokens? > <limit>",
        "anthropic, answer": r"context limit: <sent> \+ <answer> > <limit>",
        "openai, openrouter, answer": (
            r"maximum context length is <limit> tokens.{0,20} you requested (?:about )?<total> tokens "
            r"\([^)]{0,80}?\b<answer> (?:in|for) the (?:completion|output)"
        ),
        "sglang, answer": (
            r"maximum context length of <limit> tokens. You requested a total of <total> tokens: "
            r"<sent> tokens from the input messages and <answer> tokens for the completion"
        ),
        # Here vLLM stops counting where the limit is, and says "at least": that is not what was sent.
        "vllm, answer": (
            r"maximum context length is <limit> tokens.{0,20} you requested <answer> output tokens "
            r"and your prompt contains (?:<sent> input tokens)?"
        ),
        "vllm, answer too large": (
            r"is too large: <answer>\. .{0,20}maximum context length is <limit> tokens "
            r"and your request has <sent> input tokens"
        ),
        "text generation inference, answer": (
            r"`max_new_tokens` must be <= <limit>\. Given: <sent> `inputs` tokens and <answer> `max_new_tokens`"
        ),
        "text generation inference": r"`inputs` must have less than <limit> tokens(?:\. Given: <sent>)?",
        "vllm": r"maximum context length is <limit> tokens.{0,60}? your request has <sent> input tokens",
        "vllm, engine": r"prompt (?:\(length|length of) <sent>\)? is longer than the maximum model length of <limit>",
        "openai": r"maximum context length (?:is|of) <limit> tokens.{0,80}?\b<sent> tokens",
        "openai, responses": r"configured limit of <limit> tokens(?:\. Your messages resulted in <sent> tokens)?",
        "xai": r"maximum prompt length is <limit>(?: but the request contains <sent> tokens)?",
        "together": r"input \(<sent> tokens\) is longer than the model's context length \(<limit> tokens\)",
        "kimi": r"model token limit: <limit> \(requested: <sent>\)",
        "gemini, copilot": r"token count (?:(?:is |of |\()<sent>\)? )?(?:exceeds|but) .{0,60}?\b<limit>",
        "openrouter": r"input length \(?<sent>(?: tokens)?\)? exceeds .{0,30}?length (?:of )?\(?<limit>",
        "mistral": r"prompt contains <sent> tokens.{0,60}? too large for model with <limit> maximum context length",
        "llama.cpp": r"request \(<sent> tokens\) exceeds the available context size \(<limit> tokens\)",
        "llama.cpp, fields": r"n_prompt_tokens\W{1,4}<sent>\W{1,6}n_ctx\W{1,4}<limit>",
        "llama-cpp-python": r"requested tokens (?:\(<sent>\) )?exceed context window of <limit>",
        "lm studio": r"n_keep\W{1,3}<sent>\)? ?>= ?n_ctx\W{1,3}<limit>",
        "lm studio, older": r"keep the first <sent> tokens .{0,80}?context length of only <limit> tokens",
        "ds4": r"prompt has <sent> tokens?, but the configured context size is <limit>",
        "dashscope": r"range of input length should be \[\d{1,3}, ?<limit>\]",
        "github models": r"request body too large for .{0,60}max size: <limit> tokens",
        "only a limit": r"maximum context length (?:is|of) <limit>",
    }
)


class Figures(NamedTuple):
    """How many tokens a provider was sent, and how many it takes, as far as it said."""

    sent: int | None = None
    limit: int | None = None


def is_context_overflow(error: BaseException | None) -> bool:
    """Say whether *error*, or what caused it, means that the request did not fit the model's window.

    False for what a shorter history cannot cure: rate limits, quotas, timeouts, limits of the answer or of an image,
    and a request whose reserved answer alone (`max_tokens`) takes the whole window.
    """
    if not isinstance(error, Exception):
        return False
    chain = list(_chain(error))
    return any(map(_means_overflow, chain)) and not any(map(_has_no_room_for_a_prompt, chain))


def figures_in(error: BaseException | None) -> Figures:
    """Return the figures that *error*, or what caused it, names. An answer's share is not counted as sent."""
    for each in _chain(error):
        if numbers := _numbers_in(each):
            return Figures(_sent(numbers), numbers.get("limit") or None)
    return Figures()


def _means_overflow(error: BaseException) -> bool:
    if isinstance(error, ContextOverflowError) or type(error).__name__ in _NAMES:
        return True
    code, words = getattr(error, "code", None), _words_of(error)
    if isinstance(code, str) and code in _CODES:
        return True
    return _says_one_of(_OVERFLOWS, words) and not _says_one_of(_NEVER, words)


def _has_no_room_for_a_prompt(error: BaseException) -> bool:
    numbers = _numbers_in(error)
    return "answer" in numbers and numbers["answer"] >= numbers["limit"]


def _numbers_in(error: BaseException) -> dict[str, int]:
    words = _words_of(error)
    found = next((match for pattern in _FIGURES if (match := pattern.search(words)) is not None), None)
    named = {} if found is None else found.groupdict()
    return {name: int(digits.replace(",", "")) for name, digits in named.items() if digits is not None}


def _sent(numbers: Mapping[str, int]) -> int | None:
    if "sent" not in numbers and "total" in numbers:
        return max(numbers["total"] - numbers["answer"], 0) or None
    return numbers.get("sent") or None


def _says_one_of(patterns: tuple[re.Pattern[str], ...], words: str) -> bool:
    return any(pattern.search(words) for pattern in patterns)


def _words_of(error: BaseException) -> str:
    return " ".join(str(error)[:_LOOKED_AT].split())


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
