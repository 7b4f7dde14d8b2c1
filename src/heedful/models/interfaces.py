"""What a model can do, as abstract classes: tasks, search and analysis know models by these alone."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.multihead import MultiHeadAttention
from heedful.attention.tap import Gates, Tap
from heedful.core.types import Batch, Selectable
from heedful.layers.output import OutputLayer
from heedful.layers.transformer_block import TransformerBlock


@dataclass(frozen=True)
class VocabularySizes:
    """The sizes a model is built for; None where the model has no such side.

    Attributes:
        source: number of source symbols.
        target: number of target symbols.
        is_shared: source and target ids mean the same symbols, so that their embeddings may be one.
        num_classes: number of labels.
    """

    source: int | None = None
    target: int | None = None
    is_shared: bool = False
    num_classes: int | None = None


@dataclass(frozen=True)
class AttentionSite:
    """One attention of a model.

    Attributes:
        path: its name for taps and gates, e.g. ``decoder.layers.0.cross_attention``.
        kind: what attends to what.
        layer: from 0, counted within its kind.
        num_heads: heads it has now; each site has its own number.
        head_dim: width of each head.
        window: how far self-attention looks to each side (a decoder's to none that comes later); None: everywhere.
        is_local: it looks within a window that depends on the line (Luong et al. 2015, section 3.2).
    """

    path: str
    kind: Literal["encoder", "decoder", "cross", "pooling"]
    layer: int
    num_heads: int
    head_dim: int
    window: int | None = None
    is_local: bool = False


class Model(nn.Module, ABC):
    """Any model of the catalogue."""

    @abstractmethod
    def attention_sites(self) -> list[AttentionSite]:
        """List every attention, from the input to the output; empty where there is none."""

    def blocks(self) -> dict[str, TransformerBlock]:
        """Return the Transformer blocks, whose heads and inner units can be removed, by path, e.g.
        ``decoder.layers.0``; the paths of their attentions begin with it. Empty where there are none.
        """
        return {}

    def multihead_attentions(self) -> dict[str, MultiHeadAttention]:
        """Return the attentions of the Transformer blocks by path; empty where there are none."""
        return {
            f"{path}.{name}": attention
            for path, block in self.blocks().items()
            for name, attention in block.attentions().items()
        }


@dataclass(frozen=True, kw_only=True)
class Memory(Selectable, ABC):
    """What a model prepared once for a source; rows are sentences. Each model has its own subclass."""


@dataclass(frozen=True, kw_only=True)
class State(Selectable, ABC):
    """What a model carries from step to step; rows are hypotheses, ``R = B x N``. Each model has its own subclass."""


MemoryType = TypeVar("MemoryType", bound=Memory)
StateType = TypeVar("StateType", bound=State)


class Generates(Model, Generic[MemoryType, StateType]):
    """A model that produces a target symbol by symbol: encoder-decoders and language models.

    ``decode`` (whole sequence, teacher forcing) and ``step`` compute the same hidden states; a test holds them equal.
    Whoever uses any such model hands memory and state back as they came: ``Generates[Any, Any]``.
    """

    output: OutputLayer

    @abstractmethod
    def encode(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> MemoryType:
        """Read the source once. A language model leaves a memory that holds nothing but the number of rows."""

    @abstractmethod
    def decode(
        self,
        memory: MemoryType,
        target_input: Int[Tensor, "B T"],
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the hidden state that predicts the symbol after each input position (teacher forcing).

        Rows are padded at the right, where what is returned means nothing: no position depends on one after it.
        """

    @abstractmethod
    def start(self, memory: MemoryType, num_hypotheses: int = 1) -> StateType:
        """Return the state before the first step, ``num_hypotheses`` rows for each sentence."""

    @abstractmethod
    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: MemoryType,
        state: StateType,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], StateType]:
        """Read one symbol for each hypothesis; return the hidden states that predict the next, and the new state."""


class Classifies(Model):
    """A model that gives one label to a source."""

    @abstractmethod
    def classify(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> Float[Tensor, "B C"]:
        """Return a logit for each class."""
