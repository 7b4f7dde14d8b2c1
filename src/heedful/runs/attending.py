"""What a trained model attends to while it answers a line, as one picture."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from heedful.analysis import AttentionMap, read_lines
from heedful.tasks import Task

MAX_WORDS = 60
"""A picture shows the first so many words of each side."""


@dataclass(frozen=True)
class Picture:
    """Weights between words, ready to be drawn.

    Attributes:
        title: which attention, of which line.
        weights: from 0 to 1, a row for each query.
        queries: the words that attend.
        keys: the words that are attended to.
    """

    title: str
    weights: Float[Tensor, "Q K"]
    queries: list[str]
    keys: list[str]


def picture_of(task: Task, line: str) -> Picture | None:
    """Return the attention nearest to the output, mean over its heads, while the task answers a line.

    An encoder-decoder is shown by its last cross-attention over its own best output, a language model by its last
    self-attention, a classifier by its pooling. None for a model without such an attention.
    """
    (reading,) = read_lines(task, [(line, None)])
    nearest = _nearest_to_output(reading.maps)
    if nearest is None:
        return None
    queries, keys = reading.queries(nearest.site.kind), reading.keys(nearest.site.kind)
    shown = nearest.weights.mean(dim=0)[:MAX_WORDS, :MAX_WORDS]
    return Picture(
        f"{line} → {reading.target_text}",
        shown,
        [reading.target_text] if queries is None else list(queries.pieces[:MAX_WORDS]),
        [] if keys is None else list(keys.pieces[:MAX_WORDS]),
    )


def _nearest_to_output(maps: Sequence[AttentionMap]) -> AttentionMap | None:
    """Return the last cross-attention, else pooling, else self-attention of a decoder; None where no head is left."""
    for kind in ("cross", "pooling", "decoder"):
        found = [each for each in maps if each.site.kind == kind]
        if found:
            return next((each for each in reversed(found) if each.site.num_heads), None)
    return None


def sources_to_show(lines: Sequence[str], count: int, longest: int = 60) -> list[str]:
    """Return a few lines that are short enough for a picture."""
    return [line for line in lines if line.strip() and len(line) <= longest][:count]
