"""The command line: ``holdfast``."""

from __future__ import annotations

from holdfast.errors import MissingExtraError
from holdfast.extras import import_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    try:
        commands = import_extra("holdfast.cli.commands", extra="cli")
    except MissingExtraError as error:
        raise SystemExit(f"holdfast: {error}") from None
    commands.holdfast()
