"""A ledger's records as OpenTelemetry spans and metrics, where `opentelemetry-api` is installed.

Names follow the GenAI semantic conventions, which have some for tools and conversations; all others begin with
"holdfast". docs/ledger.md lists them.
"""

from __future__ import annotations

from holdfast.telemetry.emitting import Telemetry
from holdfast.telemetry.names import ATTRIBUTES, METRICS, Metric

__all__ = ["ATTRIBUTES", "METRICS", "Metric", "Telemetry"]
