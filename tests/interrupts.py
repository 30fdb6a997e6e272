"""Programs that tests interrupt."""

from __future__ import annotations

import signal

__all__ = ["heed_interrupts"]


def heed_interrupts() -> None:
    """Have a program that is about to begin heed Ctrl-C: whoever runs tests in the background may have it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
