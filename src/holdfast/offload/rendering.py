"""What the model sees in the place of what was stored."""

from __future__ import annotations

from holdfast.messages import Block, Text
from holdfast.offload.plans import OffloadPlan, Storable
from holdfast.references import offloaded_as

__all__ = ["rendered", "size_of"]


def rendered(plan: OffloadPlan, guidance: str) -> tuple[Block, ...]:
    """Return the blocks of a plan that was carried out; in the place of what is stored, its reference and preview.

    The reference comes first, so that it outlives a cut. *guidance* says how to see more.
    """
    blocks = [
        part.block if part.storable is None else Text(_stand_in(part.storable, part.reference or ""))
        for part in plan.parts
    ]
    return (*blocks, Text(guidance)) if guidance else tuple(blocks)


def size_of(content: bytes) -> str:
    """Return how large a content is, in words."""
    if len(content) < 10_000:
        return f"{len(content):,} bytes"
    return f"{len(content) / 1_000:,.0f} KB" if len(content) < 10_000_000 else f"{len(content) / 1_000_000:,.0f} MB"


def _stand_in(storable: Storable, reference: str) -> str:
    lines = f", {storable.lines:,} line{'' if storable.lines == 1 else 's'}" if storable.lines is not None else ""
    name = f"{storable.name!r:.100}, " if storable.name else ""
    head = (
        f"{offloaded_as(reference)}{name}{storable.content_type}, {size_of(storable.content)}{lines}, "
        f"about {storable.tokens:,} tokens."
    )
    if storable.preview is None:
        return f"{head}]"
    return f"{head} Preview ({storable.preview.kind}):]\n{storable.preview.text}\n[End of the preview.]"
