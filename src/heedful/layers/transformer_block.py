"""The blocks a Transformer is stacked from (Vaswani et al. 2017, 3.1), normalised after or before each part."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.cache import KeyValueCache, KeyValues
from heedful.attention.dropout import Dropout
from heedful.attention.masks import AttentionMask
from heedful.attention.multihead import CrossAttention, MultiHeadAttention, SelfAttention
from heedful.attention.tap import AnyTap, Gates, scope_gates, scope_tap
from heedful.attention.window import Window
from heedful.layers.feed_forward import Activation, FeedForward
from heedful.layers.positions import AnyPositionsConfig, NoPositionsConfig, build_rotary

NormPlace = Literal["pre", "post"]

_NO_ROTATION = NoPositionsConfig()


@dataclass(frozen=True, kw_only=True)
class AttentionSizes:
    """Heads of one attention.

    Attributes:
        num_heads: how many; 0 leaves the output bias alone.
        head_dim: width of each.
    """

    num_heads: int
    head_dim: int


@dataclass(frozen=True, kw_only=True)
class BlockSizes:
    """What all blocks of a stack have in common.

    Attributes:
        model_dim: width of the positions.
        activation: its kind.
        norm: ``post`` as published, or ``pre`` (Xiong et al. 2020), which trains deep stacks without warm-up.
        dropout: rate on what each part adds to the residual stream (Vaswani et al. 2017, 5.4).
        attention_dropout: rate on attention weights.
        activation_dropout: rate inside the feed-forward layer.
        window: how far self-attention looks to each side, or None (everywhere).
        positions: rotary ones turn the queries and keys of self-attention; others are the embedding's business.
    """

    model_dim: int
    activation: Activation = "relu"
    norm: NormPlace = "post"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    window: int | None = None
    positions: AnyPositionsConfig = _NO_ROTATION


@dataclass(frozen=True)
class Source:
    """What one decoder block attends to.

    Attributes:
        pairs: the source's keys and values, projected by this block's cross-attention.
        mask: its real positions.
    """

    pairs: KeyValues
    mask: AttentionMask


class Residual(nn.Module):
    """A part of a block with what surrounds it: ``norm(x + dropout(part(x)))``, or ``x + dropout(part(norm(x)))``.

    Args:
        model_dim: width of the positions.
        norm: ``post`` or ``pre``.
        dropout: rate on what the part gives.
    """

    def __init__(self, model_dim: int, *, norm: NormPlace, dropout: float) -> None:
        super().__init__()
        self.is_pre = norm == "pre"
        self.norm = nn.LayerNorm(model_dim)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Float[Tensor, "B T D"], part: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T D"]:
        """Run the part and add what it gives."""
        if self.is_pre:
            return self.dropout.add(hidden, part(self.norm(hidden)))
        normed: Tensor = self.norm(self.dropout.add(hidden, part(hidden)))
        return normed

    def add(self, hidden: Float[Tensor, "B T D"], constant: Float[Tensor, " D"]) -> Float[Tensor, "B T D"]:
        """Do the same for a part that gives one constant, whatever it reads."""
        added = self.dropout.add(hidden, constant.expand_as(hidden))
        normed: Tensor = added if self.is_pre else self.norm(added)
        return normed


def _self_attention(sizes: BlockSizes, heads: AttentionSizes, *, window: Window | None) -> SelfAttention:
    return SelfAttention(
        sizes.model_dim,
        heads.num_heads,
        heads.head_dim,
        sizes.attention_dropout,
        rotary=build_rotary(sizes.positions, heads.head_dim),
        window=window,
    )


def _feed_forward(sizes: BlockSizes, inner_dim: int) -> FeedForward:
    return FeedForward(sizes.model_dim, inner_dim, activation=sizes.activation, dropout=sizes.activation_dropout)


def _attend_to_itself(
    attention: SelfAttention,
    around: Residual,
    hidden: Tensor,
    mask: AttentionMask,
    tap: AnyTap,
    gates: Gates | None,
) -> Tensor:
    """Let a whole sequence attend to itself; where no head is left to, and nobody watches, nothing is computed."""
    constant = attention.constant()
    if constant is not None and tap is None:
        return around.add(hidden, constant)
    tap, gates = scope_tap(tap, "self_attention"), scope_gates(gates, "self_attention")
    attended: Tensor = around(hidden, lambda normed: attention(normed, mask=mask, tap=tap, gates=gates))
    return attended


class TransformerBlock(nn.Module, ABC):
    """What all blocks have: attentions, and a feed-forward layer after them."""

    self_attention: SelfAttention
    feed_forward: FeedForward

    @abstractmethod
    def attentions(self) -> dict[str, MultiHeadAttention]:
        """Return the block's attentions by name, in the order in which they are computed."""


class EncoderBlock(TransformerBlock):
    """Self-attention, then the feed-forward layer.

    Args:
        sizes: what all blocks share.
        self_heads: heads of the self-attention.
        inner_dim: inner width of the feed-forward layer.
    """

    def __init__(self, sizes: BlockSizes, self_heads: AttentionSizes, inner_dim: int) -> None:
        super().__init__()
        window = None if sizes.window is None else Window(before=sizes.window, after=sizes.window)
        self.self_attention = _self_attention(sizes, self_heads, window=window)
        self.feed_forward = _feed_forward(sizes, inner_dim)
        self.around_self_attention = Residual(sizes.model_dim, norm=sizes.norm, dropout=sizes.dropout)
        self.around_feed_forward = Residual(sizes.model_dim, norm=sizes.norm, dropout=sizes.dropout)

    def attentions(self) -> dict[str, MultiHeadAttention]:
        return {"self_attention": self.self_attention}

    def forward(
        self, hidden: Float[Tensor, "B S D"], mask: AttentionMask, *, tap: AnyTap = None, gates: Gates | None = None
    ) -> Float[Tensor, "B S D"]:
        """Read a whole sequence."""
        hidden = _attend_to_itself(self.self_attention, self.around_self_attention, hidden, mask, tap, gates)
        transformed: Tensor = self.around_feed_forward(hidden, self.feed_forward)
        return transformed


class DecoderBlock(TransformerBlock):
    """Causal self-attention, attention to the source where there is one, then the feed-forward layer.

    Args:
        sizes: what all blocks share.
        self_heads: heads of the self-attention.
        cross_heads: heads of the attention to the source; None in a language model.
        inner_dim: inner width of the feed-forward layer.
    """

    def __init__(
        self, sizes: BlockSizes, self_heads: AttentionSizes, cross_heads: AttentionSizes | None, inner_dim: int
    ) -> None:
        super().__init__()
        window = None if sizes.window is None else Window(before=sizes.window, after=0)
        self.self_attention = _self_attention(sizes, self_heads, window=window)
        self.feed_forward = _feed_forward(sizes, inner_dim)
        self.around_self_attention = Residual(sizes.model_dim, norm=sizes.norm, dropout=sizes.dropout)
        self.around_feed_forward = Residual(sizes.model_dim, norm=sizes.norm, dropout=sizes.dropout)
        self.cross_attention: CrossAttention | None = None
        if cross_heads is not None:
            self.cross_attention = CrossAttention(
                sizes.model_dim,
                sizes.model_dim,
                cross_heads.num_heads,
                cross_heads.head_dim,
                dropout=sizes.attention_dropout,
            )
            self.around_cross_attention = Residual(sizes.model_dim, norm=sizes.norm, dropout=sizes.dropout)

    def attentions(self) -> dict[str, MultiHeadAttention]:
        own: dict[str, MultiHeadAttention] = {"self_attention": self.self_attention}
        return own if self.cross_attention is None else {**own, "cross_attention": self.cross_attention}

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        mask: AttentionMask,
        source: Source | None,
        *,
        tap: AnyTap = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read a whole sequence; the mask must hide from each position those after it."""
        hidden = _attend_to_itself(self.self_attention, self.around_self_attention, hidden, mask, tap, gates)
        return self._attend_and_transform(hidden, source, tap, gates)

    def step(
        self,
        hidden: Float[Tensor, "B N D"],
        cache: KeyValueCache,
        source: Source | None,
        *,
        tap: AnyTap = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], KeyValueCache]:
        """Read one position of each hypothesis.

        Self-attention sees the hypotheses as rows (``R = B x N``), attention to the source as queries of their
        sentence, so that the source is never repeated for the beam.
        """
        constant = self.self_attention.constant()
        if constant is not None and tap is None:
            hidden = self.around_self_attention.add(hidden, constant)
            return self._attend_and_transform(hidden, source, tap, gates), cache
        self_tap, self_gates = scope_tap(tap, "self_attention"), scope_gates(gates, "self_attention")
        caches = [cache]

        def attend(normed_BND: Tensor) -> Tensor:
            rows_R1D = normed_BND.reshape(-1, 1, normed_BND.shape[-1])
            attended, caches[0] = self.self_attention.step(rows_R1D, cache, tap=self_tap, gates=self_gates)
            return attended.view(normed_BND.shape)

        hidden = self.around_self_attention(hidden, attend)
        return self._attend_and_transform(hidden, source, tap, gates), caches[0]

    def _attend_and_transform(
        self, hidden: Float[Tensor, "B T D"], source: Source | None, tap: AnyTap, gates: Gates | None
    ) -> Float[Tensor, "B T D"]:
        """Do what is the same for whole sequences and steps: everything after self-attention."""
        cross = self.cross_attention
        constant = None if cross is None else cross.constant()
        if constant is not None and tap is None:
            hidden = self.around_cross_attention.add(hidden, constant)
        elif cross is not None:
            assert source is not None
            cross_tap, cross_gates = scope_tap(tap, "cross_attention"), scope_gates(gates, "cross_attention")
            hidden = self.around_cross_attention(
                hidden, lambda normed: cross(normed, source.pairs, mask=source.mask, tap=cross_tap, gates=cross_gates)
            )
        transformed: Tensor = self.around_feed_forward(hidden, self.feed_forward)
        return transformed
