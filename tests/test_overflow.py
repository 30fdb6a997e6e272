"""Errors that mean that a request was too long, and what they say."""

from __future__ import annotations

import asyncio
import time

import pytest

from holdfast.errors import ContextOverflowError
from holdfast.overflow import Figures, figures_in, is_context_overflow

OVERFLOWS = {
    "anthropic": ("prompt is too long: 208310 tokens > 200000 maximum", Figures(208_310, 200_000)),
    "anthropic with an answer": (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        Figures(190_000, 200_000),
    ),
    "anthropic, the body": (
        "Error code: 413 - {'error': {'type': 'request_too_large', 'message': 'Request exceeds the maximum size'}}",
        Figures(),
    ),
    "anthropic, the request": ("413 Request size exceeds model context window", Figures()),
    "a gateway": ("413 Request Entity Too Large", Figures()),
    "any": ("token limit exceeded", Figures()),
    "any, a code in the text": ("400 {'code': 'context_length_exceeded'}", Figures()),
    "openai": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. "
        "Please reduce the length of the messages.",
        Figures(131_072, 128_000),
    ),
    "openai with an answer": (
        "This model's maximum context length is 8,192 tokens. However, you requested 9,000 tokens (8,500 in the "
        "messages, 500 in the completion). Please reduce the length of the messages or completion.",
        Figures(8_500, 8_192),
    ),
    "openai with functions and an answer": (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7500 in the "
        "messages, 1000 in the functions, and 500 in the completion).",
        Figures(8_500, 8_192),
    ),
    "openai, old": (
        "This model's maximum context length is 4097 tokens, however you requested 4226 tokens (3970 in your prompt; "
        "256 for the completion). Please reduce your prompt; or completion length.",
        Figures(3_970, 4_097),
    ),
    "openai, input": (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 272089 tokens. "
        "Please reduce the length of the messages.",
        Figures(272_089, 272_000),
    ),
    "openai, a limit only": ("Input tokens exceed the configured limit of 922000 tokens", Figures(None, 922_000)),
    "openai, no figures": ("Your input exceeds the context window of this model. Please adjust it.", Figures()),
    "openrouter": (
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of "
        "text input). Please reduce the length of either one.",
        Figures(42_832, 32_768),
    ),
    "openrouter with tools and an answer": (
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (30000 of "
        "text input, 6000 of tool input, 4000 in the output).",
        Figures(36_000, 32_768),
    ),
    "openrouter, another": (
        "Input length 300000 exceeds the maximum allowed input length of 262144 tokens.",
        Figures(300_000, 262_144),
    ),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, "
        "Please reduce the length of the messages.",
        Figures(5_000, 4_096),
    ),
    "vllm, input tokens": (
        "This model's maximum context length is 131072 tokens. However, your request has 140000 input tokens.",
        Figures(140_000, 131_072),
    ),
    "vllm, too little room for the answer": (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 32768 "
        "tokens and your request has 29000 input tokens (4096 > 32768 - 29000).",
        Figures(29_000, 32_768),
    ),
    "vllm, counted to the limit": (
        "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your "
        "prompt contains at least 134145 input tokens, for a total of at least 262145 tokens. Please reduce the "
        "length of the input prompt or the number of requested output tokens.",
        Figures(None, 262_144),
    ),
    "vllm, no answer asked for": (
        "This model's maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt "
        "contains 40000 input tokens",
        Figures(40_000, 32_768),
    ),
    "vllm, engine": (
        "The decoder prompt (length 5951) is longer than the maximum model length of 4096.",
        Figures(5_951, 4_096),
    ),
    "vllm, engine, older": (
        "Prompt length of 5016 is longer than the maximum model length of 4096.",
        Figures(5_016, 4_096),
    ),
    "sglang with an answer": (
        "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of "
        "267042 tokens: 201506 tokens from the input messages and 65536 tokens for the completion.",
        Figures(201_506, 262_144),
    ),
    "sglang, in brackets": (
        "Input length (265330) exceeds model's maximum context length (262144).",
        Figures(265_330, 262_144),
    ),
    "together": (
        "The input (140000 tokens) is longer than the model's context length (131072 tokens).",
        Figures(140_000, 131_072),
    ),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        Figures(537_812, 131_072),
    ),
    "kimi": (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
        Figures(300_000, 262_144),
    ),
    "gemini": (
        "The input token count (1234567) exceeds the maximum number of tokens allowed (1048576).",
        Figures(1_234_567, 1_048_576),
    ),
    "gemini, a limit only": (
        "Error 400, Message: The input token count exceeds the maximum number of tokens allowed 1048576., Status: X",
        Figures(None, 1_048_576),
    ),
    "vertex": (
        "Unable to submit request because the input token count is 1100000 but model only supports up to 1048576. "
        "Reduce the input token count and try again. You can also use the CountTokens API to calculate prompt token "
        "count and billable characters.",
        Figures(1_100_000, 1_048_576),
    ),
    "copilot": ("prompt token count of 150000 exceeds the limit of 128000", Figures(150_000, 128_000)),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        Figures(40_000, 32_768),
    ),
    "dashscope": (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        Figures(None, 129_024),
    ),
    "ds4": (
        "Prompt has 40,000 tokens, but the configured context size is 32,768 tokens",
        Figures(40_000, 32_768),
    ),
    "bedrock": ("An error occurred (ValidationException): Input is too long for requested model.", Figures()),
    "bedrock, other models": ("The model returned the following errors: too many input tokens", Figures()),
    "llama.cpp": (
        "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        Figures(9_000, 8_192),
    ),
    "llama.cpp, older": ("the request exceeds the available context size, try increasing it", Figures()),
    "llama.cpp, fields": (
        "{'message': 'the request exceeds the available context size.', 'type': 'exceed_context_size_error', "
        "'n_prompt_tokens': 14429, 'n_ctx': 8192}",
        Figures(14_429, 8_192),
    ),
    "llama-cpp-python": ("Requested tokens (2065) exceed context window of 1800", Figures(2_065, 1_800)),
    "lm studio": (
        "The number of tokens to keep from the initial prompt is greater than the context length",
        Figures(),
    ),
    "lm studio with figures": (
        "The number of tokens to keep from the initial prompt is greater than the context length "
        "(n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length",
        Figures(13_055, 4_096),
    ),
    "lm studio, truncation": ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", Figures(15_028, 7_424)),
    "lm studio, older": (
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        Figures(15_857, 4_096),
    ),
    "github models": ("Request body too large for gpt-4o-mini model. Max size: 8000 tokens.", Figures(None, 8_000)),
    "ollama": ("prompt too long; exceeded max context length by 4 tokens", Figures()),
    "zhipu": ('{"code":"1261","message":"Prompt exceeds max length"}', Figures()),
    "cohere": ("too many tokens: size limit exceeded by 8 tokens. Try using shorter or fewer inputs.", Figures()),
    "minimax": ("invalid params, context window exceeds limit", Figures()),
    "text generation inference": (
        "Input validation error: `inputs` must have less than 4095 tokens. Given: 4545",
        Figures(4_545, 4_095),
    ),
    "text generation inference, a limit only": ("`inputs` must have less than 4095 tokens", Figures(None, 4_095)),
    "text generation inference with an answer": (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 8740 `inputs` tokens and 500 `max_new_tokens`",
        Figures(8_740, 4_096),
    ),
    "wrapped lines": ("Input tokens exceed the\n  configured limit of\n  272000 tokens.", Figures(None, 272_000)),
}

OTHERS = [
    "connection reset by peer",
    "Too many requests",
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "Too many tokens per day, please wait before trying again.",
    "429 Too many tokens, try again later",
    "TPM quota exhausted: too many tokens, retry later",
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000.",
    "413 Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000, reduce your message",
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
    "Error code: 429 - the input tokens exceed what you may send",
    "You exceeded your current quota for long context requests",
    "Daily token limit exceeded",
    "max_tokens: 200000 > 8192, which is the maximum allowed number of output tokens",
    "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas you provided 5000.",
    "Too many tokens requested: max_tokens must be at most 4096",
    "Maximum output tokens reached: too many tokens",
    "Output token limit exceeded",
    "max_tokens (200000) exceeds the model's context window (128000)",
    "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the "
    "`context_window` for this model",
    "image exceeds 5 MB maximum (context: base64)",
    "413 request_too_large: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "context deadline exceeded",
    "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    "DEADLINE_EXCEEDED: request context canceled",
    "timeout exceeded; context canceled",
    "Request timed out. Please reduce the length of the messages.",
    "Max retries exceeded: SSLContext error",
    "context size: tool 'x' not found",
    "the name exceeds the maximum allowed length of 64 characters",
    "",
]

WITHOUT_ROOM_FOR_A_PROMPT = {
    "openai": "This model's maximum context length is 32768 tokens. However, you requested 36768 tokens (4000 in the "
    "messages, 32768 in the completion). Please reduce the length of the messages or completion.",
    "anthropic": "input length and `max_tokens` exceed context limit: 10 + 200000 > 200000, decrease input length",
    "vllm": "'max_tokens' or 'max_completion_tokens' is too large: 36839. This model's maximum context length is "
    "32768 tokens and your request has 729 input tokens (36839 > 32768 - 729).",
    "vllm, counted to the limit": "This model's maximum context length is 262144 tokens. However, you requested "
    "262144 output tokens and your prompt contains at least 1 input tokens, for a total of at least 262145 tokens.",
    "sglang": "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a "
    "total of 524300.0 tokens: 12 tokens from the input messages and 524288.0 tokens for the completion.",
    "openrouter": "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens "
    "(500 of text input, 8500 in the output).",
    "text generation inference": "`inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and "
    "2000 `max_new_tokens`",
}


@pytest.mark.parametrize(("words", "figures"), OVERFLOWS.values(), ids=OVERFLOWS)
def test_every_providers_words_are_known_and_their_figures_read(words, figures):
    assert is_context_overflow(RuntimeError(words))
    assert figures_in(RuntimeError(words)) == figures


@pytest.mark.parametrize("words", OTHERS)
def test_other_failures_are_no_overflow(words):
    assert not is_context_overflow(RuntimeError(words))


@pytest.mark.parametrize("words", WITHOUT_ROOM_FOR_A_PROMPT.values(), ids=WITHOUT_ROOM_FOR_A_PROMPT)
def test_an_answer_that_fills_the_window_alone_is_no_overflow(words):
    refused = RuntimeError(words)
    refused.code = "context_length_exceeded"
    named = type("ContextWindowOverflowException", (Exception,), {})("it does not fit")
    assert not is_context_overflow(refused)
    assert not is_context_overflow(chained(named, cause=refused))


def test_an_answer_that_leaves_one_token_to_the_prompt_is_an_overflow():
    words = WITHOUT_ROOM_FOR_A_PROMPT["openai"].replace("32768 in the completion", "32767 in the completion")
    assert is_context_overflow(RuntimeError(words))


@pytest.mark.parametrize(
    "words", ["context limit: ,,, + ,,, > ,,,", ",,, tokens > ,,,", "maximum context length is 0 tokens"]
)
def test_what_is_no_figure_is_not_read(words):
    assert figures_in(RuntimeError(words)) == Figures()


@pytest.mark.parametrize(
    "piece",
    [
        "context ",
        "exceeds the the the ",
        "prompt ",
        "input length ",
        "token count ",
        "token count exceeds ",
        "1,1",
        "1 tokens ",
        "maximum context length is 1 tokens ",
        "maximum context length is 1 tokens. you requested 1 tokens (1 ",
        "prompt contains 1 tokens ",
        "keep the first 1 tokens ",
        "is too large: 1. ",
        "n_keep ",
        "max_tokens 1 ",
        "_",
    ],
)
def test_a_hostile_message_takes_no_time(piece):
    error = RuntimeError((piece * 4_000)[:4_000])
    began = time.process_time()
    is_context_overflow(error)
    figures_in(error)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "name", ["ContextWindowOverflowException", "ContextWindowExceededError", "ContextLengthExceededError"]
)
def test_frameworks_errors_are_known_by_name(name):
    assert is_context_overflow(type(name, (Exception,), {})())


def test_our_own_error_is_one():
    assert is_context_overflow(ContextOverflowError("it does not fit", 10, 5))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("context_length_exceeded", True),
        ("model_context_window_exceeded", True),
        ("rate_limit_exceeded", False),
        (400, False),
        (None, False),
        (["context_length_exceeded"], False),
        ({}, False),
    ],
)
def test_codes_are_known_too(code, expected):
    error = RuntimeError("Error code: 400")
    error.code = code
    assert is_context_overflow(error) is expected


def chained(error, *, cause=None, context=None, suppress=False):
    error.__context__ = context
    if cause is not None or suppress:
        error.__cause__ = cause
    return error


def test_what_wraps_an_overflow_is_one_and_has_its_figures():
    overflow = RuntimeError(OVERFLOWS["anthropic"][0])
    for wrapped in (chained(ValueError("?"), cause=overflow), chained(ValueError("?"), context=overflow)):
        assert is_context_overflow(wrapped)
        assert figures_in(wrapped) == Figures(208_310, 200_000)


def test_an_error_that_was_raised_from_none_stands_for_itself():
    overflow = RuntimeError(OVERFLOWS["anthropic"][0])
    assert not is_context_overflow(chained(ValueError("handled"), context=overflow, suppress=True))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_whoever_stops_the_program_while_an_overflow_is_handled_is_obeyed(stop):
    assert not is_context_overflow(chained(stop(), context=RuntimeError(OVERFLOWS["anthropic"][0])))


def test_errors_that_cause_each_other_end_somewhere():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert not is_context_overflow(first)
    assert figures_in(first) == Figures()


def test_no_error_is_no_overflow():
    assert not is_context_overflow(None)
    assert figures_in(None) == Figures()


def test_a_huge_message_is_looked_at_in_part():
    assert not is_context_overflow(RuntimeError("context " * 1_000_000))
