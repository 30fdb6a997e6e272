"""What Strands remembers of tool calls: all of each result, for as long as the agent lives."""

from __future__ import annotations

from typing import Any

from strands.hooks import AfterToolCallEvent

__all__ = ["let_go"]


def let_go(event: AfterToolCallEvent, instead: Any) -> None:
    """Have the metrics of the agent hold *instead*, and not the result of this event, which is stored elsewhere."""
    cycle = event.invocation_state.get("event_loop_cycle_trace")
    for trace in reversed(getattr(cycle, "children", ())):
        if _result_in(trace.message) is event.result:
            trace.message = {"role": "user", "content": [{"toolResult": instead}]}
            return


def _result_in(message: Any) -> Any:
    match message:
        case {"content": [{"toolResult": result}]}:
            return result
    return None
