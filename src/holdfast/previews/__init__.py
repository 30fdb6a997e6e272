"""What a large content holds, said in few tokens: its kind is detected, and a previewer of that kind writes."""

from __future__ import annotations

from holdfast.previews.detection import detect_kind
from holdfast.previews.making import Preview, make_preview

__all__ = ["Preview", "detect_kind", "make_preview"]
