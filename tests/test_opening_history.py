"""Messages that left, opened by the reference of their batch and their number."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from test_archive import Loop

from holdfast import EvictingStorage, InMemoryStorage
from holdfast.batches import BATCH_TYPE, Batch, Entry, Removal, transcript
from holdfast.errors import NotFoundError, StorageAccessError
from holdfast.storage import Entry as StoredEntry


def said(number: int, text: str = "", **others: Any) -> Entry:
    return Entry({"role": "user", "content": [{"text": text or f"text {number}"}]}, number, **others)


async def chain_of(storage: InMemoryStorage, length: int) -> list[str]:
    """Store batches of one message each, each naming the 100 before it."""
    names: list[str] = []
    for number in range(1, length + 1):
        batch = Batch(dialect="converse", entries=(said(number),), removals=(), before=tuple(names[-100:]))
        names.append(await storage.store("history", batch.written(), BATCH_TYPE))
    return names


async def opened(loop: Loop, **arguments: Any) -> Any:
    tool = next(tool for tool in loop.manager.agent_tools if tool.name == "retrieve_offloaded_content")
    return await tool.run(loop.conversation, arguments)


async def test_a_message_is_found_however_many_batches_ago_it_left():
    loop = Loop(offload_storage=(storage := InMemoryStorage(evict_after_turns=None)))
    names = await chain_of(storage, 450)
    assert (await loop.manager.retrieve(f"{names[-1]}#3"))[0] == b"text 3"
    storage.discard(names[100])
    assert (await loop.manager.retrieve(f"{names[-1]}#3"))[0] == b"text 3"
    with pytest.raises(NotFoundError, match=r"message 101 is not among those .* still stored"):
        await loop.manager.retrieve(f"{names[-1]}#101")


async def test_a_transcript_says_where_older_messages_are():
    loop = Loop(offload_storage=(storage := InMemoryStorage(evict_after_turns=None)))
    names = await chain_of(storage, 230)
    head = (await loop.manager.retrieve(names[-1]))[0].partition(b"\n")[0].decode()
    assert head.startswith("[Messages 31–230 of this conversation")
    assert names[29] in head
    assert (await loop.manager.retrieve(names[29]))[0].startswith("[Messages 1–30 ".encode())


async def test_pages_are_of_what_is_there_now():
    loop = Loop(offload_storage=(storage := InMemoryStorage(evict_after_turns=None)))
    names = await chain_of(storage, 30)
    assert "text 1\n" in (await opened(loop, reference=names[-1])).text
    storage.discard(names[4])
    answer = await opened(loop, reference=names[-1], pattern="text [1-7]$|What left with", context_lines=0)
    assert not answer.is_error
    assert "text 4" in answer.text
    assert f"[What left with {names[4]} is not stored any more]" in answer.text
    assert "text 5" not in answer.text
    assert "text 6" in answer.text
    assert "text 20" in (await opened(loop, reference=names[-1], pattern="text 20")).text


class TornStorage(InMemoryStorage):
    """Memory that cannot read some of what it holds, and counts what it reads."""

    def __init__(self) -> None:
        super().__init__(evict_after_turns=None)
        self.torn: set[str] = set()
        self.reads = 0

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        self.reads += 1
        self._check(reference)
        return await super().retrieve(reference)

    async def inspect(self, reference: str) -> StoredEntry:
        self._check(reference)
        return await super().inspect(reference)

    def _check(self, reference: str) -> None:
        if reference in self.torn:
            raise OSError("this block of the disk is torn")


async def test_a_batch_that_cannot_be_read_just_now_costs_no_other():
    loop = Loop(offload_storage=(storage := TornStorage()))
    names = await chain_of(storage, 12)
    storage.torn = {names[4]}
    for number in (1, 4, 6, 12):
        assert (await loop.manager.retrieve(f"{names[-1]}#{number}"))[0] == f"text {number}".encode()
    with pytest.raises(StorageAccessError, match="is torn"):
        await loop.manager.retrieve(f"{names[-1]}#5")
    transcript = (await loop.manager.retrieve(names[-1]))[0].decode()
    assert f"\ntext 4\n[What left with {names[4]} cannot be read just now: " in transcript
    assert "text 1\n" in transcript
    storage.torn = set()
    assert b"text 5\n" in (await loop.manager.retrieve(names[-1]))[0]
    storage.torn = {names[7]}
    assert b"text 8\n" not in (await loop.manager.retrieve(names[-1]))[0]


async def test_the_next_page_of_a_transcript_is_had_without_reading_its_batches_again():
    loop = Loop(offload_storage=(storage := TornStorage()))
    names = await chain_of(storage, 150)
    first = await opened(loop, reference=names[-1], line_range="1-20")
    assert "text 9\n" in first.text
    assert storage.reads == 150
    assert "text 20\n" in (await opened(loop, reference=names[-1], line_range="21-42")).text
    assert "text 77\n" in (await opened(loop, reference=names[-1], pattern="text 77")).text
    assert storage.reads == 150


async def test_only_so_much_of_transcripts_is_kept(monkeypatch):
    monkeypatch.setattr("holdfast.retrieval.contents._MOST_BYTES", 600)
    loop = Loop(offload_storage=(storage := TornStorage()))
    names = await chain_of(storage, 12)
    for name, reads in [(names[9], 10), (names[9], 0), (names[10], 11), (names[10], 0), (names[9], 10)]:
        before = storage.reads
        assert 300 < len((await loop.manager.retrieve(name))[0]) < 600
        assert storage.reads == before + reads


async def test_what_is_left_of_a_message_is_not_taken_for_all_of_it_while_that_cannot_be_read():
    loop = await with_shortened(offload_storage=(storage := TornStorage()))
    original = notes_of(loop.messages[2])["kept_as"].partition("#")[0]
    await loop.go_on(40)
    latest = loop.manager.archive.undoable[-1]
    storage.torn = {original}
    with pytest.raises(StorageAccessError, match="is torn"):
        await loop.manager.retrieve(f"{latest}#3")
    storage.torn = set()
    assert (await loop.manager.retrieve(f"{latest}#3"))[0] == LONG.encode()
    storage.discard(original)
    assert b"[Offloaded as " in (await loop.manager.retrieve(f"{latest}#3"))[0]


async def test_a_transcript_names_some_of_what_is_missing_and_why():
    loop = Loop(offload_storage=(storage := InMemoryStorage(evict_after_turns=None)))
    names = await chain_of(storage, 5)
    damaged = await storage.store("history", b"no batch", BATCH_TYPE)
    batch = Batch(dialect="converse", entries=(said(7),), removals=(), before=(*names, damaged))
    latest = await storage.store("history", batch.written(), BATCH_TYPE)
    for name in names[1:]:
        storage.discard(name)
    _, *lines = (await loop.manager.retrieve(latest))[0].decode().splitlines()
    assert lines == [
        "[message 1, user]",
        "text 1",
        f"[What left with {', '.join(names[1:4])} and 1 other is not stored any more]",
        f"[What left with {damaged} is damaged and cannot be shown]",
        "[message 7, user]",
        "text 7",
    ]


async def test_more_than_one_number_is_answered_with_how_to_ask():
    loop = Loop()
    await loop.go_on(40)
    [reference, *_] = loop.manager.ledger.last("reduction").references
    answer = await opened(loop, reference=f"{reference}#3-9")
    assert answer.is_error
    assert f"one number follows #, as in {reference}#7 " in answer.text


async def test_of_evicted_messages_nobody_is_told_to_call_a_tool_again():
    storage = EvictingStorage(InMemoryStorage(evict_after_turns=None), max_bytes=40_000)
    loop = Loop(offload_storage=storage)
    await loop.go_on(40)
    [reference, *_] = loop.manager.ledger.of("reduction")[0].references
    await storage.store("large", bytes(39_000))
    answer = await opened(loop, reference=f"{reference}#3")
    assert answer.is_error
    assert "is gone" in answer.text
    assert "call the tool again" not in answer.text
    assert "cannot be read any more" in answer.text


def test_the_head_counts_what_left_and_names_what_was_only_shortened():
    first = Batch(
        dialect="converse",
        entries=(said(2), said(3), said(9, "all of nine")),
        removals=(Removal(1, 2), Removal(8, 1, rewritten=True)),
    )
    second = Batch(
        dialect="converse",
        entries=(said(4), said(5, "all of five"), said(9, "some of nine", original="R1#9")),
        removals=(Removal(1, 1), Removal(3, 1, rewritten=True), Removal(7, 1)),
    )
    head, _, rest = transcript([("R1", first)]).decode().partition("\n")
    assert head.startswith("[Messages 2–3 of this conversation, ")
    assert head.endswith(" only shortened, as they were before: 9.]")
    head, _, rest = transcript([("R1", first), ("R2", second)]).decode().partition("\n")
    assert head.startswith("[Messages 2–9 of this conversation, ")
    assert head.endswith(" only shortened, as they were before: 5.]")
    assert rest.count("[message 9") == 1
    assert "all of nine" in rest
    assert "some of nine" not in rest


def test_what_was_left_of_a_message_is_shown_where_its_whole_is_not():
    batch = Batch(dialect="converse", entries=(said(9, "some of nine", original="R1#9"),), removals=(Removal(7, 1),))
    shown = transcript([("R2", batch)]).decode()
    assert "some of nine" in shown
    assert "all of it: R1#9" in shown


# At this mark, a reduction shortens the long result and lets it stay.
LOW = {"low_water": 0.55}
LONG = "very special result " + "dolor sit amet " * 1_000


async def with_shortened(**options: Any) -> Loop:
    """A conversation whose third message is only a part of what it was."""
    loop = Loop(window=8_000, compression=LOW, **options)
    for result in ([{"text": LONG}], None):
        await loop.turn(result)
    while "metadata" not in loop.messages[2]:
        await loop.turn()
    return loop


def notes_of(wire: Any) -> Any:
    return wire["metadata"]["custom"]


def result_in(wire: Any) -> Any:
    return wire["content"][0]["toolResult"]["content"]


def replaced(wire: Any) -> None:
    result_in(wire)[0]["text"] = "corrected: the key is ZEBRA4711"


def added(wire: Any) -> None:
    result_in(wire).append({"text": "corrected: the key is ZEBRA4711"})


def replaced_without_a_seal(wire: Any) -> None:
    del notes_of(wire)["left_as"]
    replaced(wire)


def replaced_with_a_strange_seal(wire: Any) -> None:
    notes_of(wire)["left_as"] = ["", [-1, None]]
    replaced(wire)


@pytest.mark.parametrize("change", [replaced, added, replaced_without_a_seal, replaced_with_a_strange_seal])
async def test_what_somebody_wrote_into_a_shortened_message_is_found_and_opened(change: Callable[[Any], None]):
    loop = await with_shortened()
    original = notes_of(loop.messages[2])["kept_as"]
    change(loop.messages[2])
    await loop.go_on(40)
    latest = loop.manager.archive.undoable[-1]
    [hit, *_] = (await loop.manager.search_context("ZEBRA4711")).hits
    assert (await loop.manager.retrieve(hit.reference))[0] == b"corrected: the key is ZEBRA4711"
    assert b"ZEBRA4711" in (await loop.manager.retrieve(f"{latest}#3"))[0]
    transcript = (await loop.manager.retrieve(latest))[0].decode()
    assert "ZEBRA4711" in transcript
    assert f"as it was before: {original}]" in transcript
    assert (await loop.manager.retrieve(original))[0] == LONG.encode()


async def test_a_shortened_message_that_nobody_changed_opens_as_it_was_also_after_a_restart():
    loop = await with_shortened(offload_storage=(storage := InMemoryStorage(evict_after_turns=None)))
    original = notes_of(loop.messages[2])["kept_as"]
    again = Loop(json.loads(json.dumps(loop.messages)), window=8_000, compression=LOW, offload_storage=storage)
    again.manager.restore(json.loads(json.dumps(loop.manager.get_state())))
    await again.go_on(40)
    latest = again.manager.archive.undoable[-1]
    assert (await again.manager.retrieve(f"{latest}#3"))[0] == LONG.encode()
    hits = (await again.manager.search_context("very special result")).hits
    assert [hit.reference for hit in hits if hit.labels["message"] == "3"] == [original]


async def test_a_message_that_was_changed_and_shortened_again_opens_as_it_was_changed():
    loop = await with_shortened()
    original = notes_of(loop.messages[2])["kept_as"]
    changed = "corrected: the key is ZEBRA4711 " + "consectetur elit " * 2_000
    loop.messages[2] = copy.deepcopy(loop.messages[2])
    result_in(loop.messages[2])[0]["text"] = changed
    while notes_of(loop.messages[2])["kept_as"] == original:
        await loop.turn()
    assert (await loop.manager.retrieve(notes_of(loop.messages[2])["kept_as"]))[0] == changed.encode()
    await loop.go_on(40)
    latest = loop.manager.archive.undoable[-1]
    assert (await loop.manager.retrieve(f"{latest}#3"))[0] == changed.encode()
    assert (await loop.manager.retrieve(original))[0] == LONG.encode()


async def test_messages_are_not_mixed_up_after_somebody_deleted_one_before_them():
    loop = Loop(window=8_000, compression=LOW)
    for result in ("deleted", "short", LONG):
        await loop.turn([{"text": result}])
    while "metadata" not in loop.messages[6]:
        await loop.turn()
    original = notes_of(loop.messages[6])["kept_as"]
    assert original.endswith("#7")
    del loop.messages[1:3]
    await loop.go_on(60)
    latest = loop.manager.archive.undoable[-1]
    assert (await loop.manager.retrieve(f"{latest}#5"))[0] == LONG.encode()
    assert (await loop.manager.retrieve(f"{latest}#3"))[0] == b"short"
    transcript = (await loop.manager.retrieve(latest))[0].decode()
    assert transcript.count("very special result") == 1
    assert f"[message 5 stands above, as {original}]" in transcript
    hits = (await loop.manager.search_context("very special result")).hits
    assert {hit.reference for hit in hits} == {original}
    assert (await loop.manager.retrieve(original))[0] == LONG.encode()


def test_a_part_of_a_message_that_had_another_number_is_shown_unless_all_of_it_is():
    first = Batch(dialect="converse", entries=(said(5, "all of five"), said(7, "all of seven")), removals=())
    second = Batch(
        dialect="converse",
        entries=(said(5, "some of seven", original="R1#7"), said(7, "some of nine", original="R0#9")),
        removals=(),
    )
    shown = transcript([("R1", first), ("R2", second)]).decode()
    assert "some of seven" not in shown
    assert "[message 5 stands above, as R1#7]" in shown
    assert "some of nine" in shown
