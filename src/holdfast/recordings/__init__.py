"""Conversations as agents' programs recorded them, read from files and folders, one by one."""

from __future__ import annotations

from holdfast.recordings.reading import read_recordings
from holdfast.recordings.sources import size_of
from holdfast.recordings.values import FORMATS, Recording, Unreadable

__all__ = ["FORMATS", "Recording", "Unreadable", "read_recordings", "size_of"]
