"""What the recurrent models have in common: the keys of their configurations and how these become layers."""

import pydantic

from heedful.core.config import Config
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.recurrent import CellName, RecurrentEncoder, RecurrentStack


class RecurrentPartsConfig(Config):
    """Keys of every recurrent model.

    Attributes:
        cell: ``lstm`` or ``gru``.
        num_layers: layers, of the encoder and of the decoder where there are both.
        embedding_dim: width of embeddings.
        hidden_dim: width of the states.
        dropout: rate on embeddings and between layers.
        word_dropout: rate at which whole words are read as unknown.
    """

    cell: CellName = "lstm"
    num_layers: int = pydantic.Field(1, ge=1)
    embedding_dim: int = pydantic.Field(256, ge=1)
    hidden_dim: int = pydantic.Field(512, ge=1)
    dropout: float = pydantic.Field(0.2, ge=0, lt=1)
    word_dropout: float = pydantic.Field(0.0, ge=0, lt=1)

    def input_embedding(self, tokens: TokenEmbedding) -> InputEmbedding:
        """Return the way from ids to the first layer's input, on these token embeddings."""
        return InputEmbedding(tokens, None, dropout=self.dropout, word_dropout=self.word_dropout)

    def stack(self, input_dim: int) -> RecurrentStack:
        """Return layers in one direction over inputs of that width."""
        return RecurrentStack(self.cell, input_dim, self.hidden_dim, self.num_layers, self.dropout)

    def encoder(self, *, is_bidirectional: bool) -> RecurrentEncoder:
        """Return layers that read embedded rows in one direction or in both."""
        return RecurrentEncoder(
            self.cell,
            self.embedding_dim,
            self.hidden_dim,
            self.num_layers,
            is_bidirectional=is_bidirectional,
            dropout=self.dropout,
        )


def check_directions(hidden_dim: int, *, is_bidirectional: bool, table: str) -> None:
    """Refuse an odd width where two directions share it.

    Args:
        hidden_dim: width of the states, directions joined.
        is_bidirectional: the encoder reads from both ends.
        table: where the keys stand, for the message.

    Raises:
        ValueError: the width is odd.
    """
    if is_bidirectional and hidden_dim % 2:
        raise ValueError(
            f"`{table}.hidden_dim` must be even for an encoder of two directions, but is {hidden_dim}. "
            f"Try {hidden_dim + 1}."
        )
