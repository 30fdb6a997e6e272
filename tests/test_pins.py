"""Pins: messages that stay because a user or the agent itself asked for it."""

from __future__ import annotations

import json

import pytest

from holdfast.agent_tools import AgentTool, ToolAnswer
from holdfast.compression import ContextCompression, Protection, pin_message, set_pins, survives_compression
from holdfast.dialects import dialect_named
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import BeforeModelCall, Conversation


def converse(role, text=None, calls=(), results=()):
    return {
        "role": role,
        "content": [
            *({"toolResult": {"toolUseId": id, "content": [{"text": said}]}} for id, said in results),
            *([{"text": text}] if text else []),
            *({"toolUse": {"toolUseId": id, "name": "read", "input": {}}} for id in calls),
        ],
    }


def anthropic(role, text=None, calls=(), results=()):
    return {
        "role": role,
        "content": [
            *({"type": "tool_result", "tool_use_id": id, "content": said} for id, said in results),
            *([{"type": "text", "text": text}] if text else []),
            *({"type": "tool_use", "id": id, "name": "read", "input": {}} for id in calls),
        ],
    }


def openai(role, text=None, calls=(), results=()):
    for id, said in results:
        return {"role": "tool", "tool_call_id": id, "content": said}
    message = {"role": role, "content": text}
    called = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in calls]
    return message | {"tool_calls": called} if called else message


WIRES = {"converse": converse, "anthropic": anthropic, "openai": openai}
every_dialect = pytest.mark.parametrize("name", WIRES)


def exchanges(wire):
    """0 to 3 and 4 to 7 are exchanges; 8 and 9 are the current one, in which the agent calls a tool."""
    return [
        wire("user", "Rule: never delete"),
        wire("assistant", calls=["a"]),
        wire("user", results=[("a", "the file says 42")]),
        wire("assistant", "Understood."),
        wire("user", "And the log?"),
        wire("assistant", calls=["b"]),
        wire("user", results=[("b", "the log says 43")]),
        wire("assistant", "It says 43."),
        wire("user", "Remember that."),
        wire("assistant", "I pin: never delete", calls=["pin"]),
    ]


def pins(messages):
    return [at for at, message in enumerate(messages) if message.get("metadata", {}).get("custom", {}).get("pinned")]


async def pin(conversation, **arguments):
    return await pin_message.run(conversation, arguments)


def conversation_in(name="openai"):
    return Conversation(exchanges(WIRES[name]))


# --- the tool


def test_the_tool_describes_itself():
    assert isinstance(pin_message, AgentTool)
    assert pin_message.name == "pin_message"
    assert set(pin_message.input_schema["properties"]) == {"action", "last", "messages", "containing"}
    assert pin_message.input_schema["additionalProperties"] is False
    json.dumps(pin_message.input_schema)


@every_dialect
async def test_without_arguments_it_pins_the_current_exchange(name):
    conversation = conversation_in(name)
    answer = await pin(conversation)
    assert pins(conversation.messages) == [8, 9]
    assert not answer.is_error
    assert answer.text.startswith("Pinned 2 messages, about ")
    assert "which will not leave with older ones" in answer.text
    assert "9 (user: 'Remember that.')" in answer.text


@every_dialect
async def test_the_last_so_many(name):
    conversation = conversation_in(name)
    assert not (await pin(conversation, last=3)).is_error
    assert pins(conversation.messages) == [7, 8, 9]


@pytest.mark.parametrize("count", [10, 11, 10**30])
async def test_more_than_there_are_means_all(count):
    conversation = conversation_in()
    answer = await pin(conversation, last=count)
    assert pins(conversation.messages) == list(range(10))
    assert answer.text.startswith("Pinned 10 messages")


async def test_chosen_by_number_from_either_end():
    conversation = conversation_in()
    answer = await pin(conversation, messages=[1, -1, 1])
    assert pins(conversation.messages) == [0, 9]
    assert "1 (user: 'Rule: never delete')" in answer.text


@every_dialect
@pytest.mark.parametrize(("text", "found"), [("never delete", [0]), ("says 42", [2]), ("says 43", [6, 7])])
async def test_chosen_by_what_they_hold_but_not_the_call_that_asks_for_it(name, text, found):
    conversation = conversation_in(name)
    assert not (await pin(conversation, containing=text)).is_error
    assert pins(conversation.messages) == found


async def test_what_a_tool_answered_as_json_is_searched_too():
    result = {"toolUseId": "a", "content": [{"json": {"answer": "swordfish"}}]}
    messages = [converse("user", "?"), converse("assistant", calls=["a"])]
    conversation = Conversation([*messages, {"role": "user", "content": [{"toolResult": result}]}])
    await pin(conversation, containing='"answer": "swordfish"')
    assert pins(conversation.messages) == [2]


async def test_the_latest_message_is_searched_if_it_is_no_call():
    conversation = Conversation([openai("user", "Rule: never delete")])
    assert not (await pin(conversation, containing="never")).is_error
    assert pins(conversation.messages) == [0]


async def test_unpinning():
    conversation = conversation_in()
    await pin(conversation, last=4)
    answer = await pin(conversation, action="unpin", last=2)
    assert answer.text.startswith("Unpinned 2 messages, about ")
    assert "which may leave again" in answer.text
    assert pins(conversation.messages) == [6, 7]
    await pin(conversation, action="unpin", messages=[7, 8])
    assert conversation.messages == exchanges(openai)


async def test_what_is_so_already_is_said():
    conversation = conversation_in()
    await pin(conversation, last=2)
    before = list(conversation.messages)
    assert (await pin(conversation, last=2)).text == "Nothing changed: 2 messages were pinned already."
    assert (await pin(conversation, last=1)).text == "Nothing changed: 1 message was pinned already."
    assert (await pin(conversation, action="unpin", messages=[1])).text == "Nothing changed: 1 message was not pinned."
    assert (await pin(conversation, last=3)).text.startswith("Pinned 1 message, about ")
    assert all(now is then for now, then in zip(conversation.messages[-2:], before[-2:], strict=True))


async def test_an_answer_about_many_names_some():
    conversation = Conversation([openai("user", f"number {number}") for number in range(50)])
    answer = await pin(conversation, last=50)
    assert answer.text.startswith("Pinned 50 messages")
    assert answer.text.endswith("and 40 more.")
    assert len(answer.text) < 1_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "glue"}, "action must be 'pin' or 'unpin', got 'glue'"),
        ({"action": None}, "action must be 'pin' or 'unpin', got None"),
        ({"action": ["pin"]}, "action must be 'pin' or 'unpin', got ['pin']"),
        ({"last": 0}, "last must be a number of messages, 1 or more, got 0"),
        ({"last": -1}, "last must be a number of messages, 1 or more, got -1"),
        ({"last": True}, "last must be a number of messages, 1 or more, got True"),
        ({"last": "2"}, "last must be a number of messages, 1 or more, got '2'"),
        ({"last": 2.0}, "last must be a number of messages, 1 or more, got 2.0"),
        ({"messages": 1}, "messages must be a list of numbers: 1 is the first message, -1 the latest"),
        ({"messages": ["1"]}, "messages must be a list of numbers: 1 is the first message, -1 the latest"),
        ({"messages": [True]}, "messages must be a list of numbers: 1 is the first message, -1 the latest"),
        ({"messages": []}, "messages must name at least one message: 1 is the first, -1 the latest"),
        ({"messages": [0]}, "there is no message 0: they go from 1 to 10"),
        ({"messages": [1, 11]}, "there is no message 11: they go from 1 to 10"),
        ({"messages": [-11]}, "there is no message -11: they go from 1 to 10"),
        ({"messages": [10**30]}, f"there is no message {10**30}: they go from 1 to 10"),
        ({"containing": ""}, "containing must be some text that the messages hold"),
        ({"containing": " \n"}, "containing must be some text that the messages hold"),
        ({"containing": 42}, "containing must be some text that the messages hold"),
        ({"containing": "nowhere"}, "no message holds 'nowhere'"),
        ({"containing": "\ud83d"}, "no message holds '\\ud83d'"),
        ({"last": 1, "messages": [1]}, "give only one of last, messages and containing, not last and messages"),
        ({"index": 3}, "unknown argument 'index'; allowed are action, last, messages, containing"),
        ({1: 2, "x": 3}, "unknown argument 1; allowed are action, last, messages, containing"),
        (None, "the arguments must be an object, got NoneType"),
        ([1], "the arguments must be an object, got list"),
        ("last", "the arguments must be an object, got str"),
    ],
)
async def test_what_the_model_got_wrong_is_told_to_the_model_and_changes_nothing(arguments, message):
    conversation = conversation_in()
    assert await pin_message.run(conversation, arguments) == ToolAnswer(message, is_error=True)
    assert conversation.messages == exchanges(openai)


async def test_arguments_that_are_left_open_do_not_count():
    conversation = conversation_in()
    assert not (await pin(conversation, last=1, messages=None, containing=None)).is_error
    assert pins(conversation.messages) == [9]


async def test_with_no_messages_there_is_nothing_to_pin():
    assert await pin(Conversation([])) == ToolAnswer("there are no messages yet", is_error=True)


async def test_what_is_no_mapping_holds_no_pin_and_stays_as_it_is():
    class Answered:
        role, content = "assistant", "hello"

    answered = Answered()
    conversation = Conversation([openai("user", "hi"), answered])
    answer = await pin(conversation)
    assert answer == ToolAnswer("message 2 can hold no pin: it is a Answered and not a mapping", is_error=True)
    assert conversation.messages == [openai("user", "hi"), answered]


# --- by hand


@every_dialect
def test_a_pin_is_a_note_on_the_message_and_nothing_else_changes(name):
    messages = exchanges(WIRES[name])
    given = list(messages)
    set_pins(messages, iter([0, 2]))
    assert messages[0] == given[0] | {"metadata": {"custom": {"pinned": True}}}
    assert given == exchanges(WIRES[name]), "the caller's objects are not changed"
    assert all(messages[at] is given[at] for at in range(10) if at not in (0, 2))
    set_pins(messages, [0, 2], pinned=False)
    assert messages == given


@pytest.mark.parametrize("content", [None, [], "", "text", [None], [{"text": 3}]])
def test_odd_content_stays_odd(content):
    messages = [{"role": "user", "content": content, "name": "x"}]
    set_pins(messages, [0])
    assert messages == [{"role": "user", "content": content, "name": "x", "metadata": {"custom": {"pinned": True}}}]


def test_other_notes_and_metadata_stay():
    message = {"role": "user", "content": "hi", "metadata": {"usage": {"n": 1}, "custom": {"topic": "x"}}}
    messages = [message]
    set_pins(messages, [0])
    assert messages[0]["metadata"] == {"usage": {"n": 1}, "custom": {"topic": "x", "pinned": True}}
    set_pins(messages, [0], pinned=False)
    assert messages == [message]


def test_negative_indices_count_from_the_end():
    messages = exchanges(openai)
    set_pins(messages, [-1])
    assert pins(messages) == [9]


def test_what_cannot_be_pinned_is_an_error_before_anything_changes():
    messages = [openai("user", "hi"), None]
    with pytest.raises(InvalidTypeError, match="message 2 can hold no pin: it is a NoneType and not a mapping"):
        set_pins(messages, [0, 1])
    with pytest.raises(InvalidValueError, match="there is no message at 2"):
        set_pins(messages, [0, 2])
    assert messages == [openai("user", "hi"), None]


# --- saved, never sent


@every_dialect
def test_a_pin_is_saved_with_its_message_and_never_sent(name):
    messages = exchanges(WIRES[name])
    set_pins(messages, [0, 2, 9])
    restored = json.loads(json.dumps(messages))
    assert restored == messages
    dialect = dialect_named(name)
    assert [dialect.read(message).pinned for message in restored] == [at in (0, 2, 9) for at in range(10)]
    sent = dialect.sendable(restored)
    assert sent == exchanges(WIRES[name])
    assert "pinned" not in json.dumps(sent)
    assert "metadata" not in json.dumps(sent)
    assert sent[1] is restored[1]


@every_dialect
async def test_what_is_pinned_survives_compression_after_a_restart(name):
    messages = exchanges(WIRES[name])
    set_pins(messages, [1])
    restored = json.loads(json.dumps(messages))
    filler = [WIRES[name]("user" if at % 2 else "assistant", "x" * 200) for at in range(9)]
    conversation = Conversation([*restored, *filler[1:], WIRES[name]("user", "go on")], window=1_000)
    await ContextCompression(count_text=len).before_model_call(BeforeModelCall(conversation))
    assert restored[1] in conversation.messages
    assert restored[2] in conversation.messages, "its result stays with it"
    assert restored[0] not in conversation.messages


# --- a pin covers the whole pair, by id


def survivors(name, messages):
    """Which messages stay, whatever happens; the last one always does."""
    read = [dialect_named(name).read(message) for message in messages]
    return [at for at in range(len(read)) if survives_compression(read, at, Protection())]


@every_dialect
@pytest.mark.parametrize("at", [1, 2])
def test_either_half_of_a_pair_keeps_both(name, at):
    messages = exchanges(WIRES[name])
    set_pins(messages, [at])
    assert survivors(name, messages) == [1, 2, 8, 9]


@every_dialect
def test_neighbours_with_other_ids_are_no_pair(name):
    wire = WIRES[name]
    messages = [
        wire("user", "?"),
        wire("assistant", "no call at all"),
        wire("user", results=[("elsewhere", "an orphan")]),
        wire("assistant", "hm"),
        wire("user", "!"),
    ]
    set_pins(messages, [1])
    assert 0 not in survivors(name, messages)
    assert 3 not in survivors(name, messages)
    assert 1 in survivors(name, messages)


@every_dialect
@pytest.mark.parametrize("at", [1, 4])
def test_a_pair_that_is_not_neighbours_is_kept_whole(name, at):
    wire = WIRES[name]
    messages = [
        wire("user", "?"),
        wire("assistant", calls=["a"]),
        wire("user", "are you there?"),
        wire("assistant", "yes"),
        wire("user", results=[("a", "late")]),
        wire("assistant", "done"),
        wire("user", "!"),
    ]
    set_pins(messages, [at])
    kept = survivors(name, messages)
    assert {1, 4} <= set(kept)
    assert not {0, 5} & set(kept)


@every_dialect
@pytest.mark.parametrize(("at", "kept"), [(1, [1, 2, 6]), (2, [1, 2, 6]), (4, [4, 5, 6]), (5, [4, 5, 6])])
def test_an_id_that_a_provider_repeats_pairs_with_the_call_before_it(name, at, kept):
    wire = WIRES[name]
    messages = [
        wire("user", "?"),
        wire("assistant", calls=["call_0"]),
        wire("user", results=[("call_0", "first")]),
        wire("assistant", "again"),
        wire("assistant", calls=["call_0"]),
        wire("user", results=[("call_0", "second")]),
        wire("user", "!"),
    ]
    set_pins(messages, [at])
    assert survivors(name, messages) == kept


def test_parallel_calls_are_one_batch():
    messages = [
        openai("user", "?"),
        openai("assistant", calls=["a", "b", "c"]),
        *(openai("user", results=[(id, id)]) for id in "bca"),
        openai("assistant", "done"),
        openai("user", "!"),
    ]
    set_pins(messages, [3])
    assert survivors("openai", messages) == [1, 2, 3, 4, 6]


def test_an_unpinned_pair_may_leave():
    messages = exchanges(openai)
    set_pins(messages, [1])
    set_pins(messages, [1], pinned=False)
    assert survivors("openai", messages) == [8, 9]


def test_only_true_is_a_pin():
    for note in ("true", 1, "yes", {}, None):
        messages = exchanges(openai)
        messages[0] = messages[0] | {"metadata": {"custom": {"pinned": note}}}
        assert survivors("openai", messages) == [8, 9]


def test_errors_are_value_and_type_errors_too():
    assert issubclass(InvalidTypeError, TypeError)
    assert issubclass(InvalidValueError, ValueError)
