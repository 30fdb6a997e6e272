"""The ledger: records, what is held and what is counted, who is told, and what a session keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.ledger import (
    KINDS,
    EvictionRecord,
    FailureRecord,
    Ledger,
    OffloadRecord,
    Record,
    ReductionRecord,
    RetrievalRecord,
    SearchRecord,
    Total,
    UndoRecord,
    record_from,
)
from holdfast.ledger.lines import cells_of

# What each kind cannot do without.
NEEDED = {
    "reduction": {},
    "offload": {"tool": "read_file"},
    "retrieval": {"found": True},
    "search": {"query": "ORD-4411"},
    "eviction": {},
    "failure": {"error": "down"},
    "undo": {"undone": 1},
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def ledger(**options) -> Ledger:
    return Ledger(clock=lambda: 1_763_290_000.0, **options)


def full(limit: int = 1_000) -> Ledger:
    """One of each kind."""
    one = ledger(limit=limit)
    for kind, values in NEEDED.items():
        one.add(kind, what=f"a {kind}", **values)
    return one


def warnings_in(caplog) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.name.startswith("holdfast.ledger")]


def test_what_happened_is_numbered_timed_and_put_in_its_turn():
    one = ledger()
    one.turn = 7
    record = one.add(ReductionRecord, messages=41, tokens_before=90_000, tokens_after=40_000, why="too full")
    assert isinstance(record, ReductionRecord)
    assert (record.number, record.at, record.turn, record.kind) == (1, 1_763_290_000.0, 7, "reduction")
    assert record.saved == 50_000
    assert one.add("search", query="x").number == 2
    with pytest.raises(FrozenInstanceError):
        record.turn = 8


@EVERY_KIND
def test_a_record_goes_to_json_and_back(kind):
    record = ledger().add(kind, what="w", why="y", references=["a", "b"], tokens_before=3, seconds=0.5, **NEEDED[kind])
    assert record_from(json.loads(json.dumps(record.as_json()))) == record


def test_records_are_found_by_place_by_class_and_by_name():
    one = full()
    assert len(one) == len(list(one)) == 7
    assert one[0].kind == "reduction"
    assert one[-1] == one.last(UndoRecord) == one.last("undo")
    assert [record.kind for record in one[1:3]] == ["offload", "retrieval"]
    assert one.of(OffloadRecord) == one.of("offload") == (one[1],)
    assert ledger().last("undo") is None


def test_older_records_are_forgotten_and_still_counted():
    one = ledger(limit=3)
    for number in range(10):
        one.add("offload", tool="t", tokens_before=100 + number, tokens_after=100)
    assert [record.number for record in one] == [8, 9, 10]
    assert one.forgotten == 7
    assert one.totals["offload"] == Total(10, 45)
    assert one.totals["undo"] == Total()


def test_what_an_undo_brings_back_is_counted_as_such():
    one = ledger()
    one.add("reduction", tokens_before=100, tokens_after=40)
    one.add("undo", undone=1, tokens_before=40, tokens_after=100)
    assert one.totals["undo"] == Total(1, -60)


def test_an_undo_may_not_know_the_record_of_what_it_undid():
    one = ledger()
    assert one.add("undo", undone=None, references=["mem/1"]).undone is None
    after = ledger()
    after.restore(saved(one.get_state()))
    assert list(after) == list(one)


def test_a_time_that_nobody_measured_is_none():
    assert ledger().add("eviction").seconds is None
    assert ledger().add("eviction", seconds=0.0).seconds == 0.0


def test_tokens_that_nobody_knows_save_nothing():
    assert ledger().add("retrieval", found=True, tokens_after=500).saved == 0


@pytest.mark.parametrize(
    ("name", "most", "kind"),
    [("why", 300, "eviction"), ("what", 300, "eviction"), ("query", 200, "search"), ("error", 300, "failure")],
)
def test_long_texts_are_cut_and_say_so(name, most, kind):
    text = getattr(ledger().add(kind, **{**NEEDED[kind], name: "word " * 1_000}), name)
    assert len(text) == most
    assert text.endswith("…")


def test_a_text_becomes_one_line_that_no_terminal_obeys():
    record = ledger().add("eviction", what="a\n\x1b[31mb\r\n\tc\u202ed\ud800e\u2028f")
    assert record.what == "a [31mb c d e f"


def test_of_many_references_the_rest_is_counted():
    record = ledger().add("eviction", references=[f"ref-{number}" for number in range(50)])
    assert record.references == tuple(f"ref-{number}" for number in range(20))
    assert record.more_references == 30


def test_no_reference_is_ever_cut():
    record = ledger().add("eviction", references=["short", "x" * 5_000, "y" * 3_000, "z" * 3_000])
    assert record.references == ("short", "y" * 3_000)
    assert record.more_references == 2


def test_a_failure_takes_the_exception_itself():
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    record = ledger().add(FailureRecord, error=OSError("disk full"))
    assert (record.error, record.error_type) == ("disk full", "OSError")
    assert ledger().add(FailureRecord, error=MuteError()).error == "MuteError"
    assert ledger().add(FailureRecord, error="just text").error_type == ""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tokens_before": "5"}, "tokens_before must be a whole number, got str"),
        ({"tokens_after": -1}, "tokens_after must be from 0"),
        ({"why": None}, "why must be text, got NoneType"),
        ({"references": "abc"}, "references must be a list of references, got str"),
        ({"references": [1]}, "references must hold text only, got int"),
        ({"seconds": float("nan")}, "seconds must be seconds from 0"),
        ({"messages": True}, "messages must be a whole number, got bool"),
    ],
)
def test_what_no_record_may_hold_is_refused(values, said):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=said):
        ledger().add(ReductionRecord, **values)


@pytest.mark.parametrize("kind", ["nonsense", None, 7, Record, int, ["reduction"]])
def test_a_kind_that_is_none_is_a_clear_error(kind):
    for ask in (ledger().of, ledger().last, ledger().add):
        with pytest.raises(InvalidValueError, match="kind must be a class of records, or one of reduction, offload"):
            ask(kind)


def test_a_limit_must_hold_something():
    with pytest.raises(InvalidValueError, match="limit must be from 1"):
        Ledger(limit=0)


# Who is told


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("*", 7), (Record, 7), ("offload", 1), (OffloadRecord, 1), (EvictionRecord, 1), ("search", 1)],
)
def test_a_callback_is_told_of_the_kind_it_asked_for(kind, expected):
    one, told = ledger(), []
    one.on(kind, told.append)
    for name, values in NEEDED.items():
        one.add(name, **values)
    assert len(told) == expected
    assert all(record in tuple(one) for record in told)


def test_a_callback_is_told_until_it_unsubscribes():
    one, told = ledger(), []
    stop = one.on("*", told.append)
    one.add("eviction")
    stop()
    stop()
    one.add("eviction")
    assert len(told) == 1


def test_the_same_callback_twice_is_told_twice_and_unsubscribed_once():
    one, told = ledger(), []
    stop, _ = one.on("*", told.append), one.on("*", told.append)
    stop()
    one.add("eviction")
    assert len(told) == 1


def test_a_callback_that_raises_does_no_harm(caplog):
    one, told = ledger(), []
    one.on("*", lambda record: 1 / 0)
    one.on("*", told.append)
    assert one.add("eviction").number == 1
    assert len(told) == len(one) == 1
    assert "a callback failed for a record of eviction" in caplog.text


async def _never_awaited(record):
    raise AssertionError


def test_an_async_callback_is_refused():
    with pytest.raises(InvalidTypeError, match="let a plain one start it: lambda record: "):
        ledger().on("*", _never_awaited)


def test_a_callback_that_turns_out_to_be_async_is_logged(caplog):
    one = ledger()
    one.on("*", lambda record: _never_awaited(record))
    one.add("eviction")
    assert "a coroutine, which nobody awaits" in caplog.text


@pytest.mark.parametrize("callback", [None, 7, "print"])
def test_what_cannot_be_called_is_refused(callback):
    with pytest.raises(InvalidTypeError, match="callback must be callable"):
        ledger().on("*", callback)


@pytest.mark.parametrize("kind", ["nonsense", "", None, int])
def test_a_callback_for_no_kind_is_a_clear_error(kind):
    with pytest.raises(InvalidValueError, match="kind must be a class of records, or one of"):
        ledger().on(kind, print)


def test_callbacks_that_add_records_come_to_an_end(caplog):
    one = ledger()
    one.on("*", lambda record: one.add("eviction"))
    one.on("*", lambda record: one.add("eviction"))
    one.add("eviction")
    assert len(one) == 5
    assert caplog.text == ""


def test_many_callbacks_that_add_records_come_to_an_end_soon(caplog):
    one = ledger(limit=100_000)
    for _ in range(12):
        one.on("*", lambda record: one.add("eviction"))
    one.add("eviction")
    assert len(one) <= 1 + 12 * 101
    left = len(one) - 101
    assert warnings_in(caplog) == [f"callbacks added too many records; in the ledger, but told to nobody: {left:,}"]
    told = []
    one.on("search", told.append)
    one.add("search", query="x")
    assert len(told) == 1


def test_a_callback_is_not_told_of_what_it_brought_about_itself():
    one, told = ledger(), []
    one.on("*", lambda record: told.append(record.kind) or one.add("search", query="x"))
    one.on("search", lambda record: one.add("offload", tool="t"))
    one.add("eviction")
    assert told == ["eviction"]
    assert [record.kind for record in one] == ["eviction", "search", "offload"]


def test_everybody_is_told_in_the_order_of_the_numbers():
    one, told = ledger(), []
    one.on("eviction", lambda record: one.add("search", query="x"))
    one.on("*", lambda record: told.append(record.number))
    one.add("eviction")
    assert told == [1, 2]


def test_who_unsubscribes_while_others_are_told_is_not_told_any_more():
    one, told = ledger(), []
    one.on("*", lambda record: stop())
    stop = one.on("*", told.append)
    one.add("eviction")
    assert told == []


def test_a_callback_that_is_interrupted_leaves_the_ledger_as_it_was():
    one, told = ledger(), []

    def interrupt(record):
        raise KeyboardInterrupt

    stop = one.on("*", interrupt)
    with pytest.raises(KeyboardInterrupt):
        one.add("eviction")
    stop()
    one.on("*", told.append)
    one.add("eviction")
    assert [record.number for record in told] == [2]


# What a session keeps


def saved(state: object) -> object:
    return json.loads(json.dumps(state))


def test_a_ledger_goes_on_after_a_restart():
    before, after = full(), ledger()
    before.turn = 9
    after.restore(saved(before.get_state()))
    assert list(after) == list(before)
    assert (after.turn, after.totals, after.forgotten) == (9, before.totals, 0)
    assert after.add("eviction").number == 8


def test_a_state_holds_the_latest_and_all_totals():
    before, after = ledger(), ledger()
    for number in range(250):
        before.add("offload", tool="t", tokens_before=number, tokens_after=0)
    after.restore(saved(before.get_state()))
    assert [record.number for record in after] == list(range(226, 251))
    assert after.forgotten == 225
    assert after.totals == before.totals


@pytest.mark.parametrize("sign", ["x", "é", "漢", "🦊", "\ud800", "\n"])
def test_a_state_stays_below_fifty_kilobytes(sign):
    one = ledger()
    for _ in range(150):
        one.add("search", what=sign * 900, why=sign * 900, query=sign * 900, references=[sign * 100] * 60)
    state = one.get_state()
    assert len(json.dumps(state)) < 50_000
    assert state["records"]


def test_all_of_it_can_be_had_as_json_and_read_again():
    before, after = ledger(), ledger()
    for _ in range(500):
        before.add("eviction")
    after.restore(saved(before.as_json()))
    assert list(after) == list(before)


def test_a_smaller_ledger_holds_the_latest_of_a_larger_one():
    after = ledger(limit=2)
    after.restore(saved(full().get_state()))
    assert [record.number for record in after] == [6, 7]
    assert after.forgotten == 5


def test_an_empty_state_is_a_new_ledger():
    one = full()
    one.restore({})
    assert (len(one), one.forgotten, one.turn) == (0, 0, 0)


@pytest.mark.parametrize(
    ("change", "records", "others"),
    [
        ({"records": None}, 0, 1),
        ({"records": [7, [], "x"]}, 3, 0),
        ({"records": [{"kind": "merge", "number": 8}]}, 1, 0),
        ({"records": [{"kind": ["a"]}]}, 1, 0),
        ({"records": [{"kind": "eviction"}]}, 1, 0),
        ({"records": [{"kind": "eviction", "number": 2**63 - 1, "at": 0, "turn": 0}]}, 1, 0),
        ({"records": [{"kind": "eviction", "number": 10**5_000, "at": 0, "turn": 0}]}, 1, 0),
        ({"records": [{"kind": "eviction", "number": 7, "at": 0, "turn": 0}] * 2}, 1, 0),
        ({"totals": []}, 0, 1),
        ({"totals": {"merge": {"count": 3}}}, 0, 1),
        ({"totals": {"offload": {"count": -1}}}, 0, 1),
        ({"totals": {"offload": {"count": 10**400}}}, 0, 1),
        ({"totals": {"offload": {"count": 1, "tokens_saved": 2**63}}}, 0, 1),
        ({"totals": {"offload": 7}}, 0, 1),
        ({"turn": "9"}, 0, 1),
        ({"turn": -1}, 0, 1),
        ({"turn": 2**63 - 1}, 0, 1),
        ({"forgotten": "many"}, 0, 1),
        ({"forgotten": None}, 0, 1),
    ],
)
def test_what_cannot_be_read_is_skipped_and_said_once(change, records, others, caplog):
    one = ledger()
    one.restore({**full().get_state(), **change})
    assert warnings_in(caplog) == [
        "the ledger of this session is damaged or from another version; "
        f"records skipped: {records:,}, other values: {others:,}"
    ]
    assert one.add("eviction").number in (8, 9)
    assert one.totals["eviction"].count >= 1


def test_a_state_that_can_be_read_is_restored_without_a_word(caplog):
    ledger().restore(saved(full().get_state()))
    ledger().restore(saved(full().as_json()))
    ledger().restore({})
    assert warnings_in(caplog) == []


def test_a_state_of_a_later_version_keeps_what_is_known(caplog):
    later = saved(full().get_state())
    later["records"][0]["colour"] = "red"
    later["totals"]["offload"]["bytes_saved"] = 7
    later["totals"]["merge"] = {"count": 2}
    later["records"] += [{"kind": "merge", "number": 8, "into": 3}, {"kind": "merge", "number": 9, "into": 4}]
    one = ledger()
    one.restore(later)
    assert list(one) == list(full())
    assert one.totals == full().totals
    assert warnings_in(caplog)[0].endswith("records skipped: 2, other values: 3")
    assert one.add("eviction").number == 10
    assert one.forgotten == 2


def test_numbers_never_start_again_after_records_were_skipped():
    first, second = ledger(), ledger()
    first.restore({"forgotten": 40, "records": [{"kind": "merge"}, {"kind": "merge"}]})
    second.restore(saved(first.get_state()))
    assert (first.forgotten, second.forgotten) == (42, 42)
    assert first.add("eviction").number == second.add("eviction").number == 43


def test_records_in_disorder_come_back_in_order():
    state = saved(full().get_state())
    state["records"].reverse()
    one = ledger()
    one.restore(state)
    assert list(one) == list(full())


def test_totals_that_are_lost_count_what_is_held():
    one, state = ledger(), full().get_state()
    one.restore({**state, "totals": None})
    assert one.totals == full().totals


def test_totals_may_grow_beyond_all_measure():
    one = ledger()
    for _ in range(3):
        one.add("offload", tool="t", tokens_before=2**63 - 1, tokens_after=0)
    assert one.totals["offload"] == Total(3, 2**63 - 1)


def test_a_state_must_be_a_mapping():
    with pytest.raises(InvalidTypeError, match=r"state must be what get_state\(\) returned, got list"):
        ledger().restore([])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = sorted({"kind", *(name for kind in NEEDED for name in full().last(kind).as_json())})


@settings(max_examples=100)
@given(kind=st.sampled_from(sorted(KINDS)), change=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))
def test_whatever_became_of_a_record_it_is_read_or_clearly_refused(kind, change):
    try:
        record = record_from({**full().last(kind).as_json(), **change})
    except InvalidValueError:
        return
    assert record_from(saved(record.as_json())) == record
    assert len(json.dumps(record.as_json())) < 40_000


DAMAGED = st.builds(
    lambda kind, change: {**full().last(kind).as_json(), **change},
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(st.sampled_from([*FIELDS, "number", "number", "turn", "colour"]), JSON, max_size=2),
)
COUNTS = st.dictionaries(st.sampled_from(["count", "tokens_saved", "colour"]), JSON, max_size=3)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "turn": JSON,
        "forgotten": JSON,
        "totals": JSON | st.dictionaries(st.sampled_from([*KINDS, "merge"]), JSON | COUNTS, max_size=4),
        "records": JSON | st.lists(JSON | DAMAGED, max_size=6),
    },
)


@settings(max_examples=150, deadline=None)
@given(state=JSON | STATES)
def test_whatever_became_of_a_state_the_ledger_goes_on(state):
    one = ledger()
    try:
        one.restore(state)
    except InvalidTypeError:
        assert not isinstance(state, dict)
        return
    numbers = [record.number for record in one]
    assert numbers == sorted(set(numbers))
    again = ledger()
    again.restore(saved(one.as_json()))
    assert again.as_json() == one.as_json()
    one.turn += 1
    assert one.add("eviction").number == one.forgotten + len(one) > max(numbers, default=0)
    str(one)


# For people


def test_a_printed_ledger_shows_the_latest_twenty_and_all_totals():
    one = ledger(limit=30)
    for number in range(50):
        one.add("offload", tool="read_file", what=f"read_file {number}", tokens_before=1_000, tokens_after=100)
    lines = str(one).splitlines()
    assert lines[0] == "Ledger: 50 records, of which these are the latest 20; 20 older ones are no longer held"
    assert [line.split()[0] for line in lines[2:22]] == [str(number) for number in range(31, 51)]
    assert lines[22:] == ["In all:", "  offload  50  45,000 tokens left the context"]


def test_a_printed_record_says_what_failed_and_why():
    one = ledger()
    one.add("failure", error=OSError("disk full"), what="could not store", why="the window was full")
    assert "disk full; could not store; the window was full" in str(one)


def test_a_printed_search_says_what_was_looked_for_and_whether_it_was_found():
    ledger = Ledger()
    ledger.add("search", query="ORD-4411 customer", what="nothing found", why="the agent asked")
    assert '"ORD-4411 customer"; nothing found' in str(ledger)
    assert "the agent asked" not in str(ledger)


@pytest.mark.parametrize(("kind", "own"), [("offload", {"tool": "t"}), ("retrieval", {"found": True}), ("undo", {})])
def test_a_reason_that_is_always_the_same_is_not_printed(kind, own):
    ledger = Ledger()
    ledger.add(kind, what="the result of read_file", why="as ever", **own)
    assert "the result of read_file" in str(ledger)
    assert "as ever" not in str(ledger)


def test_an_empty_ledger_says_so():
    assert str(ledger()) == "Ledger: nothing happened yet."


@settings(max_examples=50)
@given(texts=st.lists(st.text(max_size=400), min_size=1, max_size=5), tokens=st.integers(0, 2**63 - 1))
def test_no_text_breaks_the_table(texts, tokens):
    one = ledger()
    one.turn = tokens
    for text in texts:
        values = {"tokens_before": tokens, "tokens_after": tokens}
        one.add("search", what=text, why=text, query=text, tool=text, references=[text], **values)
    lines = str(one).split("\n")
    assert len(lines) == len(texts) + 4
    assert all(line.isprintable() and cells_of(line) <= 100 for line in lines)


def test_every_kind_is_its_own_class():
    assert [KINDS[kind].kind for kind in KINDS] == list(KINDS) == list(NEEDED)
    assert {RetrievalRecord, SearchRecord} <= set(KINDS.values())


USER_CODE = """
from holdfast import ContextManager
from holdfast.ledger import OffloadRecord, Record, ReductionRecord

def offloaded(record: OffloadRecord) -> None: print(record.tool)
def anything(record: Record) -> None: print(record.what)

def fine(manager: ContextManager) -> None:
    messages: int = manager.ledger.of("reduction")[0].messages
    last = manager.ledger.last("undo")
    undone: int | None = None if last is None else last.undone
    tools: list[str] = [record.tool for record in manager.ledger.of(OffloadRecord)]
    manager.on("*", anything)
    manager.on(Record, anything)
    manager.on(OffloadRecord, offloaded)
    manager.on("offload", lambda record: print(record.tool))
    print(messages, undone, tools)

def wrong(manager: ContextManager) -> None:
    manager.ledger.of("reduction")[0].mesages
    manager.ledger.of("reductions")
    manager.on(ReductionRecord, offloaded)
    manager.on("reduction", offloaded)
    manager.on("reductionn", anything)
    ContextManager("auto", embedder="not a function")
"""


@pytest.mark.extended
def test_type_checkers_know_the_records_of_a_kind(tmp_path):
    (tmp_path / "user.py").write_text(USER_CODE)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", sys.executable, "user.py"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    first = USER_CODE[: USER_CODE.index("def wrong")].count("\n") + 2
    wrong = {int(line.split(":")[1]) for line in answer.splitlines() if ": error:" in line}
    assert wrong == set(range(first, first + 6)), answer


def test_several_threads_may_write_into_one_ledger():
    """Numbers came twice and totals were short, and whoever read meanwhile met a deque that changed."""
    ledger = Ledger(limit=10_000)
    threads = [Thread(target=lambda: [ledger.add("search", query="x") for _ in range(1_000)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert len(ledger.of("search")) <= len(ledger.as_json()["records"]) <= len(list(ledger))
    assert [record.number for record in ledger] == list(range(1, 2_001))
    assert ledger.totals["search"].count == 2_000


def test_many_look_ups_displace_nothing_that_left_from_what_a_session_saves():
    one = ledger()
    one.add("offload", tool="read_file")
    for turn in range(20):
        one.turn = turn
        one.add("reduction", messages=turn)
    one.add("undo", undone=21)
    for number in range(100):
        one.add("search", query=f"item {number}")
    after = ledger()
    after.restore(saved(one.get_state()))
    assert [record.turn for record in after.of("reduction")] == list(range(6, 20))
    assert [record.query for record in after.of("search")] == [f"item {number}" for number in range(90, 100)]
    assert after.last("undo").undone == 21
    assert [record.number for record in after] == sorted(record.number for record in after)
    assert after.forgotten == one.forgotten + len(one) - len(after)
