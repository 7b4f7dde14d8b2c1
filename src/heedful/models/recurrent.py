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
from heedful.core.types import Batch
from heedful.layers.output import OutputLayer
from heedful.layers.recurrent import reverse_rows
from heedful.layers.single_head import SingleHeadAttention
from heedful.models.interfaces import AttentionSite, Generates, VocabularySizes
from heedful.models.recurrent_decoders import (
    BahdanauDecoder,
    DecoderState,
    FixedVectorDecoder,
    InputFeedingDecoder,
    LuongDecoder,
    RecurrentDecoder,
    RecurrentMemory,
)
from heedful.models.recurrent_parts import RecurrentPartsConfig, check_directions
from heedful.models.tying import Tying, build_symbol_tables


class RecurrentConfig(RecurrentPartsConfig):
    """Keys of a recurrent encoder-decoder.

    Attributes:
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
    """

    kind: Literal["recurrent"] = "recurrent"
    is_bidirectional: bool = True
    attention: AnyScoreConfig | None = None
    locality: AnyLocalityConfig | None = None
    order: Literal["luong", "bahdanau"] = "luong"
    has_input_feeding: bool = False
    is_source_reversed: bool = False
    tied_embeddings: Tying = "target"

    @pydantic.model_validator(mode="after")
    def _check(self) -> "RecurrentConfig":
        check_directions(self.hidden_dim, is_bidirectional=self.is_bidirectional, table="model")
        if self.has_input_feeding and (self.attention is None or self.order != "luong"):
            raise ValueError("`model.has_input_feeding` needs `model.attention` and `model.order` `luong`.")
        if self.locality is not None and self.attention is None:
            raise ValueError('`model.locality` needs an attention. Try `model.attention.kind="bilinear"`.')
        return self


class RecurrentModel(Generates[RecurrentMemory, DecoderState]):
    """Recurrent encoder and decoder.

    Raises:
        ConfigError: the vocabularies do not fit the configuration.
    """

    def __init__(self, config: RecurrentConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        tables = build_symbol_tables(config.kind, config.tied_embeddings, sizes, config.embedding_dim)
        self.source_embedding = config.input_embedding(tables.source)
        self.target_embedding = config.input_embedding(tables.target)
        self.encoder = config.encoder(is_bidirectional=config.is_bidirectional)
        self.decoder = _build_decoder(config)
        self.dropout = Dropout(config.dropout)
        self.is_source_reversed = config.is_source_reversed
        self.output = OutputLayer(config.embedding_dim, len(tables.target.weight), weight=tables.output_weight)

    def attention_sites(self) -> list[AttentionSite]:
        """List the one attention, if there is any."""
        return self.decoder.sites("decoder", self.encoder.output_dim)

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
        return RecurrentMemory(
            values=values,
            prepared=self.decoder.prepare(values),
            mask=AttentionMask.padding(batch.source_keep),
            final=final,
        )

    def decode(
        self,
        memory: RecurrentMemory,
        target_input: Int[Tensor, "B T"],
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read the whole target; no position depends on one after it."""
        embedded = self.target_embedding(target_input)
        readout = self.decoder.decode(
            embedded, memory, tap=scope_tap(tap, "decoder"), gates=scope_gates(gates, "decoder")
        )
        dropped: Tensor = self.dropout(readout)
        return dropped

    def start(self, memory: RecurrentMemory, num_hypotheses: int = 1) -> DecoderState:
        """Return the encoder's last states, for each hypothesis."""
        return self.decoder.start(memory, num_hypotheses)

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: RecurrentMemory,
        state: DecoderState,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], DecoderState]:
        """Read one symbol for each hypothesis."""
        readout, state = self.decoder.step(
            self.target_embedding(ids),
            memory,
            state,
            tap=scope_tap(tap, "decoder"),
            gates=scope_gates(gates, "decoder"),
        )
        return self.dropout(readout), state


def _build_decoder(config: RecurrentConfig) -> RecurrentDecoder:
    """Return the decoder of a configuration: one class for each way to look at the source."""
    hidden_dim, embedding_dim, stack = config.hidden_dim, config.embedding_dim, config.stack
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
