"""Exact counts: of any text, without network, and with a way out if the extra is missing."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidValueError, MissingExtraError
from holdfast.tokens.exact import ENCODINGS, exact_counter

count = exact_counter()


def test_known_counts() -> None:
    assert [count(text) for text in ("", "hello world", "tiktoken is great!", " " * 80)] == [0, 2, 6, 2]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_counts(encoding: str) -> None:
    assert 3 <= exact_counter(encoding)("Hello, world!") <= 6


@given(st.text(st.characters(), max_size=300))
def test_any_text_has_a_count_of_at_most_its_bytes(text: str) -> None:
    assert (1 if text else 0) <= count(text) <= len(text.encode("utf-8", "surrogatepass"))


def test_a_lone_surrogate_counts_as_some_other_character() -> None:
    assert count("a\ud800b") == count("a?b")


def test_special_tokens_count_as_the_text_they_are_written_as() -> None:
    assert count("<|endoftext|>") > 1


@pytest.mark.parametrize("unit", ["a b.\n", "some words, and then some more  \n", "\ttab and  blanks "])
def test_a_long_text_counts_as_its_lines_do(unit: str) -> None:
    times = 1_200_000 // len(unit)
    assert count(unit * times) == pytest.approx(count(unit * 100) * times / 100, rel=1e-3)


def test_cuts_before_blanks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "It rains.  And (so they say)  it will\n\n   rain again: x = [1, 2,\t3] -- 中文 字符 \n" * 20
    whole = count(text)
    for longest in (40, 41, 57, 100):
        monkeypatch.setattr("holdfast.tokens.exact._LONGEST_PIECE", longest)
        assert count(text) == whole


@pytest.mark.parametrize("character", [" ", "\n", "a"])
def test_millions_of_one_character_are_counted(character: str) -> None:
    assert count(character * 3_000_000) == pytest.approx(3 * count(character * 1_000_000), rel=0.01)


def test_an_unknown_encoding_is_refused_by_name_with_those_there_are() -> None:
    with pytest.raises(InvalidValueError, match=r"encoding must be one of o200k_base, .* got 'gpt-9'"):
        exact_counter("gpt-9")


def test_without_the_extra_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bpe_openai._bindings", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'holdfast\[tokenizer\]'"):
        exact_counter()
