"""What one conversation has in storage: where it is, how an agent finds it, and what of it has to stay."""

from __future__ import annotations

from holdfast.hold.hold import Hold
from holdfast.hold.storing import Content, Storing

__all__ = ["Content", "Hold", "Storing"]
