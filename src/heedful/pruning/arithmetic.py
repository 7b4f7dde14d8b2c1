"""How much a model has to compute for one line, and how much of that heads can save."""

from dataclasses import dataclass

from heedful.attention.multihead import CrossAttention, MultiHeadAttention, SelfAttention
from heedful.attention.window import Window
from heedful.layers.transformer_block import EncoderBlock
from heedful.models.interfaces import Generates, Model


@dataclass(frozen=True)
class Lengths:
    """A line of the usual length.

    Attributes:
        source: positions that are read; 0 for a language model.
        target: symbols that are written; 0 for a classifier.
        num_hypotheses: that are kept at each step.
    """

    source: float
    target: float
    num_hypotheses: int = 1


@dataclass(frozen=True)
class Operations:
    """Multiplications with an addition, for one line, in matrix products alone.

    Attributes:
        attention: of heads: projections, scores, weighted sums.
        feed_forward: of the feed-forward layers.
        output: of the layer that turns hidden states into scores of symbols.
    """

    attention: float
    feed_forward: float
    output: float

    @property
    def total(self) -> float:
        """All together."""
        return self.attention + self.feed_forward + self.output


def count_operations(model: Model, lengths: Lengths) -> Operations:
    """Count what a Transformer computes for one line, the source once and the target step by step for each hypothesis.

    Left out is what is no product of matrices: norms, softmax, the search itself, and the time until an operation
    begins. A speed that is measured therefore stays below what the numbers promise.
    """
    steps = lengths.target * lengths.num_hypotheses
    attention = feed_forward = 0.0
    for block in model.blocks().values():
        positions = lengths.source if isinstance(block, EncoderBlock) else steps
        feed_forward += positions * (block.feed_forward.inner.weight.numel() + block.feed_forward.outer.weight.numel())
        for each in block.attentions().values():
            attention += _of_attention(each, positions, lengths, is_causal=not isinstance(block, EncoderBlock))
    output = steps * model.output.weight.numel() if isinstance(model, Generates) else 0.0
    return Operations(attention, feed_forward, output)


def _of_attention(attention: MultiHeadAttention, positions: float, lengths: Lengths, *, is_causal: bool) -> float:
    """Count projections, scores and weighted sums; the source is projected once, a decoder sees half of the target."""
    once, seen = 0, lengths.target / 2 if is_causal else lengths.source
    match attention:
        case CrossAttention():
            once, seen = attention.memory_weight.numel(), lengths.source
        case SelfAttention(window=Window(before=before, after=after)):
            seen = min(seen, before + after + 1)
    projected = sum(each.numel() for each in attention.parameters() if each.ndim == 2) - once
    products = 2 * seen * attention.num_heads * attention.head_dim
    return positions * (projected + products) + lengths.source * once
