"""The report: what is in a context, what it costs, what left, and where it is."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.budget import Budget
from holdfast.compression import set_pins
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.history import History
from holdfast.ledger import Ledger
from holdfast.ledger.lines import cells_of
from holdfast.messages import SUMMARY, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from holdfast.reports import ContextReport, Subtotal, report_of

SPEC = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}


def ledger() -> Ledger:
    return Ledger(clock=lambda: 1_763_290_000.0)


def report(messages=(), **options) -> ContextReport:
    """Of a history, of messages of the core, or of a provider's."""
    if isinstance(messages, History):
        history = messages
    elif any(isinstance(message, Message) for message in messages):
        history = History.of(messages)
    else:
        history = History()
        history.read(list(messages))
    given = {
        "system_prompt": None,
        "tool_specs": (),
        "budget": Budget(window=10_000, reserved=1_000),
        "protected": (),
        "ledger": ledger(),
        "request_tokens": None,
        "references": lambda message: (),
    }
    return report_of(history, **given | options)


def call(number: int, name: str = "read_file") -> dict:
    function = {"name": name, "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}


def result(number: int, text: str) -> dict:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def run(calls: int, words: int = 20) -> list[dict]:
    turns = [message for number in range(calls) for message in (call(number), result(number, "word " * words))]
    return [{"role": "user", "content": "Fix the failing test."}, *turns]


def test_everything_in_a_context_is_an_item():
    one = report(run(1), system_prompt="Be brief.", tool_specs=[SPEC, SPEC])
    assert [(item.number, item.role, item.kind, item.what) for item in one.items] == [
        (None, "system", "system", "Be brief."),
        (None, "", "tool", "read_file"),
        (None, "", "tool", "read_file"),
        (1, "user", "text", "Fix the failing test."),
        (2, "assistant", "tool call", "read_file"),
        (3, "user", "tool result", "read_file"),
    ]


def test_the_items_cost_what_the_context_costs():
    history = History()
    history.read(run(3))
    one = report(history, system_prompt="Be brief.", tool_specs=[SPEC])
    fixed = history.estimator.system("Be brief.") + history.estimator.tools([SPEC])
    assert one.used == one.estimated == history.total + fixed
    assert sum(item.share for item in one.items) == pytest.approx(one.used / 10_000)
    assert (one.window, one.limit) == (10_000, 9_000)


def test_what_the_provider_counted_comes_before_estimates():
    one = report(run(1), request_tokens=5_000)
    assert one.used == 5_000
    assert "scaled to what the provider counts" in str(one)


@pytest.mark.parametrize(
    ("message", "kind", "what"),
    [
        (Message.of_text("user", "<summary>x</summary>", made_as=SUMMARY), "summary", "<summary>x</summary>"),
        (Message.of_text("user", "[12 left]", made_as="marker"), "marker", "[12 left]"),
        (Message.of_text("assistant", "[It goes on.]", made_as="bridge"), "bridge", "[It goes on.]"),
        (Message.of_text("system", "Be brief."), "system", "Be brief."),
        (Message("user", (Text("look:"), Image("image/png", b"x"))), "image", "look:"),
        (Message("user", (Image("image/png", b"x"),)), "image", "image/png"),
        (Message("user", (Document("application/pdf", "a.pdf", b"x"),)), "document", "a.pdf"),
        (Message("assistant", (Reasoning("hm"),)), "reasoning", "hm"),
        (Message("assistant", (Text("I will."), ToolUse("1", "grep"))), "tool call", "grep"),
        (Message("user", (ToolResult("1", (Text("no such file"),), is_error=True),)), "tool result", "grep (error)"),
        (Message("user", (ToolResult("1", (Text("[…]"),)),), {"offloaded": ["mem/1"]}), "extract", "grep"),
        (Message("user", (ToolResult("9", (Text("?"),)),)), "tool result", "unknown tool"),
        (Message("user", ()), "other", ""),
    ],
)
def test_a_message_is_named_for_what_it_is(message, kind, what):
    one = report([Message("assistant", (ToolUse("1", "grep"),)), message])
    assert (one.items[-1].kind, one.items[-1].what) == (kind, what)


def test_an_answer_belongs_to_the_latest_call_with_its_id():
    messages = [call(1, "read_file"), result(1, "a"), call(1, "grep"), result(1, "b")]
    assert [item.what for item in report(messages).items] == ["read_file", "read_file", "grep", "grep"]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (SPEC, "read_file"),
        ({"name": "grep", "input_schema": {}}, "grep"),
        ({"toolSpec": {"name": "ls", "inputSchema": {}}}, "ls"),
        ({"type": "web_search"}, "web_search"),
        ({"name": 7}, "unnamed"),
        ("nonsense", "unnamed"),
        (None, "unnamed"),
    ],
)
def test_tools_of_every_provider_have_their_names(spec, name):
    assert report(tool_specs=[spec]).items[0].what == name


@pytest.mark.parametrize("prompt", ["Be brief.", [{"text": "Be brief."}], [{"cachePoint": {}}, {"text": "Be brief."}]])
def test_a_system_prompt_is_shown_by_its_first_words(prompt):
    assert report(system_prompt=prompt).items[0].what == "Be brief."


def test_pins_protection_and_references_are_told():
    messages = run(1)
    set_pins(messages, [0])
    one = report(messages, protected=[2], references=lambda message: {"mem/2", "mem/1"} if message.pinned else ())
    assert [item.pinned for item in one.items] == [True, False, False]
    assert [item.protected for item in one.items] == [False, False, True]
    assert one.items[0].references == ("mem/1", "mem/2")
    assert "pinned  Fix the failing test.\n    → mem/1\n    and 1 more\n2  assistant" in str(one)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_a_reference_stands_whole_wherever_a_line_can_hold_it(width):
    reference = "r" * (width - 6)
    messages = [{"role": "user", "content": "word " * 50}]
    shown = report(messages, references=lambda message: {reference}).table(width=width)
    assert f"\n    → {reference}\n" in shown
    book = ledger()
    book.add("reduction", references=[reference])
    assert report(ledger=book).table(width=width).endswith(f"\n    → {reference}")


def test_kinds_and_tools_are_added_up_and_the_costliest_come_first():
    messages = [*run(3, words=100), call(7, "grep"), result(7, "word")]
    one = report(messages)
    assert list(one.by_kind) == ["tool result", "tool call", "text"]
    assert one.by_kind["tool result"].count == 4
    assert list(one.by_tool) == ["read_file", "grep"]
    assert one.by_tool["read_file"] == Subtotal(6, sum(item.tokens for item in one.items if item.what == "read_file"))


def test_results_that_share_a_message_are_counted_for_their_own_tools():
    uses = Message("assistant", (ToolUse("1", "grep"), ToolUse("2", "ls")))
    results = Message("user", (ToolResult("1", (Text("word " * 500),)), ToolResult("2", (Text("word"),))))
    one = report([uses, results])
    assert one.items[-1].what == "grep, ls"
    assert one.by_tool["grep"].tokens > 400 > 40 > one.by_tool["ls"].tokens


def test_the_ten_largest_are_at_hand():
    messages = [{"role": "user", "content": "word " * words} for words in range(10, 310, 10)]
    assert [item.number for item in report(messages).largest] == list(range(30, 20, -1))


# What left


@given(st.integers(1_000, 20_000), st.integers(0, 12))
@settings(max_examples=20)
def test_all_of_a_report_is_in_the_tokens_that_the_provider_counts(used, calls):
    one = report(run(calls), system_prompt="Be brief.", tool_specs=[SPEC], request_tokens=used)
    assert sum(item.tokens for item in one.items) == one.used == used
    assert sum(total.tokens for total in one.by_kind.values()) == used
    assert all(item.share == item.tokens / one.window for item in one.items)
    assert one.estimated == sum(item.estimated for item in one.items)
    told = str(one).partition("S system")[2].partition("\n\n")[0]
    figures = [int(part.rsplit(" ", 1)[1].replace(",", "")) for part in told.replace("\n", " · ").split(" · ")[:-1]]
    assert sum(figures) == max(used, one.limit)


def test_what_left_is_in_the_same_tokens_as_what_is_there():
    book = ledger()
    book.add("reduction", messages=3, tokens_before=3_000, tokens_after=1_000)
    messages = run(5)
    estimated = report(messages).used
    assert report(messages, ledger=book, request_tokens=estimated // 2).left[0].tokens == pytest.approx(1_000, abs=20)


def test_calls_and_results_are_told_by_their_first_argument():
    wanted = {"path": "src/app/main.py", "lines": 20}
    use = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": json.dumps(wanted)}}
    messages = [{"role": "assistant", "tool_calls": [use]}, {"role": "tool", "tool_call_id": "c1", "content": "text"}]
    assert [item.what for item in report(messages).items] == ["read_file src/app/main.py"] * 2
    assert list(report(messages).by_tool) == ["read_file"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "a\nb", "x": 1}, "t a b"),
        ({"line": 42}, "t 42"),
        ({"words": ["a"]}, "t"),
        ({}, "t"),
        (None, "t"),
        ("{not JSON", "t"),
        ("[1, 2]", "t"),
        ({"size": 10**5_000}, "t [int that is no JSON]"),
        ({"text": "x" * 500}, "t " + "x" * 59 + "…"),
    ],
)
def test_whatever_a_call_is_given_it_is_a_line(given, said):
    (item,) = report([Message("assistant", (ToolUse("c1", "t", given),))]).items
    assert item.what == said


def test_what_left_says_what_when_and_where():
    book = ledger()
    book.turn = 4
    book.add("offload", tool="t", what="read_file", tokens_before=900, tokens_after=100, references=["mem/1"])
    book.turn = 9
    book.add("reduction", messages=41, why="too full", tokens_before=9_000, tokens_after=4_000, references=["mem/2"])
    book.add("search", query="x", references=["mem/1"])
    one = report(ledger=book)
    assert [(left.record, left.kind, left.what, left.tokens, left.turn, left.references) for left in one.left] == [
        (1, "offload", "read_file", 800, 4, ("mem/1",)),
        (2, "reduction", "too full", 5_000, 9, ("mem/2",)),
    ]
    assert "No longer in view: 5,800 tokens, taken out in 2 steps" in str(one)
    assert "    → mem/2" in str(one)


def test_what_was_evicted_since_is_not_said_to_be_there():
    book = ledger()
    book.add("reduction", references=["mem/1", "mem/2"])
    book.add("eviction", references=["mem/1"])
    (left,) = report(ledger=book).left
    assert (left.references, left.evicted) == (("mem/2",), ("mem/1",))
    assert "    evicted: mem/1" in str(report(ledger=book))


def test_what_came_back_did_not_leave():
    book = ledger()
    for what in ("first", "second", "third"):
        book.add("reduction", what=what)
    book.add("undo", undone=2)
    book.add("reduction", what="fourth")
    assert [left.what for left in report(ledger=book).left] == ["first", "fourth"]


def test_what_came_back_is_known_by_its_references_where_the_record_is_not():
    book = ledger()
    for number in range(1, 4):
        book.add("reduction", what=f"step {number}", references=[f"mem/{number}"])
    book.add("undo", undone=None, references=["mem/3", "mem/2"])
    assert [left.what for left in report(ledger=book).left] == ["step 1"]
    book.add("undo", undone=None, references=["mem/0"])
    book.add("undo", undone=None)
    assert [left.what for left in report(ledger=book).left] == ["step 1"]


def test_what_the_ledger_no_longer_holds_is_said():
    book = Ledger(limit=5)
    for number in range(12):
        book.add("offload", tool="t", what=f"result {number}", references=[f"r{n}" for n in range(25)])
    assert report(ledger=book).forgotten == 7
    assert "the ledger no longer holds 7 older records" in str(report(ledger=book))
    assert "    and 5 more" in str(report(ledger=book))


def test_only_the_latest_that_left_are_shown_unless_all_are_wanted():
    book = ledger()
    for number in range(25):
        book.add("offload", tool="t", what=f"result {number}", tokens_before=10, tokens_after=0)
    one = report(ledger=book)
    assert "(15 earlier ones not shown, 150 tokens)" in str(one)
    assert "result 14" not in str(one)
    assert "result 0" in one.table(all=True)


# For people and programs


def test_an_empty_context_is_a_report_too():
    assert "There is nothing in it." in str(report())
    assert "All there was is in view" in str(report())


def bar_of(one: ContextReport) -> str:
    return next(line for line in str(one).splitlines() if line.startswith("["))


def test_the_bar_shows_who_uses_how_much_of_the_window():
    budget = Budget(window=980, reserved=98)
    messages = [Message.of_text(role, "word " * 200) for role in ("user", "assistant")]
    bar = bar_of(report(messages, budget=budget, request_tokens=490))
    assert bar == f"[{'U' * 24}{'A' * 25}{'.' * 39}{'-' * 10}]"


def test_a_context_that_does_not_fit_says_by_how_much():
    one = report([{"role": "user", "content": "word " * 500}], budget=Budget(window=100, reserved=10))
    assert f"This is {one.used - 90:,} tokens more than fit." in str(one)
    assert set(bar_of(one)) == set("[U]")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_table_is_as_wide_as_is_wanted(width):
    lines = report(run(3), system_prompt="word " * 80).table(width=width).splitlines()
    bar = next(line for line in lines if line.startswith("["))
    assert len(bar) == width == max(map(cells_of, lines))


def test_a_narrow_table_says_all_that_a_wide_one_says_but_shares():
    one = report(run(1), budget=Budget(window=100_000_000, reserved=1_000_000), request_tokens=50_000_000)
    said = " ".join(one.table(width=60).split())
    assert "(50.0%); 1,000,000 are kept for the answer" in said
    assert "tokens stays what" in said
    assert "tokens share stays what" in " ".join(str(one).split())


@pytest.mark.parametrize("width", [59, 201, -1, 10**400])
def test_a_table_too_narrow_or_too_wide_is_refused(width):
    with pytest.raises(InvalidValueError, match="width must be from 60 to 200 columns"):
        report().table(width=width)


@pytest.mark.parametrize("width", ["100", None, True, 99.5])
def test_a_width_that_is_no_number_is_refused(width):
    with pytest.raises(InvalidTypeError, match="width must be a whole number"):
        report().table(width=width)


def test_of_a_long_history_the_largest_and_the_latest_are_shown():
    messages = run(500)
    messages[301] = {"role": "user", "content": "the largest " * 300}
    one = report(messages)
    lines = str(one).splitlines()
    assert len(lines) < 60
    assert any("the largest" in line for line in lines)
    assert any(line.startswith("1,001  user") for line in lines)
    hidden = [line for line in lines if "not shown: report.table(all=True)" in line]
    shown = [line for line in lines if line[:5].strip().replace(",", "").isdigit()]
    assert sum(int(line.partition("(")[2].split()[0]) for line in hidden) + len(shown) == 1_001


def test_all_of_a_long_history_is_shown_if_wanted():
    assert report(run(500)).table(all=True).count("read_file") >= 1_000


def test_a_report_is_plain_json():
    book = ledger()
    book.add("offload", tool="t", what="x", references=["mem/1"])
    one = report(run(2), system_prompt="Be brief.", tool_specs=[SPEC], ledger=book, references=lambda message: {"r"})
    plain = one.as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert set(plain) == {"window", "limit", "used", "estimated", "items", "left", "forgotten", "by_kind", "by_tool"}
    assert len(plain["items"]) == 7


def test_a_report_does_not_change():
    with pytest.raises(FrozenInstanceError):
        report().used = 7
    with pytest.raises(TypeError):
        report().by_tool["x"] = Subtotal()


NASTY = st.text(max_size=200) | st.sampled_from(["\x1b[2J" * 50, "漢" * 300, "a\r\nb" * 90, "\ud800\u202e" * 60])


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(NASTY, min_size=1, max_size=20), window=st.integers(1, 10**12), width=st.integers(60, 200))
def test_no_text_breaks_the_table(texts, window, width):
    book = ledger()
    messages = []
    for number, text in enumerate(texts):
        book.add("reduction", what=text, references=[text, "x" * 200], tokens_before=10**15, tokens_after=0)
        use, answer = ToolUse(text, text), ToolResult(text, (Text(text),), is_error=number % 2 == 0)
        messages += [Message.of_text("user", text), Message("assistant", (use,)), Message("user", (answer,))]
    one = report(
        messages,
        system_prompt=texts[0],
        tool_specs=[{"name": text} for text in texts],
        budget=Budget(window=window),
        ledger=book,
        references=lambda message: texts[:2],
    )
    for shown in (one.table(width=width), one.table(all=True, width=width)):
        assert all(line.isprintable() and cells_of(line) <= width for line in shown.split("\n"))
    json.dumps(one.as_json())
