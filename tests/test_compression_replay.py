"""Recorded runs, met turn by turn as the live agent met them: every request fits and is legal."""

from __future__ import annotations

import pytest
from recorded import Run, as_anthropic, as_converse, recorded_runs

from holdfast import ContextCompression
from holdfast.compression import Plan
from holdfast.dialects import dialect_named
from holdfast.hooks import AfterModelCall, BeforeModelCall, Conversation
from holdfast.testing import anthropic_problems, converse_problems, openai_problems

PROBLEMS = {"converse": converse_problems, "anthropic": anthropic_problems, "openai": openai_problems}
FORMS = {"converse": as_converse, "anthropic": as_anthropic, "openai": lambda messages: list(messages)}
WINDOW = 32_000

# The first time it reads botocore's description of the service from disk.
assert converse_problems([{"role": "user", "content": [{"text": "Hello."}]}]) == []


async def requests_of(run: Run, dialect: str, compression: ContextCompression) -> int:
    """Replay one run; return how many model calls it made."""
    conversation = Conversation([], system_prompt=run.system, window=WINDOW, reserved=2_000)
    calls = 0
    for wire in FORMS[dialect](run.messages):
        if wire["role"] == "assistant":
            await compression.before_model_call(BeforeModelCall(conversation))
            check_request(conversation, dialect, compression)
            await compression.after_model_call(AfterModelCall(conversation))
            calls += 1
        conversation.messages.append(wire)
    return calls


def check_request(conversation: Conversation, dialect: str, compression: ContextCompression) -> None:
    messages = conversation.messages
    assert compression.window.budget(conversation).limit >= compression.window.history.total
    if messages and messages[-1]["role"] != "assistant":
        assert PROBLEMS[dialect](dialect_named(dialect).sendable(messages)) == []


@pytest.mark.extended
@pytest.mark.parametrize("method", ["truncate", "summarize"])
@pytest.mark.parametrize("name", ["swe", "tau", "web"])
async def test_every_request_fits_and_is_legal_and_reductions_are_rare(name, method):
    calls, plans = 0, list[Plan]()
    for number, run in enumerate(recorded_runs(name)):
        dialect = list(FORMS)[number % 3]
        compression = ContextCompression(method, dialect=dialect, on_reduction=plans.append)
        calls += await requests_of(run, dialect, compression)
    assert calls > 500
    assert len(plans) < calls / 8
