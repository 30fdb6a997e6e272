"""The moments of an agent's life, and who is told of them."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.compression import ContextCompression
from holdfast.hooks import (
    AfterInvocation,
    AfterModelCall,
    AfterToolCall,
    BeforeModelCall,
    Conversation,
    HookRegistry,
    MessageAdded,
)

CONVERSATION = Conversation([])
EVENTS = [
    MessageAdded(CONVERSATION, {"role": "user", "content": "hi"}),
    AfterToolCall(CONVERSATION, "read", "id", "result"),
    BeforeModelCall(CONVERSATION),
    AfterModelCall(CONVERSATION),
    AfterInvocation(CONVERSATION),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
async def test_whoever_wants_to_know_is_told_and_nobody_else(event):
    registry, told = HookRegistry(), []
    for kind in map(type, EVENTS):
        registry.add_callback(kind, told.append)
    assert await registry.invoke(event) is event
    assert told == [event]


async def test_everybody_is_told_in_the_order_in_which_they_came_and_async_ones_are_awaited():
    registry, told = HookRegistry(), []

    async def later(event):
        await asyncio.sleep(0)
        told.append("second")

    registry.add_callback(AfterInvocation, lambda event: told.append("first"))
    registry.add_callback(AfterInvocation, later)
    registry.add_callback(AfterInvocation, lambda event: told.append("third"))
    await registry.invoke(AfterInvocation(CONVERSATION))
    assert told == ["first", "second", "third"]


async def test_the_event_comes_back_with_what_was_made_of_it():
    registry = HookRegistry()

    def shorten(event):
        event.result = event.result[:3]

    registry.add_callback(AfterToolCall, shorten)
    event = await registry.invoke(AfterToolCall(CONVERSATION, "read", "id", "a long result"))
    assert event.result == "a l"


async def test_an_event_that_nobody_wants_is_no_problem():
    assert not (await HookRegistry().invoke(AfterModelCall(CONVERSATION))).retry


async def test_errors_are_the_callers():
    registry = HookRegistry()

    def fail(event):
        raise OSError("no")

    registry.add_callback(BeforeModelCall, fail)
    with pytest.raises(OSError, match="no"):
        await registry.invoke(BeforeModelCall(CONVERSATION))


async def test_who_comes_while_others_are_told_is_told_the_next_time():
    registry, told = HookRegistry(), []

    def bring_another(event):
        registry.add_callback(AfterInvocation, lambda event: told.append("another"))

    registry.add_callback(AfterInvocation, bring_another)
    await registry.invoke(AfterInvocation(CONVERSATION))
    assert told == []
    await registry.invoke(AfterInvocation(CONVERSATION))
    assert told == ["another"]


async def test_a_plugin_needs_no_more_than_a_registry():
    registry = HookRegistry()
    ContextCompression(window=1_000).register_hooks(registry)
    long, answer, question = (
        {"role": role, "content": text} for role, text in (("user", "x " * 5_000), ("assistant", "y"), ("user", "z"))
    )
    conversation = Conversation([long, answer, question])
    await registry.invoke(BeforeModelCall(conversation))
    assert conversation.messages[-1] is question
    assert long not in conversation.messages


def test_conversations_with_the_same_messages_are_still_two():
    assert Conversation([]) != Conversation([])
