"""What a reduction takes out of a history is stored first, named where it stood, and can be put back."""

from __future__ import annotations

from holdfast.archive.archive import Archive
from holdfast.archive.undoing import Undone, undo_reductions

__all__ = ["Archive", "Undone", "undo_reductions"]
