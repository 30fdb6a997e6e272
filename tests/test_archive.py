"""What leaves is stored first, named where it stood, found again, and stored once."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import json
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast import ContextManager, EvictingStorage, FileStorage, InMemoryStorage
from holdfast.batches import BATCH_TYPE, Batch, Missing, batches_up_to
from holdfast.compression.draft import Draft
from holdfast.errors import (
    EvictedError,
    InvalidTypeError,
    InvalidValueError,
    NotFoundError,
    StorageAccessError,
    TooLargeError,
)
from holdfast.hold.packing import packed
from holdfast.hooks import AfterInvocation, AfterModelCall, AfterToolCall, BeforeModelCall, Conversation, HookRegistry
from holdfast.ledger import EvictionRecord, FailureRecord, ReductionRecord
from holdfast.messages import SUMMARY, Text
from holdfast.testing.fakes import FlakyStorage

WINDOW = 3_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


class Loop:
    """A conversation with an agent that reads one file after another."""

    def __init__(self, messages: list[Any] | None = None, **options: Any) -> None:
        self.manager = ContextManager(**{"compression": True, "dialect": "converse", "window": WINDOW, **options})
        self.messages = [{"role": "user", "content": [{"text": "Fix the bug."}]}] if messages is None else messages
        self.conversation = self.manager.converse(self.messages).conversation
        self.hooks = HookRegistry()
        self.manager.register_hooks(self.hooks)
        self.turns = 0

    async def turn(self, result: list[Any] | None = None) -> None:
        """Read a file of some 100 words, or get *result*."""
        self.turns += 1
        await self.hooks.invoke(BeforeModelCall(self.conversation))
        use = {"toolUseId": f"t{self.turns}", "name": "read_file", "input": {"path": f"src/file_{self.turns}.py"}}
        self.messages.append({"role": "assistant", "content": [{"text": "I look."}, {"toolUse": use}]})
        content = [{"text": f"word{self.turns} " + "lorem ipsum " * 50}] if result is None else result
        answer = {"toolResult": {"toolUseId": f"t{self.turns}", "status": "success", "content": content}}
        self.messages.append({"role": "user", "content": [answer]})

    async def go_on(self, turns: int = 30) -> None:
        for _ in range(turns):
            await self.turn()

    @property
    def made(self) -> list[Any]:
        return [wire for wire in self.messages if "holdfast" in wire.get("metadata", {}).get("custom", {})]

    @property
    def marker(self) -> Any:
        [marker] = [wire for wire in self.made if wire["metadata"]["custom"]["holdfast"] in ("marker", "summary")]
        return marker


def text_of(wire: Any) -> str:
    return str(wire["content"][0]["text"])


class CountingStorage(InMemoryStorage):
    """Memory that counts what is stored."""

    def __init__(self) -> None:
        super().__init__(evict_after_turns=None)
        self.stored: list[bytes] = []

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        self.stored.append(content)
        return await super().store(key, content, content_type)


@pytest.mark.parametrize("compression", ["truncate", "summarize"])
async def test_however_often_messages_left_one_marker_says_what(compression):
    loop = Loop(compression=compression)
    await loop.go_on(60)
    assert len(loop.manager.ledger.of(ReductionRecord)) > 3
    said = text_of(loop.marker)
    left = loop.marker["metadata"]["custom"]["left"]["ranges"]
    count = left[0][1] - left[0][0] + 1
    assert left[0][0] == 2
    assert f"{count} earlier messages (2–{left[0][1]}; turns 2–" in said
    assert f"read_file × {count // 2}" in said
    assert "search_context" in said
    assert loop.manager.ledger.last(ReductionRecord).references[0] in said
    assert json.dumps(loop.messages).count("earlier messages (") == 1


async def test_a_summary_carries_the_marker_and_the_next_one_does_not_repeat_it():
    summaries = []

    def summarize(request):
        summaries.append(request.known)
        return "Files were read."

    loop = Loop(compression={"method": "summarize", "summarizer": summarize})
    await loop.go_on(60)
    assert loop.marker["metadata"]["custom"]["holdfast"] == SUMMARY
    assert text_of(loop.marker).count("earlier messages") == 1
    assert len(summaries) > 1
    assert not any("earlier messages" in known for known in summaries)


async def test_a_reduction_costs_one_storage_call():
    storage = CountingStorage()
    loop = Loop(offload_storage=storage)
    await loop.go_on(40)
    assert len(storage.stored) == len(loop.manager.ledger.of(ReductionRecord))


async def test_what_was_shortened_and_then_left_is_stored_once():
    storage = CountingStorage()
    loop = Loop(offload_storage=storage)
    long = "very special result " + "dolor sit amet " * 400
    await loop.turn([{"text": long}])
    await loop.go_on(40)
    assert sum(content.count(b"dolor sit amet") for content in storage.stored) < 500
    hit = (await loop.manager.search_context("very special result")).hits[0]
    assert await loop.manager.retrieve(hit.reference) == (long.encode(), "text/plain")


async def test_what_was_shortened_before_a_restart_and_then_left_is_stored_once():
    storage, noise = CountingStorage(), base64.b64encode(random.Random(1).randbytes(3_000))
    loop = Loop(offload_storage=storage, window=8_000)
    image = {"image": {"format": "png", "source": {"bytes": base64.b64decode(noise)}}}
    await loop.turn([{"text": "dolor sit amet " * 1_400}])
    loop.messages[-1]["content"].append(image)
    while not storage.stored:
        await loop.turn()
    assert image in loop.messages[2]["content"]
    again = Loop(copy.deepcopy(loop.messages), offload_storage=storage, window=8_000)
    again.manager.restore(json.loads(json.dumps(loop.manager.get_state())))
    again.turns = loop.turns
    await again.go_on(60)
    assert image not in again.messages[2]["content"]
    assert [content.count(noise) for content in storage.stored].count(1) == 1
    content, content_type = await again.manager.retrieve(f"{again.manager.archive.undoable[-1]}#3.2")
    assert (base64.b64encode(content), content_type) == (noise, "image/png")


async def test_a_shortened_result_names_where_all_of_it_is():
    loop = Loop(window=12_000)
    long = "very special result " + "dolor sit amet " * 2_500
    await loop.turn([{"text": long}])
    await loop.go_on(16)
    shortened = loop.messages[2]["content"][0]["toolResult"]["content"][0]["text"]
    reference = shortened.split()[2]
    assert shortened.startswith(f"[Offloaded as {reference} : {len(long):,} characters]")
    assert await loop.manager.retrieve(reference) == (long.encode(), "text/plain")
    await loop.go_on(60)
    assert (await loop.manager.search_context("very special result")).hits[0].reference == reference


async def test_what_was_undone_and_leaves_again_is_found_again():
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=5))
    while not loop.manager.ledger.of(ReductionRecord):
        await loop.turn()
    loop.conversation.window = 100_000
    await loop.manager.undo()
    loop.conversation.window = WINDOW
    await loop.go_on(30)
    hit = (await loop.manager.search_context("word2")).hits[0]
    assert (await loop.manager.retrieve(hit.reference))[0].startswith(b"word2 ")


async def test_images_and_documents_come_back_byte_for_byte():
    loop = Loop()
    pdf = b"%PDF-1.7 " + bytes(200)
    content = [
        {"text": "the chart"},
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {"document": {"format": "pdf", "name": "report", "source": {"bytes": pdf}}},
        {"json": {"total": [1, 2, 3]}},
    ]
    await loop.turn(content)
    await loop.go_on(40)
    hit = (await loop.manager.search_context("the chart")).hits[0]
    message = hit.reference.rpartition(".")[0]
    found = [await loop.manager.retrieve(f"{message}.{part}") for part in range(1, 5)]
    assert found == [
        (b"the chart", "text/plain"),
        (PNG, "image/png"),
        (pdf, "application/pdf"),
        (b'{"total": [1, 2, 3]}', "application/json"),
    ]
    transcript, _ = await loop.manager.retrieve(message)
    assert f"{message}.2".encode() in transcript
    tool = loop.manager.agent_tools[0]
    shown = await tool.run(loop.conversation, {"reference": f"{message}.2"})
    assert shown.media[0].data == PNG


async def test_a_search_tells_message_role_tool_and_turn():
    loop = Loop()
    await loop.go_on(40)
    hit = (await loop.manager.search_context("word3")).hits[0]
    assert {name: hit.labels[name] for name in ("message", "role", "tool", "turn")} == {
        "message": "7",
        "role": "tool",
        "tool": "read_file",
        "turn": "4",
    }
    assert (hit.first_line, hit.last_line) == (1, 1)
    answer = await loop.manager.agent_tools[1].run(loop.conversation, {"query": "word3"})
    assert f"{hit.reference} (message 7, result of read_file, turn 4), line 1" in answer.text
    opened = await loop.manager.agent_tools[0].run(loop.conversation, {"reference": hit.reference})
    assert opened.text.startswith("word3 ")


@pytest.mark.parametrize("query", ["getUserById", "user by id", "ORD-4411", "4411", "src/app/main.py:42", "main.py"])
async def test_an_identifier_is_found_whole_and_by_a_part(query):
    loop = Loop()
    await loop.turn([{"text": "see getUserById in src/app/main.py:42 for ORD-4411"}])
    await loop.go_on(40)
    assert "getUserById" in (await loop.manager.search_context(query)).hits[0].excerpt[0].text


async def test_a_word_that_is_also_the_name_of_a_role_is_found_where_it_stands():
    """Every message of the user was found for the word user, ahead of those that hold it."""
    loop = Loop()
    await loop.turn([{"text": "The bug is in getUserById of the store."}])
    await loop.go_on(30)
    hit, *others = (await loop.manager.search_context("user")).hits
    assert "message" not in {name for other in others for name in other.labels}
    assert "getUserById" in hit.excerpt[0].text


async def test_offloaded_results_and_messages_are_in_one_list():
    loop = Loop(offloader={"threshold": 300, "preview_tokens": 100})
    managed = loop.conversation
    big = "\n".join(f"row {number} is plain" for number in range(2_000)) + "\nthe walrus was here"
    event_result = {"toolUseId": "x", "status": "success", "content": [{"text": big}]}
    event = AfterToolCall(managed, "read_table", "x", event_result)
    await loop.hooks.invoke(event)
    use = {"toolUse": {"toolUseId": "x", "name": "read_table", "input": {}}}
    loop.messages.append({"role": "assistant", "content": [{"text": "The walrus is next."}, use]})
    loop.messages.append({"role": "user", "content": [{"toolResult": event.result}]})
    await loop.go_on(40)
    hits = (await loop.manager.search_context("walrus")).hits
    assert {hit.labels.get("role") for hit in hits[:2]} == {"assistant", "tool"}


async def test_if_nothing_can_be_stored_nothing_leaves(caplog):
    loop = Loop(offload_storage=FlakyStorage(InMemoryStorage(), range(1, 10_000)))
    await loop.go_on(40)
    assert len(loop.messages) == 81
    assert not loop.made
    failure = loop.manager.ledger.last(FailureRecord)
    assert failure is not None
    assert "so it stays" in failure.what
    assert "could not be stored" in caplog.text


async def test_after_a_fault_a_later_reduction_is_tried():
    loop = Loop(offload_storage=FlakyStorage(InMemoryStorage(evict_after_turns=None), {1}))
    await loop.go_on(40)
    assert loop.manager.ledger.of(FailureRecord)
    assert loop.marker
    assert (await loop.manager.search_context("word1")).hits


async def test_an_overflow_goes_on_without_the_storage_and_says_loudly_what_is_lost(caplog):
    loop = Loop(offload_storage=FlakyStorage(InMemoryStorage(), range(1, 10_000)), compression={"proactive": False})
    await loop.go_on(20)
    error = RuntimeError("prompt is too long: 4000 tokens > 3000 maximum")
    with caplog.at_level(logging.ERROR):
        ended = await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))
    assert ended.retry
    assert len(loop.messages) < 41
    assert "LOST" in caplog.text
    failure = loop.manager.ledger.of(FailureRecord)[0]
    assert "is lost" in failure.what
    assert failure.error == "injected fault"
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        await loop.manager.undo()


async def test_after_a_restart_everything_is_found_again(tmp_path):
    loop = Loop(offload_storage=FileStorage(tmp_path))
    await loop.go_on(40)
    saved = json.loads(json.dumps([loop.manager.get_state(), loop.messages]))
    await loop.manager.aclose()
    again = Loop(saved[1], offload_storage=FileStorage(tmp_path))
    again.manager.restore(saved[0])
    again.turns = 40
    await again.go_on(20)
    for word in ("word1", "word20", "word45"):
        hit = (await again.manager.search_context(word)).hits[0]
        assert (await again.manager.retrieve(hit.reference))[0].startswith(f"{word} ".encode())
    assert again.marker["metadata"]["custom"]["left"]["ranges"][0][0] == 2
    again.conversation.window = 1_000_000
    for _ in again.manager.archive.undoable:
        await again.manager.undo()
    assert len(again.messages) == 1 + 2 * 60
    assert not again.made


async def test_after_a_restart_turns_take_nothing_that_the_archive_names(tmp_path):
    """The state named the latest 200 contents, and nobody told the storage to spare the others."""

    def storage() -> EvictingStorage:
        return EvictingStorage(FileStorage(tmp_path), turns=5)

    loop = Loop(offload_storage=storage(), window=1_400)
    while len(loop.manager.ledger.of(ReductionRecord)) < 230:
        await loop.turn()
    batches = loop.manager.archive.undoable
    state, messages = json.loads(json.dumps(loop.manager.get_state())), json.loads(json.dumps(loop.messages))
    await loop.manager.aclose()
    again = Loop(messages, offload_storage=storage(), window=100_000)
    again.manager.restore(state)
    await again.go_on(12)
    assert {entry.reference async for entry in FileStorage(tmp_path).entries()} >= set(batches)
    assert (await again.manager.search_context("word2")).hits
    assert again.manager.get_state()["offloader"]["lasting"] == state["offloader"]["lasting"]


@pytest.mark.parametrize("lasting", [7, "no", "e30=", packed({}), packed([[1]]), packed([["a", "b", 1]])])
async def test_what_lasts_in_a_state_that_makes_no_sense_is_refused(lasting):
    loop = Loop()
    with pytest.raises(InvalidValueError):
        loop.manager.restore({**loop.manager.get_state(), "offloader": {"references": [], "lasting": lasting}})


async def test_without_a_saved_state_the_messages_themselves_lead_to_what_left(tmp_path):
    loop = Loop(offload_storage=FileStorage(tmp_path))
    await loop.go_on(40)
    again = Loop(json.loads(json.dumps(loop.messages)), offload_storage=FileStorage(tmp_path))
    again.turns = 40
    await again.turn()
    assert (await again.manager.search_context("word1")).hits[0].excerpt[0].text.startswith("word1 ")


async def test_eviction_applies_to_the_archive_as_to_everything_else():
    storage = EvictingStorage(InMemoryStorage(evict_after_turns=None), max_entries=2)
    loop = Loop(offload_storage=storage)
    await loop.go_on(80)
    reductions = loop.manager.ledger.of(ReductionRecord)
    assert loop.manager.ledger.of(EvictionRecord)[0].references == reductions[0].references
    with pytest.raises(EvictedError, match="least recently used of more than 2 entries"):
        await loop.manager.retrieve(reductions[0].references[0])
    answer = await loop.manager.agent_tools[0].run(loop.conversation, {"reference": reductions[0].references[0]})
    assert "is gone" in answer.text
    await loop.manager.search_context("word1")


async def test_memory_keeps_what_the_archive_names_for_longer_than_its_turns():
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=3))
    await loop.go_on(60)
    assert (await loop.manager.search_context("word1")).hits[0].excerpt[0].text.startswith("word1 ")


async def test_the_reference_of_the_marker_opens_all_that_left():
    loop = Loop()
    await loop.go_on(40)
    first, *_, last = (record.references[0] for record in loop.manager.ledger.of(ReductionRecord))
    content, content_type = await loop.manager.retrieve(last)
    text = content.decode()
    assert content_type == "text/plain"
    assert text.startswith("[Messages 2–")
    assert "[message 3, result of read_file, turn 2]\nword1 lorem" in text
    assert '[message 2.2, assistant calls read_file, turn 2]\n{"path": "src/file_1.py"}' in text
    assert (await loop.manager.retrieve(f"{last}#3"))[0].startswith(b"word1 ")
    assert len((await loop.manager.retrieve(first))[0]) < len(content)


async def test_a_transcript_says_where_it_begins_if_the_rest_was_evicted():
    loop = Loop(offload_storage=EvictingStorage(InMemoryStorage(evict_after_turns=None), max_entries=2))
    await loop.go_on(80)
    references = [record.references[0] for record in loop.manager.ledger.of(ReductionRecord)]
    content, _ = await loop.manager.retrieve(references[-1])
    gone = f"[What left with {', '.join(references[:3])} and {len(references) - 5} others is not stored any more]"
    assert content.decode().splitlines()[1] == gone


@pytest.mark.parametrize("part", ["#1", "#999", "#3.9", "#0"])
async def test_a_part_that_is_not_there_is_told(part):
    loop = Loop()
    await loop.go_on(40)
    reference = loop.manager.ledger.of(ReductionRecord)[0].references[0]
    with pytest.raises(NotFoundError, match=r"not among those|has (1 part\b|\d parts)"):
        await loop.manager.retrieve(f"{reference}{part}")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"holdfast_batch": 1}', b"\xff" * 50, b"[" * 100_000])
async def test_a_damaged_batch_costs_a_clear_error(content):
    with pytest.raises(InvalidValueError, match="no batch of messages, or it is damaged"):
        Batch.read(content)
    storage = InMemoryStorage(evict_after_turns=None)
    reference = await storage.store("history", content, BATCH_TYPE)
    loop = Loop(offload_storage=storage)
    answer = await loop.manager.agent_tools[0].run(loop.conversation, {"reference": reference})
    assert answer.is_error
    assert "no batch of messages" in answer.text


def insert_one(messages: list[Any]) -> None:
    messages.insert(1, {"role": "user", "content": [{"text": "And hurry."}]})


def delete_some(messages: list[Any]) -> None:
    del messages[3:7]


def edit_one(messages: list[Any]) -> None:
    messages[3]["content"][0]["text"] = "Something else."


@pytest.mark.parametrize("look", [None, "report", "preview", "used"])
@pytest.mark.parametrize("meddle", [insert_one, delete_some, edit_one])
async def test_a_history_changed_while_it_is_stored_is_left_alone(
    meddle: Callable[[list[Any]], None], look: str | None
):
    """A look at the history in between read it again, and what was stored then passed for what stood there."""

    class Meddling(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            meddle(loop.messages)
            changed.extend(copy.deepcopy(loop.messages))
            if look == "used":
                loop.manager.compression.used(loop.conversation)
            elif look is not None:
                getattr(loop.manager, look)()
            return await super().store(key, content, content_type)

    changed: list[Any] = []
    storage = Meddling(evict_after_turns=None)
    loop = Loop(offload_storage=storage)
    while not changed:
        await loop.turn()
    assert not loop.made
    assert loop.messages[: len(changed)] == changed
    await loop.manager.aclose()
    assert not [entry async for entry in storage.entries()]


async def test_without_an_archive_things_are_as_before():
    loop = Loop(archive=False)
    await loop.go_on(40)
    assert loop.manager.archive is None
    assert [tool.name for tool in loop.manager.agent_tools] == ["pin_message"]
    assert "kept as" not in json.dumps(loop.messages)
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        await loop.manager.undo()


async def test_no_marker_is_put_where_there_is_no_room_for_it():
    loop = Loop(compression={"method": "truncate", "proactive": 0.9}, window=1_300, include_pin_tool=False)
    for number in range(40):
        loop.messages.append({"role": "assistant", "content": [{"text": f"number {number}"}]})
        loop.messages.append({"role": "user", "content": [{"text": "go on"}]})
        await loop.hooks.invoke(BeforeModelCall(loop.conversation))
    assert loop.manager.archive.undoable
    loop.conversation.window = 100_000
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    assert len(loop.messages) == 81


async def test_a_slow_storage_delays_but_a_message_that_comes_meanwhile_stays():
    class Adding(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            loop.messages.append({"role": "user", "content": [{"text": "one more thing"}]})
            return await super().store(key, content, content_type)

    loop = Loop(offload_storage=Adding(evict_after_turns=None))
    while not loop.made:
        await loop.turn()
    assert any("one more thing" in json.dumps(wire) for wire in loop.messages)


def test_a_conversation_is_needed_to_report_and_to_preview():
    manager = ContextManager("auto")
    for ask in (manager.report, manager.preview):
        with pytest.raises(InvalidValueError, match="no conversation yet"):
            ask()


async def test_a_storage_error_of_any_kind_is_told_in_the_ledger():
    class Broken(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            raise StorageAccessError("the disk is full")

    loop = Loop(offload_storage=Broken())
    await loop.go_on(30)
    failure = loop.manager.ledger.last(FailureRecord)
    assert failure is not None
    assert (failure.error_type, failure.error) == ("StorageAccessError", "the disk is full")


def test_an_archive_belongs_to_one_conversation():
    manager = ContextManager("auto", dialect="openai")
    manager.converse([])
    with pytest.raises(InvalidValueError, match="belongs to another conversation"):
        manager.own(Conversation([]))


async def test_a_message_edited_while_it_is_stored_stays():
    class Editing(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            loop.messages[2]["content"][0]["toolResult"]["content"][0]["text"] = "edited in the meantime"
            return await super().store(key, content, content_type)

    loop = Loop(offload_storage=Editing(evict_after_turns=None))
    while "edited in the meantime" not in json.dumps(loop.messages):
        await loop.turn()
    assert not loop.made
    await loop.go_on(20)
    assert (await loop.manager.search_context("edited in the meantime")).hits


@pytest.mark.parametrize("compression", ["truncate", {"method": "summarize", "window_size": 8}])
async def test_there_is_never_more_than_one_marker_or_summary(compression):
    loop = Loop(compression=compression)
    for number in range(120):
        await loop.turn()
        if number % 7 == 0:
            loop.messages[-1]["metadata"] = {"custom": {"pinned": True}}
        if number % 21 == 0:
            for wire in loop.messages:
                wire.get("metadata", {}).get("custom", {}).pop("pinned", None)
        if number % 5 == 0:
            await loop.hooks.invoke(AfterInvocation(loop.conversation))
        assert json.dumps(loop.messages).count("kept as ") <= 1
    assert loop.marker


async def test_a_marker_stays_although_hardly_anything_fits():
    loop = Loop()
    await loop.go_on(30)
    assert loop.marker
    for _ in range(6):
        await loop.turn([{"text": "more than fits " * 150}])
        loop.messages[-1]["metadata"] = {"custom": {"pinned": True}}
    await loop.go_on(3)
    assert loop.marker["metadata"]["custom"]["left"]["ranges"][0][0] == 2


async def test_no_reduction_takes_only_what_holdfast_put_there():
    loop = Loop(compression={"method": "truncate", "window_size": 4})
    for _ in range(40):
        await loop.turn()
        await loop.hooks.invoke(AfterInvocation(loop.conversation))
    records = loop.manager.ledger.of(ReductionRecord)
    assert records
    assert all(record.messages or record.rewritten for record in records)
    assert all(record.saved > 0 for record in records)


async def test_what_could_not_be_stored_is_said_beside_what_could():
    faults: list[int] = []
    loop = Loop(offload_storage=FlakyStorage(InMemoryStorage(evict_after_turns=None), faults))
    await loop.go_on(20)
    kept = loop.manager.ledger.last(ReductionRecord).references[0]
    faults += range(1, 10_000)
    await loop.go_on(3)
    error = RuntimeError("prompt is too long")
    assert (await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))).retry
    said = text_of(loop.marker)
    assert "could not be stored, and are lost" in said
    assert f"What left before is kept as {kept} :" in said


@pytest.mark.parametrize("name", ["mem", "a/very/long/path/to/where/things/are/kept/" + "x" * 60])
async def test_a_marked_plan_never_exceeds_what_fits(name):
    class Named(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            reference = await super().store(key, content, content_type)
            return reference if name == "mem" else f"{name}/{reference}"

    loop = Loop(offload_storage=Named(evict_after_turns=None), window=2_600)
    for number in range(60):
        await loop.turn([{"text": f"word{number} " + "lorem ipsum " * (20 + 37 * number % 90)}])
        record = loop.manager.ledger.last(ReductionRecord)
        limit = loop.manager.compression.window.budget(loop.conversation).limit
        assert record is None or record.tokens_after <= limit
    assert loop.marker


async def test_words_in_a_result_are_not_taken_for_the_line_that_says_where_it_is():
    loop = Loop(window=12_000)
    long = "[Offloaded as mem_1_x : 12 characters]\n" + "dolor sit amet " * 2_500
    await loop.turn([{"text": long}])
    await loop.go_on(16)
    shortened = loop.messages[2]["content"][0]["toolResult"]["content"][0]["text"]
    where, copied, _ = shortened.split("\n", 2)
    assert copied == "[Offloaded as mem_1_x : 12 characters]"
    assert await loop.manager.retrieve(where.split()[2]) == (long.encode(), "text/plain")


@pytest.mark.parametrize("state", [None, [], "x", 3, {"latest": 3}, {"undoable": "x"}])
async def test_a_state_that_is_none_is_refused(state):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="must be what get_state"):
        Loop().manager.archive.restore(state)


@pytest.mark.parametrize("turns", [packed([[10**400, 1, 1]]), packed([[1, 2]]), "x", 7, packed([[3, 1, 1], [2, 1, 1]])])
async def test_turns_of_a_state_that_make_no_sense_are_left_out(turns):
    loop = Loop()
    loop.manager.archive.restore({"turns": turns})
    await loop.go_on(30)
    assert loop.marker


@pytest.mark.parametrize("ranges", [[[1, 10**18]], [[-5, 3]], [[2, 1]], ["x"], [[1.5, 2]], None])
async def test_notes_that_make_no_sense_cost_nothing(ranges):
    loop = Loop()
    await loop.go_on(20)
    loop.marker["metadata"]["custom"]["left"]["ranges"] = ranges
    await loop.go_on(20)
    hit = (await loop.manager.search_context("word30")).hits[0]
    assert (await loop.manager.retrieve(hit.reference))[0].startswith(b"word30 ")


async def test_a_tool_that_names_the_archive_of_another_conversation_does_not_open_it_to_the_search():
    storage = InMemoryStorage(evict_after_turns=None)
    other, loop = Loop(offload_storage=storage), Loop(offload_storage=storage)
    await other.turn([{"text": "the walrus is a secret"}])
    await other.go_on(30)
    named = other.manager.ledger.last(ReductionRecord).references[0]
    await loop.turn([{"text": f"[Offloaded as {named} : text/plain, 3 bytes.]"}])
    await loop.go_on(30)
    assert not any(
        "walrus" in line.text for hit in (await loop.manager.search_context("walrus")).hits for line in hit.excerpt
    )


@pytest.mark.parametrize("steps", range(16))
async def test_a_reduction_cancelled_soon_after_it_was_stored_leaves_nothing_behind(steps):
    class Cancelling(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            reference = await super().store(key, content, content_type)
            cancel_after(steps)
            return reference

    def cancel_after(steps: int) -> None:
        asyncio.get_running_loop().call_soon(cancel_after, steps - 1) if steps else turn.cancel()

    storage = Cancelling(evict_after_turns=None)
    loop = Loop(offload_storage=storage)
    turn: asyncio.Task[None] = asyncio.create_task(loop.go_on(40))
    with contextlib.suppress(asyncio.CancelledError):
        await turn
    await loop.manager.aclose()
    stored = [entry.reference async for entry in storage.entries()]
    assert stored == [record.references[0] for record in loop.manager.ledger.of(ReductionRecord)]


async def test_a_message_is_opened_without_a_look_at_all_that_left_before_it():
    reads: list[str] = []

    class Counting(InMemoryStorage):
        async def retrieve(self, reference: str) -> tuple[bytes, str]:
            reads.append(reference)
            return await super().retrieve(reference)

    loop = Loop(offload_storage=Counting(evict_after_turns=None))
    await loop.go_on(40)
    hit = (await loop.manager.search_context("word30")).hits[0]
    reads.clear()
    assert (await loop.manager.retrieve(hit.reference))[0].startswith(b"word30 ")
    assert len(reads) == 1


async def test_after_an_overflow_a_message_that_no_storage_can_take_does_not_cost_the_others(caplog):
    loop = Loop(compression={"proactive": False})
    await loop.go_on(20)
    loop.messages[1]["content"][1]["toolUse"]["input"] = loop.messages[1]
    error = RuntimeError("prompt is too long: 4000 tokens > 3000 maximum")
    assert (await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))).retry
    assert "holds itself" in loop.manager.ledger.of(FailureRecord)[0].error
    assert len(loop.messages) < 41
    assert (await loop.manager.search_context("word2")).hits


async def failing(request: Any) -> str:
    raise ConnectionError("the summarizer is down")


async def silent(request: Any) -> str:
    return "  "


async def slow(request: Any) -> str:
    await asyncio.Event().wait()
    return "too late"


@pytest.mark.parametrize(
    ("summarizer", "error_type", "said"),
    [
        (failing, "ConnectionError", "the summarizer is down"),
        (silent, "InvalidValueError", "answered nothing"),
        (slow, "TimeoutError", "no answer within"),
    ],
)
async def test_a_summarizer_that_fails_leaves_a_failure_of_its_own(summarizer, error_type, said):
    loop = Loop(compression={"method": "summarize", "summarizer": summarizer, "timeout": 0.1})
    while not loop.manager.ledger.of(ReductionRecord):
        await loop.turn()
    failure, reduction = loop.manager.ledger
    assert isinstance(failure, FailureRecord)
    assert failure.error_type == error_type
    assert said in failure.error
    assert "no summary" in failure.what
    assert reduction.why == f"truncated, as its summarizer failed ({error_type})"


async def test_a_summarizer_that_fails_is_told_although_too_little_can_leave():
    loop = Loop(compression={"method": "summarize", "summarizer": failing}, protect_last=1)
    loop.conversation.system_prompt = "Be brief. " * 1_500
    await loop.go_on(4)
    assert "ConnectionError" in {failure.error_type for failure in loop.manager.ledger.of(FailureRecord)}


@pytest.mark.parametrize("damage", [b"\xff", b"\n", b'"', b""])
async def test_of_a_damaged_batch_all_that_is_sound_opens_and_is_found(damage):
    storage = CountingStorage()
    loop = Loop(offload_storage=storage)
    while not storage.stored:
        await loop.turn()
    place = storage.stored[0].index(b"word3 ")
    content = storage.stored[0][:place] + damage + storage.stored[0][place + 5 :]
    content = content if damage else storage.stored[0][:place]
    reference = await storage.store("history", content, BATCH_TYPE)
    transcript = (await loop.manager.retrieve(reference))[0].decode()
    assert "word2 " in transcript
    assert "[message 7 is damaged and cannot be shown: " in transcript
    assert transcript.count("is damaged") == (1 if damage else 9)
    assert b"word2 " in (await loop.manager.retrieve(f"{reference}#5"))[0]
    with pytest.raises(InvalidValueError, match=f"message 7 of {reference} is damaged"):
        await loop.manager.retrieve(f"{reference}#7")
    loop.manager.hold.known.add(reference, "history")
    await loop.manager.hold.storage.delete(loop.manager.archive.undoable[0])
    answer = await loop.manager.search_context("word2")
    assert answer.hits[0].reference == f"{reference}#5"
    assert answer.uncovered == 1


def chained(count: int, *, names: int) -> dict[str, Batch]:
    """So many batches, each of which names so many before it."""
    return {
        f"{number}": Batch(
            dialect="openai",
            entries=(),
            removals=(),
            before=tuple(f"{earlier}" for earlier in range(max(number - names, 0), number)),
        )
        for number in range(count)
    }


@pytest.mark.parametrize(("names", "in_a_row"), [(100, 13), (20, 15), (1, 99)])
async def test_batches_before_one_are_read_together_as_far_as_it_names_them(names, in_a_row):
    stored = chained(100, names=names)
    asleep: list[asyncio.Future[None]] = []
    rounds = 0

    async def read(reference: str) -> Batch | Missing:
        asleep.append(asyncio.get_running_loop().create_future())
        await asleep[-1]
        return stored[reference]

    opening = asyncio.create_task(batches_up_to("99", stored["99"], read))
    while not opening.done():
        await asyncio.sleep(0)
        assert len(asleep) <= 8
        rounds += bool(asleep)
        for sleeper in asleep:
            sleeper.set_result(None)
        asleep.clear()
        await asyncio.sleep(0)
    assert [name for name, _ in opening.result().links] == [f"{number}" for number in range(100)]
    assert rounds == in_a_row


async def test_batches_before_one_end_where_there_are_many_and_not_where_one_is_missing():
    gone = Missing("is gone")

    async def read(reference: str) -> Batch | Missing:
        return stored.get(reference, gone)

    stored = chained(500, names=100)
    links, earlier = await batches_up_to("499", stored["499"], read)
    assert [name for name, _ in links] == [f"{number}" for number in range(300, 500)]
    assert earlier == "299"
    for number in (450, *range(350, 400)):
        del stored[f"{number}"]
    links, earlier = await batches_up_to("499", stored["499"], read)
    assert [name for name, _ in links] == [f"{number}" for number in range(300, 500)]
    assert [name for name, there in links if there is gone] == [*map(str, range(350, 400)), "450"]
    assert earlier == "299"
    stored["0"] = Batch(dialect="openai", entries=(), removals=(), before=("0",))
    assert await batches_up_to("0", stored["0"], read) == ([("0", stored["0"])], None)


async def test_batches_before_one_end_where_they_are_too_large_to_be_shown_together():
    async def read(reference: str) -> Batch | Missing:
        return stored[reference]

    stored = {name: replace(batch, size=5_000_000) for name, batch in chained(20, names=10).items()}
    links, earlier = await batches_up_to("19", stored["19"], read)
    assert [name for name, _ in links] == ["14", "15", "16", "17", "18", "19"]
    assert earlier == "13"
    alone = replace(stored["19"], size=50_000_000)
    assert await batches_up_to("19", alone, read) == ([("19", alone)], "18")


async def test_a_storage_that_does_not_answer_is_not_asked_for_each_batch(monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr("holdfast.batches.chains._SECONDS_IN_VAIN", 0.01)

    async def read(reference: str) -> Batch | Missing:
        asked.append(reference)
        await asyncio.sleep(0.02)
        return Missing("cannot be read just now", StorageAccessError("no answer"))

    links, _ = await batches_up_to("99", chained(100, names=100)["99"], read)
    assert len(asked) == 8
    assert sum(isinstance(there, Missing) for _, there in links) == 99


async def test_each_batch_names_those_before_it_also_after_a_restart_and_an_undo():
    storage = CountingStorage()
    loop = Loop(offload_storage=storage)
    while len(loop.manager.ledger.of(ReductionRecord)) < 3:
        await loop.turn()
    first, second, _ = loop.manager.archive.undoable
    assert Batch.read(storage.stored[2]).before == (first, second)
    loop.conversation.window = 10 * WINDOW
    await loop.manager.undo()
    again = Loop(loop.messages, offload_storage=storage)
    again.manager.restore(json.loads(json.dumps(loop.manager.get_state())))
    while len(storage.stored) < 4:
        await again.turn()
    assert Batch.read(storage.stored[3]).before == (first, second)


class SmallStorage(CountingStorage):
    """Memory that refuses what is larger than so many bytes."""

    def __init__(self, most: int, error: type[Exception] = StorageAccessError) -> None:
        super().__init__()
        self.most, self.error, self.refused = most, error, 0

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        if len(content) > self.most:
            self.refused += 1
            raise self.error("item too large")
        return await super().store(key, content, content_type)


@pytest.mark.parametrize("error", [StorageAccessError, TooLargeError, ValueError])
async def test_a_storage_that_takes_only_little_at_once_is_given_little_at_once(error):
    loop = Loop(offload_storage=SmallStorage(4_000, error))
    await loop.go_on(40)
    assert len(loop.messages) < 40
    assert json.dumps(loop.messages).count("kept as ") == 1
    for number in (1, 9, 20):
        hit = (await loop.manager.search_context(f"word{number}")).hits[0]
        assert (await loop.manager.retrieve(hit.reference))[0].startswith(f"word{number} ".encode())
    loop.conversation.window = 100 * WINDOW
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    assert len(loop.messages) == 81


@pytest.mark.parametrize("compression", ["truncate", "summarize"])
async def test_after_an_overflow_what_can_be_stored_in_portions_is_not_lost(compression, caplog):
    loop = Loop(compression={"method": compression, "proactive": False}, offload_storage=SmallStorage(4_000))
    await loop.go_on(20)
    error = RuntimeError("prompt is too long: 4000 tokens > 3000 maximum")
    assert (await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))).retry
    assert "LOST" not in caplog.text
    assert "lost" not in text_of(loop.marker)
    assert ("<summary>" in text_of(loop.marker)) is (compression == "summarize")
    assert (await loop.manager.search_context("word1")).hits
    failure = loop.manager.ledger.of(FailureRecord)[0]
    assert failure.error == "item too large"
    assert "so it leaves in portions" in failure.what


async def test_a_storage_that_is_down_is_not_asked_again_and_again():
    storage = FlakyStorage(InMemoryStorage(), range(1, 10_000))
    loop = Loop(offload_storage=storage)
    while not loop.manager.ledger.of(FailureRecord):
        await loop.turn()
    assert storage.calls == 4


async def test_what_is_too_large_by_itself_does_not_keep_the_rest_from_leaving():
    loop = Loop(offload_storage=SmallStorage(4_000, TooLargeError), compression={"shorten_results": False})
    await loop.turn([{"text": "large " * 800}])
    await loop.go_on(30)
    assert "large large" in json.dumps(loop.messages)
    assert len(loop.messages) < 40
    assert (await loop.manager.search_context("word7")).hits


async def test_after_an_overflow_only_what_is_too_large_by_itself_is_lost():
    loop = Loop(offload_storage=SmallStorage(4_000, TooLargeError), compression={"proactive": False})
    await loop.turn([{"text": "large " * 800}])
    await loop.go_on(18)
    error = RuntimeError("prompt is too long: 4000 tokens > 1500 maximum")
    await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))
    assert "2–3 could not be stored, and are lost" in text_of(loop.marker)
    assert (await loop.manager.search_context("word5")).hits


class MuteStorage(CountingStorage):
    """Memory that cannot say what it holds while it is mute."""

    is_mute = True

    async def inspect(self, reference: str) -> Any:
        if self.is_mute:
            raise StorageAccessError("403 on HeadObject")
        return await super().inspect(reference)


async def test_a_storage_that_cannot_say_what_it_holds_is_given_it_again():
    storage = MuteStorage()
    loop = Loop(offload_storage=storage)
    await loop.turn([{"text": "big " * 4_000}])
    loop.messages[-1]["content"].append({"text": "zebrafish " + "sit amet " * 60})
    await loop.go_on(2)
    loop.messages += [{"role": role, "content": [{"text": "Go on."}]} for role in ("assistant", "user")]
    await loop.go_on(30)
    assert not loop.manager.ledger.of(FailureRecord)
    assert "zebrafish" not in json.dumps(loop.messages)
    assert sum(b"zebrafish" in content for content in storage.stored) == 2
    storage.is_mute = False
    [hit, *_] = (await loop.manager.search_context("zebrafish")).hits
    assert (await loop.manager.retrieve(hit.reference))[0].startswith(b"zebrafish ")


async def restarted(loop: Loop) -> Loop:
    """The same conversation, gone on with by another manager."""
    saved = json.loads(json.dumps([loop.manager.get_state(), loop.messages]))
    again = Loop(saved[1], offload_storage=loop.manager.hold.storage)
    again.manager.restore(saved[0])
    again.turns = loop.turns
    return again


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_marker_that_somebody_deletes_does_not_make_numbers_start_again(restarts):
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None))
    await loop.go_on(30)
    loop.messages.remove(loop.marker)
    if restarts:
        loop = await restarted(loop)
    await loop.go_on(30)
    latest = loop.manager.archive.undoable[-1]
    assert (await loop.manager.retrieve(f"{latest}#3"))[0].startswith(b"word1 ")
    assert loop.marker["metadata"]["custom"]["left"]["ranges"][0][0] == 2
    hit = (await loop.manager.search_context("word40")).hits[0]
    assert hit.labels["message"] == "81"


@pytest.mark.parametrize("size", [2_000, 100_000])
async def test_a_value_of_any_size_that_is_edited_while_it_is_stored_is_not_lost(size):
    class Editing(InMemoryStorage):
        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            loop.messages[1]["content"][0]["toolUse"]["input"]["text"] = "edited " * (size // 7)
            return await super().store(key, content, content_type)

    loop = Loop(offload_storage=Editing(evict_after_turns=None), window=WINDOW if size < 10_000 else 30_000)
    use = {"toolUseId": "x", "name": "write", "input": {"text": "lorem ipsum " * (size // 12)}}
    answer = {"toolUseId": "x", "status": "success", "content": [{"text": "ok"}]}
    loop.messages += [{"role": "assistant", "content": [{"toolUse": use}]}]
    loop.messages += [{"role": "user", "content": [{"toolResult": answer}]}]
    while "edited" not in json.dumps(loop.messages[1]) and not loop.made:
        await loop.turn()
    await loop.go_on(20)
    found = (await loop.manager.search_context("edited")).hits
    assert "edited" in json.dumps(loop.messages) or "edited" in found[0].excerpt[0].text


async def shorten_result(loop: Loop, text: str) -> None:
    """Put *text* in the place of the first text of the first result, as a reduction does."""
    window, archive = loop.manager.compression.window, loop.manager.archive
    window.history.verify(loop.messages)
    message = window.history.messages[2]
    [result] = message.tool_results
    draft = Draft(window.history)
    draft.rewrite(2, message.with_blocks((result.with_content((Text(text), *result.content[1:])),)))
    kept = await archive.keep(draft.plan("too long"), window.history, limit=10**6, room=0)
    assert window.carry_out(kept.plan, loop.conversation)
    archive.confirm(kept)


async def test_a_batch_that_was_undone_and_then_evicted_is_no_loss_to_those_after_it():
    storage = InMemoryStorage(evict_after_turns=3)
    loop = Loop(window=10**6, offload_storage=storage)
    await loop.turn([{"text": "a" * 9_000}, {"text": "beside it " * 60}])
    await shorten_result(loop, "b" * 6_000)
    await shorten_result(loop, "c" * 3_000)
    undone = loop.manager.archive.undoable[-1]
    await loop.manager.undo()
    await shorten_result(loop, "d" * 1_000)
    await loop.go_on(8)
    with pytest.raises(EvictedError):
        await storage.retrieve(undone)
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    content = loop.messages[2]["content"][0]["toolResult"]["content"]
    assert content == [{"text": "a" * 9_000}, {"text": "beside it " * 60}]


@pytest.mark.parametrize(
    "removal",
    [
        [int("9" * 4_300), 0, [["x", []]], False, None],
        [0, 1, [["x", [10**4_000]]], True, None],
        [0, 1, [["x", [-5, -5]]], True, None],
    ],
)
def test_numbers_in_a_stored_batch_that_make_no_sense_are_refused(removal):
    head = {"holdfast_batch": 1, "dialect": "openai", "reason": "", "before": [], "removals": [removal], "entries": []}
    with pytest.raises(InvalidValueError, match="no batch of messages, or it is damaged"):
        Batch.read(json.dumps(head).encode())


@pytest.mark.parametrize(
    "state",
    [
        {"latest": "r" * 1_000_000, "undoable": ["r" * 1_000_000] * 3},
        {"left": {"ranges": [[3 * number, 3 * number + 1] for number in range(1, 100_000)], "tools": {}}},
        {"left": {"ranges": [[1, 2]], "tools": {"t" * 1_000_000: 5}}},
        {"left": {"ranges": [[1, 2]], "tools": {f"tool{number}": 5 for number in range(100_000)}}},
    ],
)
async def test_a_huge_state_is_not_carried_on(state):
    loop = Loop()
    loop.manager.archive.restore(state)
    assert len(json.dumps(loop.manager.archive.get_state())) < 250_000


async def test_of_a_state_only_as_many_references_are_taken_as_are_ever_saved():
    archive = Loop().manager.archive
    archive.restore({"latest": "last", "undoable": [f"batch {number}" for number in range(100_000)]})
    assert len(archive.undoable) == 100
    assert archive.undoable[-1] == "batch 99999"
