"""Previews of notebooks: headings, the beginnings of code cells, and what came out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.gentle_json import loads_in_steps
from holdfast.previews.quoting import counted, evenly, lines_of, without_colours
from holdfast.previews.room import Room, shortened
from holdfast.previews.telling import Found, spread, telling, with_rare_words

__all__ = ["preview_notebook"]

_LONGEST = 100
_LEAST_LINE = 6
_MOST_CELLS = 5_000
_LONGEST_ERROR = 200
_OUTLINE = 0.6
_IMAGES = ("image/", "application/pdf", "video/", "audio/")


def preview_notebook(text: str, room: Room) -> str | None:
    """Return one line for each cell, with the kinds and sizes of its outputs, the errors, and telling lines."""
    try:
        notebook = loads_in_steps(text)
    except (ValueError, RecursionError):
        return None
    cells = _cells(notebook)
    if not cells:
        return None
    return with_rare_words(lambda part: _written(notebook, cells, part), lines_of(text), room)


def _written(notebook: Any, cells: Sequence[dict[str, Any]], room: Room) -> list[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(map(_kind, cells)).most_common())
    title = room.take_all([f"notebook{_language(notebook)}, {counted(len(cells), 'cell')}: {kinds}; [n] is $.cells[n]"])
    errors = room.take_head(_errors(cells), 0.3, _LONGEST_ERROR)
    outline = _outline(cells, room)
    heading = "lines from the cells and their outputs:"
    told = telling(list(_lines(cells)), room) if room.take(heading) else []
    return [*title, *errors, *outline, *([heading, *told] if told else [])]


def _cells(notebook: Any) -> list[dict[str, Any]]:
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = kernel.get("language") or kernel.get("name") if isinstance(kernel, dict) else None
    return f" ({shortened(name, 40)})" if isinstance(name, str) else ""


def _kind(cell: dict[str, Any]) -> str:
    kind = cell.get("cell_type")
    return shortened(kind, 20) if isinstance(kind, str) else "unknown"


def _outline(cells: Sequence[dict[str, Any]], room: Room) -> list[str]:
    """Take one line for each cell, from everywhere if there is no room for all."""
    lines = room.within(_OUTLINE, lambda part: _some_cells(cells, part))
    missing = len(cells) - len(lines)
    return [*lines, *room.take_all([f"… {counted(missing, 'cell')} left out …"])] if missing else lines


def _some_cells(cells: Sequence[dict[str, Any]], room: Room) -> list[str]:
    taken: dict[int, str] = {}
    for index in spread(len(cells)):
        if room.left < _LEAST_LINE:
            break
        if room.take(line := _cell_line(index, cells[index])):
            taken[index] = line
    return [taken[index] for index in sorted(taken)]


def _cell_line(index: int, cell: dict[str, Any]) -> str:
    lines = [line for line in _text(cell.get("source")).split("\n") if line.strip()]
    shown = next((line for line in lines if line.startswith("#")), "") if _kind(cell) == "markdown" else ""
    first = shortened((shown or (lines[0] if lines else "(empty)")).strip(), _LONGEST)
    more = f" (+{len(lines) - 1} lines)" if len(lines) > 1 else ""
    outputs = _outputs_note(cell)
    return f"[{index}] {first}{more}{outputs}"


def _outputs_note(cell: dict[str, Any]) -> str:
    notes = [_output_note(output) for output in _outputs(cell)]
    shown = [f"{note} ×{count}" if count > 1 else note for note, count in Counter(notes).items()]
    return f" → {', '.join(shown[:6])}{' …' if len(shown) > 6 else ''}" if shown else ""


def _output_note(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"error {shortened(_text(output.get('ename')), 60)}"
    data = output.get("data")
    if not isinstance(data, dict):
        return counted(_text(output.get("text")).count("\n") + 1, "line")
    rich = [(kind, _text(value)) for kind, value in data.items() if kind != "text/plain"]
    if rich:
        return f"{shortened(rich[0][0], 40)} of {len(rich[0][1]):,} characters"
    return counted(_text(data.get("text/plain")).count("\n") + 1, "line")


def _errors(cells: Sequence[dict[str, Any]]) -> Iterator[str]:
    for index, cell in enumerate(cells):
        for output in _outputs(cell):
            if output.get("output_type") == "error":
                message = " ".join(without_colours(_text(output.get("evalue"))).split())
                yield f"error in [{index}]: {_text(output.get('ename'))}: {message}"


def _lines(cells: Sequence[dict[str, Any]]) -> Iterator[Found]:
    """Yield the lines of the cells, of very many of some, and of what they printed; not pictures."""
    for index in evenly(len(cells), _MOST_CELLS):
        cell = cells[index]
        printed = [_printed(output) for output in _outputs(cell)]
        for text in (_text(cell.get("source")), *printed):
            yield from ((f"[{index}]", without_colours(line)) for line in text.split("\n") if line.strip())


def _printed(output: dict[str, Any]) -> str:
    data = output.get("data")
    return _text(data.get("text/plain")) if isinstance(data, dict) else _text(output.get("text"))


def _outputs(cell: dict[str, Any]) -> list[dict[str, Any]]:
    outputs = cell.get("outputs")
    return [output for output in outputs if isinstance(output, dict)] if isinstance(outputs, list) else []


def _text(value: Any) -> str:
    """Return a text that may be given as a list of its lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
