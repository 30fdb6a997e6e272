"""Recorded conversations under policies: what is sent, counted, paid and reported, and what stays as it was."""

from __future__ import annotations

import copy
import json
import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import needs_recorded_runs, recorded_runs
from replaying import FILLER, answered, called, chat, in_dialect, outcome_of, recording, under

from holdfast import ContextManager
from holdfast.dialects import dialect_named
from holdfast.errors import HoldfastError
from holdfast.recordings import Recording, Unreadable
from holdfast.replay import PRICES, Bill, Counts, Outcome, Policy, Prices, Replay, Replayed, report_of
from holdfast.testing.histories import histories
from holdfast.tokens import TokenEstimator, exact_counter

EVERYTHING = ("none", "auto", "truncate", "summarize")
LONG = chat([f"note {number}, of ORD-{7_000 + number}: {FILLER * 20}" for number in range(60)])
LARGE = chat(["\n".join(f"row {row} of {page}: {FILLER}" for row in range(600)) for page in range(5)])


def tokens(*messages: Any) -> int:
    read = dialect_named("openai").read
    return sum(TokenEstimator().message(read(message)) for message in messages)


# What is sent


def test_no_manager_sends_everything_each_time():
    task, call, result, last = chat(["word " * 2_000])
    system = "You are kind."
    tools = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {}}}]
    outcome = outcome_of(
        [task, call, result, last], "none", window=1_000, system_prompt=system, tool_specs=tuple(tools)
    )
    fixed = [TokenEstimator().system(system), TokenEstimator().tools(tools)]
    before = sum(fixed) + tokens(task)
    assert [list(request.split) for request in outcome.requests] == [
        [*fixed, tokens(task), 0, 0, 0],
        [*fixed, tokens(task), tokens(call), tokens(result), 0],
    ]
    assert [request.cached for request in outcome.requests] == [0, before]
    assert [request.rewritten for request in outcome.requests] == [False, False]
    sent = [before, before + tokens(call, result)]
    assert outcome.counts == Counts(requests=2, tokens=sum(sent), peak=sent[1], overflows=1, cached=before)


def test_the_bill_is_that_of_the_price_list():
    counts = Counts(
        tokens=3_000_000,
        cached=1_000_000,
        lookup_cached=500_000,
        lookup_fresh=100_000,
        summary_input=200_000,
        summary_output=10_000,
    )
    bill = Bill.of(counts, Prices(name="mine", input=2, cache_read=0.5, cache_write=3, output=10))
    assert (bill.cached, bill.uncached) == pytest.approx((0.5 + 2 * 3, 6))
    assert (bill.lookups, bill.summaries) == pytest.approx((0.25 + 0.3, 0.4 + 0.1))
    assert bill.total == pytest.approx(bill.cached + bill.lookups + bill.summaries)


def test_requests_are_counted_where_the_model_answered():
    messages = [*LONG, {"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Nothing."}]
    for outcome in under(*EVERYTHING).one(recording(messages)).outcomes:
        assert outcome.counts.requests == len(outcome.requests) == 62


@pytest.mark.parametrize("policy", EVERYTHING)
@pytest.mark.parametrize("messages", [LONG, LARGE], ids=["long", "large"])
def test_the_same_in_three_dialects_comes_to_the_same(policy, messages):
    replay = under(policy)
    figures = [
        replay.one(in_dialect(messages, each)).outcomes[0].counts for each in ("openai", "anthropic", "converse")
    ]
    assert len({counts.requests for counts in figures}) == 1
    assert len({counts.offloaded for counts in figures}) == 1
    assert max(each.tokens for each in figures) < 1.1 * min(each.tokens for each in figures)
    assert max(each.reductions for each in figures) - min(each.reductions for each in figures) <= 1


@needs_recorded_runs
@pytest.mark.extended
def test_a_recorded_run_comes_to_the_same_in_three_dialects():
    replay = under("none", "auto")
    for run in islice(recorded_runs("tau"), 3):
        # What three dialects share: a turn for each message.
        lived = [replay.one(in_dialect(run.messages, each)) for each in ("openai", "anthropic", "converse")]
        for outcomes in zip(*(each.outcomes for each in lived), strict=True):
            sent = [outcome.counts.tokens for outcome in outcomes]
            assert max(sent) < 1.15 * min(sent)


def test_the_tools_of_holdfast_are_counted_once():
    manager = ContextManager("auto", dialect="openai")
    own = [tool.spec("openai") for tool in manager.agent_tools]
    for recorded in ((), tuple(own)):
        [request, *_] = outcome_of(chat(["fine"]), "auto", tool_specs=recorded).requests
        assert request.split[1] == TokenEstimator().tools(own)


def test_a_manager_without_parts_sends_what_no_manager_does():
    assert outcome_of(LONG, Policy("empty", {}), window=100_000).requests == outcome_of(LONG, "none").requests


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "converse"])
@settings(max_examples=25)
@given(data=st.data(), window=st.sampled_from([1_000, 3_000, 20_000]))
def test_under_a_manager_no_request_is_above_the_window_and_the_recording_stays_as_it_was(dialect, data, window):
    messages = data.draw(histories(dialect, max_turns=10))
    recorded = recording(messages, dialect=dialect)
    before = copy.deepcopy(messages)
    lived = under(*EVERYTHING, window=window).one(recorded)
    assert messages == before
    for outcome in lived.outcomes[1:]:
        assert outcome.counts.overflows == 0
        assert all(request.tokens <= window for request in outcome.requests)
    check_consistent(lived, window)


def check_consistent(lived: Replayed, window: int) -> None:
    for outcome in lived.outcomes:
        counts = outcome.counts
        assert counts.values == lived.values
        assert bool(outcome.failure) == bool(counts.failed)
        assert 0 <= counts.cached <= counts.tokens
        assert counts.peak <= counts.tokens
        assert all(0 <= request.cached <= request.tokens for request in outcome.requests)
        assert all(0 <= event.request <= counts.requests for event in outcome.events)
        assert counts.rewrites <= max(counts.requests - 1, 0)
        assert len(outcome.left) == len(lived.largest)
    assert lived.outcomes[0].counts.kept == lived.values


@given(st.lists(st.builds(Counts, tokens=st.integers(0, 9), peak=st.integers(0, 9), lost=st.integers(0, 9))))
def test_figures_of_many_runs_are_sums_but_for_the_peak(counts):
    total = Counts.total(counts)
    assert total.tokens == sum(each.tokens for each in counts)
    assert total.peak == max((each.peak for each in counts), default=0)
    assert total.values == sum(each.lost for each in counts)


# What a manager does


def test_large_results_are_offloaded_and_told():
    outcome = outcome_of(LARGE, "auto", window=100_000)
    told = [event for event in outcome.events if event.kind == "offload"]
    assert (outcome.counts.offloaded, len(told), outcome.counts.reductions) == (5, 5, 0)
    assert sum(event.tokens for event in told) == outcome.counts.offloaded_tokens
    assert [event.request for event in told] == [1, 2, 3, 4, 5]
    assert told[0].what == "the result of look 0"
    everything = outcome_of(LARGE, "none", window=100_000).counts
    last = everything.peak - outcome.counts.offloaded_tokens
    own = outcome.requests[0].split[1]
    assert outcome.counts.peak == pytest.approx(last + own, rel=0.02)


def test_messages_that_are_dropped_are_counted_and_the_history_is_rewritten():
    counts = outcome_of(LONG, Policy("drop", {"compression": {"method": "truncate", "shorten_results": False}})).counts
    assert counts.reductions == counts.rewrites > 0
    assert counts.dropped > 20
    assert counts.summarised == counts.summary_input == counts.offloaded == 0


def test_summaries_are_counted_with_what_a_model_would_have_cost():
    outcome = outcome_of(LONG, "summarize")
    assert outcome.counts.summarised > 20
    assert outcome.counts.dropped == 0
    # What was summarised had to be sent once more.
    assert outcome.counts.summary_input > 20 * tokens(LONG[2])
    assert 0 < outcome.counts.summary_output < outcome.counts.summary_input
    assert outcome.requests[-1].split[5] > 0


def test_old_results_that_are_shortened_are_counted():
    counts = outcome_of(chat([f"{page}: {FILLER * 90}" for page in range(20)]), "truncate").counts
    assert counts.shortened > 0


def test_every_rewrite_is_a_request_that_begins_otherwise():
    outcome = outcome_of(LONG, "auto")
    changed = [number for number, request in enumerate(outcome.requests) if request.rewritten]
    told = sorted({event.request for event in outcome.events if event.kind == "reduction"})
    assert changed == told
    for number in changed:
        assert outcome.requests[number].cached < outcome.requests[number - 1].tokens
    for number in set(range(1, len(outcome.requests))) - set(changed):
        assert outcome.requests[number].cached == outcome.requests[number - 1].tokens


def test_a_run_that_cannot_fit_ends_early_and_says_why():
    messages = [{"role": "user", "content": "word " * 5_000}, {"role": "assistant", "content": "No."}]
    outcome = outcome_of(messages, "auto", window=2_000)
    assert (outcome.counts.requests, outcome.counts.failed) == (0, 1)
    assert outcome.left == (0, 0)
    assert "does not fit" in outcome.failure
    assert [event.kind for event in outcome.events] == ["failure"]


def test_what_was_in_the_window_for_the_largest_messages_is_known():
    lived = under("none", "auto").one(recording(LARGE))
    largest = [large for large in lived.largest if large.kind == "tool result"]
    assert [large.number for large in largest] == [3, 5, 7, 9, 11]
    assert largest[0].what == "look 0"
    nothing, auto = (
        [left for left, large in zip(outcome.left, lived.largest, strict=True) if large in largest]
        for outcome in lived.outcomes
    )
    assert nothing == [large.tokens for large in largest]
    assert all(1_000 < left < 2_500 for left in auto)


def test_a_recording_in_which_nobody_answered_has_no_requests():
    outcomes = under(*EVERYTHING).one(recording([{"role": "user", "content": "Hello?"}])).outcomes
    assert [outcome.counts for outcome in outcomes] == [Counts()] * 4


def test_parallel_calls_are_one_request():
    calls = [called(number, "look", page=number)["tool_calls"][0] for number in range(3)]
    both = {"role": "assistant", "content": None, "tool_calls": calls}
    messages = [LONG[0], both, *(answered(number, FILLER) for number in range(3)), LONG[-1]]
    assert [outcome.counts.requests for outcome in under(*EVERYTHING).one(recording(messages)).outcomes] == [2] * 4


def test_tokens_are_counted_exactly_if_asked():
    pytest.importorskip("bpe_openai")
    try:
        count = exact_counter()
    except HoldfastError as error:
        pytest.skip(str(error))
    [outcome] = under("none", exact=True).one(recording(LONG)).outcomes
    everything = sum(TokenEstimator(count).message(dialect_named("openai").read(each)) for each in LONG[:-1])
    assert outcome.counts.peak == everything


# What it leaves alone


@pytest.mark.parametrize(
    "storage",
    [
        "./artifacts",
        "s3://bucket/prefix",
        {"kind": "s3"},
        {"kind": "file", "artifact_dir": "artifacts"},
        {"kind": "s3", "bucket": "mine", "evict": {"max_entries": 100}},
    ],
    ids=str,
)
def test_nothing_is_written_and_nobody_is_asked(storage, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a replay connects to nobody")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    outcome = outcome_of(LARGE, Policy("stored", {"strategy": "auto", "offload_storage": storage}))
    assert (outcome.counts.offloaded, outcome.failure) == (5, "")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_logged_and_the_level_is_as_before(caplog):
    logger = logging.getLogger("holdfast")
    level = logger.level
    with caplog.at_level(logging.INFO):
        outcome_of([{"role": "user", "content": "word " * 5_000}, LONG[-1]], "auto", window=1_000)
    assert caplog.records == []
    assert logger.level == level


# The same again


def lived_elsewhere(seed: str) -> str:
    script = "from test_replay import *; print(repr(under('auto').one(recording(MIXED))))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


MIXED = [*LONG, {"role": "user", "content": "Once more, ORD-7001."}, *LARGE[1:-1], called(99, "pay", order="ORD-7002")]


def test_the_same_recording_gives_the_same_figures_at_any_time(monkeypatch):
    replay = under(*EVERYTHING, window=12_000)
    first = replay.one(recording(MIXED))
    for moment in (0.0, 2e9):
        monkeypatch.setattr("holdfast.manager.now", lambda moment=moment: moment)
        assert replay.one(recording(MIXED)) == first
    assert first.outcomes[1].counts.offloaded
    assert first.outcomes[1].counts.reductions


@pytest.mark.extended
def test_the_same_recording_gives_the_same_figures_in_another_process():
    assert lived_elsewhere("1") == repr(under("auto").one(recording(MIXED)))


# Many recordings


class Deadly(str):
    """A name that ends the process which is given it."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _die, (os.getpid(),)


def _die(parent: int) -> str:
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return "deadly"


def some(count: int) -> list[Recording | Unreadable]:
    return [recording(LONG[: 2 + 2 * (count - each)], name=f"run {each}") for each in range(count)]


class Interrupting(dict[str, Any]):
    """Options whose way to another process is when Ctrl-C comes."""

    def __reduce__(self) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return dict, (dict(self),)


@pytest.fixture
def heeded() -> Iterator[None]:
    """Whoever started the tests in the background may have had interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.extended
@pytest.mark.usefixtures("heeded")
def test_an_interrupt_that_comes_while_processes_begin_is_not_lost():
    replay = under(Policy("auto", Interrupting(strategy="auto")), workers=2)
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    for has_other_threads in (False, True):
        if has_other_threads:
            other.start()
        with pytest.raises(KeyboardInterrupt):
            list(replay.all([recording(LONG), recording(MIXED)]))
        assert multiprocessing.active_children() == []
    ended.set()
    other.join()


PROGRAM = """
import asyncio
from holdfast.recordings import Recording
from holdfast.replay import Replay, policies_from

said = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})
runs = [Recording(name, "openai", "openai", said) for name in "abcd"]
"""


@pytest.mark.extended
def test_where_an_event_loop_runs_it_comes_to_the_same(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"{PROGRAM}\nreplay = Replay(policies=policies_from(['auto']))\n"
        "async def main():\n    return replay.one(runs[0])\n"
        "print(asyncio.run(main()) == replay.one(runs[0]))\n"
    )
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


@pytest.mark.extended
def test_a_program_without_a_guard_is_told_what_it_lacks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"{PROGRAM}\nlist(Replay(policies=policies_from(['none']), workers=2).all(runs))\n")
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "HoldfastError: a process of the replay could not begin" in ended.stderr
    assert 'below `if __name__ == "__main__":`' in ended.stderr


@pytest.mark.extended
def test_results_come_in_the_order_of_the_recordings_however_many_processes():
    given = some(20)
    given.insert(3, Unreadable("broken.json", 7, "it is broken"))
    alone = list(under("none", "auto").all(given))
    assert list(under("none", "auto", workers=2).all(given)) == alone
    assert [getattr(each, "name", "broken") for each in alone][:5] == ["run 0", "run 1", "run 2", "broken", "run 3"]


@pytest.mark.extended
def test_a_process_that_dies_is_a_clear_error_and_leaves_no_others():
    given = [*some(4), recording(LONG, name=Deadly()), *some(4)]
    with pytest.raises(HoldfastError, match=r"a process of the replay died.*try fewer"):
        list(under("none", workers=2).all(given))


@pytest.mark.extended
def test_who_stops_early_waits_for_nothing():
    results = under("none", workers=2).all(recording(LONG, name=str(number)) for number in range(10**9))
    assert [next(results).name, next(results).name] == ["0", "1"]
    results.close()


def test_recordings_are_read_as_they_are_needed():
    asked = []

    def endless() -> Any:
        for number in range(10**9):
            asked.append(number)
            yield recording(LONG[:3], name=str(number))

    assert [each.name for each in islice(under("none").all(endless()), 3)] == ["0", "1", "2"]
    assert len(asked) == 3


def test_a_recording_that_nobody_foresaw_costs_itself_only(caplog):
    good = recording(LONG[:3])
    first, second, third = under("none").all([good, Recording("odd", "openai", "klingon", (1,)), good])
    assert first == third
    assert isinstance(second, Unreadable)
    assert str(second).startswith("odd: it cannot be replayed: ")
    assert "\n" not in str(second)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policies": ()}, "at least one Policy"),
        ({"window": 999}, "window must be a whole number, 1,000 or more, got 999"),
        ({"window": 1e5}, "window must be a whole number"),
        ({"window": True}, "window must be a whole number"),
        ({"workers": 0}, "workers must be a whole number, 1 or more"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Replay(**{"policies": (Policy("none", None),), **options})


# Reports


def test_a_report_adds_up_and_is_plain_data():
    replay = under("none", "auto", window=12_000)
    results = [*replay.all([recording(LONG, name="a"), recording(MIXED, name="b")]), Unreadable("c", None, "gone")]
    report = report_of(results, replay, PRICES["claude-sonnet-5-5"], made="2026-11-18")
    assert json.loads(json.dumps(report)) == report
    assert report["title"] == "Replay of 2 recordings"
    assert report["unreadable"] == [{"file": "c", "line": None, "reason": "gone"}]
    for place, policy in enumerate(report["policies"]):
        parts = [each["under"][place] for each in report["recordings"]]
        totals = policy["totals"]
        assert totals["tokens"] == sum(part["totals"]["tokens"] for part in parts)
        assert totals["tokens"] == sum(sum(row[:6]) for part in parts for row in part["requests"])
        assert totals["cached"] == sum(row[6] for part in parts for row in part["requests"])
        assert totals["rewrites"] == sum(row[7] for part in parts for row in part["requests"])
        assert totals["fresh"] == totals["tokens"] - totals["cached"]
        assert totals["peak"] == max(sum(row[:6]) for part in parts for row in part["requests"])
        assert totals["reuse"] == pytest.approx(totals["cached"] / totals["tokens"], abs=1e-4)
        assert sum(totals["values"].values()) == sum(each["values"] for each in report["recordings"])
        assert totals["per_request"] == round(totals["tokens"] / totals["requests"])
    assert len(report["parts"]) == 6


@pytest.mark.parametrize("policies", [("none", "auto"), ("auto",), (Policy("as-it-is", None),)])
def test_a_report_says_what_would_overflow_unmanaged_whatever_the_policies(policies):
    replay = under(*policies, window=12_000)
    results = list(replay.all([recording(LONG), recording(LONG[:5]), recording(LONG)]))
    report = report_of(results, replay, PRICES["claude-sonnet-5-5"], made="")
    alone = Counts.total(outcome_of(messages, "none", window=12_000).counts for messages in (LONG, LONG[:5], LONG))
    assert alone.overflows
    assert report["unmanaged"] == {"requests": alone.requests, "overflows": alone.overflows, "recordings": 2}


def test_the_largest_messages_of_all_recordings_come_first():
    replay = under("none", "auto")
    results = list(replay.all([recording(LONG), recording(LARGE)]))
    largest = report_of(results, replay, PRICES["claude-sonnet-5-5"], made="")["largest"]
    sizes = [each["tokens"] for each in largest]
    assert sizes == sorted(sizes, reverse=True)
    assert [each["recording"] for each in largest[:5]] == [1] * 5
    sent = [each for each in largest if each["message"] < len((LONG, LARGE)[each["recording"]])]
    assert all(each["left"]["none"] == each["tokens"] for each in sent)


def test_a_request_costs_no_more_than_what_is_new_in_it():
    # The sums of all parts are those of plain addition, however they were found.
    outcome = outcome_of(MIXED, "none")
    sizes = list(accumulate(tokens(message) for message in MIXED))
    answers = [number for number, message in enumerate(MIXED) if message["role"] == "assistant"]
    assert [request.tokens for request in outcome.requests] == [sizes[number - 1] for number in answers]


# Recorded runs


def from_runs(name: str, every: int) -> list[Recording]:
    runs = islice(recorded_runs(name), every // 4, None, every)
    return [recording(run.messages, name=run.id, system_prompt=run.system) for run in runs]


@needs_recorded_runs
@pytest.mark.extended
@pytest.mark.parametrize(("name", "every"), [("tau", 1), ("swe", 4)])
def test_recorded_runs_are_replayed_to_their_ends(name, every):
    results = list(under(*EVERYTHING, window=32_000, workers=2).all(from_runs(name, every)))
    assert len(results) >= 10
    for lived in results:
        assert isinstance(lived, Replayed)
        assert [outcome.failure for outcome in lived.outcomes] == [""] * 4
        assert all(outcome.counts.overflows == 0 for outcome in lived.outcomes[1:])
        check_consistent(lived, 32_000)


def test_outcomes_are_values():
    assert outcome_of(LONG[:3], "none") == outcome_of(LONG[:3], "none")
    assert isinstance(hash(outcome_of(LONG[:3], "none")), int)
    assert isinstance(outcome_of(LONG[:3], "none"), Outcome)
