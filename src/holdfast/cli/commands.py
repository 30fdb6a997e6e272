"""What ``holdfast`` can be asked to do. Needs ``holdfast[cli]``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryFile, mkdtemp

import click
from rich.console import Console

from holdfast.cli.demo import tell
from holdfast.cli.demo_agents import AGENTS, TooLongError, agent_for
from holdfast.cli.replay import recommend, replay
from holdfast.cli.store import store
from holdfast.cli.terminal import printable
from holdfast.errors import HoldfastError

__all__ = ["demo", "holdfast"]


@click.group()
@click.version_option(package_name="holdfast")
def holdfast() -> None:
    """Keep a long-running LLM agent inside its context window, and lose nothing on the way."""


for _command in (store, replay, recommend):
    holdfast.add_command(_command)


@holdfast.command()
@click.option(
    "--dir",
    "kept",
    type=click.Path(file_okay=False, path_type=Path),
    help="Put the files here, in a new or empty folder. By default they go to a new temporary one.",
)
@click.option("--agent", type=click.Choice(list(AGENTS)), help="By default strands if it is installed, else loop.")
def demo(kept: Path | None, agent: str | None) -> None:
    """Watch an agent fill its window and fail, and the same agent with a ContextManager go on.

    Its model answers from a script; its tools really look through the Python that runs. It takes less than a minute and
    needs no network and no key.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        hero = agent_for(agent)
        with _folder(kept) as folder:
            tell(console, hero, folder)
    except (HoldfastError, TooLongError, OSError) as error:
        raise click.ClickException(printable(str(error))) from error


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Make the folder for the files. One that nobody asked for goes again where the story breaks off."""
    if kept is not None:
        yield _emptied(kept)
        return
    folder = Path(mkdtemp(prefix="holdfast-demo-"))
    try:
        yield folder
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise


def _emptied(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise click.UsageError(printable(f"{folder} is not empty; name a new folder, or an empty one"))
        with TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise click.ClickException(printable(f"{folder} cannot be written: {error.strerror or error}")) from None
