"""What heads and inner units of a trained model are worth, measured on a few batches."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.content import content_places
from heedful.analysis.record import Contexts
from heedful.attention.tap import Tap
from heedful.core.types import Batch
from heedful.models.interfaces import Model
from heedful.pruning.heads import Heads
from heedful.tasks import Task

_SMALLEST = 1e-12


@dataclass
class _LargestWeights(Tap):
    """Adds up each head's largest weight over the words of a batch, ends of a sequence left out at both sides.

    Attributes:
        batch: what is being read.
        kinds: of the attentions that are watched, by path.
        total: sum of the largest weights, by point and head.
        count: queries that went into it.
    """

    batch: Batch
    kinds: Mapping[str, str]
    total: dict[str, Tensor] = field(default_factory=dict)
    count: dict[str, float] = field(default_factory=dict)

    def wants(self, point: str) -> bool:
        return point.endswith(".weights")

    def visit(self, point: str, value: Tensor) -> Tensor:
        path = point.removesuffix(".weights")
        if path in self.kinds:
            is_query, is_key = content_places(self.batch, self.kinds[path])
            is_query = is_query & is_key.any(1, keepdim=True)
            largest_BHQ = (value.float() * is_key[:, None, None]).amax(-1)
            self.total[path] = (largest_BHQ * is_query[:, None]).sum((0, 2))
            self.count[path] = float(is_query.sum())
        return value


def rank_by_gradient(
    task: Task, heads: Heads, batches: Sequence[Batch], is_open: Float[Tensor, " heads"]
) -> Float[Tensor, " heads"]:
    """Return how much each head's gate moves the loss, the layers put on one scale.

    Michel, Levy and Neubig, "Are Sixteen Heads Really Better than One?" (2019), section 4.1: the expected absolute
    gradient of an example's loss with respect to the head's gate, divided by the Euclidean norm of those of its layer
    (as Molchanov et al. 2017 do). The gradient of a gate is the product of context and its gradient, summed over the
    positions of the example.

    Args:
        task: whose model is asked, without dropout.
        heads: to be ranked.
        batches: examples with their targets.
        is_open: 1 for heads that are open, 0 for those already closed, which get 0.
    """
    sums = {site.path: torch.zeros(site.num_heads) for site in heads.sites}
    with _as_used(task.model), torch.enable_grad():
        for batch in batches:
            tap = Contexts()
            with task.bound(tap=tap, gates=heads.gates(is_open)):
                total = task.loss(batch, label_smoothing=0.0).total
            seen = {site.path: tap.seen[site.path] for site in heads.sites if site.path in tap.seen}
            gradients = torch.autograd.grad(total, list(seen.values()), allow_unused=True)
            for (path, context), gradient in zip(seen.items(), gradients, strict=True):
                if gradient is not None:
                    sums[path] += (context * gradient).sum((2, 3)).abs().sum(0).detach().float().cpu()
    return torch.cat([each / each.norm().clamp(min=_SMALLEST) for each in sums.values()])


def rank_by_confidence(
    task: Task, heads: Heads, batches: Sequence[Batch], is_open: Float[Tensor, " heads"]
) -> Float[Tensor, " heads"]:
    """Return each head's confidence: the mean of its largest weight, beginning and end of a sequence left out.

    Voita et al., "Analyzing Multi-Head Self-Attention" (2019), section 4; what `heedful.analysis.heads` counts too.
    Arguments as for `rank_by_gradient`, but a head that is closed has its confidence nevertheless.
    """
    kinds = {site.path: site.kind for site in heads.sites}
    sums = {site.path: torch.zeros(site.num_heads) for site in heads.sites}
    count = dict.fromkeys(kinds, 0.0)
    with _as_used(task.model), torch.no_grad():
        for batch in batches:
            tap = _LargestWeights(batch.to(task.device), kinds)
            with task.bound(tap=tap, gates=heads.gates(is_open)):
                task.loss(batch)
            for path, total in tap.total.items():
                sums[path] += total.cpu()
                count[path] += tap.count[path]
    return torch.cat([each / max(count[path], 1.0) for path, each in sums.items()])


def unit_importance(task: Task, batches: Sequence[Batch]) -> dict[str, Float[Tensor, " M"]]:
    """Return what each inner unit of every feed-forward layer is worth, by the path of its block.

    As for heads, the absolute gradient of the loss with respect to a gate on the unit: to the first order, what
    removing it changes (Molchanov et al. 2017, "Pruning Convolutional Neural Networks for Resource Efficient
    Inference", equation 7; 2019, "Importance Estimation for Neural Network Pruning", section 3.1). A unit reaches the
    output through its column of the outer weight alone, so that gradient is the column times its gradient, summed; its
    mean over the batches is taken. It is in nats everywhere, so units of different layers compare.
    """
    blocks = task.model.blocks()
    columns = [block.feed_forward.outer.weight for block in blocks.values()]
    sums = [torch.zeros(weight.shape[1]) for weight in columns]
    with _as_used(task.model), torch.enable_grad():
        for batch in batches:
            loss = task.loss(batch, label_smoothing=0.0)
            gradients = torch.autograd.grad(loss.total / loss.count, columns)
            for place, weight, gradient in zip(sums, columns, gradients, strict=True):
                place += (weight * gradient).sum(0).abs().detach().float().cpu()
    return {path: each / len(batches) for path, each in zip(blocks, sums, strict=True)}


@contextlib.contextmanager
def _as_used(model: Model) -> Iterator[None]:
    """Turn dropout off for the block."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
