"""The command line: ``holdfast``."""

from __future__ import annotations

import io
import os
import sys

from holdfast.errors import MissingExtraError
from holdfast.extras import import_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    try:
        commands = import_extra("holdfast.cli.commands", extra="cli")
    except MissingExtraError as error:
        raise SystemExit(f"holdfast: {error}") from None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows only some characters gets the others spelt out, not an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        commands.holdfast()
    except OSError as error:
        _give_up_output()
        raise SystemExit(f"holdfast: cannot write the output: {error.strerror or error}") from None


def _give_up_output() -> None:
    """Let Python not try once more, at its end, to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
