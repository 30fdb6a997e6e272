"""A recording lived through again: tools answer what they answered then, and so does the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from holdfast.compression.extractive import extractive_summary
from holdfast.compression.keeping import Reduced
from holdfast.compression.plans import Insert, Rewrite
from holdfast.compression.summary_request import SummaryRequest
from holdfast.compression.words import removed_by, rewritten_by
from holdfast.errors import HoldfastError
from holdfast.hooks import AfterToolCall
from holdfast.ledger import FailureRecord, OffloadRecord, ReductionRecord
from holdfast.messages import SUMMARY, ToolResult
from holdfast.replay.counts import Counts
from holdfast.replay.lookups import Lookups, kept
from holdfast.replay.outcomes import Event, Outcome
from holdfast.replay.policies import Policy
from holdfast.replay.prepared import Prepared
from holdfast.replay.timeline import Timeline
from holdfast.reports.kinds import name_of_tool

__all__ = ["live"]

_CHARACTERS_PER_TOKEN = 3
_LONGEST_FAILURE = 300


class _TooLongError(Exception):
    """What a provider says of a request above its window."""


class _Agent(Protocol):
    """Lives through one run, message by message; *wires* is its history as it would be sent."""

    wires: list[Any]
    timeline: Timeline
    counts: Counts
    events: list[Event]

    async def hear(self, number: int) -> None:
        """Take in a message of the user, or what tools answered."""
        ...

    async def answer(self, number: int) -> None:
        """Call the model, and take in what it answered then."""
        ...


async def live(prepared: Prepared, policy: Policy, window: int) -> Outcome:
    """Return what becomes of a recording under a policy. What goes wrong ends the run, and is part of the outcome."""
    agent: _Agent = _Unmanaged(prepared) if policy.config is None else _Managed(prepared, policy, window)
    left, failure = dict.fromkeys(range(len(prepared.largest)), 0), ""
    arrived: dict[int, int] = {}
    places = {large.number - 1: place for place, large in enumerate(prepared.largest)}
    try:
        for number, message in enumerate(prepared.messages):
            await (agent.answer if message.role == "assistant" else agent.hear)(number)
            if message.role == "assistant":
                left.update(arrived)
                arrived.clear()
            if number in places:
                arrived[places[number]] = prepared.tokens_of(agent.wires[-1])
    except (HoldfastError, _TooLongError) as error:
        failure = str(error)[:_LONGEST_FAILURE]
        agent.events[:] = [*_before(agent.events, len(agent.timeline)), Event(len(agent.timeline), "failure", failure)]
    counts = agent.counts + Counts.of_requests(agent.timeline, window) + _unreached(prepared, agent, failure)
    return Outcome(policy.name, tuple(agent.timeline), tuple(agent.events), counts, tuple(left.values()), failure)


def _before(events: Iterable[Event], request: int) -> Iterator[Event]:
    """Yield events without the failures that ended the run: what is raised in the end says all of it."""
    return (event for event in events if event.kind != "failure" or event.request != request)


def _unreached(prepared: Prepared, agent: _Agent, failure: str) -> Counts:
    """Count what a run that ended early never got to as lost."""
    return Counts(lost=prepared.values - agent.counts.values, failed=1) if failure else Counts()


class _Unmanaged:
    """Sends everything, however long it gets: nothing is lost, and nothing fits for ever."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        recording = prepared.recording
        self.wires: list[Any] = []
        self._sent = 0
        self.timeline = Timeline(prepared.parts.fixed(recording.system_prompt, recording.tool_specs))
        self.counts = Counts()
        self.events: list[Event] = []

    async def hear(self, number: int) -> None:
        self.wires.append(self._prepared.recording.messages[number])

    async def answer(self, number: int) -> None:
        self.timeline.go_on([self._prepared.parts.of(wire) for wire in self.wires[self._sent :]])
        self._sent = len(self.wires)
        self.counts += Counts(kept=len(self._prepared.uses_at(number)))
        self.wires.append(self._prepared.recording.messages[number])


class _Managed:
    """Does what a loop with a `ContextManager` does."""

    def __init__(self, prepared: Prepared, policy: Policy, window: int) -> None:
        self._prepared = prepared
        self._window = window
        self.counts = Counts()
        self.events: list[Event] = []
        self._called: dict[str, str] = {}
        recording = prepared.recording
        manager = policy.manager(dialect=recording.dialect, summarize=self._summarize, count_text=prepared.count_text)
        own = {tool.name for tool in manager.agent_tools}
        specs = [spec for spec in recording.tool_specs if name_of_tool(spec) not in own]
        self.wires: list[Any] = []
        self._conversation = manager.converse(
            self.wires, system_prompt=recording.system_prompt, tool_specs=specs, window=window
        )
        self.timeline = Timeline(prepared.parts.fixed(recording.system_prompt, self._conversation.tool_specs))
        self._lookups = Lookups(manager, self._conversation.conversation)
        self._listen_to(manager)

    async def hear(self, number: int) -> None:
        message, wire = self._prepared.messages[number], self._prepared.recording.messages[number]
        if any(True for _ in message.tool_results):
            wire = await self._with_results(wire, message.blocks)
        elif number and self._prepared.messages[number - 1].role == "assistant":
            await self._conversation.end()
        self.wires.append(wire)

    async def answer(self, number: int) -> None:
        async def send(_: list[Any]) -> dict[str, Any]:
            return await self._sent(number)

        await self._conversation.call_model(send)
        self._called.update((use.id, use.name) for use in self._prepared.messages[number].tool_uses)
        self.wires.append(self._prepared.recording.messages[number])

    async def _sent(self, number: int) -> dict[str, Any]:
        """Answer with the usage alone, after a look at what the model was sent."""
        parts = [self._prepared.parts.of(wire) for wire in self.wires]
        tokens = self.timeline.measure(parts).tokens
        if tokens > self._window:
            raise _TooLongError(f"prompt is too long: {tokens} tokens > {self._window} maximum")
        request = self.timeline.add(parts)
        if uses := self._prepared.uses_at(number):
            texts = [str(self._prepared.recording.system_prompt or ""), *(part.text for part in parts)]
            for use in uses:
                self.counts += Counts(kept=1) if kept(use, texts) else await self._lookups.look_for(use, request)
        return {"usage": {"prompt_tokens": tokens}}

    async def _with_results(self, wire: Any, blocks: tuple[Any, ...]) -> Any:
        """Return a message whose results left as far as they are large; the very object if none is."""
        if self._prepared.dialect.name == "openai":
            return await self._after_tool(blocks[0], wire)
        pairs = list(zip(wire["content"], blocks, strict=True))
        now = [await self._after_tool(block, part) if isinstance(block, ToolResult) else part for part, block in pairs]
        unchanged = all(one is other for (one, _), other in zip(pairs, now, strict=True))
        return wire if unchanged else {**wire, "content": now}

    async def _after_tool(self, result: Any, wire: Any) -> Any:
        name = self._called.get(result.tool_use_id, "unknown tool")
        event = AfterToolCall(self._conversation.conversation, name, result.tool_use_id, wire)
        return (await self._conversation.hooks.invoke(event)).result

    def _summarize(self, request: SummaryRequest) -> str:
        """Stand in for a model, which would have been sent the request."""
        longest = request.longest * _CHARACTERS_PER_TOKEN
        summary = extractive_summary(request.messages, known=request.known, longest=longest)
        count = self._prepared.count_text
        asked = count(request.system_prompt) + count(request.prompt)
        self.counts += Counts(summary_input=asked, summary_output=count(summary))
        return summary

    def _listen_to(self, manager: Any) -> None:
        if manager.compression is not None:
            manager.compression.listen(self._reduced)
        manager.on("offload", self._offloaded)
        for kind in ("reduction", "failure"):
            manager.on(kind, self._told)

    def _offloaded(self, record: OffloadRecord) -> None:
        self.counts += Counts(offloaded=1, offloaded_tokens=max(record.saved, 0))
        self._told(record)

    def _reduced(self, event: Any) -> None:
        if isinstance(event, Reduced):
            messages = (edit.message for edit in event.plan.edits if isinstance(edit, (Insert, Rewrite)))
            left = removed_by(event.plan)
            is_summary = any(message.made_as == SUMMARY for message in messages)
            gone = Counts(summarised=left) if is_summary else Counts(dropped=left)
            self.counts += gone + Counts(reductions=1, shortened=rewritten_by(event.plan))

    def _told(self, record: OffloadRecord | ReductionRecord | FailureRecord) -> None:
        what = record.what if record.kind != "failure" else f"{record.what}: {getattr(record, 'error', '')}"
        self.events.append(Event(len(self.timeline), record.kind, what, max(record.saved, 0)))
