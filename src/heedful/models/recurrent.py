"""The recurrent encoder-decoder: fixed vector (Sutskever et al. 2014) or attention (Bahdanau, Luong et al. 2015)."""

from typing import Literal

import pydantic
from jaxtyping import Float, Int
from torch import Tensor

from heedful.attention.dropout import Dropout
from heedful.attention.local import AnyLocalityConfig, build_locality
from heedful.attention.masks import AttentionMask
from heedful.attention.scores import AnyScoreConfig, build_score
from heedful.attention.tap import Gates, Tap, scope_gates, scope_tap
from heedful.core.config import Config
from heedful.core.errors import ConfigError
from heedful.core.types import Batch
from heedful.layers.embedding import InputEmbedding, TokenEmbedding
from heedful.layers.output import OutputLayer
from heedful.layers.recurrent import CellName, RecurrentEncoder, RecurrentStack, reverse_rows
from heedful.layers.single_head import SingleHeadAttention
from heedful.models.interfaces import AttentionSite, Generates, Memory, State, VocabularySizes
from heedful.models.recurrent_decoders import (
    SITE,
    AttentiveDecoder,
    BahdanauDecoder,
    DecoderState,
    FixedVectorDecoder,
    InputFeedingDecoder,
    LuongDecoder,
    RecurrentDecoder,
    RecurrentMemory,
)


class RecurrentConfig(Config):
    """Keys of a recurrent encoder-decoder.

    Attributes:
        cell: ``lstm`` or ``gru``.
        num_layers: layers of the encoder, and of the decoder.
        embedding_dim: width of embeddings, and of the vectors that predict the next symbol.
        hidden_dim: width of the decoder's states and of the encoder's outputs (directions joined).
        is_bidirectional: the encoder reads from both ends.
        attention: the score; absent means none, a fixed vector.
        locality: where the attention may look; absent means everywhere.
        order: ``luong`` (step, then attend: trains fast) or ``bahdanau`` (attend, then step).
        has_input_feeding: feed what came of a step into the next one (order ``luong``).
        is_source_reversed: read the source's words from the last to the first (Sutskever et al. 2014, section 3.3).
            Attention weights stay in the order of the source.
        tied_embeddings: ``all`` (source, target and output are one matrix; the vocabularies must be joint), ``target``
            (target embedding and output, Press and Wolf 2017) or ``none``.
        dropout: rate on embeddings, between layers and on the vectors that predict.
        word_dropout: rate at which whole words are read as unknown.
    """

    kind: Literal["recurrent"] = "recurrent"
    cell: CellName = "lstm"
    num_layers: int = pydantic.Field(1, ge=1)
    embedding_dim: int = pydantic.Field(256, ge=1)
    hidden_dim: int = pydantic.Field(512, ge=1)
    is_bidirectional: bool = True
    attention: AnyScoreConfig | None = None
    locality: AnyLocalityConfig | None = None
    order: Literal["luong", "bahdanau"] = "luong"
    has_input_feeding: bool = False
    is_source_reversed: bool = False
    tied_embeddings: Literal["none", "target", "all"] = "target"
    dropout: float = pydantic.Field(0.2, ge=0, lt=1)
    word_dropout: float = pydantic.Field(0.0, ge=0, lt=1)

    @pydantic.model_validator(mode="after")
    def _check(self) -> "RecurrentConfig":
        if self.is_bidirectional and self.hidden_dim % 2:
            raise ValueError(
                f"`model.hidden_dim` must be even for an encoder of two directions, but is {self.hidden_dim}. "
                f"Try {self.hidden_dim + 1}."
            )
        if self.has_input_feeding and (self.attention is None or self.order != "luong"):
            raise ValueError("`model.has_input_feeding` needs `model.attention` and `model.order` `luong`.")
        if self.locality is not None and self.attention is None:
            raise ValueError('`model.locality` needs an attention. Try `model.attention.kind="bilinear"`.')
        return self


class RecurrentModel(Generates):
    """Recurrent encoder and decoder.

    Raises:
        ConfigError: the vocabularies do not fit the configuration.
    """

    def __init__(self, config: RecurrentConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        if sizes.source is None or sizes.target is None:
            raise ConfigError("`model.kind` is `recurrent`, which needs a source and a target vocabulary.")
        if config.tied_embeddings == "all" and not sizes.is_shared:
            raise ConfigError(
                "`model.tied_embeddings` is `all`, but source and target have vocabularies of their own. "
                "Try `text.is_joint=true`, or `model.tied_embeddings=target`."
            )
        target_tokens = TokenEmbedding(sizes.target, config.embedding_dim)
        shared = target_tokens.weight if config.tied_embeddings == "all" else None
        source_tokens = TokenEmbedding(sizes.source, config.embedding_dim, weight=shared)
        self.source_embedding = _embedding(source_tokens, config)
        self.target_embedding = _embedding(target_tokens, config)
        self.encoder = RecurrentEncoder(
            config.cell,
            config.embedding_dim,
            config.hidden_dim,
            config.num_layers,
            is_bidirectional=config.is_bidirectional,
            dropout=config.dropout,
        )
        self.decoder = _build_decoder(config)
        self.dropout = Dropout(config.dropout)
        self.is_source_reversed = config.is_source_reversed
        tied = None if config.tied_embeddings == "none" else target_tokens.weight
        self.output = OutputLayer(config.embedding_dim, sizes.target, weight=tied, bias=True)

    def attention_sites(self) -> list[AttentionSite]:
        """List the one attention, if there is any."""
        if not isinstance(self.decoder, AttentiveDecoder):
            return []
        site = f"decoder.{SITE}"
        return [AttentionSite(path=site, kind="cross", layer=0, num_heads=1, head_dim=self.encoder.output_dim)]

    def encode(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> RecurrentMemory:
        """Read the source. Where it is read in reverse, its end (EOS) is still read last."""
        assert batch.source is not None and batch.source_lengths is not None
        lengths = batch.source_lengths
        embedded = self.source_embedding(batch.source)
        if self.is_source_reversed:
            embedded = reverse_rows(embedded, lengths - 1)
        values, final = self.encoder(embedded, lengths)
        if self.is_source_reversed:
            values = reverse_rows(values, lengths - 1)
        attention = self.decoder.attention if isinstance(self.decoder, AttentiveDecoder) else None
        return RecurrentMemory(
            values=values,
            prepared=None if attention is None else attention.prepare(values),
            mask=AttentionMask.padding(batch.source_keep),
            final=final,
        )

    def decode(
        self,
        memory: Memory,
        target_input: Int[Tensor, "B T"],
        target_keep: Tensor,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read the whole target; no position depends on one after it."""
        assert isinstance(memory, RecurrentMemory)
        embedded = self.target_embedding(target_input)
        readout = self.decoder.decode(
            embedded, memory, tap=scope_tap(tap, "decoder"), gates=scope_gates(gates, "decoder")
        )
        dropped: Tensor = self.dropout(readout)
        return dropped

    def start(self, memory: Memory, num_hypotheses: int = 1) -> DecoderState:
        """Return the encoder's last states, for each hypothesis."""
        assert isinstance(memory, RecurrentMemory)
        return self.decoder.start(memory, num_hypotheses)

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: Memory,
        state: State,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], DecoderState]:
        """Read one symbol for each hypothesis."""
        assert isinstance(memory, RecurrentMemory) and isinstance(state, DecoderState)
        readout, state = self.decoder.step(
            self.target_embedding(ids),
            memory,
            state,
            tap=scope_tap(tap, "decoder"),
            gates=scope_gates(gates, "decoder"),
        )
        return self.dropout(readout), state


def _embedding(tokens: TokenEmbedding, config: RecurrentConfig) -> InputEmbedding:
    return InputEmbedding(tokens, None, dropout=config.dropout, word_dropout=config.word_dropout)


def _build_decoder(config: RecurrentConfig) -> RecurrentDecoder:
    """Return the decoder of a configuration: one class for each way to look at the source."""
    hidden_dim, embedding_dim = config.hidden_dim, config.embedding_dim

    def stack(input_dim: int) -> RecurrentStack:
        return RecurrentStack(config.cell, input_dim, hidden_dim, config.num_layers, config.dropout)

    if config.attention is None:
        return FixedVectorDecoder(stack(embedding_dim), hidden_dim, embedding_dim)
    locality = None if config.locality is None else build_locality(config.locality, hidden_dim)
    attention = SingleHeadAttention(build_score(config.attention, hidden_dim, hidden_dim), locality)
    if config.order == "bahdanau":
        return BahdanauDecoder(
            stack(embedding_dim + hidden_dim), attention, hidden_dim, embedding_dim, hidden_dim, embedding_dim
        )
    if config.has_input_feeding:
        return InputFeedingDecoder(stack(2 * embedding_dim), attention, hidden_dim, hidden_dim, embedding_dim)
    return LuongDecoder(stack(embedding_dim), attention, hidden_dim, hidden_dim, embedding_dim)
