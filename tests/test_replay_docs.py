"""docs/replay.md says of policies, prices, the grid and the figures what they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from replaying import FILLER, chat, recording, under

import holdfast.replay
from holdfast.recordings import FORMATS, Unreadable
from holdfast.replay import GRID, PRICES, report_of
from holdfast.replay.policies import BUILT_IN
from holdfast.replay.prices import AS_OF, DEFAULT
from holdfast.replay.values import LONG_AGO

PAGE = (Path(__file__).parent.parent / "docs" / "replay.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its own heading and without marks of code."""
    section = re.split(r"^##+ ", PAGE.partition(f"\n{heading}\n")[2], flags=re.MULTILINE)[0]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None
    lines = table[0].replace("`", "").splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def report() -> dict[str, Any]:
    replay = under("none", "auto", window=6_000)
    messages = chat(["\n".join(f"row {row}: {FILLER}" for row in range(400)), *[FILLER * 30] * 30])
    results = [*replay.all([recording(messages)]), Unreadable("file", 1, "reason")]
    return report_of(results, replay, PRICES[DEFAULT], made=AS_OF)


def test_the_prices_are_those_of_the_table_with_its_date():
    shown = {name: [float(each) for each in figures] for name, *figures in rows("## Prices")}
    assert shown == {
        name: [prices.input, prices.cache_read, prices.cache_write, prices.output] for name, prices in PRICES.items()
    }
    assert f"as read on {AS_OF}" in PAGE
    assert f"Without `--prices`, `{DEFAULT}` counts" in PAGE


def test_all_policies_and_formats_are_listed():
    assert [name for name, _ in rows("## Policies")] == [*BUILT_IN, "a file"]
    assert [name for name, _ in rows("## What the files may be")] == list(FORMATS)
    assert [name for name, _ in rows("## A recommendation")] == [policy.name for policy in GRID]


def test_the_number_of_messages_that_are_at_hand_is_the_one_of_the_code():
    assert LONG_AGO == 8
    assert "none of the eight" in PAGE


def fields_of(name: str) -> set[str]:
    [told] = [text for fields, text in rows("## The JSON") if name in fields.split(", ")]
    return set(re.findall(r"[a-z_]+", told))


def test_all_fields_of_the_json_are_listed():
    made = report()
    listed = {name for fields, _ in rows("## The JSON") for name in fields.split(", ")}
    assert set(made) <= listed
    assert set(made["prices"]) <= fields_of("prices")
    for name, example in (
        ("policies", made["policies"][0]),
        ("recordings", made["recordings"][0]),
        ("under", made["recordings"][0]["under"][0]),
        ("events", made["recordings"][0]["under"][1]["events"][0]),
        ("largest", made["largest"][0]),
        ("unreadable", made["unreadable"][0]),
    ):
        assert set(example) <= fields_of(name), name


@pytest.mark.parametrize("nested", [None, "bill", "values"])
def test_all_totals_are_listed(nested):
    told = re.search(r"^`totals` are.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert told is not None
    totals = report()["policies"][0]["totals"]
    assert set(totals if nested is None else totals[nested]) <= set(re.findall(r"`([a-z_]+)`", told[0]))


def test_all_public_names_are_on_the_page():
    assert [name for name in holdfast.replay.__all__ if not re.search(rf"`{name}\b|\b{name}\b[^`\n]*`", PAGE)] == []
