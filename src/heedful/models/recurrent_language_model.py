"""A recurrent network that reads and continues one text (Mikolov et al. 2010; Zaremba et al. 2014)."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.dropout import Dropout
from heedful.attention.tap import Gates, Tap
from heedful.layers.output import OutputLayer
from heedful.layers.recurrent import RecurrentState
from heedful.models.interfaces import AttentionSite, State, VocabularySizes
from heedful.models.language_model import LanguageModel, RowsMemory, build_tokens
from heedful.models.recurrent_parts import RecurrentPartsConfig


class RecurrentLanguageModelConfig(RecurrentPartsConfig):
    """Keys of a recurrent language model.

    Attributes:
        embedding_dim: width of embeddings, and of the vectors that predict the next symbol.
        tied_embeddings: ``target`` (input embedding and output are one matrix, Press and Wolf 2017) or ``none``.
        dropout: rate on embeddings, between layers and on the vectors that predict.
    """

    kind: Literal["recurrent_language_model"] = "recurrent_language_model"
    tied_embeddings: Literal["none", "target"] = "target"


@dataclass(frozen=True, kw_only=True)
class RecurrentLanguageModelState(State):
    """What was read so far.

    Attributes:
        recurrent: the stack's states, parts ``R L D``.
    """

    recurrent: RecurrentState


class RecurrentLanguageModel(LanguageModel[RecurrentLanguageModelState]):
    """A stack of recurrent layers over one text.

    Raises:
        ConfigError: there is no target vocabulary.
    """

    def __init__(self, config: RecurrentLanguageModelConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        tokens = build_tokens(config.kind, sizes, config.embedding_dim)
        self.target_embedding = config.input_embedding(tokens)
        self.decoder = config.stack(config.embedding_dim)
        self.dropout = Dropout(config.dropout)
        self.readout = nn.Linear(config.hidden_dim, config.embedding_dim)
        tied = None if config.tied_embeddings == "none" else tokens.weight
        self.output = OutputLayer(config.embedding_dim, len(tokens.weight), weight=tied)

    def attention_sites(self) -> list[AttentionSite]:
        """List nothing: there is no attention."""
        return []

    def decode(
        self,
        memory: RowsMemory,
        target_input: Int[Tensor, "B T"],
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read whole texts at once."""
        hidden, _ = self.decoder(self.target_embedding(target_input), self.decoder.initial(target_input.shape[0]))
        return self._read_out(hidden)

    def start(self, memory: RowsMemory, num_hypotheses: int = 1) -> RecurrentLanguageModelState:
        """Return states of zeros."""
        return RecurrentLanguageModelState(recurrent=self.decoder.initial(len(memory.rows) * num_hypotheses))

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: RowsMemory,
        state: RecurrentLanguageModelState,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], RecurrentLanguageModelState]:
        """Read one symbol for each hypothesis."""
        hidden_R1D, recurrent = self.decoder(self.target_embedding(ids.reshape(-1, 1)), state.recurrent)
        return self._read_out(hidden_R1D).view(*ids.shape, -1), RecurrentLanguageModelState(recurrent=recurrent)

    def _read_out(self, hidden: Float[Tensor, "B T I"]) -> Float[Tensor, "B T D"]:
        """Bring hidden states to the width of the output layer."""
        readout: Tensor = self.dropout(self.readout(self.dropout(hidden)))
        return readout
