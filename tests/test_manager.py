"""ContextManager: what it composes from which configuration, and what it refuses."""

from __future__ import annotations

import copy
import json
import logging
import random
import re
from dataclasses import replace

import pytest

from holdfast import ContextCompression, ContextManager, ContextOffloader, EvictingStorage, FileStorage, InMemoryStorage
from holdfast.compression import Protection, Summarize, Truncate, set_pins
from holdfast.compression.plans import Drop, Insert, Plan
from holdfast.compression.words import in_words, removed_by, rewritten_by
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.hooks import BeforeModelCall, Conversation, HookRegistry
from holdfast.messages import Message
from holdfast.offload import OffloadRules
from holdfast.storage import S3Storage


def parts(manager: ContextManager) -> tuple[bool, bool]:
    return manager.compression is not None, manager.offloader is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (False, False)),
        ({"strategy": "auto"}, (True, True)),
        ({"compression": True}, (True, False)),
        ({"compression": "summarize"}, (True, False)),
        ({"offloader": True}, (False, True)),
        ({"compression": True, "offloader": True}, (True, True)),
        ({"strategy": "auto", "offloader": False}, (True, False)),
        ({"strategy": "auto", "compression": False}, (False, True)),
        ({"compression": False, "offloader": False}, (False, False)),
    ],
)
def test_with_a_strategy_all_is_on_and_without_what_was_added(options, expected):
    assert parts(ContextManager(**options)) == expected
    assert parts(ContextManager.from_config(options)) == expected


def test_auto_is_the_same_as_both_parts():
    auto, both = ContextManager("auto"), ContextManager(compression=True, offloader=True)
    assert auto.compression.compressor == both.compression.compressor
    assert auto.compression.window.trigger == both.compression.window.trigger
    assert auto.offloader.rules == both.offloader.rules
    assert type(auto.offloader.storage) is type(both.offloader.storage)
    assert [tool.name for tool in auto.agent_tools] == [tool.name for tool in both.agent_tools]


def test_the_defaults_are_those_of_the_seed():
    manager = ContextManager("auto")
    assert (manager.offloader.rules.threshold, manager.offloader.rules.preview_tokens) == (2_500, 1_500)
    assert isinstance(manager.compression.compressor, Truncate)
    assert manager.compression.compressor.window_size == 40
    assert manager.compression.window.trigger == 0.7
    assert isinstance(manager.offloader.storage, InMemoryStorage)


def test_one_setting_is_overridden_and_the_others_stay():
    manager = ContextManager(strategy="auto", compression={"window_size": 60}, offloader={"threshold": 5_000})
    assert manager.compression.compressor.window_size == 60
    assert manager.compression.window.trigger == 0.7
    assert (manager.offloader.rules.threshold, manager.offloader.rules.preview_tokens) == (5_000, 1_500)


@pytest.mark.parametrize(
    ("compression", "expected"),
    [
        ("truncate", Truncate(protect_task=True)),
        ("summarize", Summarize(protect_task=True)),
        ({"method": "truncate", "window_size": 30}, Truncate(window_size=30, protect_task=True)),
        ({"method": "summarize", "summary_ratio": 0.5}, Summarize(summary_ratio=0.5, protect_task=True)),
        ({"protect_first": 2}, Truncate(protect_first=2, protect_task=True)),
        ({"protect_task": False}, Truncate(protect_task=False)),
        (Truncate(window_size=60), Truncate(window_size=60, protect_task=True)),
        (Truncate(protect=Protection(first=1)), Truncate(protect=Protection(first=1, task=True))),
        (Truncate(protect=Protection(task=False)), Truncate(protect=Protection(task=False))),
    ],
)
def test_compression_is_configured_in_many_forms(compression, expected):
    assert ContextManager(compression=compression).compression.compressor == expected


def test_when_to_compress_is_an_option_too():
    manager = ContextManager("auto", compression={"proactive": 0.8, "low_water": 0.4})
    assert (manager.compression.window.trigger, manager.compression.window.low_water) == (0.8, 0.4)
    assert ContextManager(compression={"proactive": False}).compression.window.trigger is None


def test_protection_can_be_said_beside_compression():
    compressor = ContextManager("auto", protect_first=2, protect_last=6).compression.compressor
    assert compressor.protection == Protection(first=2, last=6, task=True)
    assert ContextManager("auto", protect_task=False).compression.compressor.protection.task is False


def test_part_of_a_protection_as_plain_data_keeps_the_rest():
    manager = ContextManager.from_config({"strategy": "auto", "compression": {"protect": {"first": 2}}})
    assert manager.compression.compressor.protection == Protection(first=2, task=True)


def test_rules_can_be_typed():
    manager = ContextManager(offloader=OffloadRules(threshold=4_000, exclude=["read_file"]))
    assert manager.offloader.rules == OffloadRules(threshold=4_000, exclude=["read_file"])


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("memory", InMemoryStorage),
        ({"kind": "memory", "evict_after_turns": None}, InMemoryStorage),
        ({"kind": "file", "artifact_dir": "artifacts"}, FileStorage),
        ({"kind": "s3", "bucket": "my-agents", "prefix": "runs/", "endpoint_url": "http://localhost:1"}, S3Storage),
        ("s3://my-agents/runs", S3Storage),
        ({"kind": "file", "evict": {"ttl": 3600, "max_bytes": 1_000_000}}, EvictingStorage),
    ],
)
def test_the_storage_can_be_plain_data(given, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    manager = ContextManager.from_config({"offloader": True, "offload_storage": given})
    assert isinstance(manager.offloader.storage, kind)


async def test_a_directory_is_a_storage(tmp_path):
    manager = ContextManager(offloader=True, offload_storage=str(tmp_path / "artifacts"))
    await manager.offloader.storage.store("key", b"content")
    assert list((tmp_path / "artifacts").iterdir())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"strategy": "automatic"}, InvalidValueError, "strategy must be 'auto'.*'automatic'"),
        ({"strategy": True}, InvalidValueError, "strategy must be 'auto'"),
        ({"compresion": True}, InvalidValueError, "unknown option 'compresion'.*compression"),
        (
            {"compression": {"windowsize": 3}},
            InvalidValueError,
            "'windowsize' of compression by 'truncate'.*window_size",
        ),
        ({"compression": {"method": "truncate", "summary_ratio": 0.3}}, InvalidValueError, "unknown option 'summary_r"),
        ({"compression": {"method": "shrink"}}, InvalidValueError, "'truncate', 'summarize', got 'shrink'"),
        ({"compression": "shrink"}, InvalidValueError, "'truncate', 'summarize', got 'shrink'"),
        ({"compression": 7}, InvalidTypeError, "compression must be True"),
        ({"compression": {"window_size": "40"}}, InvalidTypeError, "window_size must be a number of messages, got str"),
        ({"compression": {"proactive": 70}}, InvalidValueError, "proactive must be above 0 and up to 1, got 70"),
        ({"compression": {"protect_task": "yes"}}, InvalidTypeError, "protect_task must be True or False"),
        ({"offloader": {"treshold": 3}}, InvalidValueError, "'treshold' of offloader: allowed are .*threshold"),
        ({"offloader": {"threshold": 1_000}}, InvalidValueError, "preview_tokens must be below threshold"),
        ({"offloader": "yes"}, InvalidTypeError, "offloader must be True, False, a mapping"),
        (
            {"strategy": "auto", "offload_storage": {"kind": "redis"}},
            InvalidValueError,
            "'memory', 'file', 's3', got 'r",
        ),
        ({"strategy": "auto", "offload_storage": {"kind": "s3"}}, InvalidValueError, "needs a bucket"),
        (
            {"strategy": "auto", "offload_storage": {"kind": "file", "bucket": "b"}},
            InvalidValueError,
            "'bucket' of offl",
        ),
        (
            {"strategy": "auto", "offload_storage": {"kind": "memory", "evict": 3}},
            InvalidTypeError,
            "evict must be a ma",
        ),
        ({"strategy": "auto", "offload_storage": InMemoryStorage}, InvalidTypeError, "the class InMemoryStorage"),
        ({"strategy": "auto", "offload_storage": 3}, InvalidTypeError, "storage must have store"),
        ({"strategy": "auto", "window": 0}, InvalidValueError, "window must be"),
        ({"strategy": "auto", "window": 1_000, "reserved": 1_000}, InvalidValueError, "reserved must be below"),
        ({"strategy": "auto", "reserved": -1}, InvalidValueError, "reserved must be"),
        ({"strategy": "auto", "dialect": "klingon"}, InvalidValueError, "klingon"),
        ({"strategy": "auto", "include_pin_tool": "no"}, InvalidTypeError, "include_pin_tool must be True or False"),
        ({"strategy": "auto", "plugins": [3]}, InvalidTypeError, "plugins must have register_hooks"),
    ],
)
def test_what_is_wrong_is_named_when_it_is_built(options, error, message):
    with pytest.raises(error, match=message):
        ContextManager.from_config(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offload_storage": "memory"}, "offload_storage has no effect without offloader"),
        ({"compression": True, "archive": False, "offload_storage": "memory"}, "offload_storage has no effect without"),
        ({"offloader": True, "archive": True}, "archive has no effect without compression"),
        ({"offloader": True, "protect_first": 1}, "protect_first has no effect without compression"),
        ({"offloader": True, "window": 1_000}, "window has no effect without compression"),
        ({"strategy": "auto", "compression": {"protect_first": 1}, "protect_first": 2}, "protect_first is given twice"),
        (
            {"strategy": "auto", "offloader": ContextOffloader(), "offload_storage": "memory"},
            "beside a ContextOffloader",
        ),
        ({"strategy": "auto", "compression": ContextCompression(), "protect_last": 1}, "beside a ContextCompression"),
        ({"offloader": {"threshold": 3_000}, "plugins": [ContextOffloader()]}, "offloader is given twice"),
        ({"plugins": [ContextOffloader(), ContextOffloader()]}, "plugins holds 2 of ContextOffloader"),
    ],
)
def test_contradictions_are_refused(options, message):
    with pytest.raises(InvalidValueError, match=message):
        ContextManager(**options)


def test_a_config_that_is_no_mapping_is_refused():
    with pytest.raises(InvalidTypeError, match="config must be a mapping of options, got str"):
        ContextManager.from_config("auto")


def test_what_the_user_brought_along_takes_the_place_of_the_managed_one():
    class MyOffloader(ContextOffloader):
        pass

    offloader, compression = MyOffloader(threshold=9_000), ContextCompression("summarize")
    for manager in (
        ContextManager("auto", plugins=[offloader, compression]),
        ContextManager("auto", offloader=offloader, compression=compression),
        ContextManager(plugins=[compression, offloader]),
    ):
        assert manager.offloader is offloader
        assert manager.compression is compression


async def test_other_plugins_are_told_of_events_too():
    told = []

    class Listener:
        def register_hooks(self, registry):
            registry.add_callback(BeforeModelCall, told.append)

    registry = HookRegistry()
    ContextManager("auto", plugins=[Listener()]).register_hooks(registry)
    await registry.invoke(BeforeModelCall(Conversation([], window=1_000)))
    assert len(told) == 1


def test_the_tools_are_those_of_the_parts():
    names = ["retrieve_offloaded_content", "search_context", "pin_message"]
    assert [tool.name for tool in ContextManager("auto").agent_tools] == names
    assert [tool.name for tool in ContextManager(compression=True).agent_tools] == names
    without_history = ["retrieve_offloaded_content", "search_offloaded_content"]
    assert [tool.name for tool in ContextManager(offloader=True).agent_tools] == without_history
    names_then = [*without_history, "pin_message"]
    assert [tool.name for tool in ContextManager("auto", archive=False).agent_tools] == names_then
    assert [tool.name for tool in ContextManager("auto", include_pin_tool=False).agent_tools] == names[:2]
    assert ContextManager("auto", offloader={"include_retrieval_tool": False}).agent_tools[0].name == "pin_message"
    assert ContextManager().agent_tools == ()


def test_a_manager_for_a_second_conversation_is_refused():
    manager = ContextManager("auto", dialect="openai")
    manager.converse([])
    with pytest.raises(InvalidValueError, match="belongs to another conversation already"):
        manager.converse([])


def test_a_loop_must_say_what_it_speaks():
    with pytest.raises(InvalidValueError, match="dialect='openai'"):
        ContextManager("auto").converse([])


@pytest.mark.parametrize(
    ("options", "asked", "expected"),
    [
        ({}, {}, (128_000, 16_000)),
        ({"window": 50_000}, {}, (50_000, 6_250)),
        ({"window": 50_000, "reserved": 100}, {}, (50_000, 100)),
        ({"reserved": 0}, {}, (128_000, 0)),
        ({}, {"window": 64_000}, (64_000, 8_000)),
        ({}, {"window": 64_000, "answer": 1_000}, (64_000, 1_000)),
        ({}, {"answer": 100_000}, (128_000, 64_000)),
        ({"window": 50_000}, {"window": 64_000, "answer": 2_000}, (50_000, 2_000)),
    ],
)
def test_limits_are_what_was_said_then_what_the_model_says_then_what_is_listed(options, asked, expected):
    assert ContextManager("auto", **options).limits_for("gpt-4o-2024-08-06", **asked) == expected


async def test_an_unknown_model_is_warned_of_and_taken_for_a_common_one(caplog):
    manager = ContextManager("auto", dialect="openai")
    conversation = manager.converse([{"role": "user", "content": "hi"}], model="my-model")
    assert conversation.conversation.window is None

    async def send(messages):
        return {}

    with caplog.at_level(logging.WARNING):
        await conversation.call_model(send)
        await conversation.call_model(send)
    [warning] = caplog.messages
    assert "how many tokens the model 'my-model' takes, so 128,000 are assumed; pass window=" in warning


def history_of_one_long_request(turns: int) -> list[dict]:
    messages = [
        {"role": "user", "content": "The task: port the parser."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Now the tests."},
    ]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number} " * 200})
    return messages


@pytest.mark.parametrize("compression", ["truncate", "summarize"])
async def test_the_task_and_the_current_request_are_never_forgotten(compression):
    messages = history_of_one_long_request(60)
    manager = ContextManager("auto", compression=compression, dialect="openai", window=8_000)
    conversation = manager.converse(messages)
    sent = []

    async def send(given):
        sent.append(given)
        return {}

    await conversation.call_model(send)
    await conversation.end()
    assert len(sent[0]) < 60
    for seen in (sent[0], messages):
        assert seen[0]["content"] == "The task: port the parser."
        assert "Now the tests." in [message["content"] for message in seen]


async def test_the_task_may_be_forgotten_if_that_is_said():
    messages = history_of_one_long_request(60)
    manager = ContextManager("auto", protect_task=False, dialect="openai", window=8_000)
    await manager.converse(messages).end()
    assert "The task: port the parser." not in [message["content"] for message in messages]


async def test_pins_hold_in_a_managed_conversation():
    messages = history_of_one_long_request(60)
    set_pins(messages, [4])
    pinned = messages[4]["content"]
    await ContextManager("auto", dialect="openai", window=8_000).converse(messages).end()
    assert pinned in [message["content"] for message in messages]


async def test_a_state_can_be_saved_and_restored():
    manager = ContextManager("auto", dialect="openai", window=8_000)
    await manager.converse(history_of_one_long_request(60)).end()
    state = manager.get_state()
    other = ContextManager("auto")
    other.restore(state)
    assert other.compression.removed_message_count == manager.compression.removed_message_count > 0
    assert ContextManager().get_state() == {}
    with pytest.raises(HoldfastError, match="state must be what get_state"):
        other.restore("nonsense")
    await manager.aclose()


async def test_a_manager_without_parts_does_nothing():
    messages = history_of_one_long_request(60)
    manager = ContextManager(dialect="openai")
    conversation = manager.converse(messages)

    async def send(given):
        return given

    assert await conversation.call_model(send) == messages
    await conversation.end()
    await manager.aclose()
    assert messages == history_of_one_long_request(60)


def test_a_compressor_of_ones_own_class_keeps_the_task_too():
    class Mine(Truncate):
        def __init__(self):
            super().__init__(window_size=3)

    compressor = ContextManager(compression=Mine()).compression.compressor
    assert (type(compressor), compressor.window_size, compressor.protection.task) == (Mine, 3, True)


def test_a_class_of_ones_own_takes_its_options_from_a_config():
    class Mine(ContextManager):
        def __init__(self, strategy=None, *, colour="red", **options):
            super().__init__(strategy, **options)
            self.colour = colour

    assert Mine.from_config({"strategy": "auto", "colour": "blue", "window": 9_000}).colour == "blue"


def test_a_manager_that_was_refused_stays_free():
    taken = ContextOffloader()
    taken.own(Conversation([]))
    manager = ContextManager("auto", offloader=taken, dialect="openai")
    with pytest.raises(InvalidValueError, match="this ContextOffloader belongs to another conversation"):
        manager.converse([])
    with pytest.raises(InvalidValueError, match="this ContextOffloader belongs to another conversation"):
        manager.converse([])


@pytest.mark.parametrize("plugins", [3, "x", {"a": 1}, [ContextManager()], 1.5])
def test_plugins_are_a_list_of_plugins(plugins):
    with pytest.raises(InvalidTypeError, match="plugins "):
        ContextManager("auto", plugins=plugins)


def test_an_unknown_model_leaves_room_for_an_answer():
    assert ContextManager("auto").limits_for("my-model") == (None, 4_096)
    assert ContextManager("auto", plugins=None).limits_for("my-model", window=8_000) == (8_000, 1_000)


def user(*blocks) -> dict:
    return {"role": "user", "content": list(blocks)}


def pair(number: int, *beside: dict) -> list[dict]:
    use = {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"result {number} " * 200}
    return [{"role": "assistant", "content": [use]}, user(result, *beside)]


def text(words: str) -> dict:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("compression", ["truncate", "summarize"])
@pytest.mark.parametrize(
    "begins",
    [
        [user(text("THE TASK")), *pair(100), *pair(101, text("THE REQUEST"))],
        [user(text("Environment.")), user(text("THE TASK")), *pair(100), user(text("THE REQUEST")), user(text("Now."))],
        [
            user(text("THE TASK")),
            *pair(100, text("<reminder>")),
            user(text("THE REQUEST")),
            *pair(101, text("<reminder>")),
        ],
    ],
    ids=["beside results", "in a row", "with reminders"],
)
async def test_the_task_and_the_request_are_kept_wherever_they_stand(begins, compression):
    messages = [*begins, *(message for number in range(60) for message in pair(number))]
    manager = ContextManager("auto", compression=compression, dialect="anthropic", window=8_000)
    seen = []
    await manager.converse(messages).call_model(lambda given: seen.append(str(given)))
    assert "THE TASK" in seen[0]
    assert "THE REQUEST" in seen[0]
    assert len(messages) < 60


# What is asked of it too early, or of one that cannot


async def test_why_nothing_can_be_undone_is_told():
    with pytest.raises(InvalidValueError, match="nothing is ever reduced without compression"):
        await ContextManager(offloader=True).undo()
    with pytest.raises(InvalidValueError, match="with archive=False, what leaves is not kept"):
        await ContextManager(compression=True, archive=False).undo()
    manager = ContextManager(compression=True, dialect="openai")
    with pytest.raises(InvalidValueError, match="has no conversation yet"):
        await manager.undo()
    manager.converse([{"role": "user", "content": "Hello."}])
    with pytest.raises(InvalidValueError, match="no reduction of this history is left"):
        await manager.undo()
    assert not len(manager.ledger)


async def test_a_second_conversation_is_told_of_the_manager():
    manager, registry = ContextManager(compression=True, dialect="openai"), HookRegistry()
    manager.register_hooks(registry)
    await registry.invoke(BeforeModelCall(Conversation([{"role": "user", "content": "a"}])))
    with pytest.raises(InvalidValueError, match="this ContextManager belongs to another conversation"):
        await registry.invoke(BeforeModelCall(Conversation([{"role": "user", "content": "b"}])))


@pytest.mark.parametrize("option", [{"embedder": len}, {"offload_storage": "memory"}])
def test_what_would_make_an_option_work_is_told(option):
    for others in ({}, {"compression": True, "archive": False}):
        with pytest.raises(
            InvalidValueError, match=r"add offloader=True or compression=True, do not say archive=False"
        ):
            ContextManager(**others, **option)
    ContextManager(compression=True, **option)


# An embedder


@pytest.mark.parametrize("embedder", ["x", 3, object()])
def test_an_embedder_that_is_no_function_is_refused_when_built(embedder):
    with pytest.raises(InvalidTypeError, match="embedder must be a function that takes texts"):
        ContextManager("auto", embedder=embedder)


async def test_an_embedder_that_fails_is_recorded_once_until_it_works_again():
    answers: list = [RuntimeError("quota"), RuntimeError("quota"), KeyError("x"), None, RuntimeError("quota")]

    def embed(texts):
        if (answer := answers.pop(0)) is not None:
            raise answer
        return [[1.0, 2.0] for _ in texts]

    manager = ContextManager("auto", embedder=embed)
    asked = len(answers)
    for _ in range(asked):
        await manager._embedding.of(["a text"])
    failures = manager.ledger.of("failure")
    assert [(failure.error_type, failure.what) for failure in failures] == [
        ("RuntimeError", "the search goes by words"),
        ("KeyError", "the search goes by words"),
        ("RuntimeError", "the search goes by words"),
    ]


async def test_an_embedder_of_endless_failures_does_not_fill_the_ledger():
    def embed(texts):
        raise type(f"Failure{len(manager.ledger)}", (Exception,), {})

    manager = ContextManager("auto", embedder=embed)
    for _ in range(50):
        await manager._embedding.of(["a text"])
    assert 1 < len(manager.ledger) < 20


# Sessions


@pytest.mark.parametrize(
    ("part", "damaged"),
    [
        ("offloader", []),
        ("compression", {"removed_message_count": "x"}),
        ("archive", []),
        ("archive", {"undoable": None}),
        ("ledger", []),
    ],
)
def test_a_state_that_is_refused_leaves_nothing_behind(part, damaged):
    saved = ContextManager("auto")
    saved.ledger.add("eviction")
    saved.compression.window.removed_message_count = 7
    state = json.loads(json.dumps(saved.get_state())) | {part: damaged}
    manager = ContextManager("auto")
    before = manager.get_state()
    with pytest.raises(HoldfastError):
        manager.restore(state)
    assert manager.get_state() == before
    manager.restore(saved.get_state())
    assert manager.compression.removed_message_count == 7


# What the ledger says


def tool_call(number: int, **arguments) -> dict:
    function = {"name": "read_file", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}


async def test_what_was_offloaded_is_told_by_its_call():
    manager = ContextManager("auto", dialect="openai", window=50_000)
    messages = [{"role": "user", "content": "Read it."}]
    conversation = manager.converse(messages)

    async def send(sent):
        return tool_call(1, path="src/app/main.py")

    messages.append(await conversation.call_model(send))
    lines = "\n".join(f"line {number} of a long file" for number in range(2_000))
    await conversation.call_tool("read_file", "call_1", {"path": "src/app/main.py"}, lambda name, given: lines)
    offload = manager.ledger.last("offload")
    assert (offload.what, offload.call_id) == ("the result of read_file src/app/main.py", "call_1")


async def test_a_search_of_the_program_is_no_call_of_a_tool():
    manager = ContextManager("auto", dialect="openai", window=50_000)
    conversation = manager.converse([{"role": "user", "content": "Look."}])
    await manager.search_context("walrus")
    assert manager.ledger.last("search").tool == ""
    await conversation.call_tool("search_context", "call_1", {"query": "walrus"}, lambda name, given: "")
    assert manager.ledger.last("search").tool == "search_context"
    await conversation.call_tool("retrieve_offloaded_content", "call_2", {"reference": "x"}, lambda name, given: "")
    assert manager.ledger.last("retrieval").what == "nothing found: x"


# The preview


class Foretold:
    """An agent that looks ahead before each step, and compares what it saw with what then happens."""

    def __init__(self, dice: random.Random, **options) -> None:
        self.dice = dice
        self.manager = ContextManager("auto", dialect="openai", window=6_000, reserved=500, **options)
        self.messages: list = [{"role": "user", "content": "Find out why it fails."}]
        self.conversation = self.manager.converse(self.messages, system_prompt="Be brief.")
        self.calls = 0
        self.seen: dict[str, int] = {"before": 0, "end": 0}

    async def step(self) -> None:
        self.calls += 1
        answer = await self.foretold("before", self.conversation.call_model(self.send))
        self.messages.append(answer["message"])
        words = " ".join(f"word{self.dice.randrange(999)}" for _ in range(self.dice.choice([10, 60, 250])))
        given = {"path": f"src/{self.calls}.py"}
        self.messages.append(
            await self.conversation.call_tool("read_file", f"call_{self.calls}", given, lambda name, arguments: words)
        )

    async def send(self, sent: list) -> dict:
        size = len(json.dumps(sent)) // 5
        return {"message": tool_call(self.calls, path=f"src/{self.calls}.py"), "usage": {"prompt_tokens": size}}

    async def end(self) -> None:
        self.messages.append({"role": "assistant", "content": "Done so far."})
        await self.foretold("end", self.conversation.end())
        self.messages.append({"role": "user", "content": "Go on."})

    async def foretold(self, when: str, what):
        before, preview = copy.deepcopy(self.messages), self.manager.preview()
        assert self.messages == before
        known = len(self.manager.ledger.of("reduction"))
        answer = await what
        records = self.manager.ledger.of("reduction")[known:]
        plan = preview.at_end if when == "end" else preview.plan if preview.is_due else None
        assert len(records) == (plan is not None), str(preview)
        for record in records:
            self.seen[when] += 1
            assert (record.messages, record.rewritten) == (removed_by(plan), rewritten_by(plan))
            assert record.tokens_before == plan.tokens_before
            # References are not known before, and each is of other tokens.
            assert record.tokens_after == pytest.approx(plan.tokens_after, abs=12 * (1 + record.rewritten))
            assert f"{record.messages:,} message" in str(preview) or not record.messages
        return answer


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("method", ["truncate", "summarize"])
async def test_a_preview_is_what_happens_next(method, archive):
    dice = random.Random(7)
    agent = Foretold(dice, compression={"method": method, "window_size": 24}, archive=archive)
    for number in range(600):
        await agent.step()
        if number % 30 == 29:
            await agent.end()
        if min(agent.seen["before"], agent.seen["end"]) > 1:
            break
    assert agent.seen["before"] > 1
    assert agent.seen["end"] > 1


async def test_a_reduction_is_told_by_the_numbers_of_what_left():
    agent = Foretold(random.Random(7), compression={"window_size": 24})
    while len(agent.manager.ledger.of("reduction")) < 3:
        await agent.step()
    told = [record.what for record in agent.manager.ledger.of("reduction")]
    assert told[0].startswith("messages 2–")
    assert all("removed (read_file × " in what for what in told)
    assert not any("0 rewritten" in what for what in told)
    spans = [span for what in told for span in re.findall(r"([0-9]+)–([0-9]+)", what)]
    numbers = [number for first, last in spans for number in range(int(first), int(last) + 1)]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    "note", [None, 7, {"ranges": 7}, {"ranges": [7, [1], ["a", 2], [2, 10**30]]}, {"ranges": [[9, 2]]}]
)
def test_whatever_became_of_a_note_on_a_marker_a_reduction_can_be_told(note):
    marker = replace(Message.of_text("user", "[gone]", made_as="marker"), notes={"holdfast": "marker", "left": note})
    messages = [Message.of_text("user", "a"), marker, Message.of_text("assistant", "b")]
    plan = Plan((Insert(1, marker), Drop(1, 3)), 100, 50, "why", made_here=1)
    assert in_words(plan, messages) == "1 message removed"


async def test_a_preview_names_no_limit_beyond_the_window():
    agent = Foretold(random.Random(7))
    for _ in range(12):
        await agent.step()
    preview = agent.manager.preview()
    assert preview.tokens == agent.manager.report().used
    assert preview.due_at <= preview.window == 6_000
    assert f"takes {preview.tokens:,} of 6,000 tokens" in str(preview)


async def test_a_preview_says_why_it_is_put_off():
    agent = Foretold(random.Random(7), offloader=False)
    while not agent.manager.ledger.of("reduction"):
        await agent.step()
    agent.conversation.conversation.window = 7_500
    await agent.manager.undo()
    preview = agent.manager.preview()
    assert not preview.is_due
    assert "put off: what left was put back just now" in str(preview)
    for _ in range(30):
        await agent.step()
    assert len(agent.manager.ledger.of("reduction")) > 1


@pytest.mark.parametrize("reference", [None, 5, ["mem_1"]])
async def test_a_reference_that_is_no_text_is_a_clear_error(reference):
    with pytest.raises(InvalidTypeError, match="reference must be a text"):
        await ContextManager("auto").retrieve(reference)
