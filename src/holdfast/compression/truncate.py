"""Truncation: the oldest messages leave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from holdfast.budget import Budget
from holdfast.checks import check_flag
from holdfast.compression.options import check_messages, protection_of
from holdfast.compression.plans import Plan
from holdfast.compression.protection import Protection
from holdfast.compression.reduction import Reduction
from holdfast.defaults import WINDOW_SIZE
from holdfast.history import History

__all__ = ["Truncate", "plan_window"]


@dataclass(frozen=True, kw_only=True)
class Truncate:
    """Drop the oldest messages that are not protected: the first and last so many are, or *protect* says which.

    After an invocation, at most *window_size* messages stay. When tokens run short, large old tool results are
    shortened first, then whole messages leave down to the low-water mark, and recent results are shortened last.
    """

    window_size: int = WINDOW_SIZE
    protect_first: int | None = None
    protect_last: int | None = None
    protect_task: bool | None = None
    protect: Protection | None = None
    shorten_results: bool = True

    def __post_init__(self) -> None:
        check_messages("window_size", self.window_size)
        check_flag("shorten_results", self.shorten_results)
        _ = self.protection

    @cached_property
    def protection(self) -> Protection:
        """What stays."""
        named = {"first": self.protect_first, "last": self.protect_last, "task": self.protect_task}
        return protection_of(self.protect, named, usually=Protection())

    def plan(self, history: History, budget: Budget) -> Plan | None:
        """Return what brings *history* down to the budget; None if it is there already, or nothing can leave."""
        if history.total <= budget.target:
            return None
        reduction = Reduction(history, self.protection, shortens=self.shorten_results)
        reduction.make_room(budget)
        target = reduction.target(budget)
        reduction.shorten_old_results(target)
        reduction.drop_oldest(target)
        return reduction.fitting(budget, "truncated to stay within the window")

    def plan_window(self, history: History, *, down_to: int | None = None) -> Plan | None:
        """Return what leaves so that at most `window_size` messages stay; *down_to* goes further once it acts."""
        return plan_window(history, self.window_size, self.protection, down_to=down_to)


def plan_window(
    history: History, window_size: int, protection: Protection, *, down_to: int | None = None
) -> Plan | None:
    """Return what leaves so that at most *window_size* messages stay, or *down_to* once there were more."""
    if len(history) <= window_size:
        return None
    last = history.messages[-1]
    at_rest = last.role == "assistant" and not any(last.tool_uses)
    reduction = Reduction(history, protection, keeps_latest=window_size > 0 or not at_rest)
    reduction.drop_to_length(window_size if down_to is None else down_to)
    reason = f"truncated to {window_size} messages"
    reduction.let_markers_leave()
    plan = reduction.draft.plan(reason)
    while plan is not None and _length_after(plan, history) > window_size and reduction.drop_one_more():
        plan = reduction.draft.plan(reason)
    # What only replaces one marker by another would break the provider's cache for nothing.
    return None if plan is None or plan.removed == plan.made_here else plan


def _length_after(plan: Plan, history: History) -> int:
    return len(history) - plan.removed + plan.inserted
