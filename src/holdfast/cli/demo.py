"""The story in a minute: an agent without a manager and with one, at work on this machine, and what each came to."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.filesize import decimal

from holdfast.cli.demo_agents import Agent, TooLongError, Work
from holdfast.cli.demo_script import QUERY, SOUGHT, TASK, Journal, Step, script
from holdfast.cli.replay_tables import print_policies
from holdfast.ledger import Ledger, OffloadRecord, ReductionRecord
from holdfast.recordings import Recording
from holdfast.replay import Replay, Report, policies_from, prices_from, report_of
from holdfast.replay.page import page_of
from holdfast.replay.prices import DEFAULT
from holdfast.testing import Call, Request

__all__ = ["WINDOW", "tell"]

WINDOW = 40_000
_BAR, _BESIDE_THE_BAR = 24, 24
_MARGIN = "   "
_PAID = ("cached", "lookups", "summaries")


def tell(console: Console, agent: Agent, folder: Path) -> None:
    """Tell the story, with *agent* as the hero, and leave in *folder* what it stored, its recording and the page."""
    steps = script()
    console.print(f"The agent's task: {TASK}", soft_wrap=True)
    console.print("Its model answers from a script. Its tools really look through this machine.", soft_wrap=True)
    _headline(console, 1, f"{agent.kind}, no manager, and a model with a window of {WINDOW:,} tokens")
    _Run(console, steps).alone(agent)
    _headline(console, 2, 'The same with ContextManager("auto"); what leaves the window becomes files')
    recording = _Run(console, steps).managed(agent, folder / "artifacts")
    _headline(console, 3, "The same work as `holdfast replay` sees it, as if nobody refused anything")
    _compare(console, recording, folder)


class _Run:
    """One run of an agent, told line by line."""

    def __init__(self, console: Console, steps: Sequence[Step]) -> None:
        self._console = console
        self._steps = steps
        self._journal = Journal(self._tell_of_result)
        self._requests = 0
        self._last_seen = ""
        self._is_answered = False

    def alone(self, agent: Agent) -> None:
        """Work without a manager, until the window is full."""
        try:
            agent.run(Work(self._answers(), self._journal, WINDOW, None, self._watch))
        except TooLongError as error:
            self._say(f"refused: {' '.join(str(error).split())}", style="bold red")
            self._say(f"The run ends after {self._requests} of {len(self._steps) + 1} answers.", style="bold red")

    def managed(self, agent: Agent, storage: Path) -> Recording:
        """Work with a manager to the end, where the agent searches for what it saw at the beginning."""
        agent.run(Work(self._answers(), self._journal, WINDOW, storage, self._watch))
        if SOUGHT not in self._last_seen:
            raise click.ClickException(f"{SOUGHT} was not found again in what had left the window")
        self._say(f"done: {self._requests} requests, none refused, the search among them", style="bold")
        return self._journal.recording(f"{SOUGHT}.")

    def _answers(self) -> Callable[[Request], Any]:
        """Return what answers request by request: the steps, a search, and the end."""
        steps = self._all_steps()

        def answer(request: Request) -> Any:
            self._requests += 1
            self._last_seen = request.latest_text
            self._tell_of_request(request)
            return next(steps)

        return answer

    def _all_steps(self) -> Iterator[Any]:
        for step in self._steps:
            self._journal.say(step.said)
            yield step.answer
        self._say(f"    search_context {QUERY}", style="green")
        yield ["Back to the question.", Call("search_context", {"query": QUERY})]
        if SOUGHT in self._last_seen:
            self._say(f"    found {SOUGHT}, which had left the window", style="green")
        self._is_answered = True
        yield f"{SOUGHT}."

    def _watch(self, ledger: Ledger) -> None:
        ledger.on("offload", self._tell_of_offload)
        ledger.on("reduction", self._tell_of_reduction)

    def _tell_of_request(self, request: Request) -> None:
        length = max(0, min(_BAR, self._console.width - _BESIDE_THE_BAR))
        filled = min(round(length * request.tokens / WINDOW), length)
        full, empty = "#." if self._console.options.ascii_only else "█░"
        bar = full * filled + empty * (length - filled)
        self._say(f"{self._requests:>2}  {bar} {request.tokens:>9,} tokens", style="cyan")

    def _tell_of_result(self, name: str, arguments: Mapping[str, Any], result: str) -> None:
        asked = " ".join([name, *map(str, arguments.values())])
        self._say(f"    {asked}: {decimal(len(result.encode()))}")

    def _tell_of_offload(self, record: OffloadRecord) -> None:
        self._say(f"    offloaded: {record.tokens_before:,} tokens became {record.tokens_after:,}", style="green")

    def _tell_of_reduction(self, record: ReductionRecord) -> None:
        when = "after the answer, history" if self._is_answered else "history"
        figures = f"{record.tokens_before:,} tokens became {record.tokens_after:,}"
        self._say(f"    {when} reduced: {figures}; {record.what}", style="yellow")

    def _say(self, text: str, style: str = "") -> None:
        # On a terminal each thing has its line; what is longer ends in what can be missed.
        room = self._console.width - len(_MARGIN)
        is_whole = not self._console.is_terminal or cell_len(text) <= room
        shown = text if is_whole else f"{set_cell_size(text, room - 1)}…"
        self._console.print(f"{_MARGIN}{shown}", style=style, soft_wrap=True)


def _compare(console: Console, recording: Recording, folder: Path) -> None:
    """Show both policies in a table, and write the page and the recording."""
    replay, prices = Replay(policies=policies_from(("none", "auto")), window=WINDOW), prices_from(DEFAULT)
    title = "The agent of the demo, without and with holdfast"
    report = report_of([replay.one(recording)], replay, prices, made=date.today().isoformat(), title=title)
    print_policies(report)
    console.print(_saving(report), style="bold green", soft_wrap=True)
    page, saved = folder / "report.html", folder / "recording.jsonl"
    page.write_text(page_of(report), encoding="utf-8")
    conversation = {
        "system": recording.system_prompt,
        "tools": list(recording.tool_specs),
        "messages": list(recording.messages),
    }
    saved.write_text(json.dumps(conversation) + "\n", encoding="utf-8")
    console.print("\nOpen the page, look at what is stored, and try other policies:", style="bold")
    command = _command()
    for line in (
        page.resolve().as_uri(),
        f"{command} store ls {shlex.quote(str(folder / 'artifacts'))}",
        f"{command} recommend {shlex.quote(str(saved))} --window {WINDOW}",
    ):
        console.print(f"{_MARGIN}{line}", style="cyan", soft_wrap=True)


def _saving(report: Report) -> str:
    alone, managed = (policy["totals"] for policy in report["policies"])
    before, now = (sum(totals["bill"][each] for each in _PAID) for totals in (alone, managed))
    return (
        f"With holdfast: ${now:.2f} instead of ${before:.2f}, and {managed['overflows']} requests refused "
        f"instead of {alone['overflows']}."
    )


def _command() -> str:
    """Return how to call the program that runs: by its name where a shell finds it, else by its path."""
    running = Path(sys.argv[0])
    found = shutil.which("holdfast")
    return "holdfast" if found and running.exists() and running.samefile(found) else shlex.quote(str(running))


def _headline(console: Console, number: int, text: str) -> None:
    console.print(f"\n{number}. {text}", style="bold", soft_wrap=True)
