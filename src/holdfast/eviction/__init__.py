"""Forgetting by policy, never by accident."""

from holdfast.eviction.chains import in_chain, new_chain
from holdfast.eviction.inventory import plan_evictions
from holdfast.eviction.policies import (
    Candidate,
    Candidates,
    Chains,
    LeastRecentlyUsed,
    Moment,
    Policy,
    TimeToLive,
    TurnsToLive,
)
from holdfast.eviction.storage import EvictingStorage
from holdfast.storage.tombstones import Eviction

__all__ = [
    "Candidate",
    "Candidates",
    "Chains",
    "EvictingStorage",
    "Eviction",
    "LeastRecentlyUsed",
    "Moment",
    "Policy",
    "TimeToLive",
    "TurnsToLive",
    "in_chain",
    "new_chain",
    "plan_evictions",
]
