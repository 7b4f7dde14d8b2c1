"""The encoder-decoder Transformer (Vaswani et al. 2017)."""

from dataclasses import dataclass
from typing import Literal

import pydantic
from jaxtyping import Float, Int
from torch import Tensor

from heedful.attention.cache import KeyValueCache, KeyValues
from heedful.attention.masks import AttentionMask
from heedful.attention.tap import Gates, Tap, scope_gates, scope_tap
from heedful.core.types import Batch
from heedful.layers.output import OutputLayer
from heedful.layers.transformer_block import Source, TransformerBlock
from heedful.layers.transformer_stack import TransformerDecoder, TransformerEncoder
from heedful.models.interfaces import AttentionSite, Generates, Memory, State, VocabularySizes
from heedful.models.transformer_parts import TransformerPartsConfig, blocks_by_path, decoder_sites, encoder_sites
from heedful.models.tying import Tying, build_symbol_tables


class TransformerConfig(TransformerPartsConfig):
    """Keys of an encoder-decoder.

    Attributes:
        encoder_layers: blocks of the encoder.
        decoder_layers: blocks of the decoder; one or two make a fast engine (Kasai et al. 2021).
        tied_embeddings: ``all`` (source, target and output are one matrix; the vocabularies must be joint), ``target``
            (target embedding and output, Press and Wolf 2017) or ``none``.
    """

    kind: Literal["transformer"] = "transformer"
    encoder_layers: int = pydantic.Field(6, ge=0)
    decoder_layers: int = pydantic.Field(6, ge=1)
    tied_embeddings: Tying = "target"


@dataclass(frozen=True, kw_only=True)
class TransformerMemory(Memory):
    """A source as the decoder's attentions need it.

    Attributes:
        layers: projected keys and values for each decoder layer.
        mask: which source positions are real.
    """

    layers: tuple[KeyValues, ...]
    mask: AttentionMask

    def sources(self) -> list[Source]:
        """Return what each decoder layer attends to."""
        return [Source(pairs, self.mask) for pairs in self.layers]


@dataclass(frozen=True, kw_only=True)
class TransformerState(State):
    """What was generated so far, as the decoder's self-attentions need it.

    Attributes:
        caches: keys and values for each decoder layer.
        length: symbols read.
    """

    caches: tuple[KeyValueCache, ...]
    length: int


class Transformer(Generates[TransformerMemory, TransformerState]):
    """Encoder and decoder of attention blocks.

    Raises:
        ConfigError: the vocabularies do not fit the configuration.
    """

    def __init__(self, config: TransformerConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        tables = build_symbol_tables(config.kind, config.tied_embeddings, sizes, config.model_dim)
        block = config.block_sizes()
        self.source_embedding = config.input_embedding(tables.source)
        self.target_embedding = config.input_embedding(tables.target)
        self.encoder = TransformerEncoder(
            block, config.heads("encoder", config.encoder_layers), config.inner_dims("encoder", config.encoder_layers)
        )
        self.decoder = TransformerDecoder(
            block,
            config.heads("decoder", config.decoder_layers),
            config.heads("cross", config.decoder_layers),
            config.inner_dims("decoder", config.decoder_layers),
        )
        # No bias, as published: it would cost passes over all logits of a training step for itself alone.
        self.output = OutputLayer(config.model_dim, len(tables.target.weight), weight=tables.output_weight, bias=False)

    def attention_sites(self) -> list[AttentionSite]:
        """List the encoder's, then the decoder's layer by layer."""
        return [*encoder_sites(self.encoder, "encoder"), *decoder_sites(self.decoder, "decoder")]

    def blocks(self) -> dict[str, TransformerBlock]:
        """Return the encoder's and the decoder's."""
        return {**blocks_by_path(self.encoder, "encoder"), **blocks_by_path(self.decoder, "decoder")}

    def encode(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> TransformerMemory:
        """Read the source, and project it for every decoder layer."""
        assert batch.source is not None
        mask = AttentionMask.padding(batch.source_keep)
        hidden = self.source_embedding(batch.source)
        hidden = self.encoder(hidden, mask, tap=scope_tap(tap, "encoder"), gates=scope_gates(gates, "encoder"))
        return TransformerMemory(layers=self.decoder.project_memory(hidden), mask=mask)

    def decode(
        self,
        memory: TransformerMemory,
        target_input: Int[Tensor, "B T"],
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read the whole target at once, each position seeing none after it."""
        hidden: Tensor = self.decoder(
            self.target_embedding(target_input),
            memory.sources(),
            tap=scope_tap(tap, "decoder"),
            gates=scope_gates(gates, "decoder"),
        )
        return hidden

    def start(self, memory: TransformerMemory, num_hypotheses: int = 1) -> TransformerState:
        """Return empty caches."""
        rows = memory.mask.keep.shape[0] * num_hypotheses
        return TransformerState(caches=self.decoder.start(rows), length=0)

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: TransformerMemory,
        state: TransformerState,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], TransformerState]:
        """Read one symbol for each hypothesis, adding its keys and values to the caches."""
        hidden = self.target_embedding(ids.reshape(-1, 1), offset=state.length).view(*ids.shape, -1)
        hidden, caches = self.decoder.step(
            hidden,
            state.caches,
            memory.sources(),
            tap=scope_tap(tap, "decoder"),
            gates=scope_gates(gates, "decoder"),
        )
        return hidden, TransformerState(caches=caches, length=state.length + 1)
