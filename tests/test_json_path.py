"""Parts of JSON chosen by a path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidValueError
from holdfast.selection.json_path import Selection, compile_path

SHOP: dict[str, Any] = {
    "shop": {
        "books": [
            {"title": "Sand", "price": 8.95, "tags": ["dry", "old"], "ok": True},
            {"title": "Rain", "price": 12, "isbn": "0-1", "ok": False},
            {"title": 'it\'s "so"', "price": "9", "isbn": None},
        ],
        "my-key": {"$ref": 1, "a b": 2, "": 3},
        "matrix": [[1, 2, 3], [4, 5, 6]],
    }
}
TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
PIECES = [
    "$", ".", "..", "*", "[", "]", "[?", "@", "@.a", "'a'", '"a"', "'", "\\", "0", "-1", ":", ",", "(", ")", "!", "&&",
    "||", "==", "<", "contains(", " ", "\n", "a", "é", "\x00", "1e999", "null", "9" * 30, "\ud800",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=40)


def selected(path: str, value: Any = SHOP, limit: int = 1_000) -> Selection:
    return compile_path(path).select(value, limit=limit)


def values(path: str, value: Any = SHOP) -> list[Any]:
    return [found for _, found in selected(path, value).matches]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.shop.books[0].title", ["Sand"]),
        ("shop.books[-1].price", ["9"]),
        (".shop['books'][1][\"title\"]", ["Rain"]),
        ("$.shop.books[*].price", [8.95, 12, "9"]),
        ("$.shop.books[0:2].title", ["Sand", "Rain"]),
        ("$.shop.books[::-1].price", ["9", 12, 8.95]),
        ("$.shop.books[0,2].price", [8.95, "9"]),
        ("$.shop.books[0]['price','title']", [8.95, "Sand"]),
        ("$.shop.books[9]", []),
        ("$.shop.books[0:9:0]", []),
        ("$.shop.my-key.$ref", [1]),
        ("$.shop['my-key'].*", [1, 2, 3]),
        ("$.shop['my-key']['']", [3]),
        ("$..isbn", ["0-1", None]),
        ("$..[0]", [SHOP["shop"]["books"][0], "dry", [1, 2, 3], 1, 4]),
        ("$.shop.matrix..*", [[1, 2, 3], [4, 5, 6], 1, 2, 3, 4, 5, 6]),
        ("$ .shop .books [ 0 ] .price", [8.95]),
        ("$['shop']['books'][2]['title']", ['it\'s "so"']),
        (r"$..[?@.title == 'it\'s \"so\"'].price", ["9"]),
        (r'$..[?@.title == "it\u0027s \"so\""].price', ["9"]),
    ],
)
def test_a_path_selects(path: str, expected: list[Any]) -> None:
    assert values(path) == expected


@pytest.mark.parametrize(
    ("condition", "titles"),
    [
        ("@.price < 10", ["Sand"]),
        ("@.price >= 8.95", ["Sand", "Rain"]),
        ("@.price > '8'", ['it\'s "so"']),
        ("(@.price < 10 || @.price == 12)", ["Sand", "Rain"]),
        ("@.isbn", ["Rain", 'it\'s "so"']),
        ("!@.isbn", ["Sand"]),
        ("@.isbn == null", ['it\'s "so"']),
        ("@.isbn != null", ["Sand", "Rain"]),
        ("@.ok == true", ["Sand"]),
        ("@.ok == 1", []),
        ("@.ok && !(@.price > 100 || @['title'] == 'Rain')", ["Sand"]),
        ("@.nothing == @.nowhere && @.price != 12", ["Sand", 'it\'s "so"']),
        ("@.tags[0] == 'dry'", ["Sand"]),
        ("@.tags == @.tags", ["Rain", 'it\'s "so"']),
        ("contains(@.title, 'ai')", ["Rain"]),
        ("contains(@.tags, 'old')", ["Sand"]),
        ("contains(@, 'isbn') && !contains( @.title , 'R' )", ['it\'s "so"']),
        ("12 == @.price", ["Rain"]),
    ],
)
def test_a_filter_keeps_what_meets_its_condition(condition: str, titles: list[str]) -> None:
    assert values(f"$.shop.books[?{condition}].title") == titles


def test_each_match_has_a_path_of_its_own() -> None:
    paths = [path for path, _ in selected("$..['$ref','a b',0]").matches]
    assert paths == [
        "$.shop.books[0]",
        "$.shop.books[0].tags[0]",
        "$.shop['my-key']['$ref']",
        "$.shop['my-key']['a b']",
        "$.shop.matrix[0]",
        "$.shop.matrix[0][0]",
        "$.shop.matrix[1][0]",
    ]


@given(value=VALUES)
@settings(max_examples=80, deadline=None)
def test_the_path_of_a_match_leads_to_that_very_value(value: Any) -> None:
    for path, found in compile_path("$..*").select(value, limit=100).matches:
        again = compile_path(path).select(value, limit=2)
        assert again.total == 1
        assert again.matches[0] == (path, found)
        assert again.matches[0][1] is found


def test_only_so_many_matches_are_kept_but_all_are_counted() -> None:
    selection = selected("$[*]", list(range(1_000)), limit=3)
    assert selection == Selection((("$[0]", 0), ("$[1]", 1), ("$[2]", 2)), 1_000, complete=True)


def test_a_selection_that_takes_too_long_says_so() -> None:
    selection = compile_path("$..*..*..*").select([[[[1] * 9] * 9] * 9] * 9, limit=5, steps=50_000)
    assert not selection.complete
    assert len(selection.matches) == 5


def test_every_comparison_counts_as_a_step() -> None:
    many = " || ".join(["@.a == 1"] * 300)
    assert not compile_path(f"$[?{many}]").select([{}] * 1_000, limit=1, steps=100_000).complete
    assert not compile_path("$..*[?contains(@, 'y')]").select([["x" * 1_000_000] * 999], limit=1, steps=9_000).complete


def test_depth_is_no_trouble() -> None:
    value: Any = "bottom"
    for _ in range(50_000):
        value = [value]
    assert selected("$..[0]", value).total == 50_000
    assert "selects nothing" in compile_path("$..a").explain(value)
    del value


@pytest.mark.parametrize(
    ("path", "position", "expected"),
    [
        ("", 1, "a path such as"),
        ("$.", 3, "a key or"),
        ("$x", 2, "'.', '..' or '['"),
        ("$.a[b]", 5, "a key in quotes"),
        ("$[?@.a = 3]", 8, "',' or ']'"),
        ("$[?(@.a]", 8, "')'"),
        ("$['a", 5, "a closing quote"),
        ("$[?@.a[*]]", 8, "a key in quotes or an index"),
        ("$[?'x']", 7, "a comparison"),
        ("$[?" + "(" * 60 + "@", 55, "at most 50"),
        ("$[?contains(@.a)]", 16, "','"),
    ],
)
def test_a_mistake_is_shown_at_its_place(path: str, position: int, expected: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        compile_path(path)
    message, shown, caret = str(caught.value).split("\n")
    assert f"expected {expected}" in message
    assert f"at character {position}" in message
    assert caret.index("^") - 2 == position - 1
    assert shown.strip() == path


def test_in_a_long_path_the_surroundings_of_a_mistake_are_shown() -> None:
    with pytest.raises(InvalidValueError) as caught:
        compile_path("$" + ".abcdefg" * 100 + "[x]" + ".abcdefg" * 100)
    _, shown, caret = str(caught.value).split("\n")
    assert shown[caret.index("^")] == "x"
    assert len(shown) < 130


@given(path=HOSTILE)
@example("$" + "[?" * 50)
@example("$" + "..*" * 100)
@example("(" * 6_000)
@example("$.a" * 1_600)
@settings(max_examples=200, deadline=None)
def test_whatever_the_path_nothing_else_is_raised(path: str) -> None:
    try:
        compiled = compile_path(path)
    except InvalidValueError:
        return
    assert len(compiled.select(SHOP, limit=3, steps=20_000).matches) <= 3
    assert compiled.explain(SHOP)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("$.shop.boks[0]", ["$.shop is an object with 3 keys: books, my-key, matrix", ".boks", "Closest: .books"]),
        ("$.shop.books.title", ["a list of 3 items", "an object with the keys title, price", "[*].title"]),
        ("$.shop.books[7].title", ["$.shop.books is a list of 3 items", "[7] selects nothing there"]),
        ("$.shop.books[?@.price > 99].x", ["$.shop.books is a list", "[?@.price > 99] selects nothing"]),
        ("$.shop.books[0].title.x", ["$.shop.books[0].title is text of 4 characters"]),
        ("$.shop.books[0].ok[0]", ["is true"]),
        ("$.shop", ["selects something"]),
    ],
)
def test_a_path_that_selects_nothing_is_explained(path: str, told: list[str]) -> None:
    explanation = compile_path(path).explain(SHOP)
    assert all(part in explanation for part in told), explanation


def test_an_explanation_names_only_so_many_keys() -> None:
    explanation = compile_path("$.x").explain({f"key{'y' * 200}{i}": i for i in range(9_000)})
    assert "9,000 keys" in explanation
    assert "8,980 more" in explanation
    assert len(explanation) < 3_000


def test_limits_are_checked() -> None:
    with pytest.raises(InvalidValueError, match="limit must be 0 or more"):
        compile_path("$").select(1, limit=-1)
    with pytest.raises(InvalidValueError, match="at most 5,000 characters"):
        compile_path("$" * 5_001)


def test_what_was_read_can_be_selected_from() -> None:
    assert values("$..b", json.loads('{"a": [{"b": 1}, {"b": [2, {"b": 3}]}]}')) == [1, [2, {"b": 3}], 3]
