"""The page of a replay: one HTML file that needs no network, no server and, for all but the choosing, no script."""

from __future__ import annotations

from holdfast.replay.page.document import page_of

__all__ = ["page_of"]
