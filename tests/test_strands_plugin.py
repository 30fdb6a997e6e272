"""The manager in a Strands agent, beside all else that works on one."""

from __future__ import annotations

import threading

import pytest

strands = pytest.importorskip("strands")

from strands import Agent, tool  # noqa: E402
from strands.hooks import AfterModelCallEvent  # noqa: E402
from strands.models.routing import ModelRouter  # noqa: E402
from strands.session import SessionManager  # noqa: E402
from strands.types.events import ToolResultEvent  # noqa: E402
from strands.types.exceptions import ContextWindowOverflowException  # noqa: E402
from strands.types.tools import AgentTool  # noqa: E402
from strands.vended_plugins.context_offloader import ContextOffloader as StrandsOffloader  # noqa: E402
from strands.vended_plugins.context_offloader import InMemoryStorage as StrandsStorage  # noqa: E402

from holdfast import ContextCompression, ContextOffloader, ContextOverflowError  # noqa: E402
from holdfast.adapters.strands import ContextManager, SlidingWindowConversationManager  # noqa: E402
from holdfast.errors import InvalidValueError  # noqa: E402
from holdfast.testing import Call, ScriptedModel  # noqa: E402

pytestmark = pytest.mark.strands


@tool
def squares(count: int = 2_000) -> str:
    """Say squares."""
    return "\n".join(f"{n} times {n} is {n * n}" for n in range(count))


def agent(script=(), manager=None, tools=(squares,), **options) -> Agent:
    model = options.pop("model", None) or ScriptedModel(script, window=options.pop("window", 16_000))
    plugins = [manager or ContextManager("auto"), *options.pop("plugins", ())]
    return Agent(model=model, tools=list(tools), plugins=plugins, callback_handler=None, **options)


def pinned(agent: Agent) -> list[int]:
    return [n for n, m in enumerate(agent.messages) if m.get("metadata", {}).get("custom", {}).get("pinned")]


async def test_parts_that_were_brought_along_work_in_an_agent():
    offloader, compression = ContextOffloader(threshold=1_000, preview_tokens=200), ContextCompression("truncate")
    manager = ContextManager("auto", plugins=[offloader, compression])
    one = agent([Call("squares")] * 30, manager)
    await one.invoke_async("Go.")
    assert (one.model.overflows, one.model.violations) == (0, [])
    assert len(offloader.hold.known) >= manager.ledger.totals["offload"].count >= 30


@pytest.mark.parametrize("window", [4_096, 2_048])
async def test_a_window_smaller_than_what_was_to_be_kept_free_is_learnt(window):
    model = ScriptedModel(["word " * 100] * 60, window=window, tells_window=False)
    manager = ContextManager("auto", include_pin_tool=False, offloader=False, archive=False)
    one = agent(model=model, manager=manager, tools=())
    for number in range(40):
        await one.invoke_async(f"{number} " + "word " * 100)
    assert model.overflows < 5


async def test_a_tool_of_the_manager_works_on_the_messages_of_now():
    one = agent(["Yes."])
    await one.invoke_async("The sky is azure.")
    one.messages = [dict(message) for message in one.messages]
    one.tool.pin_message(containing="azure", record_direct_tool_call=False)
    assert pinned(one) == [0]
    one.load_snapshot(one.take_snapshot(preset="session"))
    one.tool.pin_message(action="unpin", containing="azure", record_direct_tool_call=False)
    assert pinned(one) == []


async def test_a_small_model_that_helped_out_once_does_not_make_the_large_one_small():
    down = [True]

    def answer(request):
        return ConnectionError("down") if down[0] else "word " * 50

    big = ScriptedModel(answer, window=100_000, model_id="big")
    small = ScriptedModel(lambda request: "word " * 50, window=4_000, model_id="small")
    one = agent(model=ModelRouter([big, small]), manager=ContextManager(compression={"window_size": 1_000}), tools=())
    down[0] = False
    for number in range(30):
        await one.invoke_async(f"{number} " + "word " * 100)
    down[0] = True
    await one.invoke_async("Help out.")
    down[0] = False
    after = len(one.messages)
    for number in range(30):
        await one.invoke_async(f"{number} " + "word " * 100)
    assert small.overflows >= 1
    assert len(one.messages) == after + 60


async def test_an_overflow_that_somebody_else_mends_costs_no_history():
    small, big = ScriptedModel(window=4_000, model_id="small"), ScriptedModel(window=100_000, model_id="big")
    one = agent(model=small, manager=ContextManager(compression={"proactive": False}), tools=())

    def switch(event: AfterModelCallEvent) -> None:
        if isinstance(event.exception, ContextWindowOverflowException):
            event.agent.model, event.retry = big, True

    one.add_hook(switch, AfterModelCallEvent)
    for number in range(20):
        await one.invoke_async(f"{number} " + "word " * 400)
    assert len(one.messages) == 40
    assert big.calls > 0


@pytest.mark.parametrize("error", [ContextWindowOverflowException, ValueError])
@pytest.mark.parametrize("said", ["prompt is too long: 21000 tokens > 9000 maximum", "Input is too long."])
async def test_what_cannot_be_made_to_fit_is_one_clear_error_of_both_kinds(error, said):
    def refuse(request):
        return error(said)

    one = agent(model=ScriptedModel(refuse), tools=())
    with pytest.raises(ContextOverflowError) as caught:
        await one.invoke_async("word " * 400)
    assert isinstance(caught.value, ContextWindowOverflowException)
    assert said in str(caught.value.__cause__)


async def test_a_program_that_calls_a_tool_gets_all_of_it_and_the_history_a_preview():
    one = agent(["Yes."])
    whole = squares._tool_func()
    assert one.tool.squares()["content"] == [{"text": whole}]
    assert one.tool.squares(record_direct_tool_call=False)["content"] == [{"text": whole}]
    assert whole not in str(one.messages)
    assert "Offloaded as" in str(one.messages)
    await one.invoke_async("Go on.")
    assert one.model.violations == []


async def test_what_mcp_says_twice_does_not_stay_in_the_history():
    class Mcp(AgentTool):
        tool_name, tool_type = "mcp", "mcp"
        tool_spec = {"name": "mcp", "description": "mcp", "inputSchema": {"json": {"type": "object"}}}  # noqa: RUF012

        async def stream(self, tool_use, invocation_state, **kwargs):
            text = squares._tool_func()
            result = {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}
            yield ToolResultEvent({**result, "structuredContent": {"result": text}})

    one = agent([Call("mcp"), "Done."], tools=[Mcp()])
    await one.invoke_async("Go.")
    assert len(str(one.messages)) < 10_000
    assert one.model.violations == []


def test_an_offloader_of_strands_is_warned_of_or_refused():
    theirs = StrandsOffloader(storage=StrandsStorage())
    with pytest.warns(UserWarning, match="brings an offloader of its own"):
        one = Agent(model=ScriptedModel(), plugins=[theirs, ours := ContextManager("auto")], callback_handler=None)
    assert ours.offloader is None
    assert "pin_message" in one.tool_names
    theirs = StrandsOffloader(storage=StrandsStorage(), include_retrieval_tool=False)
    with pytest.raises(InvalidValueError, match="put Strands' ContextOffloader before"):
        Agent(model=ScriptedModel(), plugins=[ContextManager("auto"), theirs], callback_handler=None)


def test_a_tool_of_the_same_name_is_named():
    @tool
    def pin_message() -> str:
        """Pin."""
        return ""

    with pytest.raises(InvalidValueError, match=r"a tool called pin_message already.*include_pin_tool=False"):
        agent(tools=[pin_message])


@pytest.mark.parametrize("options", [{"strategy": "auto"}, {"offloader": True}])
async def test_after_a_call_that_failed_the_next_request_is_legal(options):
    one = agent([ConnectionError("gone"), "Yes."], ContextManager(**options), retry_strategy=None)
    with pytest.raises(ConnectionError):
        await one.invoke_async("First.")
    await one.invoke_async("Second.")
    assert one.model.violations == []
    assert len(one.messages) == 3


async def test_a_session_manager_that_insists_on_its_thread_is_left_there():
    class Here(SessionManager):
        def __init__(self):
            self.session_id, self.thread, self.saved = "here", threading.get_ident(), 0

        def initialize(self, agent, **kwargs):
            pass

        def append_message(self, message, agent, **kwargs):
            pass

        def redact_latest_message(self, redact_message, agent, **kwargs):
            pass

        def sync_agent(self, agent, **kwargs):
            assert threading.get_ident() == self.thread
            self.saved += 1
            agent.conversation_manager.get_state()

    one = agent([Call("squares", {"count": 100})] * 40, session_manager=(session := Here()))
    await one.invoke_async("Go.")
    assert session.saved > 40
    assert one.model.violations == []


async def test_room_is_kept_for_the_answer_that_the_model_was_told_it_may_give():
    model = ScriptedModel([Call("squares", {"count": 60})] * 40, window=10_000, max_tokens=5_000)
    await agent(model=model).invoke_async("Go.")
    assert max(request.tokens for request in model.requests) <= 5_000
    assert model.overflows == 0


async def test_the_window_of_a_known_model_is_known(caplog):
    model = ScriptedModel([Call("squares", {"count": 60})] * 40, window=8_192, tells_window=False, model_id="gpt-4")
    await agent(model=model).invoke_async("Go.")
    assert model.overflows == 0
    assert "are assumed" not in caplog.text


async def test_a_smaller_model_than_was_thought_of_is_no_reason_to_stop(caplog):
    manager = ContextManager("auto", reserved=6_000)
    one = agent(["Yes."] * 3, manager, tools=())
    await one.invoke_async("First.")
    one.model = ScriptedModel(["Yes."] * 3, window=5_000, model_id="small")
    await one.invoke_async("Second.")
    assert one.model.calls == 1
    assert "small has less room for its answer than was asked for" in caplog.text
    with pytest.raises(InvalidValueError, match="reserved must be below the window"):
        agent(manager=ContextManager("auto", reserved=6_000), window=5_000)


async def test_a_conversation_manager_leaves_an_overflow_to_whoever_mends_it():
    small, big = ScriptedModel(window=2_000, model_id="small"), ScriptedModel(window=100_000, model_id="big")
    one = Agent(model=small, conversation_manager=SlidingWindowConversationManager(), callback_handler=None)

    def switch(event: AfterModelCallEvent) -> None:
        if isinstance(event.exception, ContextWindowOverflowException):
            event.agent.model, event.retry = big, True

    one.add_hook(switch, AfterModelCallEvent)
    await one.invoke_async("word " * 3_000)
    assert (len(one.messages), big.calls) == (2, 1)
