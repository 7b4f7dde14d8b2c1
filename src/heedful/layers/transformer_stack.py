"""Stacks of Transformer blocks, whole sequences at once or symbol by symbol."""

from collections.abc import Sequence
from typing import cast

from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.cache import KeyValueCache, KeyValues
from heedful.attention.masks import AttentionMask
from heedful.attention.tap import AnyTap, Gates, scope_gates, scope_tap
from heedful.layers.transformer_block import AttentionSizes, BlockSizes, DecoderBlock, EncoderBlock, Source


class TransformerEncoder(nn.Module):
    """Blocks that read a whole sequence in both directions.

    Args:
        sizes: what all blocks share.
        self_heads: heads of each block's self-attention; as many blocks as entries.
        inner_dims: inner width of each block's feed-forward layer.
    """

    def __init__(self, sizes: BlockSizes, self_heads: Sequence[AttentionSizes], inner_dims: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderBlock(sizes, heads, inner_dim) for heads, inner_dim in zip(self_heads, inner_dims, strict=True)
        )
        self.norm = final_norm(sizes)

    def blocks(self) -> list[EncoderBlock]:
        """Return the blocks, typed as what they are."""
        return [cast(EncoderBlock, layer) for layer in self.layers]

    def forward(
        self, hidden: Float[Tensor, "B S D"], mask: AttentionMask, *, tap: AnyTap = None, gates: Gates | None = None
    ) -> Float[Tensor, "B S D"]:
        """Transform the first hidden states; the mask says which positions are real."""
        for index, layer in enumerate(self.blocks()):
            path = f"layers.{index}"
            hidden = layer(hidden, mask, tap=scope_tap(tap, path), gates=scope_gates(gates, path))
        normed: Tensor = self.norm(hidden)
        return normed


def final_norm(sizes: BlockSizes) -> nn.Module:
    """Return what ends a stack: blocks that normalise their input leave the last sum for us to normalise."""
    return nn.LayerNorm(sizes.model_dim) if sizes.norm == "pre" else nn.Identity()


class TransformerDecoder(nn.Module):
    """Causal blocks, with attention to a source or (a language model) without.

    Args:
        sizes: what all blocks share.
        self_heads: heads of each block's self-attention; as many blocks as entries.
        cross_heads: heads of each block's attention to the source, or None.
        inner_dims: inner width of each block's feed-forward layer.
    """

    def __init__(
        self,
        sizes: BlockSizes,
        self_heads: Sequence[AttentionSizes],
        cross_heads: Sequence[AttentionSizes] | None,
        inner_dims: Sequence[int],
    ) -> None:
        super().__init__()
        across = [None] * len(self_heads) if cross_heads is None else cross_heads
        self.layers = nn.ModuleList(
            DecoderBlock(sizes, own, cross, inner_dim)
            for own, cross, inner_dim in zip(self_heads, across, inner_dims, strict=True)
        )
        self.norm = final_norm(sizes)

    def blocks(self) -> list[DecoderBlock]:
        """Return the blocks, typed as what they are."""
        return [cast(DecoderBlock, layer) for layer in self.layers]

    def project_memory(self, memory: Float[Tensor, "B S D"]) -> tuple[KeyValues, ...]:
        """Return each layer's keys and values of a source."""
        attentions = [layer.cross_attention for layer in self.blocks()]
        return tuple(each.project_memory(memory) for each in attentions if each is not None)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        source: Sequence[Source | None],
        *,
        tap: AnyTap = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read whole sequences, padded at the right; a position sees itself and those before it."""
        mask = AttentionMask.causal(hidden.shape[1], hidden.device)
        for index, layer in enumerate(self.blocks()):
            path = f"layers.{index}"
            hidden = layer(hidden, mask, source[index], tap=scope_tap(tap, path), gates=scope_gates(gates, path))
        normed: Tensor = self.norm(hidden)
        return normed

    def start(self, num_rows: int) -> tuple[KeyValueCache, ...]:
        """Return each layer's cache of rows that have read nothing."""
        return tuple(layer.self_attention.start(num_rows) for layer in self.blocks())

    def step(
        self,
        hidden: Float[Tensor, "B N D"],
        caches: Sequence[KeyValueCache],
        source: Sequence[Source | None],
        *,
        tap: AnyTap = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], tuple[KeyValueCache, ...]]:
        """Read one position of each hypothesis; equal to `forward` on all that was read so far."""
        grown = []
        for index, layer in enumerate(self.blocks()):
            path = f"layers.{index}"
            hidden, cache = layer.step(
                hidden, caches[index], source[index], tap=scope_tap(tap, path), gates=scope_gates(gates, path)
            )
            grown.append(cache)
        return self.norm(hidden), tuple(grown)
