"""What Bedrock's Converse accepts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from holdfast.extras import import_extra
from holdfast.testing.providers.reading import Message, Rule, is_blank, mapping_of, problems
from holdfast.testing.providers.rules import (
    blocks_have_their_role,
    messages_are_objects,
    roles_are_known,
    starts_with_user,
    text_is_unicode,
)
from holdfast.testing.providers.turns import (
    Turn,
    calls_and_results_match,
    ids_among,
    ids_are_unique_in_a_turn,
    ids_match,
)

__all__ = ["converse_problems"]

_LONGEST_REPORT = 300
_HOMES = {
    "toolUse": "assistant",
    "reasoningContent": "assistant",
    "toolResult": "user",
    "image": "user",
    "document": "user",
    "video": "user",
}


def converse_problems(messages: object) -> list[str]:
    """Every reason for which Bedrock's Converse would refuse *messages*, one sentence each. Needs botocore."""
    return problems(messages, _RULES)


@lru_cache(maxsize=1)
def _converse_input() -> tuple[Any, Any]:
    """botocore's validator and the shape of Converse's input."""
    loaders, model, validate = (
        import_extra(f"botocore.{module}", extra="s3") for module in ("loaders", "model", "validate")
    )
    service = model.ServiceModel(loaders.Loader().load_service_model("bedrock-runtime", "service-2"))
    return validate.ParamValidator(), service.operation_model("Converse").input_shape


def _botocore_accepts(messages: list[Message]) -> Iterator[str]:
    validator, shape = _converse_input()
    for message in messages:
        found = validator.validate({"modelId": "any", "messages": [message.raw]}, shape)
        if found.has_errors():
            report = textwrap.shorten(found.generate_report(), _LONGEST_REPORT)
            yield message.says("botocore says: " + report.replace("messages[0]", f"messages[{message.index}]"))


def _roles_alternate(messages: list[Message]) -> Iterator[str]:
    for before, message in pairwise(messages):
        if message.role and message.role == before.role:
            yield message.says(f"roles must alternate, but this and the one before are the {message.role}'s")


def _ends_with_user(messages: list[Message]) -> Iterator[str]:
    if messages[-1].role != "user":
        yield messages[-1].says("the last message must be the user's")


def _content_is_not_empty(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.raw, dict) and all("cachePoint" in block for block in message.blocks):
            yield message.says("its content is empty")


def _text_is_not_blank(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        if any(is_blank(block.get("text")) for block in message.blocks):
            yield message.says("a text block is blank")


def _documents_come_with_text(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        kinds = {kind for block in message.blocks for kind in _kinds(block)}
        if "document" in kinds and "text" not in kinds:
            yield message.says("a document must come with a text block")


def _kinds(block: dict[str, Any]) -> Iterable[str]:
    return (kind for kind in block if isinstance(kind, str))


def _reasoning_is_not_last(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        kept = [block for block in message.blocks if "cachePoint" not in block]
        if kept and "reasoningContent" in kept[-1]:
            yield message.says("the last block of a message cannot be reasoning")


def _turns(messages: list[Message]) -> list[Turn]:
    return [Turn(m.index, _ids(m.blocks, "toolUse"), _ids(m.blocks, "toolResult")) for m in messages]


def _ids(blocks: Iterable[dict[str, Any]], kind: str) -> tuple[str, ...]:
    return ids_among(mapping_of(block.get(kind)).get("toolUseId") for block in blocks)


_RULES: tuple[Rule, ...] = (
    messages_are_objects,
    _botocore_accepts,
    text_is_unicode,
    roles_are_known("user", "assistant"),
    starts_with_user,
    _roles_alternate,
    _ends_with_user,
    _content_is_not_empty,
    _text_is_not_blank,
    _documents_come_with_text,
    _reasoning_is_not_last,
    blocks_have_their_role(_kinds, _HOMES),
    calls_and_results_match(_turns, ids_match("[a-zA-Z0-9_.:-]{1,64}"), ids_are_unique_in_a_turn),
)
