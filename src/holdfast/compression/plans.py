"""What a compressor wants to do: values that can be printed, tested, applied and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.messages import Message

__all__ = ["Drop", "Edit", "Insert", "Plan", "Rewrite", "apply", "check_plan"]


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out the messages from *start* up to, not including, *stop*."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Insert:
    """Put a new message before the one at *start*."""

    start: int
    message: Message


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Put *message* in the place of the one at *start*."""

    start: int
    message: Message


Edit: TypeAlias = Drop | Insert | Rewrite


@dataclass(frozen=True)
class Plan:
    """Edits in the order of their places, what they achieve, and why they are needed.

    Of the messages that leave, *made_here* were put there by holdfast: earlier summaries and the like. *failure* is why
    there is no better plan, if one was tried.
    """

    edits: tuple[Edit, ...]
    tokens_before: int
    tokens_after: int
    reason: str
    made_here: int = 0
    failure: Exception | None = field(default=None, compare=False, repr=False)

    @property
    def saved(self) -> int:
        """By how many tokens it makes the request smaller."""
        return self.tokens_before - self.tokens_after

    @property
    def removed(self) -> int:
        """How many messages leave."""
        return sum(edit.stop - edit.start for edit in self.edits if isinstance(edit, Drop))

    @property
    def inserted(self) -> int:
        """How many messages are new."""
        return sum(isinstance(edit, Insert) for edit in self.edits)

    def __str__(self) -> str:
        rewritten = sum(isinstance(edit, Rewrite) for edit in self.edits)
        return (
            f"{self.reason}: {self.tokens_before:,} → {self.tokens_after:,} tokens, "
            f"{self.removed:,} messages removed, {rewritten:,} shortened"
        )


def check_plan(plan: object, count: int) -> None:
    """Refuse what is no plan for *count* messages. A compressor may be anybody's."""
    if plan is None:
        return
    if not isinstance(plan, Plan):
        raise InvalidTypeError(f"a compressor must return a Plan or None, got {type(plan).__name__}")
    reached = 0
    for edit in plan.edits:
        stop = edit.stop if isinstance(edit, Drop) else edit.start + isinstance(edit, Rewrite)
        if not reached <= edit.start <= stop <= count:
            raise InvalidValueError(
                f"the edits of a plan must be in the order of their places, each of the {count:,} messages in one at "
                f"most; {type(edit).__name__} at {edit.start} comes after {reached}, or reaches to {stop}"
            )
        reached = stop


def apply(plan: Plan, messages: Sequence[Message]) -> list[Message]:
    """Return the messages as the plan wants them; the ones given are not changed."""
    result: list[Message] = []
    done = 0
    for edit in plan.edits:
        result += messages[done : edit.start]
        done = edit.start
        if isinstance(edit, Drop):
            done = edit.stop
        else:
            result.append(edit.message)
            done += isinstance(edit, Rewrite)
    return [*result, *messages[done:]]
