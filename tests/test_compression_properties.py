"""What holds for every compressor, whatever the history and the budget.

HOLDFAST_HISTORIES says how many legal histories are generated in all, 20,000 without it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import as_anthropic, as_converse, recorded_runs

from holdfast.budget import Budget
from holdfast.compression import Insert, Plan, Summarize, Truncate, apply
from holdfast.dialects import dialect_named
from holdfast.errors import ContextOverflowError
from holdfast.history import History
from holdfast.messages import Message, Reasoning
from holdfast.testing.histories import histories, random_history
from holdfast.testing.providers import (
    anthropic_problems,
    converse_problems,
    openai_problems,
    prefix_signature,
    signed_reasoning_problems,
)
from holdfast.tokens import TokenEstimator

GENERATED = int(os.environ.get("HOLDFAST_HISTORIES", "20000"))
BATCHES = 20
DIALECTS = ("converse", "anthropic", "openai")
PROBLEMS = {"converse": converse_problems, "anthropic": anthropic_problems, "openai": openai_problems}


def by_length(text: str) -> int:
    """Cheap and exact enough: the properties hold for any way of counting."""
    return (len(text) + 3) // 4


@dataclass(frozen=True)
class Case:
    """A history, a compressor and a budget."""

    dialect: str
    wires: list[Any]
    compressor: Truncate | Summarize
    budget: Budget

    def history(self) -> History:
        history = History(dialect_named(self.dialect), TokenEstimator(by_length))
        history.read(self.wires)
        return history


def planned(case: Case, history: History) -> Plan | None:
    plan = case.compressor.plan(history, case.budget)
    return plan if plan is None or isinstance(plan, Plan) else asyncio.run(plan)


def planned_or_best(case: Case, history: History) -> tuple[Plan | None, ContextOverflowError | None]:
    try:
        return planned(case, history), None
    except ContextOverflowError as error:
        return error.best, error


def check(case: Case) -> None:
    """The result fits, or the error says why not; and any plan is a good one."""
    history = case.history()
    plan, error = planned_or_best(case, history)
    after = history.total if plan is None else plan.tokens_after
    assert (after > case.budget.limit) is (error is not None)
    assert error is None or (error.tokens, error.limit) == (after, case.budget.limit)
    if plan is not None:
        check_plan(case, history, plan)


def check_plan(case: Case, history: History, plan: Plan) -> None:
    result = apply(plan, history.messages)
    wires = history.written(result)
    sent = history.dialect.sendable(wires)
    count = history.estimator.message
    assert plan.tokens_before == sum(map(count, history.messages))
    assert plan.tokens_after == sum(map(count, result)) < plan.tokens_before
    assert PROBLEMS[case.dialect](sent) == []
    if signed_reasoning_problems(history.dialect.sendable(case.wires), prefix_signature) == []:
        assert signed_reasoning_problems(sent, prefix_signature) == []
    check_seams(history, plan, result)
    check_kept(case, history, wires)
    check_nothing_more_happens(case, wires)


def check_seams(history: History, plan: Plan, result: list[Message]) -> None:
    """One message at most says something at a place, with a bridge beside it only where roles have to alternate."""
    new = [edit for edit in plan.edits if isinstance(edit, Insert)]
    for start in {edit.start for edit in new}:
        made = [edit.message.made_as for edit in new if edit.start == start]
        assert sorted(made) in (["bridge"], ["summary"], ["bridge", "summary"])
        if history.dialect.may_repeat_roles and "bridge" in made:
            assert next(message for message in result if message.role != "system").made_as == "bridge"


def check_kept(case: Case, history: History, wires: list[Any]) -> None:
    """What is protected is there, as the very same objects; what is left is in order, and nothing is doubled."""
    places = {id(wire): place for place, wire in enumerate(wires)}
    survivors = [places[id(wire)] for wire in case.wires if id(wire) in places]
    assert survivors == sorted(survivors)
    # Of several messages of a user in a row, one is certain.
    protection = replace(case.compressor.protection, in_a_row=1)
    kept, recent = protection.kept_units(history), protection.recent_units(history)
    for unit in kept | recent:
        for index in range(unit.start, unit.stop):
            message = history.messages[index]
            may_change = holds_bound_reasoning(message) or (unit not in kept and any(message.tool_results))
            assert id(message.wire) in places or may_change
    ids = {id_ for message in map(history.dialect.read, wires) for id_ in calls_of(message)}
    assert {
        id_ for unit in kept | recent for m in history.messages[unit.start : unit.stop] for id_ in calls_of(m)
    } <= ids


def calls_of(message: Message) -> Iterator[str]:
    yield from (use.id for use in message.tool_uses)
    yield from (result.tool_use_id for result in message.tool_results)


def holds_bound_reasoning(message: Message) -> bool:
    return any(isinstance(block, Reasoning) and block.bound for block in message.blocks)


def check_nothing_more_happens(case: Case, wires: list[Any]) -> None:
    again = Case(case.dialect, wires, case.compressor, case.budget)
    plan, _ = planned_or_best(again, again.history())
    assert plan is None, str(plan)


def any_case(random: Random, dialect: str) -> Case:
    wires = random_history(random, dialect, pins=random.random() < 0.3, signed_reasoning=random.random() < 0.3)
    history = Case(dialect, wires, Truncate(), Budget(window=1)).history()
    window = max(int(history.total * random.choice((0.02, 0.1, 0.3, 0.6, 0.9, 1.2))), 40)
    return Case(dialect, wires, any_compressor(random), any_budget(random, window))


def any_compressor(random: Random) -> Truncate | Summarize:
    protected = {"protect_first": random.choice((0, 0, 1, 3)), "protect_last": random.choice((0, 0, 2, 6))}
    shortens = random.random() < 0.8
    if random.random() < 0.6:
        return Truncate(**protected, shorten_results=shortens)
    ratio = random.choice((0.1, 0.3, 0.8))
    return Summarize(**protected, summary_ratio=ratio, summarizer=any_summarizer(random), shorten_results=shortens)


def any_summarizer(random: Random) -> Any:
    async def brief(request: Any) -> str:
        return "They agreed on the plan."

    async def long_winded(request: Any) -> str:
        return request.prompt

    async def failing(request: Any) -> str:
        raise ConnectionError("no model there")

    async def silent(request: Any) -> str:
        return "  "

    return random.choice((None, None, brief, long_winded, failing, silent))


def any_budget(random: Random, window: int) -> Budget:
    trigger = random.choice((0.5, 0.7, 1.0))
    reserved = random.choice((0, 0, window // 4))
    fixed = random.choice((0, 0, window // 10, window // 2))
    return Budget(window=window, reserved=reserved, fixed=fixed, trigger=trigger, low_water=random.choice((0.3, 0.5)))


@pytest.mark.extended
@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_comes_out_is_legal_right_and_final(batch, caplog):
    caplog.set_level("CRITICAL")
    for number in range(GENERATED // BATCHES):
        seed = batch * 1_000_003 + number
        random = Random(seed)
        case = any_case(random, DIALECTS[number % 3])
        try:
            check(case)
        except Exception as error:
            raise AssertionError(f"history {seed} in {case.dialect}: {case.compressor}, {case.budget}") from error


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_the_smallest_history_that_breaks_a_rule_would_be_found(dialect, data):
    wires = data.draw(histories(dialect, pins=True))
    random = data.draw(st.randoms(use_true_random=False))
    window = data.draw(st.integers(20, 3_000))
    check(Case(dialect, wires, any_compressor(random), any_budget(random, window)))


@pytest.mark.extended
@pytest.mark.parametrize("name", ["swe", "tau", "web"])
def test_recorded_runs_come_out_legal_right_and_final(name, caplog):
    caplog.set_level("CRITICAL")
    for number, run in enumerate(recorded_runs(name)):
        random = Random(number)
        forms = {"openai": run.messages, "converse": as_converse(run.messages), "anthropic": as_anthropic(run.messages)}
        dialect = DIALECTS[number % 3]
        total = Case(dialect, forms[dialect], Truncate(), Budget(window=1)).history().total
        for share in (0.05, 0.4):
            budget = any_budget(random, max(int(total * share), 100))
            check(Case(dialect, forms[dialect], any_compressor(random), budget))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_histories_that_are_illegal_already_never_raise_anything_else(dialect, caplog):
    caplog.set_level("CRITICAL")
    for seed in range(GENERATED // BATCHES):
        random = Random(seed)
        wires = random_history(random, dialect, legal=False, pins=random.random() < 0.3)
        case = Case(dialect, wires, any_compressor(random), any_budget(random, random.choice((50, 500, 5_000))))
        history = case.history()
        plan, _ = planned_or_best(case, history)
        if plan is not None:
            assert sum(map(history.estimator.message, apply(plan, history.messages))) == plan.tokens_after
