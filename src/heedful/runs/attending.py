"""What a trained model attends to while it answers a line, as one picture."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from heedful.analysis import Recording, record
from heedful.models.interfaces import AttentionSite
from heedful.tasks import Task
from heedful.tasks.rows import stack_rows
from heedful.text.tokenizer import Tokenizer

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
    (prediction,) = task.predict([line])
    example = task.example_of(line, prediction.text, 1)
    row = task.encode(example)
    with task.inference():
        recording = record(task.model, stack_rows([row]).to(task.device))
    site = _nearest_to_output(recording)
    if site is None:
        return None
    weights = next(each.weights for each in recording.maps(0) if each.site == site).mean(dim=0)
    source = _pieces(task.codec.source, row.source)
    target = _pieces(task.codec.target, row.target)
    queries, keys = {
        "cross": (target[1:], source),
        "decoder": (target[:-1], target[:-1]),
        "encoder": (source, source),
        "pooling": ([prediction.text], source),
    }[site.kind]
    shown = weights[:MAX_WORDS, :MAX_WORDS]
    return Picture(f"{line} → {prediction.text}", shown, queries[:MAX_WORDS], keys[:MAX_WORDS])


def _nearest_to_output(recording: Recording) -> AttentionSite | None:
    """Return the last recorded cross-attention, else pooling, else self-attention of a decoder."""
    seen = [each.site for each in recording.maps(0) if each.site.num_heads > 0]
    for kind in ("cross", "pooling", "decoder"):
        found = [site for site in seen if site.kind == kind]
        if found:
            return found[-1]
    return None


def _pieces(tokenizer: Tokenizer | None, ids: Sequence[int] | None) -> list[str]:
    return [] if tokenizer is None or ids is None else tokenizer.pieces(list(ids))


def sources_to_show(lines: Sequence[str], count: int, longest: int = 60) -> list[str]:
    """Return a few lines that are short enough for a picture."""
    return [line for line in lines if line.strip() and len(line) <= longest][:count]
