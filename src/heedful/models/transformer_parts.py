"""What the Transformer models have in common: the keys of their configurations and how these become layers."""

from collections.abc import Sequence
from typing import Any, Literal

import pydantic

from heedful.attention.multihead import MultiHeadAttention, SelfAttention, split_model_dim
from heedful.core.config import Config
from heedful.core.errors import ConfigError
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.feed_forward import Activation
from heedful.layers.positions import AnyPositionsConfig, SinusoidalPositionsConfig, build_positions
from heedful.layers.transformer_block import AttentionSizes, BlockSizes, TransformerBlock
from heedful.layers.transformer_stack import TransformerDecoder, TransformerEncoder
from heedful.models.interfaces import AttentionSite

PerLayer = int | tuple[int, ...]
"""One number for all layers, or one for each."""


class PerSite(Config):
    """A number for each attention of a model, or for each kind of them.

    Attributes:
        encoder: of the encoder's self-attention.
        decoder: of the decoder's self-attention.
        cross: of the decoder's attention to the source.
    """

    encoder: PerLayer = 0
    decoder: PerLayer = 0
    cross: PerLayer = 0


class PerStack(Config):
    """A width for each feed-forward layer of a model.

    Attributes:
        encoder: of the encoder's.
        decoder: of the decoder's.
    """

    encoder: PerLayer = 0
    decoder: PerLayer = 0


class TransformerPartsConfig(Config):
    """Keys of every Transformer.

    Attributes:
        model_dim: width of the positions.
        num_heads: heads of each attention: a number, or a table ``{encoder = [8, 3, 0], decoder = 8, cross = 8}``.
        head_dim: width of one head, in the same forms; absent in a fresh model, which takes ``model_dim / num_heads``.
        inner_dim: inner width of the feed-forward layers: a number, or a table ``{encoder = [64, 8], decoder = 64}``.
        activation: ``relu``, ``gelu``, or gated: ``glu``, ``reglu``, ``geglu``, ``swiglu``.
        norm: ``post`` (as published) or ``pre``.
        positions: ``sinusoidal`` (as published), ``learned``, ``rotary`` or ``none``, or a table with that ``kind``.
        has_concatenated_positions: concatenate positions to the token embedding rather than add them.
        attention_window: how far self-attention looks to each side; absent means everywhere.
        dropout: rate on what each part adds to the residual stream.
        embedding_dropout: rate on the sum of embedding and positions; absent means as ``dropout``.
        attention_dropout: rate on attention weights.
        activation_dropout: rate inside the feed-forward layers.
        word_dropout: rate at which whole words are read as unknown.
    """

    model_dim: int = pydantic.Field(512, ge=1)
    num_heads: int | PerSite = 8
    head_dim: int | PerSite | None = None
    inner_dim: pydantic.PositiveInt | PerStack = 2048
    activation: Activation = "relu"
    norm: Literal["post", "pre"] = "post"
    positions: AnyPositionsConfig = SinusoidalPositionsConfig()
    has_concatenated_positions: bool = False
    attention_window: int | None = pydantic.Field(None, ge=0)
    dropout: float = pydantic.Field(0.1, ge=0, lt=1)
    embedding_dropout: float | None = pydantic.Field(None, ge=0, lt=1)
    attention_dropout: float = pydantic.Field(0.0, ge=0, lt=1)
    activation_dropout: float = pydantic.Field(0.0, ge=0, lt=1)
    word_dropout: float = pydantic.Field(0.0, ge=0, lt=1)

    @pydantic.field_validator("positions", mode="before")
    @classmethod
    def _accept_a_bare_kind(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    def block_sizes(self) -> BlockSizes:
        """Return what all blocks share."""
        return BlockSizes(
            model_dim=self.model_dim,
            activation=self.activation,
            norm=self.norm,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            window=self.attention_window,
            positions=self.positions,
        )

    def heads(self, kind: Literal["encoder", "decoder", "cross"], num_layers: int) -> list[AttentionSizes]:
        """Return the heads of each layer's attention of a kind.

        Raises:
            ConfigError: a list is as long as the layers are not, a number is negative, or ``head_dim`` is absent and
                cannot be derived.
        """
        numbers = _spread(self.num_heads, "num_heads", kind, num_layers)
        if self.head_dim is None:
            widths = [self._derive_head_dim(number) for number in numbers]
        else:
            widths = _spread(self.head_dim, "head_dim", kind, num_layers)
        return [AttentionSizes(num_heads=n, head_dim=e) for n, e in zip(numbers, widths, strict=True)]

    def inner_dims(self, stack: Literal["encoder", "decoder"], num_layers: int) -> list[int]:
        """Return the inner width of each feed-forward layer of a stack.

        Raises:
            ConfigError: a list is as long as the layers are not, or a number is below 1.
        """
        widths = _spread(self.inner_dim, "inner_dim", stack, num_layers)
        if min(widths, default=1) < 1:
            raise ConfigError(f"`model.inner_dim.{stack}` must be at least 1 in every layer, but is {min(widths)}.")
        return widths

    def _derive_head_dim(self, num_heads: int) -> int:
        if num_heads == 0:
            raise ConfigError("`model.head_dim` is missing: it cannot be derived for an attention with 0 heads.")
        return split_model_dim(self.model_dim, num_heads)

    def input_embedding(self, tokens: TokenEmbedding) -> InputEmbedding:
        """Return the way from ids to the first hidden states, on these token embeddings."""
        return InputEmbedding(
            tokens,
            build_positions(self.positions, self.model_dim),
            is_concatenated=self.has_concatenated_positions,
            dropout=self.dropout if self.embedding_dropout is None else self.embedding_dropout,
            word_dropout=self.word_dropout,
        )


def _spread(
    value: int | PerSite | PerStack, key: str, kind: Literal["encoder", "decoder", "cross"], num_layers: int
) -> list[int]:
    """Return one number for each layer."""
    numbers: PerLayer = value if isinstance(value, int) else getattr(value, kind)
    if isinstance(numbers, int):
        numbers = (numbers,) * num_layers
    if len(numbers) != num_layers:
        raise ConfigError(f"`model.{key}.{kind}` has {len(numbers)} numbers, but there are {num_layers} layers.")
    if min(numbers, default=0) < 0:
        raise ConfigError(f"`model.{key}.{kind}` has a negative number: {min(numbers)}.")
    return list(numbers)


def encoder_sites(encoder: TransformerEncoder, path: str) -> list[AttentionSite]:
    """List the attentions of an encoder that stands at ``path``, as they are now."""
    return [
        _site(layer.self_attention, f"{path}.layers.{index}.self_attention", "encoder", index)
        for index, layer in enumerate(encoder.blocks())
    ]


def decoder_sites(decoder: TransformerDecoder, path: str) -> list[AttentionSite]:
    """List the attentions of a decoder that stands at ``path``, as they are now."""
    sites = []
    for index, layer in enumerate(decoder.blocks()):
        sites.append(_site(layer.self_attention, f"{path}.layers.{index}.self_attention", "decoder", index))
        if layer.cross_attention is not None:
            sites.append(_site(layer.cross_attention, f"{path}.layers.{index}.cross_attention", "cross", index))
    return sites


def blocks_by_path(stack: TransformerEncoder | TransformerDecoder, path: str) -> dict[str, TransformerBlock]:
    """Return the blocks of a stack that stands at ``path``, each by its own."""
    blocks: Sequence[TransformerBlock] = stack.blocks()
    return {f"{path}.layers.{index}": block for index, block in enumerate(blocks)}


def _site(
    attention: MultiHeadAttention, path: str, kind: Literal["encoder", "decoder", "cross"], layer: int
) -> AttentionSite:
    window = attention.window if isinstance(attention, SelfAttention) else None
    return AttentionSite(
        path=path,
        kind=kind,
        layer=layer,
        num_heads=attention.num_heads,
        head_dim=attention.head_dim,
        window=None if window is None else window.before,
    )
