"""Agent frameworks: one package each, which turns the framework's hooks into events and calls the manager."""

from __future__ import annotations

__all__: list[str] = []
