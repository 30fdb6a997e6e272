"""Large tool results, taken out of the window before a model sees them."""

from __future__ import annotations

from holdfast.offload.events import Offloaded, OffloadEvent, OffloadFailed
from holdfast.offload.options import OffloadRules
from holdfast.offload.plans import OffloadPlan, Storable, plan_offload
from holdfast.offload.plugin import ContextOffloader
from holdfast.retrieval import Retrieved, Searched

__all__ = [
    "ContextOffloader",
    "OffloadEvent",
    "OffloadFailed",
    "OffloadPlan",
    "OffloadRules",
    "Offloaded",
    "Retrieved",
    "Searched",
    "Storable",
    "plan_offload",
]
