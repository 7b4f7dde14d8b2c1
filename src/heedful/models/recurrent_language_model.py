"""A recurrent network that reads and continues one text (Mikolov et al. 2010; Zaremba et al. 2014)."""

from dataclasses import dataclass
from typing import Literal

import pydantic
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.dropout import Dropout
from heedful.attention.tap import Gates, Tap
from heedful.core.config import Config
from heedful.core.errors import ConfigError
from heedful.core.types import Batch
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.output import OutputLayer
from heedful.layers.recurrent import CellName, RecurrentStack, RecurrentState
from heedful.models.interfaces import AttentionSite, Generates, Memory, State, VocabularySizes
from heedful.models.transformer_language_model import RowsMemory


class RecurrentLanguageModelConfig(Config):
    """Keys of a recurrent language model.

    Attributes:
        cell: ``lstm`` or ``gru``.
        num_layers: layers.
        embedding_dim: width of embeddings, and of the vectors that predict the next symbol.
        hidden_dim: width of the states.
        tied_embeddings: ``target`` (input embedding and output are one matrix, Press and Wolf 2017) or ``none``.
        dropout: rate on embeddings, between layers and on the vectors that predict.
        word_dropout: rate at which whole words are read as unknown.
    """

    kind: Literal["recurrent_language_model"] = "recurrent_language_model"
    cell: CellName = "lstm"
    num_layers: int = pydantic.Field(1, ge=1)
    embedding_dim: int = pydantic.Field(256, ge=1)
    hidden_dim: int = pydantic.Field(512, ge=1)
    tied_embeddings: Literal["none", "target"] = "target"
    dropout: float = pydantic.Field(0.2, ge=0, lt=1)
    word_dropout: float = pydantic.Field(0.0, ge=0, lt=1)


@dataclass(frozen=True, kw_only=True)
class RecurrentLanguageModelState(State):
    """What was read so far.

    Attributes:
        recurrent: the stack's states, parts ``R L D``.
    """

    recurrent: RecurrentState


class RecurrentLanguageModel(Generates):
    """A stack of recurrent layers over one text.

    Raises:
        ConfigError: there is no target vocabulary.
    """

    def __init__(self, config: RecurrentLanguageModelConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        if sizes.target is None:
            raise ConfigError("`model.kind` is `recurrent_language_model`, which needs a target vocabulary.")
        tokens = TokenEmbedding(sizes.target, config.embedding_dim)
        self.target_embedding = InputEmbedding(tokens, None, dropout=config.dropout, word_dropout=config.word_dropout)
        self.decoder = RecurrentStack(
            config.cell, config.embedding_dim, config.hidden_dim, config.num_layers, config.dropout
        )
        self.dropout = Dropout(config.dropout)
        self.readout = nn.Linear(config.hidden_dim, config.embedding_dim)
        tied = None if config.tied_embeddings == "none" else tokens.weight
        self.output = OutputLayer(config.embedding_dim, sizes.target, weight=tied)

    def attention_sites(self) -> list[AttentionSite]:
        """List nothing: there is no attention."""
        return []

    def encode(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> RowsMemory:
        """Count the rows."""
        return RowsMemory(rows=batch.lines)

    def decode(
        self,
        memory: Memory,
        target_input: Int[Tensor, "B T"],
        target_keep: Tensor,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read whole texts at once."""
        hidden, _ = self.decoder(self.target_embedding(target_input), self.decoder.initial(target_input.shape[0]))
        return self._read_out(hidden)

    def start(self, memory: Memory, num_hypotheses: int = 1) -> RecurrentLanguageModelState:
        """Return states of zeros."""
        assert isinstance(memory, RowsMemory)
        return RecurrentLanguageModelState(recurrent=self.decoder.initial(len(memory.rows) * num_hypotheses))

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: Memory,
        state: State,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], RecurrentLanguageModelState]:
        """Read one symbol for each hypothesis."""
        assert isinstance(state, RecurrentLanguageModelState)
        hidden_R1D, recurrent = self.decoder(self.target_embedding(ids.reshape(-1, 1)), state.recurrent)
        return self._read_out(hidden_R1D).view(*ids.shape, -1), RecurrentLanguageModelState(recurrent=recurrent)

    def _read_out(self, hidden: Float[Tensor, "B T H"]) -> Float[Tensor, "B T D"]:
        """Bring hidden states to the width of the output layer."""
        readout: Tensor = self.dropout(self.readout(self.dropout(hidden)))
        return readout
