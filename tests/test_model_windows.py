"""The table of well-known models: ids in every spelling, and none that is guessed."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidTypeError
from holdfast.model_windows import AS_OF, ModelLimits, limits_of

MILLION = ModelLimits(1_000_000, 128_000)
SONNET_4_5 = ModelLimits(200_000, 64_000)
GPT_4O = ModelLimits(128_000, 16_384)
GPT_5 = ModelLimits(272_000, 128_000)
GPT_5_4 = ModelLimits(922_000, 128_000)
GEMINI = ModelLimits(1_048_576, 65_536)
NOVA_PRO = ModelLimits(300_000, 10_000)

SPELLINGS = {
    # Anthropic, directly, on Bedrock, on Vertex and through gateways
    "claude-sonnet-4-5": SONNET_4_5,
    "claude-sonnet-4-5-20250929": SONNET_4_5,
    "Claude-Sonnet-4-5": SONNET_4_5,
    "  claude-sonnet-4-5\n": SONNET_4_5,
    "anthropic/claude-sonnet-4.5": SONNET_4_5,
    "anthropic:claude-sonnet-4-5": SONNET_4_5,
    "openrouter/anthropic/claude-sonnet-4.5:beta": SONNET_4_5,
    "anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "global.anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "bedrock/us-east-1/anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "bedrock/converse/us.anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0": SONNET_4_5,
    "vertex_ai/claude-sonnet-4-5@20250929": SONNET_4_5,
    "claude-haiku-4-5@20251001": SONNET_4_5,
    "claude-sonnet-4-0": SONNET_4_5,
    "anthropic/claude-3.7-sonnet:thinking": SONNET_4_5,
    "claude-3-5-sonnet-latest": ModelLimits(200_000, 8_192),
    "claude-3-5-sonnet-v2@20241022": ModelLimits(200_000, 8_192),
    "anthropic.claude-3-haiku-20240307-v1:0": ModelLimits(200_000, 4_096),
    "anthropic.claude-v2:1": ModelLimits(200_000, 4_096),
    "anthropic.claude-v2": ModelLimits(100_000, 4_096),
    "claude-opus-4-20250514": ModelLimits(200_000, 32_000),
    "claude-opus-4-1": ModelLimits(200_000, 32_000),
    "claude-opus-4-6": MILLION,
    "anthropic.claude-opus-4-6-v1": MILLION,
    "eu.anthropic.claude-opus-5-5": MILLION,
    "claude-fable-5-1": MILLION,
    # OpenAI, Azure, fine-tuned
    "gpt-4o-2024-08-06": GPT_4O,
    "gpt-4o-2024-05-13": ModelLimits(128_000, 4_096),
    "azure/gpt-4o": GPT_4O,
    "openai:gpt-4o-mini": GPT_4O,
    "chatgpt-4o-latest": GPT_4O,
    "ft:gpt-4o-mini-2024-07-18:acme:support:AbC123": GPT_4O,
    "openai/ft:gpt-4.1-mini-2025-04-14:acme::x": ModelLimits(1_047_576, 32_768),
    "gpt-4.1": ModelLimits(1_047_576, 32_768),
    "gpt-4": ModelLimits(8_192, None),
    "gpt-4-0613": ModelLimits(8_192, None),
    "gpt-4-32k-0613": ModelLimits(32_768, None),
    "gpt-4-0125-preview": ModelLimits(128_000, 4_096),
    "gpt-4-turbo-2024-04-09": ModelLimits(128_000, 4_096),
    "gpt-4.5-preview-2025-02-27": GPT_4O,
    "gpt-3.5-turbo-0125": ModelLimits(16_385, 4_096),
    "gpt-3.5-turbo-0613": ModelLimits(4_096, None),
    "azure/gpt-35-turbo": ModelLimits(16_385, 4_096),
    "openai/gpt-5": GPT_5,
    "gpt-5-2025-08-07": GPT_5,
    "gpt-5-mini-2026-01-31": GPT_5,
    "gpt-5.1-codex-max": GPT_5,
    "gpt-5.2-2025-12-11": GPT_5,
    "gpt-5.6-cyber": GPT_5,
    "gpt-5-chat-latest": GPT_4O,
    "gpt-5-pro": ModelLimits(128_000, 272_000),
    "gpt-5.4": GPT_5_4,
    "gpt-5.4-mini": GPT_5,
    "openai.gpt-5.4": GPT_5,
    "global.openai.gpt-5.6-sol": GPT_5_4,
    "gpt-6.1-sol": GPT_5_4,
    "openai.gpt-oss-120b-1:0": ModelLimits(128_000, None),
    "o1": ModelLimits(200_000, 100_000),
    "o1-preview-2024-09-12": ModelLimits(128_000, 32_768),
    "o3-mini-2025-01-31": ModelLimits(200_000, 100_000),
    "o4-mini-deep-research": ModelLimits(200_000, 100_000),
    # Google
    "gemini/gemini-2.5-pro": GEMINI,
    "models/gemini-2.5-pro": GEMINI,
    "google-gla:gemini-2.5-flash": GEMINI,
    "projects/p/locations/us-central1/publishers/google/models/gemini-2.5-flash": GEMINI,
    "gemini-2.5-flash-preview-05-20": GEMINI,
    "gemini-2.5-flash-lite-preview-09-2025": GEMINI,
    "gemini-3-pro-preview": GEMINI,
    "gemini-3.1-pro-preview-customtools": GEMINI,
    "gemini-flash-latest": GEMINI,
    "gemini-2.0-flash-001": ModelLimits(1_048_576, 8_192),
    # Amazon, and what else Bedrock has
    "bedrock/amazon.nova-pro-v1:0": NOVA_PRO,
    "apac.amazon.nova-pro-v1:0": NOVA_PRO,
    "amazon/nova-lite-v1": NOVA_PRO,
    "amazon.nova-2-pro-preview-20251202-v1:0": ModelLimits(1_000_000, 64_000),
    "amazon.titan-text-premier-v1:0": ModelLimits(32_000, 3_072),
    "meta.llama3-1-70b-instruct-v1:0": ModelLimits(128_000, 4_096),
    "us.meta.llama4-scout-17b-instruct-v1:0": ModelLimits(128_000, None),
    "meta.llama3-8b-instruct-v1:0": ModelLimits(8_192, 2_048),
    "mistral.mistral-large-2407-v1:0": ModelLimits(128_000, None),
    "mistral.mixtral-8x7b-instruct-v0:1": ModelLimits(32_000, None),
    "cohere.command-r-plus-v1:0": ModelLimits(128_000, 4_000),
    "us.deepseek.r1-v1:0": ModelLimits(128_000, 32_768),
    "deepseek.v3-v1:0": ModelLimits(163_840, 81_920),
    "deepseek.v3.2": ModelLimits(163_840, 81_920),
    "zai.glm-4.7-flash": ModelLimits(203_000, None),
    # others
    "mistral/mistral-large-latest": ModelLimits(262_144, None),
    "mistral-small-3-2-2506": ModelLimits(131_072, None),
    "command-r-08-2024": ModelLimits(128_000, 4_000),
    "cohere/command-a-03-2025": ModelLimits(256_000, 8_000),
    "command-a-reasoning-08-2025": ModelLimits(256_000, 32_000),
    "deepseek-chat": ModelLimits(128_000, 8_192),
    "deepseek/deepseek-v4-pro": ModelLimits(1_000_000, 384_000),
    "openrouter/x-ai/grok-4": ModelLimits(256_000, None),
    "xai/grok-4-0709": ModelLimits(256_000, None),
    "grok-4-1-fast-non-reasoning": ModelLimits(2_000_000, None),
    "grok-4.20-beta-0309-reasoning": ModelLimits(2_000_000, None),
    "dashscope/qwen3-max-2025-09-23": ModelLimits(258_048, 65_536),
}
STRANGERS = [
    "",
    " ",
    "/",
    "gpt",
    "claude",
    "claude-opus-9",
    "claude-opus-4-9",
    "claude-opus-5-7",
    "claude-opus-55",
    "claude-sonnet",
    "claude-latest",
    "my-claude-opus-5",
    "gpt-40",
    "gpt-4p",
    "gpt-5-maxi",
    "gpt-5.9",
    "gpt-5.4-mini-tts",
    "gpt-7",
    "gpt-4o-audio-preview",
    "gpt-4o-realtime-preview",
    "o1x",
    "o5-mini",
    "gemini-2.5-flash-preview-tts",
    "gemini-2.5-flash-image",
    "gemini-4-pro",
    "amazon.nova-canvas-v1:0",
    "amazon.titan-embed-text-v2:0",
    "mistral-large-2701",
    "mistral-large",
    "grok-4.20-multi-agent",
    "grok-5",
    "text-embedding-3-large",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6",
    "arn:aws:sagemaker:us-east-1:123456789012:endpoint/gpt-4o",
]
LOCAL = [
    "ollama/llama3.1",
    "ollama/gpt-4o",
    "ollama:deepseek-chat",
    "ollama_chat/command-r",
    "openai/ollama/command-r",
    "hosted_vllm/command-a",
    "lm_studio/mistral-small-2506",
    "llamacpp/gpt-4",
    "github/gpt-4o",
    "llama3.1:70b",
    "llama3.3",
    "command-r:latest",
    "command-r:35b-08-2024-q4_K_M",
    "deepseek-r1:8b",
    "gpt-oss:20b",
    "mistral:7b",
    "meta-llama/Llama-3.1-70B-Instruct",
    "/models/claude-3-haiku.Q4_K_M.gguf",
]
ANSWER_IS_COUNTED_APART = (
    "OpenAI: of 1,050,000 tokens the request may have 922,000, as of GPT-5's 400,000 it may have 272,000"
)
NEEDS_A_BETA_HEADER = "Anthropic: Claude Sonnet 4 takes 200,000; 1,000,000 only with the header context-1m-2025-08-07"
STRANDS_SAYS_MORE = {
    "claude-sonnet-4-20250514": NEEDS_A_BETA_HEADER,
    "anthropic.claude-sonnet-4-20250514-v1:0": NEEDS_A_BETA_HEADER,
    "gpt-6-astra": ANSWER_IS_COUNTED_APART,
    "gpt-6.1-sol": ANSWER_IS_COUNTED_APART,
    "gpt-6-sol": ANSWER_IS_COUNTED_APART,
    "gpt-6-luna": ANSWER_IS_COUNTED_APART,
    "gpt-5.6": ANSWER_IS_COUNTED_APART,
    "gpt-5.6-sol": ANSWER_IS_COUNTED_APART,
    "gpt-5.6-terra": ANSWER_IS_COUNTED_APART,
    "gpt-5.6-luna": ANSWER_IS_COUNTED_APART,
    "gpt-5.5": ANSWER_IS_COUNTED_APART,
    "gpt-5.5-pro": ANSWER_IS_COUNTED_APART,
    "gpt-5.4": ANSWER_IS_COUNTED_APART,
    "gpt-5.4-pro": ANSWER_IS_COUNTED_APART,
}


@pytest.mark.parametrize(("model", "limits"), SPELLINGS.items(), ids=list(SPELLINGS))
def test_a_well_known_model_is_found_in_every_spelling(model: str, limits: ModelLimits) -> None:
    assert limits_of(model) == limits
    assert limits_of(model.upper()) == limits


@pytest.mark.parametrize("model", STRANGERS)
def test_an_unknown_model_is_not_guessed(model: str) -> None:
    assert limits_of(model) is None


@pytest.mark.parametrize("model", LOCAL)
def test_a_model_that_someone_runs_has_a_window_of_its_own(model: str) -> None:
    assert limits_of(model) is None


@pytest.mark.parametrize(
    ("model", "limits"),
    [
        ("amazon.nova-lite-v1:0:24k", ModelLimits(24_000, 10_000)),
        ("amazon.nova-pro-v1:0:300k", NOVA_PRO),
        ("amazon.nova-premier-v1:0:8k", ModelLimits(8_000, 8_000)),
        ("anthropic.claude-3-haiku-20240307-v1:0:48k", ModelLimits(48_000, 4_096)),
        ("meta.llama4-scout-17b-instruct-v1:0:9999k", ModelLimits(128_000, None)),
        ("amazon.nova-canvas-v1:0:24k", None),
    ],
)
def test_a_context_length_in_the_id_makes_the_window_smaller_and_never_larger(
    model: str, limits: ModelLimits | None
) -> None:
    assert limits_of(model) == limits


@pytest.mark.strands
def test_strands_table_is_known_and_its_figures_agree() -> None:
    defaults = pytest.importorskip("strands.models._defaults")
    theirs: dict[str, int] = defaults._CONTEXT_WINDOW_LIMITS
    ours = {model: limits.window for model in theirs if (limits := limits_of(model))}
    assert len(ours) >= 0.9 * len(theirs)
    differing = {model for model, window in ours.items() if window != theirs[model]}
    assert differing <= STRANDS_SAYS_MORE.keys()
    assert all(ours[model] < theirs[model] for model in differing)


def test_the_table_says_when_it_was_made() -> None:
    assert datetime.date.fromisoformat(AS_OF).isoformat() == AS_OF


@pytest.mark.parametrize("model", [None, 4, b"gpt-4o", ["gpt-4o"]])
def test_something_that_is_no_string_is_refused(model: Any) -> None:
    with pytest.raises(InvalidTypeError, match="must be the id of a model as a string"):
        limits_of(model)


PIECES = st.sampled_from(
    ["gpt-4o", "claude-3", "us.", "ollama/", "-v1", ":0", ":24k", "@", "-2024-08-06", "-001", "/", "ft:"]
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)))
@example("gpt-4o" + "-001" * 70)
@example("a." * 149)
@example("٣.٣-٢٠٢٤-٠٨-٠٦")
@example("İ" * 300)
@example("\ud800gpt-4o")
def test_any_text_is_answered(model: str) -> None:
    limits = limits_of(model)
    assert limits is None or limits.window > 0


@pytest.mark.parametrize("part", ["-001", "a.", "a/", "ollama", ":", "gpt-4o-", "-2024-08-06", "٣."])
def test_a_very_long_id_is_answered_at_once(part: str) -> None:
    started = time.monotonic()
    assert limits_of("gpt-4o" + part * 1_000_000) is None
    assert time.monotonic() - started < 10
