"""Recorded conversations, lived through again under other policies: what they would have sent, paid, kept and lost."""

from __future__ import annotations

from holdfast.replay.counts import Counts
from holdfast.replay.outcomes import Event, Large, Outcome, Replayed
from holdfast.replay.policies import Policy, policies_from, policy_from
from holdfast.replay.prices import PRICES, Bill, Prices, prices_from
from holdfast.replay.recommending import GRID, Candidate, Recommendation, recommended
from holdfast.replay.report import Report, report_of
from holdfast.replay.running import Replay, Result
from holdfast.replay.timeline import Request

__all__ = [
    "GRID",
    "PRICES",
    "Bill",
    "Candidate",
    "Counts",
    "Event",
    "Large",
    "Outcome",
    "Policy",
    "Prices",
    "Recommendation",
    "Replay",
    "Replayed",
    "Report",
    "Request",
    "Result",
    "policies_from",
    "policy_from",
    "prices_from",
    "recommended",
    "report_of",
]
