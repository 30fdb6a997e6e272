"""The cheapest policy that loses nothing, out of a small grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidValueError
from holdfast.replay.counts import Counts
from holdfast.replay.outcomes import Replayed
from holdfast.replay.policies import UNMANAGED, Policy
from holdfast.replay.prices import Bill, Prices

__all__ = ["GRID", "Candidate", "Recommendation", "recommended"]

# More messages than any window holds, so that tokens alone decide.
_BY_TOKENS: dict[str, Any] = {"method": "truncate", "window_size": 10_000}
_SUMMARIES: dict[str, Any] = {"method": "summarize"}
_LARGE_ONLY = {"threshold": 10_000, "preview_tokens": 3_000}
_NONE_USED = "the cheapest; no value was used again that could be lost"


def _auto(name: str, **options: Any) -> Policy:
    return Policy(name, {"strategy": "auto", **options})


GRID: tuple[Policy, ...] = (
    UNMANAGED,
    _auto("auto"),
    _auto("by-tokens", compression=_BY_TOKENS),
    _auto("by-tokens-early", compression={**_BY_TOKENS, "proactive": 0.5}),
    _auto("by-tokens-late", compression={**_BY_TOKENS, "proactive": 0.85, "low_water": 0.6}),
    _auto("by-tokens-large", compression=_BY_TOKENS, offloader=_LARGE_ONLY),
    _auto("by-tokens-whole", compression=_BY_TOKENS, offloader=False),
    _auto("summaries", compression=_SUMMARIES),
    _auto("summaries-early", compression={**_SUMMARIES, "proactive": 0.5}),
    _auto("summaries-whole", compression=_SUMMARIES, offloader=False),
)
"""What to try: no manager, and whatever most changes what one sends, keeps and costs.

Messages leave by number or by tokens alone, early or late, with a summary in their place or without; results are
offloaded from 2,500 tokens on, from 10,000 on, or never.
"""


@dataclass(frozen=True)
class Candidate:
    """A policy, and what came of it."""

    policy: Policy
    counts: Counts
    bill: Bill
    refused: int
    """How many recordings a provider would have refused a request of, or that ended early for want of room."""

    @property
    def fits(self) -> bool:
        """Whether each recording was lived through to its end within the window."""
        return not self.refused

    @property
    def loses_nothing(self) -> bool:
        """Whether all that was needed was in the window or one look-up away, too."""
        return self.fits and not self.counts.lost

    @property
    def brings_all_back(self) -> bool:
        """Whether more look-ups bring back what is lost to one."""
        return self.fits and self.counts.lost == self.counts.further


@dataclass(frozen=True)
class Recommendation:
    """All *candidates*, those that fit and the cheapest first, the *chosen* one, and *why* it is that one."""

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    why: str


def recommended(replayed: Sequence[Replayed], policies: Sequence[Policy], prices: Prices) -> Recommendation:
    """Return the cheapest policy that loses nothing to one look-up, or else to several; or the one that loses least.

    The price is that with a prompt cache, and holds what look-ups and summaries would have cost.
    """
    if not replayed:
        raise InvalidValueError("there is nothing to recommend a policy by: no recording could be replayed")
    candidates = sorted(_candidates(replayed, policies, prices), key=lambda each: (not each.fits, each.bill.total))
    return Recommendation(tuple(candidates), *_choice(candidates, len(replayed)))


def _choice(candidates: Sequence[Candidate], recordings: int) -> tuple[Candidate, str]:
    """Return one of the candidates, which come with the cheapest first, and why it is that one."""
    if chosen := next((each for each in candidates if each.loses_nothing), None):
        is_asked = chosen.counts.values
        return chosen, "the cheapest that loses nothing" if is_asked else _NONE_USED
    if chosen := next((each for each in candidates if each.brings_all_back), None):
        some = _share(chosen.counts.further, chosen)
        return (
            chosen,
            f"no policy has all within one look-up; this is the cheapest that brings all back, {some} by more",
        )
    if fitting := [each for each in candidates if each.fits]:
        chosen = min(fitting, key=lambda each: (each.counts.lost, each.bill.total))
        return chosen, f"each policy loses something; this one loses least, {_share(chosen.counts.lost, chosen)}"
    chosen = min(candidates, key=_distance)
    return (
        chosen,
        f"no policy fits this window; this one comes nearest, with {chosen.refused:,} of {recordings:,} too large",
    )


def _distance(candidate: Candidate) -> tuple[float, ...]:
    # What no manager held would have ended at its first refusal, whatever came after it here.
    is_alone = candidate.policy.config is None
    return candidate.refused, is_alone, -candidate.counts.requests, candidate.counts.lost, candidate.bill.total


def _share(count: int, candidate: Candidate) -> str:
    return f"{count:,} of {candidate.counts.values:,} values"


def _candidates(replayed: Sequence[Replayed], policies: Sequence[Policy], prices: Prices) -> list[Candidate]:
    return [
        _candidate(policy, [each.outcomes[place].counts for each in replayed], prices)
        for place, policy in enumerate(policies)
    ]


def _candidate(policy: Policy, counts: Sequence[Counts], prices: Prices) -> Candidate:
    total = Counts.total(counts)
    return Candidate(policy, total, Bill.of(total, prices), sum(bool(each.overflows or each.failed) for each in counts))
