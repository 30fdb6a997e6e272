"""Made-up outputs of tools, the same in every run, as long as a benchmark wants them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from random import Random
from typing import Any


@cache
def log(size: int) -> str:
    lines = "\n".join(islice(log_lines(Random(5)), size // 80))
    assert len(lines) >= size
    return lines[:size]


def log_lines(chance: Random) -> Iterator[str]:
    """A service that is well, but for every 50,000th request."""
    for number in count():
        moment = (
            f"2026-11-16T{number // 36_000 % 24:02}:{number // 600 % 60:02}:{number // 10 % 60:02}.{number % 10}00Z"
        )
        where = f"[worker-{chance.randrange(16)}] GET /api/v2/orders/{chance.randrange(10**6)}"
        if number % 50_000 == 25_000:
            yield f"{moment} ERROR {where} gave up after {chance.randrange(9_000)} ms: connection reset by peer"
        else:
            yield f"{moment} INFO {where} 200 in {chance.randrange(900)} ms for user {chance.randrange(5_000)}"


def records(chance: Random) -> Iterator[dict[str, Any]]:
    for number in count():
        place = {"city": chance.choice(("Oslo", "Lima", "Pune", "Kyoto")), "zip": f"{chance.randrange(10**5):05}"}
        state = chance.choice(("late", "paid", "returned", "shipped", "waiting for the customer"))
        yield {"id": number, "state": state, "total": chance.randrange(10**6) / 100, "place": place}


def json_text(size: int) -> str:
    return json.dumps(list(islice(records(Random(5)), size // 135)), indent=1)


def csv_text(size: int) -> str:
    written = io.StringIO()
    rows = ((each["id"], each["state"], each["total"], *each["place"].values()) for each in records(Random(5)))
    csv.writer(written).writerows([("id", "state", "total", "city", "zip"), *islice(rows, size // 37)])
    return written.getvalue()
