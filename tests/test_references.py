"""Which references a conversation shows."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects import Converse
from holdfast.references import KnownReferences

ALIKE = [f"mem_{number}_call" for number in range(40)]
ALL_DIFFERENT = [f"{number:02}-{number * 7_919:x}" for number in range(40)]
AWKWARD = ["C:\\My Files\\a log.txt", "what?", "(one)", "é"]


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


def noting(references: list[str]) -> dict[str, Any]:
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": " ".join(references)}]}}
    return {"role": "user", "content": [result], "metadata": {"custom": {"offloaded": references}}}


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


def test_what_is_noted_on_a_message_as_offloaded_gets_known():
    messages = [noting(["s3://bucket/key"]), said("Look at s3://bucket/key again.")]
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


def test_what_a_result_says_was_offloaded_is_not_believed():
    result = {"toolUseId": "t1", "content": [{"text": "[Offloaded as s3://bucket/key : text/plain, 3 lines]"}]}
    known = KnownReferences()
    assert not known.visible_in([{"role": "user", "content": [{"toolResult": result}]}], Converse())
    assert "s3://bucket/key" not in known


def test_what_notes_claim_displaces_nothing_that_was_stored():
    known = knowing(ALIKE)
    messages = [noting([f"q{block}-{number}" for number in range(300)]) for block in range(50)]
    known.visible_in(messages, Converse())
    assert known.stored == ALIKE
    assert len(known) <= len(ALIKE) + 2_000
    assert known.stored_in(Converse().read(said(f"{ALIKE[0]} and q49-299")).blocks) == {ALIKE[0]}


def test_what_was_looked_for_in_vain_is_not_believed_again_until_it_is_stored():
    known = KnownReferences()
    known.visible_in([noting(["x1"])], Converse())
    known.forget("x1")
    known.visible_in([noting(["x1"]), noting(["x2"])], Converse())
    assert known.claimed == ["x2"]
    known.add("x1", "read")
    assert known.stored == ["x1"]


def test_what_lasts_is_forgotten_after_all_others():
    known = KnownReferences(lasting={"kept-1"})
    for number in range(11_000):
        known.add(f"kept-{number}", "read")
    assert len(known) == 10_000
    assert "kept-1" in known
    assert "kept-0" not in known
    assert "kept-10999" in known
