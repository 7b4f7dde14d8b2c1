"""What a classifier may read with: ids in, a vector for each position out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
from jaxtyping import Float
from torch import Tensor, nn

from heedful.attention.masks import AttentionMask
from heedful.attention.tap import AnyTap, Gates
from heedful.core.config import Config
from heedful.core.types import Batch
from heedful.layers.convolution import ConvolutionBank
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.transformer_block import TransformerBlock
from heedful.layers.transformer_stack import TransformerEncoder
from heedful.models.interfaces import AttentionSite
from heedful.models.recurrent_parts import RecurrentPartsConfig, check_directions
from heedful.models.transformer_parts import TransformerPartsConfig, blocks_by_path, encoder_sites


class RecurrentTextConfig(RecurrentPartsConfig):
    """Reads with LSTM or GRU layers.

    Attributes:
        hidden_dim: width of the output, directions joined.
        is_bidirectional: read from both ends.
    """

    kind: Literal["recurrent"] = "recurrent"
    hidden_dim: int = pydantic.Field(256, ge=1)
    is_bidirectional: bool = True

    @pydantic.model_validator(mode="after")
    def _check(self) -> "RecurrentTextConfig":
        check_directions(self.hidden_dim, is_bidirectional=self.is_bidirectional, table="model.encoder")
        return self


class ConvolutionalTextConfig(Config):
    """Reads with convolutions (Kim 2014, section 3.1: widths 3, 4, 5 with 100 filters each over 300-wide embeddings).

    Attributes:
        embedding_dim: width of embeddings.
        filter_widths: how many positions the filters see.
        num_filters: how many filters of each width.
        dropout: rate on embeddings.
        word_dropout: rate at which whole words are read as unknown.
    """

    kind: Literal["convolutional"] = "convolutional"
    embedding_dim: int = pydantic.Field(300, ge=1)
    filter_widths: tuple[pydantic.PositiveInt, ...] = pydantic.Field((3, 4, 5), min_length=1)
    num_filters: int = pydantic.Field(100, ge=1)
    dropout: float = pydantic.Field(0.0, ge=0, lt=1)
    word_dropout: float = pydantic.Field(0.0, ge=0, lt=1)


class TransformerTextConfig(TransformerPartsConfig):
    """Reads with Transformer blocks.

    Attributes:
        num_layers: blocks.
    """

    kind: Literal["transformer"] = "transformer"
    num_layers: int = pydantic.Field(2, ge=1)


AnyTextEncoderConfig = Annotated[
    RecurrentTextConfig | ConvolutionalTextConfig | TransformerTextConfig, pydantic.Field(discriminator="kind")
]


class TextEncoder(nn.Module, ABC):
    """Gives a vector for each position of the source.

    Attributes:
        output_dim: how wide it is.
    """

    output_dim: int

    @abstractmethod
    def forward(self, batch: Batch, *, tap: AnyTap = None, gates: Gates | None = None) -> Float[Tensor, "B S D"]:
        """Read the source; what stands at padding means nothing."""

    @abstractmethod
    def sites(self, path: str) -> list[AttentionSite]:
        """List the attentions of the encoder, which stands at ``path``."""

    def blocks(self, path: str) -> dict[str, TransformerBlock]:
        """Return its Transformer blocks by path; it stands at ``path``."""
        return {}


class RecurrentTextEncoder(TextEncoder):
    """Embedding and recurrent layers."""

    def __init__(self, config: RecurrentTextConfig, vocabulary: int) -> None:
        super().__init__()
        self.output_dim = config.hidden_dim
        self.embedding = config.input_embedding(TokenEmbedding(vocabulary, config.embedding_dim))
        self.reader = config.encoder(is_bidirectional=config.is_bidirectional)

    def forward(self, batch: Batch, *, tap: AnyTap = None, gates: Gates | None = None) -> Float[Tensor, "B S D"]:
        assert batch.source is not None
        values, _ = self.reader(self.embedding(batch.source), batch.source_lengths)
        return values  # type: ignore[no-any-return]

    def sites(self, path: str) -> list[AttentionSite]:
        return []


class ConvolutionalTextEncoder(TextEncoder):
    """Embedding and one bank of convolutions."""

    def __init__(self, config: ConvolutionalTextConfig, vocabulary: int) -> None:
        super().__init__()
        tokens = TokenEmbedding(vocabulary, config.embedding_dim)
        self.embedding = InputEmbedding(tokens, None, dropout=config.dropout, word_dropout=config.word_dropout)
        self.reader = ConvolutionBank(config.embedding_dim, config.filter_widths, config.num_filters)
        self.output_dim = self.reader.output_dim

    def forward(self, batch: Batch, *, tap: AnyTap = None, gates: Gates | None = None) -> Float[Tensor, "B S D"]:
        assert batch.source is not None
        return self.reader(self.embedding(batch.source), batch.source_keep)  # type: ignore[no-any-return]

    def sites(self, path: str) -> list[AttentionSite]:
        return []


class TransformerTextEncoder(TextEncoder):
    """Embedding and Transformer blocks."""

    def __init__(self, config: TransformerTextConfig, vocabulary: int) -> None:
        super().__init__()
        self.output_dim = config.model_dim
        self.embedding = config.input_embedding(TokenEmbedding(vocabulary, config.model_dim))
        self.reader = TransformerEncoder(
            config.block_sizes(),
            config.heads("encoder", config.num_layers),
            config.inner_dims("encoder", config.num_layers),
        )

    def forward(self, batch: Batch, *, tap: AnyTap = None, gates: Gates | None = None) -> Float[Tensor, "B S D"]:
        assert batch.source is not None
        mask = AttentionMask.padding(batch.source_keep)
        return self.reader(self.embedding(batch.source), mask, tap=tap, gates=gates)  # type: ignore[no-any-return]

    def sites(self, path: str) -> list[AttentionSite]:
        return encoder_sites(self.reader, path)

    def blocks(self, path: str) -> dict[str, TransformerBlock]:
        return blocks_by_path(self.reader, path)


TEXT_ENCODERS: dict[str, Callable[[Any, int], TextEncoder]] = {
    "recurrent": RecurrentTextEncoder,
    "convolutional": ConvolutionalTextEncoder,
    "transformer": TransformerTextEncoder,
}


def build_text_encoder(config: AnyTextEncoderConfig, vocabulary: int) -> TextEncoder:
    """Return the encoder that the configuration names, for that many symbols."""
    return TEXT_ENCODERS[config.kind](config, vocabulary)
