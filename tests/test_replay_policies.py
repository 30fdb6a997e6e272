"""What a replay is given beside recordings: policies by name and from files, and prices; and what is recommended."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replaying import FILLER, called, chat, recording, under

from holdfast import ContextManager
from holdfast.errors import HoldfastError
from holdfast.replay import (
    GRID,
    PRICES,
    Candidate,
    Counts,
    Policy,
    policies_from,
    policy_from,
    prices_from,
    recommended,
)
from holdfast.replay.policies import BUILT_IN
from holdfast.replay.prices import AS_OF, DEFAULT

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


def refused(path: Path) -> str:
    with pytest.raises(HoldfastError) as told:
        policy_from(str(path))
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)
    return str(told.value)


# Policies


def test_built_in_policies_are_known_by_name():
    policies = policies_from(list(BUILT_IN))
    assert [policy.name for policy in policies] == ["none", "auto", "truncate", "summarize"]
    assert [policy.config is None for policy in policies] == [True, False, False, False]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.yaml", "strategy: auto\noffloader:\n  threshold: 5000\n"),
        ("mine.yml", "{strategy: auto, offloader: {threshold: 5000}}"),
        ("mine.JSON", '{"strategy": "auto", "offloader": {"threshold": 5000}}'),
    ],
)
def test_a_file_of_options_is_a_policy_by_the_name_of_the_file(name, content, tmp_path):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert policy_from(str(path)) == Policy("mine", {"strategy": "auto", "offloader": {"threshold": 5_000}})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("strategy: auto\nwindow_siez: 40", "unknown option 'window_siez' of the context manager"),
        ("compression: {window_siez: 40}", "unknown option 'window_siez'"),
        ("strategy: cheap", "strategy must be 'auto'"),
        ("offloader: {threshold: 10}", "preview_tokens must be below"),
        ("- strategy", "must be a mapping of a manager's options"),
        ("auto", "must be a mapping"),
        ("", "must be a mapping"),
        ("strategy: [", "is no YAML"),
        ("strategy: auto\n\tx: 1", "is no YAML"),
        ("a: !!python/object/apply:os.system ['true']", "is no YAML"),
        ("a: !mine 3", "is no YAML"),
        ("[" * 90_000, "more than 20 levels"),
        ("window: [" + "1, " * 20_000 + "]", "more than 10,000 values"),
        ("window: 2026-11-18", "got date"),
        ("window: .nan", "got float"),
        ("window: !!binary aGVsbG8=", "aliases and tags"),
        ("1: 2", "by text alone"),
        ("offload_storage: {kind: s3, 5: 6}", "by text alone"),
        ("window: &a [*a]", "aliases and tags"),
        (LAUGHS, "aliases and tags"),
        ("window: !!bool x", "aliases and tags"),
        ("a: &a {b: 1}\nc: {<<: *a}", "aliases and tags"),
        ("strategy: auto\noffload_storage: {kind: redis}", "kind is one of memory, file, s3"),
        ("strategy: auto\noffload_storage: {kind: file, evict: {max_bites: 3}}", "unknown option 'max_bites' of evict"),
    ],
)
def test_a_file_that_is_no_policy_is_told_with_its_name(content, words, file):
    file.write_text(content, encoding="utf-8")
    assert words in refused(file)


def test_json_that_is_none_is_told_with_the_file(tmp_path):
    path = tmp_path / "mine.json"
    for content in (b"{", b"\xff\xfe", b"[" * 100_000, b'{"window": NaN}', b"[]"):
        path.write_bytes(content)
        refused(path)


def test_a_file_that_is_too_large_missing_or_a_folder_is_told(file):
    assert "cannot be read: No such file" in refused(file)
    file.mkdir()
    assert "cannot be read" in refused(file)
    file.rmdir()
    file.write_bytes(b"#" * 100_001)
    assert "more than 100,000 bytes" in refused(file)


@pytest.mark.parametrize("name", ["", "fast", "AUTO", "mine.txt", ".yaml", "auto "])
def test_what_is_neither_a_name_nor_a_file_of_options_is_refused(name):
    with pytest.raises(ValueError, match=r"policy must be one of none, auto, truncate, summarize, or a \.yaml"):
        policy_from(name)


def test_two_policies_of_one_name_are_refused(tmp_path):
    path = tmp_path / "auto.yaml"
    path.write_text("strategy: auto", encoding="utf-8")
    for names in (["auto", "auto"], ["auto", str(path)]):
        with pytest.raises(ValueError, match="the policy 'auto' is given twice"):
            policies_from(names)


def test_the_window_and_the_dialect_of_a_file_give_way_to_those_of_the_replay(file):
    file.write_text("strategy: auto\nwindow: 200000\ndialect: anthropic\n", encoding="utf-8")
    [mine, auto] = under(policy_from(str(file)), "auto").one(recording(chat([FILLER * 60] * 40))).outcomes
    assert mine.requests == auto.requests


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(inspect.signature(ContextManager).parameters)),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["kind", "method", "evict", "threshold", "thresholds", "exclude", "proactive", "protect"]
                ),
                inner | st.sampled_from(["file", "s3", "memory", "truncate", "summarize"]),
                max_size=3,
            )
        ),
        max_leaves=5,
    ),
    strategy=st.sampled_from([{}, {"strategy": "auto"}]),
)
def test_whatever_a_file_holds_it_is_a_policy_or_a_clear_error(name, value, strategy, tmp_path):
    path = tmp_path / "any.json"
    path.write_text(json.dumps({**strategy, name: value}), encoding="utf-8")
    with suppress(HoldfastError):
        json.dumps(dict(policy_from(str(path)).config or {}), allow_nan=False)


def test_a_policy_of_none_has_no_manager():
    with pytest.raises(ValueError, match="has no manager"):
        Policy("none", None).manager(dialect="openai", summarize=lambda request: "")


# Prices


def test_prices_are_known_by_the_name_of_a_model():
    assert prices_from(DEFAULT) is PRICES[DEFAULT]
    assert prices_from(PRICES[DEFAULT]) is PRICES[DEFAULT]
    for name, prices in PRICES.items():
        assert prices.name == name
        assert 0 < prices.cache_read < prices.input <= prices.cache_write < prices.output
        assert prices.as_of == AS_OF == date.fromisoformat(AS_OF).isoformat()


def test_own_prices_need_input_and_cache_read_only():
    prices = prices_from({"input": 3, "cache_read": 0.3})
    assert (prices.cache_write, prices.output, prices.as_of) == (3, 0, "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("gpt-1", "no prices are known for 'gpt-1'; known are claude"),
        (3, "must be the name of a model or a mapping, got int"),
        ({"input": 3}, "the price cache_read is missing"),
        ({"input": 3, "cache_read": 1, "in": 3}, "unknown price 'in'"),
        ({"input": -1, "cache_read": 1}, "the price input must be dollars"),
        ({"input": float("nan"), "cache_read": 1}, "the price input must be dollars"),
        ({"input": float("inf"), "cache_read": 1}, "the price input must be dollars"),
        ({"input": True, "cache_read": 1}, "the price input must be dollars"),
        ({"input": "3", "cache_read": 1}, "the price input must be dollars"),
        ({"input": 3, "cache_read": 1, "name": 5}, "name of prices must be text, got 5"),
        ({"input": 3, "cache_read": 1, "as_of": None}, "as_of of prices must be text, got None"),
    ],
)
def test_wrong_prices_are_refused(given, words):
    with pytest.raises(HoldfastError, match=re.escape(words)):
        prices_from(given)


# Recommendations

CHEAP, DEAR = 1_000, 9_000


def replayed(*counts: Counts) -> Any:
    """One recording under as many policies, of which only the figures matter."""
    template = under("none").one(recording(chat(["fine"])))
    outcome = template.outcomes[0]
    outcomes = tuple(type(outcome)(f"p{n}", (), (), each, ()) for n, each in enumerate(counts))
    return replace(template, largest=(), outcomes=outcomes)


def chosen_among(*counts: Counts) -> tuple[str, str]:
    policies = [Policy(f"p{number}", {}) for number in range(len(counts))]
    found = recommended([replayed(*counts)], policies, PRICES[DEFAULT])
    order = [(not candidate.fits, candidate.bill.total) for candidate in found.candidates]
    assert order == sorted(order)
    assert found.chosen in found.candidates
    return found.chosen.policy.name, found.why


def test_the_cheapest_that_loses_nothing_is_recommended():
    dear, cheap = Counts(tokens=DEAR, kept=3), Counts(tokens=2_000, kept=2, lookup=1)
    lossy, long = Counts(tokens=CHEAP, lost=1), Counts(tokens=CHEAP, overflows=1)
    assert chosen_among(dear, lossy, cheap, long, Counts(tokens=1, failed=1)) == (
        "p2",
        "the cheapest that loses nothing",
    )


def test_look_ups_and_summaries_are_part_of_the_price():
    looking = Counts(tokens=CHEAP, lookup=1, lookup_cached=900_000, lookup_fresh=900_000)
    assert chosen_among(looking, Counts(tokens=DEAR))[0] == "p1"
    assert chosen_among(Counts(tokens=CHEAP, summary_input=900_000), Counts(tokens=DEAR))[0] == "p1"


def test_where_each_loses_something_the_one_that_loses_least_is_named():
    name, why = chosen_among(
        Counts(tokens=CHEAP, kept=1, lost=3), Counts(tokens=DEAR, kept=3, lost=1), Counts(tokens=1, overflows=1)
    )
    assert (name, why) == ("p1", "each policy loses something; this one loses least, 1 of 4 values")


def test_where_none_fits_the_nearest_is_named():
    name, why = chosen_among(Counts(tokens=CHEAP, lost=3, failed=1), Counts(tokens=DEAR, lost=1, failed=1))
    assert (name, why) == ("p1", "no policy fits this window; this one comes nearest, with 1 of 1 too large")


def test_no_manager_is_not_the_nearest_just_because_it_sends_what_is_refused():
    policies = [Policy("none", None), Policy("auto", {"strategy": "auto"})]
    small = replayed(Counts(tokens=DEAR, overflows=5, kept=3), Counts(tokens=CHEAP, kept=3))
    huge = replayed(Counts(tokens=DEAR, overflows=5), Counts(failed=1))
    assert recommended([small, huge], policies, PRICES[DEFAULT]).chosen.policy.name == "auto"
    assert recommended([huge], policies, PRICES[DEFAULT]).chosen.policy.name == "auto"


@given(
    st.lists(
        st.builds(Counts, tokens=st.integers(0, 99), lost=st.integers(0, 2), overflows=st.integers(0, 1)), min_size=1
    )
)
def test_nothing_that_loses_nothing_is_cheaper_than_what_is_chosen(counts):
    policies = [Policy(f"p{number}", {}) for number in range(len(counts))]
    found = recommended([replayed(*counts)], policies, PRICES[DEFAULT])
    whole = [each for each in found.candidates if each.loses_nothing]
    assert found.chosen.loses_nothing == bool(whole)
    assert all(found.chosen.bill.total <= each.bill.total for each in whole)
    assert all(isinstance(each, Candidate) for each in found.candidates)


def test_without_recordings_there_is_nothing_to_recommend():
    with pytest.raises(ValueError, match="no recording could be replayed"):
        recommended([], GRID, PRICES[DEFAULT])


def test_all_of_the_grid_are_policies_of_their_own():
    assert len({policy.name for policy in GRID}) == len(GRID)
    messages = chat([FILLER * 60] * 40, last=called(99, "send", value="x"))
    lived = under(*GRID, window=12_000).one(recording(messages))
    assert [outcome.failure for outcome in lived.outcomes] == [""] * len(GRID)
    assert len({outcome.counts for outcome in lived.outcomes}) >= 5
