"""A model that is watched, or whose heads are scaled, in all that is done with it: whoever uses it need not know."""

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from heedful.attention.tap import Gates, Tap
from heedful.core.types import Batch
from heedful.layers.transformer_block import TransformerBlock
from heedful.models.interfaces import AttentionSite, Classifies, Generates, Memory, Model, State


def bind(model: Model, *, tap: Tap | None = None, gates: Gates | None = None) -> Model:
    """Return a view of a model that hands a tap and gates to every pass; weights are the model's own.

    What is given in a call takes the place of the view's.
    """
    match model:
        case Generates():
            return BoundGenerator(model, tap, gates)
        case Classifies():
            return BoundClassifier(model, tap, gates)
    raise TypeError(f"{type(model).__name__} neither generates nor classifies.")


class BoundGenerator(Generates[Any, Any]):
    """A model that generates, with a tap and gates.

    Args:
        model: what is used.
        tap: listens to it.
        gates: for its heads.
    """

    def __init__(self, model: Generates[Any, Any], tap: Tap | None, gates: Gates | None) -> None:
        super().__init__()
        self.model = model
        self.output = model.output
        self.tap = tap
        self.gates = gates
        self.training = model.training

    def attention_sites(self) -> list[AttentionSite]:
        return self.model.attention_sites()

    def blocks(self) -> dict[str, TransformerBlock]:
        return self.model.blocks()

    def encode(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> Memory:
        memory: Memory = self.model.encode(batch, tap=tap or self.tap, gates=gates or self.gates)
        return memory

    def decode(
        self, memory: Memory, target_input: Int[Tensor, "B T"], *, tap: Tap | None = None, gates: Gates | None = None
    ) -> Float[Tensor, "B T D"]:
        return self.model.decode(memory, target_input, tap=tap or self.tap, gates=gates or self.gates)

    def start(self, memory: Memory, num_hypotheses: int = 1) -> State:
        state: State = self.model.start(memory, num_hypotheses)
        return state

    def step(
        self,
        ids: Int[Tensor, "B N"],
        memory: Memory,
        state: State,
        *,
        tap: Tap | None = None,
        gates: Gates | None = None,
    ) -> tuple[Float[Tensor, "B N D"], State]:
        return self.model.step(ids, memory, state, tap=tap or self.tap, gates=gates or self.gates)


class BoundClassifier(Classifies):
    """A classifier, with a tap and gates.

    Args:
        model: what is used.
        tap: listens to it.
        gates: for its heads.
    """

    def __init__(self, model: Classifies, tap: Tap | None, gates: Gates | None) -> None:
        super().__init__()
        self.model = model
        self.tap = tap
        self.gates = gates
        self.training = model.training

    def attention_sites(self) -> list[AttentionSite]:
        return self.model.attention_sites()

    def blocks(self) -> dict[str, TransformerBlock]:
        return self.model.blocks()

    def classify(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> Float[Tensor, "B C"]:
        return self.model.classify(batch, tap=tap or self.tap, gates=gates or self.gates)
