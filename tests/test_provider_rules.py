"""The rules of the three providers: for each what keeps it and what breaks it, and runs of real agents."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import as_anthropic, as_converse, needs_recorded_runs, recorded_runs

from holdfast.errors import MissingExtraError
from holdfast.testing.providers import (
    anthropic_problems,
    converse,
    converse_problems,
    openai_problems,
    prefix_signature,
    signed_reasoning_problems,
)

PROBLEMS_OF = {"converse": converse_problems, "anthropic": anthropic_problems, "openai": openai_problems}
HALF_A_PAIR = "\ud83d"


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


class Converse:
    hi: ClassVar = {"text": "hi"}
    doc: ClassVar = {"document": {"name": "report", "format": "pdf", "source": {"bytes": b"%PDF"}}}
    image: ClassVar = {"image": {"format": "png", "source": {"bytes": b"png"}}}
    thought: ClassVar = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    cache: ClassVar = {"cachePoint": {"type": "default"}}

    @staticmethod
    def use(id: str = "a") -> dict[str, Any]:
        return {"toolUse": {"toolUseId": id, "name": "search", "input": {}}}

    @staticmethod
    def result(id: str = "a", *content: Any) -> dict[str, Any]:
        return {"toolResult": {"toolUseId": id, "content": list(content)}}


class Anthropic:
    hi: ClassVar = {"type": "text", "text": "hi"}
    thought: ClassVar = {"type": "thinking", "thinking": "hm", "signature": "s"}
    image: ClassVar = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}

    @staticmethod
    def use(id: str = "a", **more: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "search", "input": {}, **more}

    @staticmethod
    def result(id: str = "a", **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": id, **more}


class OpenAI:
    hi: ClassVar = {"role": "user", "content": "hi"}

    @staticmethod
    def calls(*ids: str, **more: Any) -> dict[str, Any]:
        calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
        return {"role": "assistant", "tool_calls": calls, **more}

    @staticmethod
    def result(id: str = "a", **more: Any) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": id, "content": "42", **more}


C, A, O = Converse, Anthropic, OpenAI  # noqa: E741

# For each rule: messages that keep it, messages that break it, and words of the sentence that says so.
RULES: dict[str, dict[str, tuple[Any, Any, str]]] = {
    "converse": {
        "a list": ([user(C.hi)], {"role": "user"}, "must be a list"),
        "not none": ([user(C.hi)], [], "at least one message"),
        "objects": ([user(C.hi)], ["hi"], "message 0: must be an object"),
        "known roles": ([user(C.hi)], [{"role": "system", "content": [C.hi]}], "message 0: its role must be"),
        "user first": ([user(C.hi)], [assistant(C.hi), user(C.hi)], "message 0: the first message"),
        "user last": ([user(C.hi)], [user(C.hi), assistant(C.hi)], "message 1: the last message"),
        "alternating": ([user(C.hi), assistant(C.hi), user(C.hi)], [user(C.hi), user(C.hi)], "message 1: roles must"),
        "content": ([user(C.hi)], [user()], "message 0: its content is empty"),
        "more than a cache point": ([user(C.hi, C.cache)], [user(C.cache)], "message 0: its content is empty"),
        "text": ([user({"text": " x"})], [user({"text": " \n"})], "message 0: a text block is blank"),
        "empty results": (
            [user(C.hi), assistant(C.use()), user(C.result("a", {"text": ""}))],
            [user(C.hi), assistant(C.use()), user(C.result("a"), {"text": ""})],
            "message 2: a text block is blank",
        ),
        "parameters": ([user(C.hi)], [{**user(C.hi), "metadata": {}}], "message 0: botocore says: "),
        "known blocks": ([user(C.hi)], [user({"hologram": {}})], "messages[0].content[0]"),
        "one member": ([user(C.hi)], [user({**C.hi, **C.image})], "message 0: botocore says: "),
        "types": ([user(C.hi)], [user({"text": 7})], "message 0: botocore says: "),
        "unicode": ([user({"text": "🙂"})], [user({"text": HALF_A_PAIR})], "message 0: holds half a surrogate"),
        "answered": (
            [user(C.hi), assistant(C.use("a"), C.use("b")), user(C.result("b"), C.result("a"))],
            [user(C.hi), assistant(C.use("a"), C.use("b")), user(C.result("b"))],
            "message 1: the tool call 'a' has no result directly after",
        ),
        "answered once": (
            [user(C.hi), assistant(C.use()), user(C.result())],
            [user(C.hi), assistant(C.use()), user(C.result(), C.result())],
            "message 2: the tool call 'a' has 2 results",
        ),
        "answered at once": (
            [user(C.hi), assistant(C.use()), user(C.result())],
            [user(C.hi), assistant(C.use()), user(C.hi), assistant(C.hi), user(C.result())],
            "message 4: the result of 'a' answers no tool call",
        ),
        "no orphans": ([user(C.hi)], [user(C.result())], "message 0: the result of 'a' answers no tool call"),
        "ids in a message": (
            [user(C.hi), assistant(C.use()), user(C.result()), assistant(C.use()), user(C.result())],
            [user(C.hi), assistant(C.use(), C.use()), user(C.result())],
            "message 1: 2 tool calls have the id 'a'",
        ),
        "ids": (
            [user(C.hi), assistant(C.use("a.b:c-d_1")), user(C.result("a.b:c-d_1"))],
            [user(C.hi), assistant(C.use("a b")), user(C.result("a b"))],
            "message 1: the id 'a b'",
        ),
        "calls by the assistant": (
            [user(C.hi), assistant(C.use()), user(C.result())],
            [user(C.use()), assistant(C.hi), user(C.hi)],
            "message 0: only the assistant may send toolUse",
        ),
        "results by the user": (
            [user(C.hi), assistant(C.use()), user(C.result())],
            [user(C.hi), assistant(C.result()), user(C.hi)],
            "message 1: only the user may send toolResult",
        ),
        "reasoning by the assistant": (
            [user(C.hi), assistant(C.thought, C.hi), user(C.hi)],
            [user(C.thought, C.hi)],
            "message 0: only the assistant may send reasoningContent",
        ),
        "reasoning leads on": (
            [user(C.hi), assistant(C.thought, C.use()), user(C.result())],
            [user(C.hi), assistant(C.hi, C.thought), user(C.hi)],
            "message 1: the last block",
        ),
        "images by the user": (
            [user(C.image)],
            [user(C.hi), assistant(C.image), user(C.hi)],
            "message 1: only the user may send image",
        ),
        "documents with text": ([user(C.doc, C.hi)], [user(C.doc)], "message 0: a document must come with"),
    },
    "anthropic": {
        "a list": ([user(A.hi)], "hi", "must be a list"),
        "not none": ([user(A.hi)], [], "at least one message"),
        "objects": ([user(A.hi)], [None], "message 0: must be an object"),
        "text as content": ([{"role": "user", "content": "hi"}], [{"role": "user", "content": None}], "message 0: "),
        "known roles": ([user(A.hi)], [{"role": "tool", "content": "x"}], "message 0: its role must be"),
        "keys of messages": ([user(A.hi)], [{**user(A.hi), "metadata": {}}], "message 0: has an unknown key 'meta"),
        "all keys of messages": ([user(A.hi)], [{"role": "user"}], "message 0: lacks 'content'"),
        "user first": ([user(A.hi)], [assistant(A.hi), user(A.hi)], "message 0: the first message"),
        "content": ([user(A.hi), assistant()], [user(A.hi), user(), user(A.hi)], "message 1: its content is empty"),
        "empty text as content": ([user(A.hi)], [{"role": "user", "content": ""}], "message 0: its content is empty"),
        "text": ([user(A.hi)], [user({"type": "text", "text": "\n "})], "message 0: a text block is blank"),
        "text as blank content": ([user(A.hi)], [{"role": "user", "content": " "}], "message 0: a text block is blank"),
        "text in results": (
            [user(A.hi), assistant(A.use()), user(A.result(content=""))],
            [user(A.hi), assistant(A.use()), user(A.result(content=[{"type": "text", "text": ""}]))],
            "message 2: a text block is blank",
        ),
        "known blocks": ([user(A.hi)], [user({"type": "hologram"})], "message 0: a content block has an unknown type"),
        "objects as blocks": ([user(A.hi)], [user("hi")], "message 0: a content block must be an object"),
        "blocks in results": (
            [user(A.hi), assistant(A.use()), user(A.result(content=[A.hi, A.image]))],
            [user(A.hi), assistant(A.use()), user(A.result(content=[A.use()]))],
            "message 2: a content block has an unknown type, 'tool_use'",
        ),
        "keys of blocks": (
            [user({**A.hi, "cache_control": {"type": "ephemeral"}})],
            [user({**A.hi, "tracking_id": 1})],
            "message 0: a text block has an unknown key 'tracking_id'",
        ),
        "no cache on thinking": (
            [user(A.hi), assistant(A.thought, A.hi), user(A.hi)],
            [user(A.hi), assistant({**A.thought, "cache_control": {}}, A.hi), user(A.hi)],
            "message 1: a thinking block has an unknown key 'cache_control'",
        ),
        "signed thinking": (
            [user(A.hi), assistant(A.thought, A.hi), user(A.hi)],
            [user(A.hi), assistant({"type": "thinking", "thinking": "hm"}, A.hi), user(A.hi)],
            "message 1: a thinking block lacks 'signature'",
        ),
        "types": ([user(A.hi)], [user({"type": "text", "text": 7})], "message 0: a text block cannot have a 'text'"),
        "unicode": ([user(A.hi)], [{"role": "user", "content": HALF_A_PAIR}], "message 0: holds half a surrogate"),
        "the ending": (
            [user(A.hi), assistant(A.hi)],
            [user(A.hi), assistant({"type": "text", "text": "so "})],
            "message 1: the assistant's last message ends with whitespace",
        ),
        "thinking first": (
            [user(A.hi), assistant(A.thought, A.hi, A.thought, A.use()), user(A.result())],
            [user(A.hi), assistant(A.hi, A.thought, A.hi), user(A.hi)],
            "message 1: thinking must come before",
        ),
        "thinking leads on": (
            [user(A.hi), assistant(A.thought, A.hi), user(A.hi)],
            [user(A.hi), assistant(A.thought), user(A.hi)],
            "message 1: the last block",
        ),
        "thinking by the assistant": (
            [user(A.hi), assistant(A.thought, A.hi), user(A.hi)],
            [user({"type": "redacted_thinking", "data": "x"}, A.hi)],
            "message 0: only the assistant may send redacted_thinking",
        ),
        "calls by the assistant": ([user(A.hi)], [user(A.use())], "message 0: only the assistant may send tool_use"),
        "merged turns": (
            [user(A.hi), assistant(A.use("a")), assistant(A.use("b")), user(A.result("a")), user(A.result("b"), A.hi)],
            [user(A.hi), assistant(A.use("a")), user(A.hi), user(A.result("a"))],
            "message 3: tool_result blocks must come before",
        ),
        "results first": (
            [user(A.hi), assistant(A.use()), user(A.result(), A.hi)],
            [user(A.hi), assistant(A.use()), user(A.hi, A.result())],
            "message 2: tool_result blocks must come before",
        ),
        "answered": (
            [user(A.hi), assistant(A.use("a"), A.use("b")), user(A.result("b"), A.result("a"))],
            [user(A.hi), assistant(A.use("a"), A.use("b")), user(A.result("b"))],
            "message 1: the tool call 'a' has no result directly after",
        ),
        "answered at the end": (
            [user(A.hi), assistant(A.use()), user(A.result())],
            [user(A.hi), assistant(A.use())],
            "message 1: the tool call 'a' has no result directly after",
        ),
        "answered once": (
            [user(A.hi), assistant(A.use()), user(A.result())],
            [user(A.hi), assistant(A.use()), user(A.result(), A.result())],
            "message 2: the tool call 'a' has 2 results",
        ),
        "no orphans": ([user(A.hi)], [user(A.result())], "message 0: the result of 'a' answers no tool call"),
        "ids in the conversation": (
            [user(A.hi), assistant(A.use("a")), user(A.result("a")), assistant(A.use("b")), user(A.result("b"))],
            [user(A.hi), assistant(A.use("a")), user(A.result("a")), assistant(A.use("a")), user(A.result("a"))],
            "messages 1, 3: 2 tool calls have the id 'a'",
        ),
        "ids": (
            [user(A.hi), assistant(A.use("a-b_1")), user(A.result("a-b_1"))],
            [user(A.hi), assistant(A.use("a.b")), user(A.result("a.b"))],
            "message 1: the id 'a.b'",
        ),
    },
    "openai": {
        "a list": ([O.hi], None, "must be a list"),
        "not none": ([O.hi], [], "at least one message"),
        "objects": ([O.hi], [7], "message 0: must be an object"),
        "known roles": (
            [{"role": "system", "content": "x"}, {"role": "developer", "content": "x"}, O.hi],
            [{"role": "function", "content": "x"}],
            "message 0: its role must be",
        ),
        "keys": ([{**O.hi, "name": "alice"}], [{**O.hi, "metadata": {}}], "message 0: has an unknown key 'metadata'"),
        "content": ([{"role": "user", "content": ""}], [{"role": "user", "content": None}], "message 0: cannot have"),
        "content of results": (
            [O.hi, O.calls("a"), O.result(content="")],
            [O.hi, O.calls("a"), {"role": "tool", "tool_call_id": "a"}],
            "message 2: lacks 'content'",
        ),
        "something to say": (
            [O.hi, O.calls("a", content=None), O.result(), {"role": "assistant", "content": None, "refusal": "no"}],
            [O.hi, {"role": "assistant", "content": None}],
            "message 1: an assistant's message needs",
        ),
        "parts": (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
            [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
            "message 0: a content part cannot have the type 'image_url' here",
        ),
        "objects as parts": ([O.hi], [{"role": "user", "content": ["hi"]}], "message 0: a content part must be"),
        "some part": ([O.hi], [{"role": "user", "content": []}], "message 0: its content is an empty list"),
        "keys of parts": (
            [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}],
            "message 0: a text part has an unknown key 'cache_control'",
        ),
        "unicode": ([O.hi], [{"role": "user", "content": HALF_A_PAIR}], "message 0: holds half a surrogate"),
        "some call": ([O.hi, O.calls("a"), O.result()], [O.hi, O.calls(content="x")], "message 1: tool_calls is an"),
        "calls": (
            [O.hi, O.calls("a"), O.result()],
            [O.hi, {"role": "assistant", "tool_calls": [{"id": "a", "type": "hologram"}]}, O.result()],
            "message 1: a tool call has an unknown type",
        ),
        "arguments": (
            [O.hi, O.calls("a"), O.result()],
            [
                O.hi,
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}],
                },
                O.result(),
            ],
            "message 1: a called tool cannot have a 'arguments' of type dict",
        ),
        "answered": (
            [O.hi, O.calls("a", "b"), O.result("b"), O.result("a")],
            [O.hi, O.calls("a", "b"), O.result("b")],
            "message 1: the tool call 'a' has no result directly after",
        ),
        "answered at once": (
            [O.hi, O.calls("a"), O.result(), O.hi],
            [O.hi, O.calls("a"), O.hi, O.result()],
            "message 1: the tool call 'a' has no result directly after",
        ),
        "answered once": (
            [O.hi, O.calls("a"), O.result()],
            [O.hi, O.calls("a"), O.result(), O.result()],
            "message 2: the tool call 'a' has 2 results",
        ),
        "no orphans": ([O.hi], [O.hi, O.result()], "message 1: the result of 'a' answers no tool call"),
        "ids in a message": (
            [O.hi, O.calls("a"), O.result(), O.calls("a"), O.result()],
            [O.hi, O.calls("a", "a"), O.result()],
            "message 1: 2 tool calls have the id 'a'",
        ),
    },
}
CASES = [
    pytest.param(provider, *case, id=f"{provider}-{name}")
    for provider, rules in RULES.items()
    for name, case in rules.items()
]

KEYS = (
    *("role", "content", "type", "text", "tool_calls", "tool_call_id", "id", "function", "tool_use_id", "input"),
    *("toolUse", "toolResult", "toolUseId", "reasoningContent", "reasoningText", "signature"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["user", "assistant", "tool", "text", "a", "", " "]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(("provider", "kept", "broken", "sentence"), CASES)
def test_a_rule_is_kept_and_broken(provider: str, kept: Any, broken: Any, sentence: str) -> None:
    assert PROBLEMS_OF[provider](kept) == []
    before = deepcopy(broken)
    problems = PROBLEMS_OF[provider](broken)
    assert any(sentence in problem for problem in problems), problems
    assert broken == before


@pytest.mark.parametrize("provider", PROBLEMS_OF)
@given(messages=JSON)
def test_whatever_is_malformed_is_a_problem_and_no_error(provider: str, messages: Any) -> None:
    problems = PROBLEMS_OF[provider](messages)
    assert problems or isinstance(messages, list)
    assert all(problem.startswith("message") and problem.endswith(".") for problem in problems)


@given(messages=JSON)
def test_malformed_messages_have_no_signed_reasoning(messages: Any) -> None:
    problems = signed_reasoning_problems(messages, prefix_signature)
    assert all(problem.startswith("message") for problem in problems)


def test_botocore_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_without_botocore(module: str, *, extra: str) -> Any:
        raise MissingExtraError(f"{module} is not installed; run: pip install 'holdfast[{extra}]'")

    converse._converse_input.cache_clear()
    monkeypatch.setattr(converse, "import_extra", import_without_botocore)
    with pytest.raises(MissingExtraError, match=r"pip install 'holdfast\[s3\]'"):
        converse_problems([user(C.hi)])


@pytest.mark.parametrize("thought", ["converse", "anthropic"])
def test_signed_reasoning_is_bound_to_what_precedes_it(thought: str) -> None:
    before = [user(C.hi), assistant(C.hi), user(C.hi)]
    signature = prefix_signature(before)
    signed = {
        "converse": {"reasoningContent": {"reasoningText": {"text": "hm", "signature": signature}}},
        "anthropic": {"type": "thinking", "thinking": "hm", "signature": signature},
    }[thought]
    assert signed_reasoning_problems([*before, assistant(signed, C.hi)], prefix_signature) == []
    assert signed_reasoning_problems([user(C.hi), assistant(signed, C.hi)], prefix_signature) == [
        "message 1: its reasoning was signed for other messages than those before it."
    ]


def test_unsigned_reasoning_is_bound_to_nothing() -> None:
    unsigned = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    redacted = {"reasoningContent": {"redactedContent": b"x"}}
    assert signed_reasoning_problems([user(C.hi), assistant(unsigned, redacted, C.hi)], prefix_signature) == []


def test_a_prefix_signature_heeds_content_and_order_but_not_the_order_of_keys() -> None:
    first, second = user(C.image), {"role": "assistant", "content": [C.hi]}
    assert prefix_signature([first, second]) == prefix_signature([first, {"content": [C.hi], "role": "assistant"}])
    others = [
        [],
        [first],
        [second, first],
        [user(C.hi), second],
        [user({"image": {"source": {"bytes": b"x"}}}), second],
    ]
    assert len({prefix_signature(messages) for messages in [[first, second], *others]}) == 1 + len(others)


def test_what_cannot_be_sent_cannot_be_signed() -> None:
    with pytest.raises(TypeError, match="object cannot be sent"):
        prefix_signature([user(object())])


@needs_recorded_runs
@pytest.mark.parametrize("name", ["swe", "tau", "web"])
def test_recorded_runs_are_legal_in_all_three_forms(name: str) -> None:
    for run in recorded_runs(name):
        assert openai_problems(run.messages) == [], run.id
        assert converse_problems(as_converse(run.messages)) == [], run.id
        assert anthropic_problems(as_anthropic(run.messages)) == [], run.id


@needs_recorded_runs
def test_translations_lose_no_call_and_no_result() -> None:
    for run in recorded_runs("tau"):
        results = [message["content"] for message in run.messages if message["role"] == "tool"]
        blocks = [block for message in as_converse(run.messages) for block in message["content"]]
        assert [b["toolResult"]["content"][0]["text"] for b in blocks if "toolResult" in b] == results
        assert sum("toolUse" in block for block in blocks) == len(results)
