"""Which references a conversation shows."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects import Converse
from holdfast.references import KnownReferences, offloaded_as

ALIKE = [f"mem_{number}_call" for number in range(40)]
ALL_DIFFERENT = [f"{number:02}-{number * 7_919:x}" for number in range(40)]
AWKWARD = ["C:\\My Files\\a log.txt", "what?", "(one)", "é"]


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


def knowing(references: list[str]) -> KnownReferences:
    known = KnownReferences()
    for reference in references:
        known.add(reference, "read")
    return known


@pytest.mark.parametrize("references", [ALIKE, ALL_DIFFERENT, AWKWARD, [*ALIKE, *ALL_DIFFERENT, *AWKWARD]])
def test_a_reference_is_seen_wherever_it_stands(references):
    for reference in references:
        texts = (reference, f"It is in {reference}.", f'See "{reference}": nothing.', f"[{reference}]\nmore")
        for text in texts:
            assert knowing(references).visible_in([said(text)], Converse()) == {reference}
        assert not knowing(references).visible_in([said("Nothing is here."), said("")], Converse())


def test_what_a_result_says_was_offloaded_gets_known():
    result = {"toolUseId": "t1", "content": [{"text": f"{offloaded_as('s3://bucket/key')}text/plain]"}]}
    messages = [{"role": "user", "content": [{"toolResult": result}]}, said("Look at s3://bucket/key again.")]
    known = KnownReferences()
    assert known.visible_in(messages, Converse()) == {"s3://bucket/key"}
    assert "s3://bucket/key" in known


def test_as_long_as_nothing_new_is_shown_the_answer_is_the_same_object():
    known, messages = knowing(ALIKE), [said(ALIKE[0]), said(ALIKE[1])]
    before = known.visible_in(messages, Converse())
    assert known.visible_in([*messages, said(f"{ALIKE[0]} again")], Converse()) is before
    assert known.visible_in([*messages, said(ALIKE[2])], Converse()) == {*ALIKE[:3]}


def test_messages_that_others_took_out_or_replaced_show_nothing_any_more():
    known, messages = knowing(ALIKE), [said(reference) for reference in ALIKE[:3]]
    known.visible_in(messages, Converse())
    messages[1] = said(ALIKE[5])
    assert known.visible_in(messages, Converse()) == {ALIKE[0], ALIKE[5], ALIKE[2]}
    del messages[0]
    assert known.visible_in(messages, Converse()) == {ALIKE[5], ALIKE[2]}
    assert known.visible_in([], Converse()) == frozenset()
