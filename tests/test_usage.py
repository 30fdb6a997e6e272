"""What providers report of the tokens they counted, and what is learnt from it."""

from __future__ import annotations

import json
from types import MappingProxyType, SimpleNamespace

import pytest

from holdfast.errors import InvalidTypeError
from holdfast.tokens import Calibration, reported_input_tokens

REPORTS = {
    "openai": ({"prompt_tokens": 1_000, "completion_tokens": 9, "total_tokens": 1_009}, 1_000),
    "openai, cached": ({"prompt_tokens": 1_000, "prompt_tokens_details": {"cached_tokens": 900}}, 1_000),
    "openai responses": ({"input_tokens": 1_000, "input_tokens_details": {"cached_tokens": 900}}, 1_000),
    "anthropic": ({"input_tokens": 1_000, "output_tokens": 9}, 1_000),
    "anthropic, cached": (
        {"input_tokens": 50, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50, "output_tokens": 9},
        1_000,
    ),
    "anthropic, cache not used": ({"input_tokens": 1_000, "cache_read_input_tokens": None}, 1_000),
    "converse": ({"inputTokens": 1_000, "outputTokens": 9, "totalTokens": 1_009}, 1_000),
    "converse, cached": (
        {
            "inputTokens": 50,
            "cacheReadInputTokens": 900,
            "cacheWriteInputTokens": 50,
            "outputTokens": 9,
            "totalTokens": 1_009,
        },
        1_000,
    ),
    "converse, cached, without a total": ({"inputTokens": 100, "cacheReadInputTokens": 900, "outputTokens": 9}, 1_000),
    "openai through strands, where the cached are among the others": (
        {"inputTokens": 1_000, "cacheReadInputTokens": 900, "outputTokens": 9, "totalTokens": 1_009},
        1_000,
    ),
}

NOTHING = [
    None,
    {},
    [],
    5,
    "1000",
    {"prompt_tokens": None},
    {"prompt_tokens": 0},
    {"prompt_tokens": "1000"},
    {"prompt_tokens": True},
    {"prompt_tokens": 10.5},
    {"input_tokens": -1},
    {"outputTokens": 9},
    object(),
]


@pytest.mark.parametrize(("usage", "expected"), REPORTS.values(), ids=REPORTS)
@pytest.mark.parametrize("kind", [dict, MappingProxyType, lambda usage: SimpleNamespace(**usage)])
def test_every_providers_report_is_read(usage, expected, kind):
    assert reported_input_tokens(kind(usage)) == expected


@pytest.mark.parametrize("usage", NOTHING)
def test_what_says_nothing_is_nothing(usage):
    assert reported_input_tokens(usage) is None


def test_until_something_is_reported_estimates_stand():
    assert Calibration().ratio("any") == 1.0


def test_each_model_has_its_own_ratio():
    calibration = Calibration()
    calibration.learn("a", estimated=100, reported=150)
    assert (calibration.ratio("a"), calibration.ratio("b")) == (1.5, 1.0)


def test_later_reports_weigh_in_without_throwing_over_the_earlier():
    calibration = Calibration()
    calibration.learn("a", estimated=100, reported=200)
    calibration.learn("a", estimated=100, reported=100)
    assert calibration.ratio("a") == 1.5


@pytest.mark.parametrize(
    ("estimated", "reported", "ratio"), [(1, 10**9, 1.0), (10**9, 1, 1.0), (0, 5, 1.0), (5, 0, 1.0)]
)
def test_an_absurd_report_does_nothing(estimated, reported, ratio):
    calibration = Calibration()
    calibration.learn("a", estimated, reported)
    assert calibration.ratio("a") == ratio


def test_it_does_not_grow_without_end():
    calibration = Calibration()
    for number in range(1_000):
        calibration.learn(f"model {number}", 100, 150)
    assert len(calibration.get_state()) == 100
    assert calibration.ratio("model 999") == 1.5


def test_its_state_survives_json():
    calibration, restored = Calibration(), Calibration()
    calibration.learn("a", 100, 150)
    restored.restore(json.loads(json.dumps(calibration.get_state())))
    assert restored.get_state() == calibration.get_state() == {"a": 1.5}


def test_what_is_no_ratio_is_left_out():
    calibration = Calibration()
    calibration.restore({"a": "1.5", "b": 0, "c": 99, "d": float("nan"), "e": None, "f": 2})
    assert calibration.get_state() == {"f": 2.0}


@pytest.mark.parametrize("state", [None, [], 5, "state"])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(InvalidTypeError, match=r"state must be what get_state\(\) returned, got"):
        Calibration().restore(state)
