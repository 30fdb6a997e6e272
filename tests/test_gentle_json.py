"""Reading and writing JSON in small steps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import gentle_json
from holdfast.errors import InvalidValueError
from holdfast.gentle_json import dumps_readable, loads_in_steps

WHOLE_CHARACTERS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WHOLE_CHARACTERS
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(WHOLE_CHARACTERS, inner, max_size=6),
    max_leaves=15,
)
LAYOUTS = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"separators": (" ,\n\t", " :\r\n ")}])


@pytest.fixture
def tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes small texts take the ways of large ones."""
    monkeypatch.setattr(gentle_json, "_PART", 16)


def accepted(load: Any, text: str) -> tuple[bool, Any]:
    try:
        return True, load(text)
    except (ValueError, RecursionError):
        return False, None


def records(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "tags": ["a", "b, [c"], "geo": {"lat": i / 7, "far": {"x": [{}, []]}}} for i in range(count)]


@pytest.mark.usefixtures("tiny_parts")
class TestReading:
    @given(value=VALUES, layout=LAYOUTS)
    @settings(max_examples=40, deadline=None)
    def test_what_was_written_is_read(self, value: Any, layout: dict[str, Any]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gentle_json, "_PART", 16)
            assert loads_in_steps(json.dumps(value, **layout)) == value

    @given(
        value=VALUES,
        layout=LAYOUTS,
        place=st.floats(0, 1, exclude_max=True),
        removed=st.integers(0, 3),
        inserted=st.sampled_from(
            ["", *'[]{},:"\\ \n0-.eE1', "NaN", "Infinity", "-Infinity", "nul", "\x00", "\ufeff", "'a'"]
        ),
    )
    @settings(max_examples=100, deadline=None)
    def test_exactly_what_the_standard_library_accepts_is_accepted(
        self, value: Any, layout: dict[str, Any], place: float, removed: int, inserted: str
    ) -> None:
        text = json.dumps(value, **layout)
        at = int(place * len(text))
        text = text[:at] + inserted + text[at + removed :]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gentle_json, "_PART", 16)
            mine, theirs = accepted(loads_in_steps, text), accepted(json.loads, text)
        assert mine[0] is theirs[0]
        assert repr(mine[1]) == repr(theirs[1])

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "[1,]",
            '{"a":1,}',
            "[1 2]",
            "[1,,2,3,4,5,6,7,8]",
            "[1,2,3,4,5,6,7,8,]",
            "1 2",
            "{1:2}",
            '{"a" 1}',
            '["a',
            "[1e]",
            "\ufeff1",
        ],
    )
    def test_what_is_no_json_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidValueError, match=r"^no valid JSON at line 1, column \d+: .*, found "):
            loads_in_steps(text)

    def test_the_error_says_where_and_what_was_expected(self) -> None:
        text = json.dumps(records(50), indent=2).replace('"id": 30,', '"id" 30,')
        line = text[: text.index('"id" 30')].count("\n") + 1
        expected = f"line {line}, column 10: expected ':' after the key, found '30,"
        with pytest.raises(InvalidValueError, match=re.escape(expected)):
            loads_in_steps(text)

    def test_the_last_of_equal_keys_wins_and_the_first_gives_the_place(self) -> None:
        text = '{"a": [1, 2, 3, 4], "b": 2, "c": [5, 6, 7, 8, 9], "a": "the last", "d": 1, "b": 3}'
        assert list(loads_in_steps(text).items()) == list(json.loads(text).items())

    def test_numbers_that_are_none_are_read_as_the_standard_library_does(self) -> None:
        read = loads_in_steps("[NaN, Infinity, -Infinity, [1, 2, 3, 4, 5, 6]]")
        assert math.isnan(read[0])
        assert read[1:3] == [math.inf, -math.inf]

    def test_a_number_of_too_many_digits_is_an_error_of_ours(self) -> None:
        with pytest.raises(InvalidValueError, match="number"):
            loads_in_steps(f"[{'9' * 5000}]")

    @pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":[1,'])
    def test_nesting_without_end_is_an_error_of_ours(self, opening: str) -> None:
        with pytest.raises(InvalidValueError):
            loads_in_steps(opening * 100_000)
        closing = opening[::-1].translate(str.maketrans("[{", "]}")).replace(":", "").replace('"a"', "1")
        closing = "".join(c for c in closing if c in "]}")
        with pytest.raises(InvalidValueError, match="deep"):
            loads_in_steps(opening * 100_000 + "1" + closing * 100_000)


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: {"a": {"b": [v]}}], ids=["bare", "wrapped"])
@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}])
def test_texts_of_many_parts_are_read(wrap: Any, layout: dict[str, Any]) -> None:
    value = wrap({"rows": records(6_000), "numbers": list(range(60_000)), "words": [f"a, [{i}" for i in range(9_000)]})
    assert loads_in_steps(json.dumps(value, **layout)) == value


def test_separators_that_never_repeat_are_no_trouble() -> None:
    spaces = [" " * (i % 97) + "\n" * (i % 89) + "\t" * (i % 83) for i in range(4_000)]
    text = "[" + "".join(f"{i},{space}" for i, space in enumerate(spaces)) + "0]"
    assert loads_in_steps(text) == json.loads(text)


class TestWriting:
    @given(value=VALUES, width=st.integers(1, 150))
    @settings(max_examples=50, deadline=None)
    def test_it_loads_back_to_the_equal_value(self, value: Any, width: int) -> None:
        assert json.loads(dumps_readable(value, width=width)) == value

    @given(value=VALUES)
    @settings(max_examples=50, deadline=None)
    def test_what_fits_stands_on_one_line(self, value: Any) -> None:
        plain = json.dumps(value, ensure_ascii=False)
        assert dumps_readable(value, width=max(len(plain), 1)) == plain

    def test_each_item_that_fits_has_its_line(self) -> None:
        lines = dumps_readable({"rows": [{"a": i, "b": [i]} for i in range(50)]}).split("\n")
        assert lines[:4] == ["{", '  "rows": [', '    {"a": 0, "b": [0]},', '    {"a": 1, "b": [1]},']
        assert len(lines) == 54

    def test_lines_keep_to_the_width_where_they_can(self) -> None:
        text = dumps_readable(records(40), width=60)
        assert max(map(len, text.split("\n"))) <= 60
        assert json.loads(text) == records(40)

    def test_numbers_and_members_have_lines_of_their_own(self) -> None:
        assert dumps_readable(list(range(500))).count("\n") == 501
        assert dumps_readable({str(i): i for i in range(500)}).count("\n") == 501

    def test_what_json_cannot_hold_can_be_had_again(self) -> None:
        holder: Mapping[str, Any] = MappingProxyType({"data": b"12345", "where": complex(1, 2)})
        assert json.loads(dumps_readable([holder] * 20)) == [{"data": "MTIzNDU=", "where": "(1+2j)"}] * 20
        assert json.loads(dumps_readable({1: (2, 3), None: math.inf})) == {"1": [2, 3], "null": math.inf}

    def test_half_a_character_can_be_stored(self) -> None:
        value = {"é\ud800": ["\udfff" * 300, "ü"]}
        text = dumps_readable(value)
        assert json.loads(text.encode()) == value
        assert "ü" in text

    def test_a_value_that_holds_itself_is_refused(self) -> None:
        inner: list[Any] = []
        outer = {"many": [inner] * 50}
        inner.append(outer)
        with pytest.raises(InvalidValueError, match="cannot be written"):
            dumps_readable(outer)

    def test_a_value_too_deep_is_refused(self) -> None:
        value: Any = []
        for _ in range(200_000):
            value = [value]
        with pytest.raises(InvalidValueError, match="deep"):
            dumps_readable(value)

    def test_keys_that_are_no_text_are_refused(self) -> None:
        with pytest.raises(InvalidValueError, match="keys must be"):
            dumps_readable({(1, 2): 3})

    def test_the_width_is_checked(self) -> None:
        with pytest.raises(InvalidValueError, match="width must be 1 or more, got 0"):
            dumps_readable([], width=0)
