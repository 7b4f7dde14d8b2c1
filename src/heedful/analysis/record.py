"""Recording what a model attends to, through a tap."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.tap import Gates, Tap
from heedful.core.types import Batch
from heedful.models.interfaces import AttentionSite, Classifies, Generates, Model


@dataclass
class Recorder(Tap):
    """Keeps what it sees at the points whose name matches, and changes nothing.

    Attributes:
        pattern: a shell pattern of points' names: ``*.weights``, ``decoder.*.cross_attention.weights``.
        seen: float32 copies on the CPU, by point.
    """

    pattern: str = "*.weights"
    seen: dict[str, Tensor] = field(default_factory=dict)

    def wants(self, point: str) -> bool:
        """Say whether the point's name matches."""
        return fnmatchcase(point, self.pattern)

    def visit(self, point: str, value: Tensor) -> Tensor:
        """Keep a copy and hand the tensor back."""
        self.seen[point] = value.detach().to("cpu", torch.float32, copy=True)
        return value


@dataclass
class Contexts(Tap):
    """Keeps every head's context (``B H Q E``) with its place in the graph of gradients, and changes nothing.

    Context times its gradient, summed over positions, is the gradient of the head's gate.

    Attributes:
        seen: by the attention's path.
    """

    seen: dict[str, Tensor] = field(default_factory=dict)

    def wants(self, point: str) -> bool:
        """Say whether the point is a context."""
        return point.endswith(".context")

    def visit(self, point: str, value: Tensor) -> Tensor:
        """Keep the tensor and hand it back."""
        self.seen[point.removesuffix(".context")] = value
        return value


@dataclass(frozen=True)
class AttentionMap:
    """Where one attention looked in one row of a batch, padding cut off.

    Attributes:
        site: which attention of the model.
        weights: of each head, query and key.
    """

    site: AttentionSite
    weights: Float[Tensor, "H Q K"]


@dataclass(frozen=True)
class Recording:
    """What a model attended to while it read a batch.

    Attributes:
        batch: what it read.
        sites: the model's attentions.
        points: what was seen, by point, rows as in the batch.
    """

    batch: Batch
    sites: list[AttentionSite]
    points: dict[str, Tensor]

    def maps(self, row: int) -> Iterator[AttentionMap]:
        """Yield the recorded weights of a row, from the model's input to its output.

        Queries and keys are the source's positions (EOS included), the target's as the decoder reads them (BOS first),
        or both for a cross-attention: its query t stands for the symbol that is predicted there.
        """
        for site in self.sites:
            weights = self.points.get(f"{site.path}.weights")
            if weights is not None:
                num_queries, num_keys = self._size(site, row)
                yield AttentionMap(site, weights[row, :, :num_queries, :num_keys])

    def _size(self, site: AttentionSite, row: int) -> tuple[int, int]:
        source = 0 if self.batch.source_lengths is None else int(self.batch.source_lengths[row])
        target = 0 if self.batch.target_lengths is None else int(self.batch.target_lengths[row]) - 1
        sizes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        return sizes.get(site.kind, (1, source))


@torch.no_grad()
def record(model: Model, batch: Batch, pattern: str = "*.weights", *, gates: Gates | None = None) -> Recording:
    """Let a model read a batch, the given target included, and record what it attends to.

    Dropout is off meanwhile. A model that generates reads the source, and the target where the batch has one.
    Heads may be scaled meanwhile by gates.
    """
    recorder = Recorder(pattern)
    was_training = model.training
    model.eval()
    try:
        if isinstance(model, Classifies):
            model.classify(batch, tap=recorder, gates=gates)
        elif isinstance(model, Generates):
            memory = model.encode(batch, tap=recorder, gates=gates)
            if batch.target is not None:
                model.decode(memory, batch.target_input, tap=recorder, gates=gates)
    finally:
        model.train(was_training)
    return Recording(batch, model.attention_sites(), recorder.seen)
