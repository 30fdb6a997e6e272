"""What ``holdfast`` can be asked to do. Needs ``holdfast[cli]``."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import click
from rich.console import Console

from holdfast.cli.demo import tell
from holdfast.cli.demo_agents import AGENTS, TooLongError, agent_for
from holdfast.cli.replay import recommend, replay
from holdfast.cli.store import store
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
    help="Put the files here. By default they go to a new temporary folder.",
)
@click.option("--agent", type=click.Choice(list(AGENTS)), help="By default strands if it is installed, else loop.")
def demo(kept: Path | None, agent: str | None) -> None:
    """Watch an agent fill its window and fail, and the same agent with a ContextManager go on.

    Its model answers from a script; its tools really look through the Python that runs. It takes less than a minute and
    needs no network and no key.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    try:
        tell(console, agent_for(agent), _folder(kept))
    except (HoldfastError, TooLongError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _folder(kept: Path | None) -> Path:
    if kept is None:
        return Path(mkdtemp(prefix="holdfast-demo-"))
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{kept} cannot be made: {error.strerror or error}") from None
    return kept
