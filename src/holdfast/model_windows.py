"""How much well-known models take in one call, found by the id that users write.

A table ages: `AS_OF` says when this one was made. A model that it does not know gives None and never a guess, for a
window that is too large is found out only when a call fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.errors import InvalidTypeError

__all__ = ["AS_OF", "ModelLimits", "limits_of"]

AS_OF = "2026-11-16"


@dataclass(frozen=True)
class ModelLimits:
    """What a model takes in one call, in tokens.

    *window* is for the request and the answer together. Where a provider counts the two apart (Gemini, GPT-5 and
    later), it is what the request alone may have, which is the smaller figure. *answer* is the most that one answer
    may have, None if no figure is known; where it is counted apart it may be larger than the window.
    """

    window: int
    answer: int | None


# Window, answer, and the ids without provider, region, date or release, with a dash for the dot in a version.
# A name with a dot in it stands for that model on Amazon Bedrock only.
_FAMILIES: tuple[tuple[int, int | None, str], ...] = (
    # Anthropic. Sonnet 4 takes 1,000,000 only from those who send a beta header.
    (1_000_000, 128_000, "claude-fable-5 claude-fable-5-1 claude-mythos-5 claude-mythos-preview claude-haiku-5-5"),
    (1_000_000, 128_000, "claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-opus-5-5"),
    (1_000_000, 128_000, "claude-sonnet-4-6 claude-sonnet-5 claude-sonnet-5-5"),
    (200_000, 64_000, "claude-opus-4-5 claude-sonnet-4-5 claude-haiku-4-5"),
    (200_000, 64_000, "claude-sonnet-4 claude-sonnet-4-0 claude-3-7-sonnet"),
    (200_000, 32_000, "claude-opus-4 claude-opus-4-0 claude-opus-4-1"),
    (200_000, 8_192, "claude-3-5-sonnet claude-3-5-haiku"),
    (200_000, 4_096, "claude-3-opus claude-3-sonnet claude-3-haiku claude-2-1 claude-v2:1"),
    (100_000, 4_096, "claude-2 claude-2-0 claude-v2 claude-instant claude-instant-1-2"),
    # OpenAI. Since GPT-5 a part of the window can hold nothing but the answer: 128,000 of 400,000 and of 1,050,000.
    (922_000, 128_000, "gpt-6-astra gpt-6-luna gpt-6-sol gpt-6-1-sol"),
    (922_000, 128_000, "gpt-5-6 gpt-5-6-luna gpt-5-6-sol gpt-5-6-terra gpt-5-5 gpt-5-5-pro gpt-5-4 gpt-5-4-pro"),
    (272_000, 128_000, "openai.gpt-5-4 openai.gpt-5-5 gpt-5-6-cyber gpt-5-5-instant gpt-5-4-mini gpt-5-4-nano"),
    (272_000, 128_000, "gpt-5-3-codex gpt-5-2 gpt-5-2-codex gpt-5-2-pro gpt-5 gpt-5-codex gpt-5-mini gpt-5-nano"),
    (272_000, 128_000, "gpt-5-1 gpt-5-1-codex gpt-5-1-codex-max gpt-5-1-codex-mini"),
    (128_000, 272_000, "gpt-5-pro"),
    (128_000, 32_000, "gpt-5-3-codex-spark"),
    (128_000, 16_384, "gpt-5-chat gpt-5-1-chat gpt-5-2-chat gpt-5-3-chat gpt-4-5"),
    (128_000, 16_384, "gpt-4o gpt-4o-mini gpt-4o-search gpt-4o-mini-search chatgpt-4o"),
    (1_047_576, 32_768, "gpt-4-1 gpt-4-1-mini gpt-4-1-nano"),
    (200_000, 100_000, "o1 o1-pro o3 o3-mini o3-pro o3-deep-research o4-mini o4-mini-deep-research codex-mini"),
    (128_000, 65_536, "o1-mini"),
    (128_000, 32_768, "o1-preview"),
    (128_000, 4_096, "gpt-4o-2024-05-13 gpt-4-turbo gpt-4-1106 gpt-4-0125 gpt-4-vision gpt-4-1106-vision"),
    (128_000, None, "openai.gpt-oss-20b openai.gpt-oss-20b-1 openai.gpt-oss-120b openai.gpt-oss-120b-1"),
    (32_768, None, "gpt-4-32k"),
    (16_385, 4_096, "gpt-3-5-turbo gpt-3-5-turbo-16k gpt-35-turbo gpt-35-turbo-16k"),
    (8_192, None, "gpt-4"),
    (4_096, None, "gpt-3-5-turbo-0301 gpt-3-5-turbo-0613 gpt-3-5-turbo-instruct gpt-35-turbo-instruct"),
    # Google
    (
        1_048_576,
        65_536,
        "gemini-3-8-flash gemini-3-6-flash gemini-3-5-flash gemini-3-5-flash-lite gemini-3-1-flash-lite",
    ),
    (1_048_576, 65_536, "gemini-3-1-pro gemini-3-1-pro-preview-customtools gemini-3-pro gemini-3-flash"),
    (1_048_576, 65_536, "gemini-2-5-pro gemini-2-5-flash gemini-2-5-flash-lite gemini-2-0-flash-thinking"),
    (1_048_576, 65_536, "gemini-pro-latest gemini-flash-latest gemini-flash-lite-latest"),
    (1_048_576, 8_192, "gemini-2-0-flash gemini-2-0-flash-lite"),
    (1_000_000, 8_192, "gemini-1-5-flash gemini-1-5-flash-8b"),
    (2_000_000, 8_192, "gemini-1-5-pro"),
    # Amazon
    (1_000_000, 64_000, "nova-2-lite nova-2-pro"),
    (1_000_000, 25_000, "nova-premier"),
    (300_000, 10_000, "nova-pro nova-lite"),
    (128_000, 10_000, "nova-micro"),
    (32_000, 3_072, "titan-text-premier"),
    (8_192, None, "titan-text-express"),
    (4_096, None, "titan-text-lite"),
    # Meta. Figures for Llama 4 go from 128,000 to 10,000,000; the smallest is sure to be taken.
    (128_000, None, "meta.llama4-maverick-17b-instruct meta.llama4-scout-17b-instruct"),
    (128_000, 4_096, "meta.llama3-1-8b-instruct meta.llama3-1-70b-instruct meta.llama3-1-405b-instruct"),
    (128_000, 4_096, "meta.llama3-2-1b-instruct meta.llama3-2-3b-instruct meta.llama3-2-11b-instruct"),
    (128_000, 4_096, "meta.llama3-2-90b-instruct meta.llama3-3-70b-instruct"),
    (8_192, 2_048, "meta.llama3-8b-instruct meta.llama3-70b-instruct"),
    # Mistral, whose dates are versions: each has its own window. Where sources differ, the smaller figure stands.
    (262_144, None, "mistral-large-latest mistral-large-3 mistral-large-2512 mistral-medium-3-5 mistral-medium-2604"),
    (262_144, None, "devstral-2512 ministral-3b-2512 ministral-8b-2512 ministral-14b-2512"),
    (256_000, None, "mistral-small-2603 codestral-latest codestral-2501 codestral-2508"),
    (
        131_072,
        None,
        "mistral-medium-latest mistral-medium-3 mistral-medium-3-1 mistral-medium-2505 mistral-medium-2508",
    ),
    (131_072, None, "mistral-small-latest mistral-small-3-1 mistral-small-3-2 mistral-small-2503 mistral-small-2506"),
    (128_000, None, "mistral-large-2407 mistral-large-2411 pixtral-large-latest pixtral-large-2411 pixtral-large-2502"),
    (128_000, None, "magistral-medium-2509 magistral-small-2509 devstral-medium-2507 devstral-small-2507"),
    (128_000, None, "ministral-3b-2410 ministral-8b-2410 open-mistral-nemo pixtral-12b-2409"),
    (32_000, None, "mistral-large-2402 mistral-small-2402 mistral-small-2501"),
    (32_000, None, "mistral.mistral-7b-instruct mistral.mixtral-8x7b-instruct"),
    # Cohere
    (256_000, 32_000, "command-a-reasoning"),
    (256_000, 8_000, "command-a"),
    (128_000, 64_000, "command-a-plus"),
    (128_000, 4_000, "command-r command-r-plus command-r7b"),
    # DeepSeek. The two old names stood for models of 128,000, and still do outside DeepSeek's own service.
    (1_000_000, 384_000, "deepseek-flash deepseek-v4-flash deepseek-v4-pro deepseek-v4-1-flash"),
    (163_840, 81_920, "deepseek.v3 deepseek.v3-2"),
    (128_000, 65_536, "deepseek-reasoner"),
    (128_000, 32_768, "deepseek.r1"),
    (128_000, 8_192, "deepseek-chat"),
    # xAI
    (2_000_000, None, "grok-4-20 grok-4-1-fast grok-4-fast"),
    (1_000_000, None, "grok-4-3"),
    (500_000, None, "grok-4-7 grok-4-6 grok-4-5"),
    (256_000, None, "grok-4 grok-code-fast-1"),
    (131_072, None, "grok-3 grok-3-fast grok-3-mini grok-3-mini-fast grok-2"),
    (32_768, None, "grok-2-vision"),
    # Alibaba, the request's part of the window; Z.AI
    (991_000, None, "qwen3-8-max qwen3-7-max"),
    (258_048, 65_536, "qwen3-max"),
    (30_720, 8_192, "qwen-max"),
    (1_000_000, None, "zai.glm-5-3"),
    (203_000, None, "zai.glm-4-7 zai.glm-4-7-flash"),
    (200_000, 128_000, "zai.glm-5"),
)
_LIMITS = {name: ModelLimits(window, answer) for window, answer, names in _FAMILIES for name in names.split()}

# Where whoever runs the model decides its window, or where the host allows less than the model's maker.
_OWN_WINDOWS = re.compile(
    r"(?:^|[/:])(?:ollama(?:_chat)?|llama_?cpp|llamafile|lm_studio|(?:hosted_)?vllm|docker_model_runner|triton|xinference"
    r"|huggingface|sagemaker(?:_chat)?|github(?:_copilot)?)[/:]"
)
_LONGEST_ID = 300
_FINE_TUNED = re.compile(r"ft:([^:]*)")
_PROVIDER = re.compile(r"\A[a-z_-]+:")
_VERSION_DOT = re.compile(r"(?<=[0-9])\.(?=[0-9])")
_CONTEXT_LENGTH = re.compile(r":([0-9]{1,4})k\Z")
_RELEASE = re.compile(
    r"""(?: [-@] (?: [0-9]{4}-[0-9]{2}-[0-9]{2} | [0-9]{2}-[0-9]{4} | [0-9]{2}-[0-9]{2}   # a date
                   | [0-9]{8} | [0-9]{3,4} | v[0-9]+                                      # a date or a number
                   | latest | default | preview | beta | exp | experimental | (?:non-)?reasoning)
          | : (?: [0-9]+ | beta | mm | thinking))\Z""",
    re.VERBOSE,
)


def limits_of(model: str) -> ModelLimits | None:
    """Return what a model takes, by its id in any provider's or gateway's spelling; None if it is not well known.

    A known name may be followed by a date or a release, and by nothing else: ``gpt-5-mini-2025-08-07`` is
    ``gpt-5-mini``, but ``gpt-5-maxi`` is not ``gpt-5``. Local models have the window they were started with: None.
    """
    if not isinstance(model, str):
        raise InvalidTypeError(f"model must be the id of a model as a string, got {type(model).__name__}")
    given = model.strip().lower() if len(model) <= _LONGEST_ID else ""
    if _OWN_WINDOWS.search(given):
        return None
    name, length = _without_context_length(_without_provider(given))
    found = next(filter(None, map(_family, _spellings(name))), None)
    return found if found is None or length is None else _shortened(found, length)


def _without_provider(name: str) -> str:
    name = _VERSION_DOT.sub("-", name.rpartition("/")[2])
    tuned = _FINE_TUNED.match(name)
    return tuned[1] if tuned else _PROVIDER.sub("", name)


def _without_context_length(name: str) -> tuple[str, int | None]:
    """Split off what Bedrock appends to models with reserved throughput, such as ``:24k``."""
    length = _CONTEXT_LENGTH.search(name)
    return (name[: length.start()], int(length[1]) * 1_000) if length else (name, None)


def _spellings(name: str) -> Iterator[str]:
    """Yield Bedrock's ``us.vendor.model`` as it is, without the first part, and without the first two."""
    return (name.split(".", parts)[-1] for parts in range(3))


def _family(name: str) -> ModelLimits | None:
    while name not in _LIMITS:
        shorter = _RELEASE.sub("", name)
        if shorter == name:
            return None
        name = shorter
    return _LIMITS[name]


def _shortened(limits: ModelLimits, length: int) -> ModelLimits:
    window = min(limits.window, length)
    return ModelLimits(window, limits.answer and min(limits.answer, window))
