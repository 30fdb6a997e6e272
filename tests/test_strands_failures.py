"""Where strands' own managers are known to fail, each as one scenario: run as strands has it, and with holdfast.

A test of strands says what goes wrong in 1.62. Should it fail with a later 1.62, then strands has mended it: take that
test out, and keep the other.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from offloading import LOG, PNG

from holdfast import EvictingStorage, FileStorage, InMemoryStorage, S3Storage, ScopedStorage
from holdfast.testing import Call, FlakyStorage, IllegalRequestError, Request, ScriptedModel
from holdfast.tokens import estimate_text

strands = pytest.importorskip("strands")

from strands.agent.conversation_manager import NullConversationManager, SummarizingConversationManager  # noqa: E402
from strands.experimental.context_manager import Offload  # noqa: E402
from strands.session.file_session_manager import FileSessionManager  # noqa: E402
from strands.storage import InMemoryStorage as StrandsMemory  # noqa: E402
from strands.storage import LocalFileStorage  # noqa: E402
from strands.storage import S3Storage as StrandsS3  # noqa: E402
from strands.types.exceptions import ContextWindowOverflowException, EventLoopException  # noqa: E402
from strands.vended_plugins import context_offloader  # noqa: E402

from holdfast.adapters.strands import ContextManager  # noqa: E402

pytestmark = pytest.mark.strands

INSTALLED = version("strands-agents")
strands_1_62 = pytest.mark.skipif(
    not INSTALLED.startswith("1.62."), reason=f"says what strands 1.62 does, and this is {INSTALLED}"
)

WIDE = 1_000_000
IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}
WORDS = [
    "agent",
    "another",
    "report",
    "about",
    "weather",
    "in",
    "northern",
    "harbours",
    "engineers",
    "compare",
    "notes",
]


def ours(strategy: str | None = "auto", **options: Any) -> dict[str, Any]:
    return {"plugins": [ContextManager(strategy, **options)]}


def offloads(storage: Any = None) -> dict[str, Any]:
    """Strands' offloader, and nothing beside it that would change the history."""
    offloader = context_offloader.ContextOffloader(storage or StrandsMemory())
    return {"plugins": [offloader], "conversation_manager": NullConversationManager()}


def agent_of(model: ScriptedModel, *parts: Any, **options: Any) -> Any:
    """An agent with a tool that reads one of *parts*: a text, or the blocks of a result."""

    @strands.tool
    def read(part: int) -> Any:
        """Read one part of the archive."""
        found = parts[part % len(parts)]
        return found if isinstance(found, str) else {"status": "success", "content": found}

    return strands.Agent(model=model, tools=[read], callback_handler=None, retry_strategy=None, **options)


def prose(tokens: int, about: str = "a part") -> str:
    """Text of about so many tokens, by anybody's count."""
    lines = [f"This is {about}."]
    for number in range(tokens * 4 // 40):
        words = (WORDS[(number * 7 + at * (number % 5 + 1)) % len(WORDS)] for at in range(12))
        lines.append(f"{' '.join(words)} {number}.")
    return "\n".join(lines)[: tokens * 4]


def references_in(text: str) -> list[str]:
    """The references that a prompt shows, in the words of either."""
    shown = re.compile(r"\[Offloaded as (\S+) :|\[refs?: ([^\]]+)\]|^  (\S+) \((?:text|json|image)", re.MULTILINE)
    return [each for found in shown.finditer(text) for each in next(filter(None, found.groups())).split(", ")]


def retrieve(request: Request, reference: str, **arguments: Any) -> Call:
    [name] = [spec["name"] for spec in request.tool_specs if spec["name"].startswith("retrieve")]
    return Call(name, {"reference": reference, **arguments})


def results_in(request: Request) -> list[Any]:
    """What the tools returned, of which the latest message tells."""
    return [block["toolResult"] for block in request.messages[-1]["content"] if "toolResult" in block]


async def after_reading(*parts: Any, calls: int | None = None, **options: Any) -> Request:
    """What the model is sent after it has read all parts at once."""
    window = options.pop("window", WIDE)
    model = ScriptedModel([[Call("read", {"part": part}) for part in range(calls or len(parts))]], window=window)
    await agent_of(model, *parts, **options).invoke_async("Compare the parts.")
    return model.requests[-1]


async def looked_up(content: Any, managed: dict[str, Any], **arguments: Any) -> Request:
    """What the model is sent after it has asked for the first thing that left."""
    model = ScriptedModel(
        [
            Call("read", {"part": 0}),
            lambda request: retrieve(request, references_in(request.latest_text)[0], **arguments),
        ]
    )
    await agent_of(model, content, **managed).invoke_async("Look at it.")
    return model.requests[-1]


# "auto": what is in the tail


async def nine_medium_results(**managed: Any) -> Request:
    return await after_reading(*(prose(1_400, f"part {n}") for n in range(9)), window=8_000, **managed)


@strands_1_62
async def test_strands_cannot_reduce_nine_medium_results_in_the_tail():
    with pytest.raises(ContextWindowOverflowException):
        await nine_medium_results(context_manager="auto")


async def test_nine_medium_results_in_the_tail_are_made_to_fit():
    request = await nine_medium_results(**ours())
    assert request.tokens <= 8_000
    assert [f"This is part {n}." in request.latest_text for n in range(9)] == [True] * 9


# "auto": references


class FullDisk(StrandsMemory):
    async def write(self, key: str, data: bytes) -> None:
        raise OSError("no space left on device")


async def references_after_a_failed_write(**managed: Any) -> Request:
    def asked(request: Request) -> Any:
        calls = [retrieve(request, reference) for reference in references_in(request.latest_text)]
        return calls or "There is nothing to retrieve."

    model = ScriptedModel([Call("read", {"part": 0}), asked], window=WIDE)
    await agent_of(model, prose(4_000) + "\nThe end.", **managed).invoke_async("Look at it.")
    return model.requests[-1]


@strands_1_62
async def test_strands_shows_a_reference_to_what_was_never_written():
    request = await references_after_a_failed_write(context_manager={"stash": {"storage": FullDisk()}})
    assert [result["status"] for result in results_in(request)] == ["error"]
    assert "reference not found" in request.latest_text


async def test_what_could_not_be_written_stays_in_view_without_a_reference():
    storage = FlakyStorage(InMemoryStorage(), range(1_000))
    request = await references_after_a_failed_write(**ours(offload_storage=storage))
    assert "This is a part." in request.latest_text
    assert request.latest_text.endswith("The end.")


async def references_in_a_long_talk(**managed: Any) -> tuple[int, int]:
    """How many references the prompt shows in the end, and how many of them lead nowhere."""

    def work(request: Request) -> Any:
        text = str(request.messages[-1])
        return Call("read", {"part": 0}) if "Note" in text and "toolResult" not in text else "I see."

    model = ScriptedModel(work, window=32_000)
    agent = agent_of(model, prose(4_000), **managed)
    for number in range(8):
        await agent.invoke_async(f"Note {number}. {prose(600)}")
    shown = [each for message in agent.messages for each in references_in(as_text(message))]
    checked = ScriptedModel([lambda request: [retrieve(request, each) for each in shown]], window=WIDE)
    agent.model = checked
    await agent.invoke_async("Check the references.")
    return len(shown), sum(result["status"] == "error" for result in results_in(checked.requests[-1]))


def as_text(message: Any) -> str:
    texts = [block.get("text") for block in message["content"]]
    for block in message["content"]:
        texts += [part.get("text") for part in block.get("toolResult", {}).get("content", [])]
    return "\n".join(text for text in texts if text)


@strands_1_62
async def test_strands_shows_dead_references_after_it_merged_messages():
    strategies = [
        Offload.truncate("tool_results", {"preview_tokens": 750}).when(threshold=1_500),
        Offload.drop("assistant_text").when(utilization=0.1, preserve_recent=1),
        Offload.truncate("user_text", {"preview_tokens": 100}).when(threshold=300, preserve_recent=1),
    ]
    shown, dead = await references_in_a_long_talk(context_manager={"strategies": strategies})
    assert 0 < dead < shown


async def test_every_reference_in_the_prompt_leads_somewhere():
    shown, dead = await references_in_a_long_talk(**ours())
    assert shown > 0
    assert dead == 0


# "auto": sessions


async def before_and_after_a_restart(directory: Path, manage: Callable[[], dict[str, Any]]) -> tuple[list[Any], Any]:
    """The history at the end of a long talk, and the agent with which a new process goes on."""

    def resumed() -> Any:
        model = ScriptedModel(read_once, window=10_000)
        session = FileSessionManager("a-session", storage_dir=str(directory))
        return agent_of(model, prose(1_300), agent_id="an-agent", session_manager=session, **manage())

    agent = resumed()
    for number in range(12):
        await agent.invoke_async(f"Request {number}: read the part.")
    return agent.messages, resumed()


def read_once(request: Request) -> Any:
    if not request.tool_specs:
        return "A summary: parts were read."
    return "I have read it." if results_in(request) else Call("read", {"part": 0})


@strands_1_62
async def test_strands_restores_a_session_uncompressed(tmp_path):
    before, agent = await before_and_after_a_restart(tmp_path, lambda: {"context_manager": "auto"})
    assert len(agent.messages) > len(before)
    await agent.invoke_async("Go on.")
    assert any(not request.tool_specs for request in agent.model.requests), "it does not summarise the same once more"


async def test_a_session_is_restored_as_it_was(tmp_path):
    def manage() -> dict[str, Any]:
        return ours(offload_storage=FileStorage(tmp_path / "artifacts"))

    before, agent = await before_and_after_a_restart(tmp_path, manage)
    assert len(before) < 48
    assert [message["content"] for message in agent.messages] == [message["content"] for message in before]
    await agent.invoke_async("Go on.")
    assert not agent.model.overflows
    assert all(request.tool_specs for request in agent.model.requests)


# The task, the request being worked on, and what a provider accepts


async def a_long_loop(**managed: Any) -> list[str]:
    """All that the model was sent for a second request, which takes it a long time."""

    def work(request: Request) -> Any:
        if not request.tool_specs:
            return "A summary: parts were read."
        steps.append(str(request.messages))
        return Call("read", {"part": len(steps)}) if 1 < len(steps) < 25 else "Done."

    steps: list[str] = []
    agent = agent_of(ScriptedModel(work, window=12_000), *(prose(1_200) for _ in range(25)), **managed)
    await agent.invoke_async("The task is to audit the archive.")
    await agent.invoke_async("The request is to list what is odd.")
    return steps[1:]


@strands_1_62
async def test_strands_forgets_the_request_that_it_works_on():
    sent = await a_long_loop(context_manager="auto")
    forgotten = ["The request is" not in messages for messages in sent]
    assert sum(forgotten) > len(sent) / 4


@strands_1_62
async def test_strands_begins_a_request_with_the_assistant_when_its_window_slides():
    with pytest.raises(IllegalRequestError, match="the first message must be the user's"):
        await a_long_loop()


async def test_the_task_and_the_request_stay_in_view_however_long_the_loop():
    sent = await a_long_loop(**ours())
    assert len(sent) == 24
    assert all("The task is" in messages and "The request is" in messages for messages in sent)


async def many_questions(**managed: Any) -> list[Request]:
    model = ScriptedModel(lambda request: f"Answer {request.number}.", window=WIDE)
    agent = agent_of(model, "nothing", **managed)
    for number in range(80):
        await agent.invoke_async(f"Question {number}?")
    return list(model.requests)


def share_that_goes_on(requests: list[Request]) -> float:
    """How many of the requests begin with the whole of the one before, so that a provider's cache can serve it."""
    histories = [[message["content"] for message in request.messages] for request in requests]
    return sum(new[: len(old)] == old for old, new in pairwise(histories)) / (len(requests) - 1)


@strands_1_62
async def test_strands_loses_the_task_and_most_of_the_cache_to_its_sliding_window():
    requests = await many_questions()
    assert "Question 0?" not in str(requests[-1].messages)
    assert share_that_goes_on(requests) < 0.4


async def test_the_task_stays_and_most_requests_go_on_from_the_one_before():
    requests = await many_questions(**ours())
    assert "Question 0?" in str(requests[-1].messages)
    assert len(requests[-1].messages) <= 41
    assert share_that_goes_on(requests) > 0.8


async def a_small_result_before_a_large_one(**managed: Any) -> Request:
    script = [Call("read", {"part": 0}), Call("read", {"part": 1})]
    model = ScriptedModel(script, window=8_000)
    await agent_of(model, "a small result", prose(20_000), **managed).invoke_async("The task is to compare.")
    return model.requests[-1]


@strands_1_62
async def test_strands_looks_at_the_oldest_result_only_and_drops_the_task_instead():
    with pytest.raises(IllegalRequestError, match="the first message must be the user's"):
        await a_small_result_before_a_large_one()


async def test_the_large_result_becomes_smaller_wherever_it_stands():
    request = await a_small_result_before_a_large_one(**ours())
    assert "The task is" in str(request.messages)
    assert "a small result" in str(request.messages)
    assert "This is a part." in request.latest_text


async def test_the_task_stays_and_the_large_result_is_shortened_where_nothing_is_offloaded():
    request = await a_small_result_before_a_large_one(**ours(None, compression=True))
    assert "The task is" in str(request.messages)
    assert "This is a part." in request.latest_text


# Summaries


async def longest_stall(work: Awaitable[Any]) -> float:
    """For how long other tasks waited at most while *work* was done."""
    beats = [time.perf_counter()]

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.005)
            beats.append(time.perf_counter())

    heart = asyncio.create_task(beat())
    await work
    await asyncio.sleep(0.01)
    heart.cancel()
    return max(later - earlier for earlier, later in pairwise(beats))


SLOW = 0.6


async def stall_of_a_summary(**managed: Any) -> float:
    async def work(request: Request) -> Any:
        if request.system_prompt and "summar" in str(request.system_prompt).lower():
            summaries.append(request)
            await asyncio.sleep(SLOW)
            return "A summary: notes were taken."
        return "I see."

    summaries: list[Request] = []
    # Strands asks for a summary with its own marks on the messages. Its providers take them off, this model would not.
    agent = agent_of(ScriptedModel(work, window=8_000, validate=False), "nothing", **managed)
    for number in range(24):
        agent.messages.append({"role": "user", "content": [{"text": prose(500, f"note {number}")}]})
        agent.messages.append({"role": "assistant", "content": [{"text": "I see."}]})
    stall = await longest_stall(agent.invoke_async("And now?"))
    assert summaries
    return stall


@strands_1_62
async def test_strands_stalls_the_event_loop_for_a_whole_summary():
    assert await stall_of_a_summary(conversation_manager=SummarizingConversationManager()) >= SLOW


async def test_a_summary_does_not_stall_the_event_loop():
    assert await stall_of_a_summary(**ours(None, compression="summarize")) < SLOW * 0.75


# The offloader: what leaves


@strands_1_62
async def test_strands_leaves_the_full_text_beside_its_preview_after_an_empty_block():
    request = await after_reading([{"text": ""}, {"text": LOG}], **offloads())
    assert LOG in request.latest_text
    assert references_in(request.latest_text)


async def test_an_empty_block_does_not_keep_the_full_text_in_view():
    request = await after_reading([{"text": ""}, {"text": LOG}], **ours())
    assert LOG not in request.latest_text
    assert len(references_in(request.latest_text)) == 1
    assert request.tokens < 5_000


@strands_1_62
async def test_strands_never_offloads_images_alone():
    request = await after_reading([IMAGE, IMAGE, IMAGE], **offloads())
    [result] = results_in(request)
    assert result["content"] == [IMAGE, IMAGE, IMAGE]


async def test_images_alone_are_offloaded_and_come_back():
    request = await looked_up([IMAGE, IMAGE, IMAGE], ours())
    assert not any("image" in block for block in request.messages[2]["content"][0]["toolResult"]["content"])
    [result] = results_in(request)
    assert IMAGE in result["content"]


async def many_screenshots(**managed: Any) -> Request:
    return await after_reading([IMAGE] * 6, window=8_000, **managed)


@strands_1_62
async def test_strands_counts_an_image_as_nothing_so_screenshots_overflow():
    with pytest.raises(ContextWindowOverflowException):
        await many_screenshots(context_manager="auto")


async def test_screenshots_are_counted_and_fit():
    assert (await many_screenshots(**ours())).tokens <= 8_000


async def chinese_results(**managed: Any) -> Request:
    return await after_reading("数据库连接超时请检查网络配置后重试" * 345, calls=4, window=16_000, **managed)


@strands_1_62
async def test_strands_counts_chinese_too_low_so_it_overflows():
    with pytest.raises(ContextWindowOverflowException):
        await chinese_results(context_manager="auto")


async def test_chinese_is_counted_and_fits():
    assert (await chinese_results(**ours())).tokens <= 16_000


async def json_with_a_few_bytes(**managed: Any) -> Request:
    return await after_reading([{"json": {"checksum": b"\x00\x01", "rows": list(range(20_000))}}], **managed)


@strands_1_62
async def test_strands_counts_json_with_bytes_as_nothing_and_sends_it_whole():
    with pytest.raises(EventLoopException, match="Invalid type for document parameter"):
        await json_with_a_few_bytes(**offloads())


async def test_json_with_bytes_is_counted_and_leaves():
    request = await json_with_a_few_bytes(**ours())
    assert len(references_in(request.latest_text)) == 1
    assert request.tokens < 5_000


# The offloader: what comes back


LINES = "\n".join(f"{number} {number * 7919 % 10_007} some words" for number in range(60_000))


@strands_1_62
async def test_strands_puts_the_whole_content_back_into_the_prompt():
    request = await looked_up(LINES, offloads())
    assert LINES in request.latest_text
    assert request.tokens > 400_000


async def test_asking_for_everything_gives_a_page_and_how_to_go_on():
    request = await looked_up(LINES, ours())
    assert estimate_text(request.latest_text) <= 2_500
    assert "of 60,000" in request.latest_text


async def what_two_references_lead_to(**managed: Any) -> list[str]:
    """The first lines of two contents, whose tool calls a provider gave the same id."""
    read = [Call("read", {"part": 0}, id="call_0"), Call("read", {"part": 1}, id="call_0")]
    references: list[str] = []

    def look_up(request: Request) -> Any:
        references[:] = [each for message in request.messages for each in references_in(as_text(message))]
        return [retrieve(request, each, line_range={"start": 1, "end": 1}) for each in references]

    model = ScriptedModel([*read, look_up], window=WIDE)
    parts = [prose(4_000, "the first"), prose(4_000, "the second")]
    await agent_of(model, *parts, **managed).invoke_async("Compare.")
    return re.findall(r"This is (the \w+)", model.requests[-1].latest_text)


@strands_1_62
@pytest.mark.parametrize("manage", [lambda: {"context_manager": "auto"}, offloads])
async def test_strands_confuses_contents_when_tool_ids_repeat(manage):
    assert await what_two_references_lead_to(**manage()) == ["the second", "the second"]


async def test_contents_are_told_apart_when_tool_ids_repeat():
    assert await what_two_references_lead_to(**ours()) == ["the first", "the second"]


async def a_long_loop_with_a_reference(**managed: Any) -> Request:
    """What the model is sent when it asks, after 25 more steps, for what the prompt has shown it all the time."""

    def work(request: Request) -> Any:
        if request.number <= 26:
            return Call("read", {"part": min(request.number, 2) - 1})
        [shown] = {each for message in request.messages for each in references_in(as_text(message))}
        return retrieve(request, shown, line_range={"start": 1, "end": 1}) if request.number == 27 else "Done."

    model = ScriptedModel(work, window=WIDE)
    await agent_of(model, prose(4_000), "a small result", **managed).invoke_async("Look around.")
    return model.requests[-1]


@strands_1_62
async def test_strands_deletes_what_the_prompt_still_refers_to(tmp_path):
    request = await a_long_loop_with_a_reference(**offloads(LocalFileStorage(str(tmp_path))))
    assert "reference not found" in request.latest_text


@pytest.mark.parametrize("is_durable", [True, False])
async def test_what_the_prompt_refers_to_is_kept(tmp_path, is_durable):
    storage = EvictingStorage(FileStorage(tmp_path), turns=20) if is_durable else InMemoryStorage()
    request = await a_long_loop_with_a_reference(**ours(offload_storage=storage))
    assert "This is a part." in request.latest_text


async def left_by_an_earlier_process(directory: Path, manage: Callable[[], dict[str, Any]]) -> list[Path]:
    """The files that still hold an agent's content after another process ran a while in the same directory."""
    await after_reading(LOG, **manage())
    script = [Call("read", {"part": min(step, 1)}, id=f"later-{step}") for step in range(30)]
    parts = prose(4_000), "a small result"
    await agent_of(ScriptedModel(script, window=WIDE), *parts, **manage()).invoke_async("Look around.")
    return [path for path in directory.rglob("*") if path.is_file() and LOG.encode() in path.read_bytes()]


@strands_1_62
async def test_strands_never_evicts_what_an_earlier_process_wrote(tmp_path):
    assert await left_by_an_earlier_process(tmp_path, lambda: offloads(LocalFileStorage(str(tmp_path))))


async def test_what_an_earlier_process_wrote_is_evicted_in_its_time(tmp_path):
    def manage() -> dict[str, Any]:
        return ours(offload_storage=EvictingStorage(FileStorage(tmp_path), turns=20))

    assert not await left_by_an_earlier_process(tmp_path, manage)


async def two_agents_look_up(manage: Callable[[str], dict[str, Any]]) -> list[str]:
    """What each of two agents, at work one after the other, finds behind the reference that it was shown."""
    requests = [
        await looked_up(prose(4_000, name), manage(name), line_range={"start": 1, "end": 1}) for name in ("one", "two")
    ]
    return re.findall(r"This is (\w+)", " ".join(request.latest_text for request in requests))


@strands_1_62
async def test_strands_refuses_a_second_agent_for_one_memory():
    shared = context_offloader.InMemoryStorage(evict_after_turns=None)
    with pytest.raises(ValueError, match="cannot be shared across multiple agents"):
        await two_agents_look_up(lambda name: offloads(shared))


async def test_agents_share_one_memory_each_in_a_scope():
    shared = InMemoryStorage(evict_after_turns=None)
    found = await two_agents_look_up(lambda name: ours(offload_storage=ScopedStorage(shared, name)))
    assert found == ["one", "two"]


# The offloader: its search


@strands_1_62
async def test_strands_takes_nested_quantifiers_for_plain_text_and_finds_nothing():
    request = await looked_up(f"{LOG}\nbaaa", offloads(), pattern="^b(a+)+$")
    assert "No matches found" in request.latest_text


async def test_nested_quantifiers_are_a_pattern():
    request = await looked_up(f"{LOG}\nbaaa", ours(), pattern="^b(a+)+$")
    assert "4001> baaa" in request.latest_text


async def seconds_for_a_pattern(length: int, managed: dict[str, Any]) -> float:
    started = time.perf_counter()
    await looked_up("a" * length + f"!\n{prose(4_000)}", managed, pattern="((a+))+$")
    return time.perf_counter() - started


@strands_1_62
async def test_strands_takes_twice_as_long_for_each_further_character():
    # With 41 characters nobody has seen the end of it; a few more than 16 show where it leads.
    few = min([await seconds_for_a_pattern(16, offloads()) for _ in range(3)])
    assert await seconds_for_a_pattern(22, offloads()) > 4 * few


async def test_a_pattern_that_others_hang_on_is_answered():
    assert await seconds_for_a_pattern(5_000, ours()) < 10


GIANT = "x," * 60_000 + "the needle" + ",y" * 60_000


@strands_1_62
async def test_strands_finds_what_is_inside_a_giant_line_and_cannot_show_it():
    request = await looked_up(GIANT, offloads(), pattern="needle")
    assert "1 match" in request.latest_text
    assert "the needle" not in request.latest_text


async def test_what_is_inside_a_giant_line_is_shown():
    request = await looked_up(GIANT, ours(), pattern="needle")
    assert "the needle" in request.latest_text
    assert estimate_text(request.latest_text) <= 2_500


# Its storages


async def types_after_two_agents(manage: Callable[[], dict[str, Any]], open_again: Callable[[], Any]) -> set[str]:
    """The types of what two agents stored in turns in one directory, as a later process reads them."""
    model = ScriptedModel(read_once, window=WIDE)
    one, other = (agent_of(model, [{"json": {"rows": list(range(4_000))}}], **manage()) for _ in range(2))
    for agent in (one, other, one):
        await agent.invoke_async("Look at it.")
    shown = [each for agent in (one, other) for message in agent.messages for each in references_in(as_text(message))]
    assert len(shown) == 3
    return {(await open_again().retrieve(reference))[1] for reference in shown}


@strands_1_62
async def test_strands_loses_types_when_two_agents_write_to_one_directory(tmp_path):
    def opened() -> Any:
        return context_offloader.FileStorage(str(tmp_path))

    types = await types_after_two_agents(lambda: offloads(opened()), opened)
    assert types == {"application/json", "application/octet-stream"}


async def test_types_are_kept_when_two_agents_write_to_one_directory(tmp_path):
    types = await types_after_two_agents(
        lambda: ours(offload_storage=FileStorage(tmp_path)), lambda: FileStorage(tmp_path)
    )
    assert types == {"application/json"}


class SlowBucket:
    """As much of a boto3 session, and of the client that it makes, as writing takes."""

    def __init__(self, seconds: float = SLOW) -> None:
        self.seconds = seconds
        self.keys: list[str] = []
        self.meta = MagicMock()

    def client(self, *args: Any, **options: Any) -> Any:
        return self

    def put_object(self, *, Key: str, **options: Any) -> dict[str, Any]:  # noqa: N803
        time.sleep(self.seconds)
        self.keys.append(Key)
        return {}


@strands_1_62
async def test_strands_writes_to_s3_on_the_event_loop():
    storage = context_offloader.S3Storage("bucket", boto_session=SlowBucket())
    assert await longest_stall(after_reading(LOG, **offloads(storage))) >= SLOW


async def test_writing_to_s3_does_not_stall_the_event_loop():
    bucket = SlowBucket()
    storage = S3Storage("bucket", boto_session=bucket)
    assert await longest_stall(after_reading(LOG, **ours(offload_storage=storage))) < SLOW * 0.75
    assert bucket.keys


@strands_1_62
async def test_strands_doubles_the_slash_of_a_prefix():
    bucket = SlowBucket(0)
    await after_reading(LOG, **offloads(StrandsS3("bucket", prefix="agents/", boto_session=bucket)))
    assert bucket.keys[0].startswith("agents//")


async def test_a_prefix_has_one_slash():
    bucket = SlowBucket(0)
    await after_reading(LOG, **ours(offload_storage=S3Storage("bucket", prefix="agents/", boto_session=bucket)))
    assert "//" not in bucket.keys[0]
