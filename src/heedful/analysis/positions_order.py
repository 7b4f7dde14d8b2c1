"""Without positions self-attention does not see order: permuted words give the same vectors, permuted.

"The cat chased the mouse" and "The mouse chased the cat" then differ in nothing: "cat" has the same vector in both.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.masks import AttentionMask
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.positions import (
    AnyPositionsConfig,
    LearnedPositionsConfig,
    NoPositionsConfig,
    RotaryPositionsConfig,
    SinusoidalPositionsConfig,
    build_positions,
)
from heedful.layers.transformer_block import AttentionSizes, BlockSizes
from heedful.layers.transformer_stack import TransformerEncoder

SENTENCE = "the cat chased the mouse"
EXCHANGED = "the mouse chased the cat"
_ORDER = (0, 4, 2, 3, 1)
"""Which word of the one stands at each place of the other."""

_CONFIGS: tuple[AnyPositionsConfig, ...] = (
    NoPositionsConfig(),
    SinusoidalPositionsConfig(),
    LearnedPositionsConfig(max_positions=len(_ORDER)),
    RotaryPositionsConfig(),
)


@dataclass(frozen=True)
class OrderEffect:
    """How two sentences of the same words differ for an encoder, with one kind of positions.

    Attributes:
        kind: of the positions.
        words: largest difference between the vectors of the same word in both, any word.
        cat: the same of "cat", who is once the hunter and once the prey.
        sentence: largest difference between the sentences' mean vectors.
    """

    kind: str
    words: float
    cat: float
    sentence: float


def order_effects(*, seed: int = 1) -> list[OrderEffect]:
    """Let an encoder with fresh weights read both sentences, with each kind of positions."""
    return [_effect(config, seed) for config in _CONFIGS]


def _effect(config: AnyPositionsConfig, seed: int) -> OrderEffect:
    one, other = encode_sentences(config, seed)
    moved = one[list(_ORDER)]
    differences = (moved - other).abs().amax(dim=1)
    cat = EXCHANGED.split().index("cat")
    means = (one.mean(dim=0) - other.mean(dim=0)).abs().max()
    return OrderEffect(config.kind, float(differences.max()), float(differences[cat]), float(means))


@torch.no_grad()
def encode_sentences(config: AnyPositionsConfig, seed: int) -> tuple[Float[Tensor, "T D"], Float[Tensor, "T D"]]:
    """Return both sentences' vectors, from two blocks of four heads with fresh weights, in float64."""
    words = sorted(set(SENTENCE.split()))
    ids = torch.tensor([[words.index(word) for word in text.split()] for text in (SENTENCE, EXCHANGED)])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = BlockSizes(model_dim=32, positions=config)
        embedding = InputEmbedding(TokenEmbedding(len(words), 32), build_positions(config, 32)).double().eval()
        encoder = TransformerEncoder(sizes, [AttentionSizes(num_heads=4, head_dim=8)] * 2, [64, 64]).double().eval()
    keep = torch.ones(ids.shape, dtype=torch.bool)
    one, other = encoder(embedding(ids), AttentionMask.padding(keep))
    return one, other
