"""Reductions are undone, foretold, recorded and reported."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import ClassVar

import pytest
from test_archive import WINDOW, Loop

from holdfast import ContextManager, FileStorage, InMemoryStorage
from holdfast.batches import BATCH_TYPE
from holdfast.compression import Plan
from holdfast.errors import ContextOverflowError, InvalidTypeError, InvalidValueError, StorageAccessError
from holdfast.hooks import AfterInvocation, AfterModelCall, BeforeModelCall
from holdfast.ledger import FailureRecord, OffloadRecord, ReductionRecord, SearchRecord, UndoRecord


async def reduced(times: int = 1, **options) -> tuple[Loop, list]:
    """A conversation of which so many reductions took something, and all that was ever said in it."""
    loop = Loop(**options)
    said = copy.deepcopy(loop.messages)
    while len(loop.manager.ledger.of(ReductionRecord)) < times:
        await loop.turn()
        said += copy.deepcopy(loop.messages[-2:])
    return loop, said


async def test_an_undo_puts_back_what_the_last_reduction_took():
    loop, said = await reduced()
    loop.conversation.window = 10 * WINDOW
    record = await loop.manager.undo()
    assert loop.messages == said
    assert record.undone == loop.manager.ledger.last(ReductionRecord).number
    assert record.tokens_after > record.tokens_before
    assert loop.manager.compression.removed_message_count == 0


async def test_undos_go_back_one_by_one_or_to_a_record():
    loop, said = await reduced(3)
    loop.conversation.window = 10 * WINDOW
    await loop.manager.undo()
    assert loop.messages != said
    assert loop.marker
    await loop.manager.undo(to=loop.manager.ledger.of(ReductionRecord)[0])
    assert loop.messages == said
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        await loop.manager.undo()
    assert not loop.manager.ledger.of(FailureRecord)


async def test_what_does_not_fit_any_more_is_said_with_what_is_missing():
    loop, _ = await reduced(3)
    before = copy.deepcopy(loop.messages)
    with pytest.raises(ContextOverflowError, match=r"tokens, and .* fit, so .* are missing") as caught:
        await loop.manager.undo(to=loop.manager.ledger.of(ReductionRecord)[0])
    assert caught.value.limit < WINDOW
    assert caught.value.tokens > caught.value.limit
    assert loop.messages == before
    assert not loop.manager.ledger.of(UndoRecord)


async def test_after_an_undo_nothing_leaves_until_the_window_is_full():
    loop, _ = await reduced()
    await loop.manager.undo()
    length = len(loop.messages)
    await loop.hooks.invoke(BeforeModelCall(loop.conversation))
    assert len(loop.messages) == length
    await loop.go_on(20)
    assert len(loop.manager.ledger.of(ReductionRecord)) > 1
    assert len(loop.messages) < length + 40


async def test_after_a_restart_too_nothing_leaves_after_an_undo_until_the_window_is_full(tmp_path):
    storage = FileStorage(tmp_path)
    loop, _ = await reduced(offload_storage=storage)
    await loop.manager.undo()
    state, messages = json.loads(json.dumps([loop.manager.get_state(), loop.messages]))
    again = Loop(messages, offload_storage=storage)
    again.manager.restore(state)
    length = len(messages)
    await again.hooks.invoke(BeforeModelCall(again.conversation))
    assert len(messages) == length
    again.turns = 100
    await again.go_on(20)
    assert "held_off" not in again.manager.get_state()["compression"]
    assert len(messages) < length + 40


async def test_what_was_undone_stays_at_the_end_of_an_invocation_too():
    """It left again at once, for the bound on messages, and was stored a second time."""
    loop, said = await reduced(compression={"method": "truncate", "window_size": 4})
    loop.conversation.window = 10 * WINDOW
    await loop.manager.undo()
    await loop.hooks.invoke(AfterInvocation(loop.conversation))
    assert loop.messages == said
    assert loop.manager.preview().at_end is None
    loop.conversation.window = WINDOW
    await loop.go_on(20)
    await loop.hooks.invoke(AfterInvocation(loop.conversation))
    assert len(loop.messages) < len(said)


async def test_what_is_back_in_view_is_not_found_and_what_leaves_again_is_found_once():
    """Each undo left a copy behind that the search went on to show."""
    loop, _ = await reduced()
    for _ in range(4):
        loop.conversation.window = 10 * WINDOW
        [taken] = loop.manager.ledger.last("reduction").references
        found = (await loop.manager.search_context("word1")).hits
        assert [hit.excerpt[0].text.startswith("word1 ") for hit in found] == [True] + [False] * (len(found) - 1)
        await loop.manager.undo()
        assert not (await loop.manager.search_context("word1")).hits
        assert b"word1 " in (await loop.manager.retrieve(taken))[0]
        loop.conversation.window = WINDOW
        while not loop.made:
            await loop.turn()


async def test_a_history_that_somebody_else_changed_is_not_guessed_at():
    loop, _ = await reduced()
    del loop.messages[2]
    before = copy.deepcopy(loop.messages)
    with pytest.raises(InvalidValueError, match="changed by somebody else since"):
        await loop.manager.undo()
    assert loop.messages == before


async def test_a_pin_set_since_does_not_stand_in_the_way():
    loop, _ = await reduced()
    loop.messages[-2]["metadata"] = {"custom": {"pinned": True}}
    loop.conversation.window = 10 * WINDOW
    await loop.manager.undo()
    assert not loop.made


async def test_a_batch_that_is_gone_cannot_be_undone():
    loop, _ = await reduced()
    loop.manager.hold.storage.discard(loop.manager.archive.undoable[-1])
    with pytest.raises(KeyError):
        await loop.manager.undo()


@pytest.mark.parametrize("to", [1, "reduction", {}])
async def test_only_a_record_of_a_reduction_says_how_far_to_go(to):
    loop, _ = await reduced()
    with pytest.raises(InvalidTypeError, match="must be a record of a reduction"):
        await loop.manager.undo(to=to)


async def test_a_preview_is_what_happens_next_and_changes_nothing():
    loop = Loop()
    record = None
    while record is None:
        before = copy.deepcopy(loop.messages)
        foreseen = loop.manager.preview()
        assert loop.messages == before
        await loop.turn()
        record = loop.manager.ledger.last(ReductionRecord)
    assert foreseen.is_due
    assert isinstance(foreseen.plan, Plan)
    assert "messages 2–" in str(foreseen)
    assert "read_file ×" in str(foreseen)
    assert record.messages == foreseen.plan.removed
    assert record.tokens_before == foreseen.plan.tokens_before


async def test_a_preview_of_a_summary_asks_no_model():
    def summarize(request):
        raise AssertionError("no model is to be asked")

    loop = Loop(compression={"method": "summarize", "summarizer": summarize, "proactive": False})
    await loop.go_on(20)
    foreseen = loop.manager.preview()
    assert foreseen.due_at is None
    assert "a summary of" in str(foreseen)
    assert "after an overflow only" in str(foreseen)


async def test_a_preview_says_if_nothing_would_leave():
    assert str(Loop().manager.preview()).startswith("Nothing would leave: ")


async def test_events_are_told_until_one_has_heard_enough():
    loop = Loop()
    heard, all_heard = [], []
    stop = loop.manager.on("reduction", heard.append)
    loop.manager.on("*", all_heard.append)
    while len(heard) < 2:
        await loop.turn()
    stop()
    await loop.go_on(20)
    assert len(heard) == 2
    await loop.manager.search_context("word1")
    assert isinstance(all_heard[-1], SearchRecord)


async def test_the_ledger_goes_on_after_a_restart():
    loop, _ = await reduced(2)
    again = ContextManager(compression=True, dialect="converse", window=WINDOW)
    again.restore(json.loads(json.dumps(loop.manager.get_state())))
    assert list(again.ledger) == list(loop.manager.ledger)
    assert again.ledger.turn == loop.manager.ledger.turn


async def test_a_report_says_what_is_there_and_what_left():
    loop, _ = await reduced(2, offloader=True)
    report = loop.manager.report()
    assert report.window == WINDOW
    text = str(report)
    assert "read_file" in text
    assert "search_context" in text
    assert loop.manager.ledger.last(ReductionRecord).references[0] in text
    assert json.loads(json.dumps(report.as_json()))["window"] == WINDOW
    assert not loop.manager.ledger.of(OffloadRecord)


async def test_a_report_without_compression_works_too():
    manager = ContextManager(offloader=True, dialect="openai")
    manager.converse([{"role": "user", "content": "Hello there"}], model="gpt-4o")
    assert "Hello there" in str(manager.report())


async def test_a_pin_of_a_shortened_message_outlives_the_undo():
    loop = Loop(window=8_000, compression={"low_water": 0.55})
    await loop.turn([{"text": "very special result " + "dolor sit amet " * 1_000}])
    await loop.go_on(16)
    loop.messages[2]["metadata"]["custom"]["pinned"] = True
    loop.conversation.window = 80_000
    await loop.manager.undo()
    assert loop.messages[2]["metadata"] == {"custom": {"pinned": True}}
    assert "left out" not in json.dumps(loop.messages)


async def test_a_message_that_comes_during_an_undo_stays_behind_the_others():
    class Adding(InMemoryStorage):
        async def retrieve(self, reference: str) -> tuple[bytes, str]:
            loop.messages.append({"role": "user", "content": [{"text": "one more thing"}]})
            return await super().retrieve(reference)

    loop, said = await reduced(offload_storage=Adding(evict_after_turns=None))
    loop.conversation.window = 10 * WINDOW
    await loop.manager.undo()
    assert loop.messages[: len(said)] == said
    assert loop.messages[-1]["content"][0]["text"] == "one more thing"


async def test_a_storage_that_never_answers_ends_an_undo():
    class Hanging(InMemoryStorage):
        async def retrieve(self, reference: str) -> tuple[bytes, str]:
            return await asyncio.Event().wait()

    loop, _ = await reduced(offloader={"store_timeout": 0.1}, offload_storage=Hanging(evict_after_turns=None))
    with pytest.raises(StorageAccessError, match="did not answer within"):
        await loop.manager.undo()
    assert not loop.manager.compression.window.is_waiting
    assert loop.manager.ledger.last(FailureRecord).what == "nothing was put back"


async def test_an_edit_of_a_shortened_message_is_not_overwritten():
    loop = Loop(window=8_000, compression={"low_water": 0.55})
    await loop.turn([{"text": "very special result " + "dolor sit amet " * 1_000}])
    await loop.go_on(16)
    loop.messages[2]["content"][0]["toolResult"]["content"][0]["text"] += " [corrected by the user]"
    before = copy.deepcopy(loop.messages)
    loop.conversation.window = 80_000
    with pytest.raises(InvalidValueError, match="around message 3 the history was changed by somebody else since"):
        await loop.manager.undo()
    assert loop.messages == before


async def test_an_edit_of_a_summary_is_not_thrown_away():
    loop, _ = await reduced(compression={"method": "summarize", "summarizer": lambda request: "Files were read."})
    loop.marker["content"][0]["text"] += " The user adds: use port 8080."
    loop.conversation.window = 10 * WINDOW
    with pytest.raises(InvalidValueError, match="changed by somebody else since"):
        await loop.manager.undo()
    assert "port 8080" in json.dumps(loop.messages)


async def test_what_could_not_be_carried_out_leaves_the_undo_as_it_was():
    class Meddling(InMemoryStorage):
        fails = False

        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            if self.fails:
                loop.messages.insert(1, {"role": "user", "content": [{"text": "And hurry."}]})
                raise StorageAccessError("disk gone")
            return await super().store(key, content, content_type)

    storage = Meddling(evict_after_turns=None)
    loop, _ = await reduced(offload_storage=storage)
    for _ in range(3):
        await loop.turn()
    undoable, storage.fails = loop.manager.archive.undoable, True
    error = RuntimeError("prompt is too long")
    assert not (await loop.hooks.invoke(AfterModelCall(loop.conversation, error=error))).retry
    assert loop.manager.archive.undoable == undoable
    assert "so it stays" in loop.manager.ledger.last(FailureRecord).what


async def test_a_damaged_batch_is_not_put_back_in_part():
    loop, _ = await reduced()
    before, reference = copy.deepcopy(loop.messages), loop.manager.archive.undoable[-1]
    storage = loop.manager.hold.storage
    content, _ = await storage.retrieve(reference)

    async def damaged(asked: str) -> tuple[bytes, str]:
        return content.replace(b"[1, {", b"[1, ", 1), BATCH_TYPE

    storage.retrieve = damaged
    with pytest.raises(InvalidValueError, match="message 3 in it is damaged"):
        await loop.manager.undo()
    assert loop.messages == before


@pytest.mark.parametrize("reference", ["{}", 'a "quoted" \\ {} ü', "see kept as message {}", "[{}]", '"<{}>"'])
async def test_whatever_references_look_like_reductions_are_opened_and_undone(reference):
    class Naming(InMemoryStorage):
        names: ClassVar[dict[str, str]] = {}

        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            name = reference.format(len(self.names) + 1)
            self.names[name] = await super().store(key, content, content_type)
            return name

        async def retrieve(self, asked: str) -> tuple[bytes, str]:
            return await super().retrieve(self.names[asked])

    loop = Loop(window=8_000, offload_storage=Naming(evict_after_turns=None))
    said = copy.deepcopy(loop.messages)
    for turn in range(18):
        await loop.turn([{"text": f"result {turn} 1 12 21 " + "dolor sit amet " * 1_000}] if turn < 2 else None)
        said += copy.deepcopy(loop.messages[-2:])
    [first, *_] = loop.manager.ledger.of(ReductionRecord)
    opens = next(tool for tool in loop.manager.agent_tools if tool.name == "retrieve_offloaded_content")
    for asked in (first.references[0], f"{first.references[0]}#3"):
        assert not (await opens.run(loop.conversation, {"reference": asked})).is_error
    loop.conversation.window = 80_000
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    assert loop.messages == said


async def test_an_undo_counts_each_message_once():
    counted: list[str] = []
    loop, _ = await reduced(count_text=lambda text: counted.append(text) or len(text) // 4)
    loop.conversation.window = 10 * WINDOW
    counted.clear()
    await loop.manager.undo()
    loop.manager.report()
    assert sum("word3 " in text for text in counted) == 1


async def test_a_report_is_in_the_tokens_that_the_provider_counts():
    messages = [{"role": "user", "content": "hello world " * 100}]
    manager = ContextManager("auto", dialect="openai", window=10_000)
    conversation = manager.converse(messages)

    async def model(sent):
        return {"usage": {"prompt_tokens": 2_000, "completion_tokens": 10}}

    await conversation.call_model(model)
    report = manager.report()
    assert (report.window, report.limit, report.used) == (10_000, 8_750, 2_000)
    assert sum(item.share for item in report.items) == pytest.approx(0.2)


async def test_an_edit_in_place_while_an_undo_is_under_way_is_not_lost():
    class Editing(InMemoryStorage):
        reads, is_watched = 0, False

        async def retrieve(self, reference: str) -> tuple[bytes, str]:
            self.reads += self.is_watched
            if self.reads == 9:
                loop.marker["content"][0]["text"] += " The user adds: use port 8080."
            return await super().retrieve(reference)

    storage = Editing(evict_after_turns=None)
    compression = {"method": "summarize", "summarizer": lambda request: "Files were read."}
    loop, _ = await reduced(12, compression=compression, offload_storage=storage)
    loop.conversation.window, storage.is_watched = 1_000 * WINDOW, True
    with pytest.raises(InvalidValueError, match="changed by somebody else"):
        await loop.manager.undo(to=loop.manager.ledger.of(ReductionRecord)[0])
    assert "port 8080" in json.dumps(loop.messages)


async def test_notes_that_others_set_on_a_shortened_message_outlive_the_undo():
    loop = Loop(window=8_000, compression={"low_water": 0.55})
    await loop.turn([{"text": "very special result " + "dolor sit amet " * 1_000}])
    await loop.go_on(16)
    loop.messages[2]["metadata"]["custom"]["mine"] = "a note"
    loop.messages[2]["metadata"]["usage"] = {"in": 5}
    loop.conversation.window = 80_000
    await loop.manager.undo()
    assert loop.messages[2]["metadata"] == {"custom": {"mine": "a note"}, "usage": {"in": 5}}


@pytest.mark.parametrize("value", [{"a": (1, 2)}, {"a": {1: "x", "b": "y"}}, {"a": {None: 1, True: 2, 1.5: 3}}])
async def test_messages_saved_as_json_can_be_undone(value):
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None))
    while not loop.manager.archive.undoable:
        await loop.turn()
        loop.messages[-2]["content"][1]["toolUse"]["input"] = copy.deepcopy(value)
    state, messages = json.loads(json.dumps([loop.manager.get_state(), loop.messages]))
    again = Loop(messages, offload_storage=loop.manager.hold.storage, window=100 * WINDOW)
    again.manager.restore(state)
    await again.manager.undo()
    assert len(again.messages) == 1 + 2 * loop.turns


async def test_what_json_cannot_hold_comes_back_as_its_description_however_often():
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None))
    while len(loop.manager.archive.undoable) < 3:
        await loop.turn()
        loop.messages[-2]["content"][1]["toolUse"]["input"] = {"a": {1}}
    loop.conversation.window = 100 * WINDOW
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    assert len(loop.messages) == 1 + 2 * loop.turns
    assert loop.messages[1]["content"][1]["toolUse"]["input"] == {"a": "{1}"}


async def test_a_summary_that_names_the_keys_to_come_does_not_stand_in_the_way():
    class Telling(InMemoryStorage):
        key = "history-0"

        async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            self.key = key
            return await super().store(key, content, content_type)

    def summarize(request):
        stem, _, number = storage.key.rpartition("-")
        return " ".join(f"{stem}-{int(number) + step}" for step in range(1, 6))

    storage = Telling(evict_after_turns=None)
    compression = {"method": "summarize", "summarizer": summarize}
    loop, said = await reduced(3, offload_storage=storage, compression=compression)
    loop.conversation.window = 100 * WINDOW
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    assert loop.messages == said


class SdkMessage:
    """A message as a provider's SDK has it."""

    def __init__(self, **fields) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> dict:
        return dict(self.fields)


async def test_objects_of_an_sdk_with_notes_come_back_as_mappings():
    messages = [{"role": "user", "content": "start"}]
    loop = Loop(messages, dialect="openai", window=2_500)
    for number in range(30):
        text = f"answer {number} " + "dolor " * 60
        messages.append(SdkMessage(role="assistant", content=text, metadata={"trace": f"{number}"}))
        messages.append({"role": "user", "content": f"question {number} " + "lorem " * 60})
        await loop.hooks.invoke(BeforeModelCall(loop.conversation))
    assert len(loop.manager.archive.undoable) > 1
    loop.conversation.window = 100 * WINDOW
    while loop.manager.archive.undoable:
        await loop.manager.undo()
    assert len(messages) == 61
    assert messages[1]["metadata"] == {"trace": "0"}
