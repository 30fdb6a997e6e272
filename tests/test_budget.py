"""How much of a window messages may take."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.budget import Budget, require_share
from holdfast.defaults import LOW_WATER, TRIGGER
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError

shares = st.floats(min_value=0.001, max_value=1.0)


def test_the_trigger_is_the_seeds():
    assert (TRIGGER, LOW_WATER) == (0.7, 0.35)
    budget = Budget(window=1_000)
    assert (budget.limit, budget.trigger_at, budget.target) == (1_000, 700, 350)


def test_what_is_fixed_and_what_is_reserved_is_not_for_messages():
    budget = Budget(window=1_000, fixed=100, reserved=200)
    assert (budget.limit, budget.trigger_at, budget.target) == (700, 600, 250)


def test_where_nearly_all_is_fixed_something_is_left_to_aim_at():
    budget = Budget(window=1_000, fixed=900)
    assert 0 < budget.target < budget.trigger_at <= budget.limit == 100
    assert Budget(window=1_000, fixed=5_000).limit == 0


@given(st.integers(2, 10**7), st.integers(0, 10**7), st.integers(0, 10**7), shares, shares)
def test_target_trigger_and_limit_are_always_in_order(window, fixed, reserved, one, other):
    low_water, trigger = sorted((one, other))
    budget = Budget(
        window=window, fixed=fixed, reserved=min(reserved, window - 1), trigger=trigger, low_water=low_water
    )
    assert 0 <= budget.target <= budget.trigger_at <= budget.limit <= window


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_did_not_fit_does_not_fit_the_budget_below_it(window, fixed, reserved, tokens):
    budget = Budget(window=window, fixed=fixed, reserved=min(reserved, window - 1))
    below = budget.below(tokens)
    assert below.window <= max(budget.window, below.reserved + 1)
    assert below.limit < tokens or tokens <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"window": -5}, "window must be at least 1, got -5"),
        ({"window": 1e6}, "window must be a number of tokens, got float"),
        ({"window": True}, "window must be a number of tokens, got bool"),
        ({"window": None}, "window must be a number of tokens, got NoneType"),
        ({"reserved": -1}, "reserved must be at least 0, got -1"),
        ({"fixed": -1}, "fixed must be at least 0, got -1"),
        ({"reserved": 1_000}, r"reserved must be below the window \(1,000\), got 1,000"),
        ({"trigger": 0}, "trigger must be above 0 and up to 1, got 0"),
        ({"low_water": 1.5}, "low_water must be above 0 and up to 1, got 1.5"),
        ({"low_water": 0.8}, r"low_water must be at most the trigger \(0.7\), got 0.8"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(options, message):
    with pytest.raises(HoldfastError, match=message):
        Budget(**{"window": 1_000} | options)


@pytest.mark.parametrize("value", [0, -1, 1.0001, float("nan"), float("inf"), float("-inf"), 10**400])
def test_a_share_is_above_0_and_up_to_1(value):
    with pytest.raises(InvalidValueError, match="share must be above 0 and up to 1"):
        require_share("share", value)


@pytest.mark.parametrize("value", [None, "0.5", True, [0.5], 1j])
def test_a_share_is_a_number(value):
    with pytest.raises(InvalidTypeError, match="share must be a number above 0 and up to 1"):
        require_share("share", value)


def test_a_budget_is_a_value():
    assert Budget(window=5) == Budget(window=5)
    with pytest.raises(FrozenInstanceError):
        Budget(window=5).window = 6
