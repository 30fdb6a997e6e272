"""What ``holdfast`` can be asked to do. Needs ``holdfast[cli]``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from holdfast.cli.demo import tell
from holdfast.cli.store import store
from holdfast.errors import HoldfastError

__all__ = ["demo", "holdfast"]


@click.group()
@click.version_option(package_name="holdfast")
def holdfast() -> None:
    """Keep a long-running LLM agent inside its context window, and lose nothing on the way."""


holdfast.add_command(store)


@holdfast.command()
@click.option(
    "--dir",
    "kept",
    type=click.Path(file_okay=False, path_type=Path),
    help="Store here and keep the files. By default they are temporary.",
)
def demo(kept: Path | None) -> None:
    """Store large outputs, restart, and get them back unchanged."""
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        with _folder(kept) as folder:
            tell(console, folder)
    except HoldfastError as error:
        raise click.ClickException(str(error)) from error
    console.print("\nThe files stay." if kept else "\nThe temporary files are gone.", "Next: README.md")


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with TemporaryDirectory(prefix="holdfast-demo-") as temporary:
        yield Path(temporary)
