"""What the model sees in the place of what was stored."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.extracts import extract, introduced
from holdfast.messages import Block, Text
from holdfast.names import Names
from holdfast.offload.plans import OffloadPlan, Storable

__all__ = ["rendered", "size_of"]


def rendered(plan: OffloadPlan, names: Names, count_text: Callable[[str], int], guidance: str) -> tuple[Block, ...]:
    """Return the blocks of a plan that was carried out; in the place of what is stored, its reference and an extract.

    The reference comes first, so that it outlives a cut. *guidance* says how to see more.
    """
    blocks = [
        part.block if part.storable is None else Text(_stand_in(part.storable, part.reference or "", names, count_text))
        for part in plan.parts
    ]
    return (*blocks, Text(guidance)) if guidance else tuple(blocks)


def size_of(content: bytes) -> str:
    """Return how large a content is, in words."""
    if len(content) < 10_000:
        return f"{len(content):,} bytes"
    return f"{len(content) / 1_000:,.0f} KB" if len(content) < 10_000_000 else f"{len(content) / 1_000_000:,.0f} MB"


def _stand_in(storable: Storable, reference: str, names: Names, count_text: Callable[[str], int]) -> str:
    name = f"{storable.name!r:.100}, " if storable.name else ""
    about = f"{name}{storable.content_type}, {size_of(storable.content)}, about {storable.tokens:,} tokens"
    if storable.text is None:
        return introduced(reference, about)
    text = extract(storable.text, storable.room, reference, about=about, names=names, count_text=count_text)
    # What fits is shown as it is.
    return text if text is not storable.text else f"{introduced(reference, about)}\n{text}"
