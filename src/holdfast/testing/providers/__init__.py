"""What the providers accept as the input of the next model call, as functions that name every violated rule.

    >>> openai_problems([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a", "content": "42"}])
    ["message 1: the result of 'a' answers no tool call made directly before."]

The rules are those of the published API references and, where these are silent, of the errors that the services
return. They look at form only: no limits on size, and no knowledge of which model is called.
"""

from __future__ import annotations

from holdfast.testing.providers.anthropic import anthropic_problems
from holdfast.testing.providers.converse import converse_problems
from holdfast.testing.providers.openai import openai_problems
from holdfast.testing.providers.signed_reasoning import canonical_json, prefix_signature, signed_reasoning_problems

__all__ = [
    "anthropic_problems",
    "canonical_json",
    "converse_problems",
    "openai_problems",
    "prefix_signature",
    "signed_reasoning_problems",
]
