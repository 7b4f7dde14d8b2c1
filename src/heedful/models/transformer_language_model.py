"""A Transformer that reads and continues one text: the decoder of Vaswani et al. (2017) without a source."""

from dataclasses import dataclass
from typing import Literal

import pydantic
from jaxtyping import Float, Int
from torch import Tensor

from heedful.attention.cache import KeyValueCache
from heedful.attention.tap import Gates, Tap, scope_gates, scope_tap
from heedful.layers.output import OutputLayer
from heedful.layers.transformer_block import TransformerBlock
from heedful.layers.transformer_stack import TransformerDecoder
from heedful.models.interfaces import AttentionSite, State, VocabularySizes
from heedful.models.language_model import LanguageModel, RowsMemory, build_tokens
from heedful.models.transformer_parts import TransformerPartsConfig, blocks_by_path, decoder_sites


class TransformerLanguageModelConfig(TransformerPartsConfig):
    """Keys of a language model.

    Attributes:
        num_layers: blocks.
        tied_embeddings: ``target`` (input embedding and output are one matrix, Press and Wolf 2017) or ``none``.
    """

    kind: Literal["transformer_language_model"] = "transformer_language_model"
    num_layers: int = pydantic.Field(6, ge=1)
    tied_embeddings: Literal["none", "target"] = "target"


@dataclass(frozen=True, kw_only=True)
class TransformerLanguageModelState(State):
    """What was read so far.

    Attributes:
        caches: keys and values for each layer.
        length: symbols read.
    """

    caches: tuple[KeyValueCache, ...]
    length: int


class TransformerLanguageModel(LanguageModel[TransformerLanguageModelState]):
    """Causal blocks over one text.

    Raises:
        ConfigError: there is no target vocabulary.
    """

    def __init__(self, config: TransformerLanguageModelConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        tokens = build_tokens(config.kind, sizes, config.model_dim)
        self.target_embedding = config.input_embedding(tokens)
        self.decoder = TransformerDecoder(
            config.block_sizes(),
            config.heads("decoder", config.num_layers),
            None,
            config.inner_dims("decoder", config.num_layers),
        )
        tied = None if config.tied_embeddings == "none" else tokens.weight
        self.output = OutputLayer(config.model_dim, len(tokens.weight), weight=tied, bias=False)

    def attention_sites(self) -> list[AttentionSite]:
        """List the self-attention of each layer."""
        return decoder_sites(self.decoder, "decoder")

    def blocks(self) -> dict[str, TransformerBlock]:
        """Return every block."""
        return blocks_by_path(self.decoder, "decoder")

    def decode(
        self,
        memory: RowsMemory,
        target_input: Int[Tensor, "B T"],
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read whole texts at once, each position seeing none after it."""
        hidden: Tensor = self.decoder(
            self.target_embedding(target_input),
            self._no_source(),
            tap=scope_tap(tap, "decoder"),
            gates=scope_gates(gates, "decoder"),
        )
        return hidden

    def start(self, memory: RowsMemory, num_hypotheses: int = 1) -> TransformerLanguageModelState:
        """Return empty caches."""
        caches = self.decoder.start(len(memory.rows) * num_hypotheses)
        return TransformerLanguageModelState(caches=caches, length=0)

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: RowsMemory,
        state: TransformerLanguageModelState,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], TransformerLanguageModelState]:
        """Read one symbol for each hypothesis, adding its keys and values to the caches."""
        hidden, caches = self.decoder.step(
            self.target_embedding(ids.reshape(-1, 1), offset=state.length).view(*ids.shape, -1),
            state.caches,
            self._no_source(),
            tap=scope_tap(tap, "decoder"),
            gates=scope_gates(gates, "decoder"),
        )
        return hidden, TransformerLanguageModelState(caches=caches, length=state.length + 1)

    def _no_source(self) -> list[None]:
        return [None] * len(self.decoder.layers)
