"""Measures for whether attention weights explain a classifier: how far outputs and weights of two models differ.

The checks are those of Wiegreffe and Pinter (2019, "Attention is not not Explanation"); measures as in their section 4
and in Jain and Wallace (2019, section 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.tap import Tap
from heedful.core.errors import ConfigError
from heedful.core.types import Batch
from heedful.data.example import Example
from heedful.models.interfaces import AttentionSite, Classifies, Model
from heedful.tasks.rows import group_rows
from heedful.tasks.task import Task

NO_SINGLE_ATTENTION = (
    "The four checks are for a classifier whose one attention pools what it read: `model.kind` `classifier`, "
    "`model.pooling` `attention`, `model.encoder.kind` `recurrent`. For any trained model, name its run and a file of "
    "lines."
)

FLOOR = 1e-9
"""Weights are not taken for smaller than this where their logarithm is needed."""


@dataclass
class Listener(Tap):
    """Keeps the tensor of one point, with its gradient's graph.

    Attributes:
        point: its name.
        value: what was seen last.
    """

    point: str
    value: Tensor | None = field(default=None)

    def wants(self, point: str) -> bool:
        """Say whether it is the point."""
        return point == self.point

    def visit(self, point: str, value: Tensor) -> Tensor:
        """Keep the tensor and hand it back."""
        self.value = value
        return value


@dataclass(frozen=True)
class Imposed(Tap):
    """Puts a tensor in the place of that of one point.

    Attributes:
        point: its name.
        value: what stands there from now on, of the same shape.
    """

    point: str
    value: Tensor

    def wants(self, point: str) -> bool:
        """Say whether it is the point."""
        return point == self.point

    def visit(self, point: str, value: Tensor) -> Tensor:
        """Hand back the imposed tensor."""
        return self.value.to(value.dtype)


def only_attention(model: Model) -> AttentionSite:
    """Return the one attention of a classifier, from which its output is computed.

    Raises:
        ConfigError: the model is no classifier, or has none or several.
    """
    sites = model.attention_sites()
    if not isinstance(model, Classifies) or len(sites) != 1 or sites[0].kind != "pooling":
        raise ConfigError(NO_SINGLE_ATTENTION)
    return sites[0]


def listen(model: Classifies, batch: Batch) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B S"]]:
    """Return the logits of a batch, and the weights of the model's one attention, both with their gradient's graph."""
    listener = Listener(f"{only_attention(model).path}.weights")
    logits = model.classify(batch, tap=listener).float()
    assert listener.value is not None
    return logits, listener.value[:, 0, 0].float()


def total_variation(one: Float[Tensor, "*B C"], other: Float[Tensor, "*B C"]) -> Float[Tensor, "*B"]:
    """Return half the summed difference of two distributions, from 0 to 1."""
    return (one - other).abs().sum(-1) / 2


def divergence(one: Float[Tensor, "*B S"], other: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
    """Return the Kullback-Leibler divergence of the first distribution from the second, in nats."""
    return (one * (one.clamp(min=FLOOR).log() - other.clamp(min=FLOOR).log())).sum(-1)


def jensen_shannon(one: Float[Tensor, "*B S"], other: Float[Tensor, "*B S"]) -> Float[Tensor, "*B"]:
    """Return the Jensen-Shannon divergence of two distributions, from 0 to ln 2 nats."""
    middle = (one + other) / 2
    return (divergence(one, middle) + divergence(other, middle)) / 2


@dataclass(frozen=True)
class Outputs:
    """What a classifier says of some examples, and why it says so.

    Attributes:
        probabilities: of each example and class.
        weights: of each example over its positions, the end of sequence included; None for a model without attention.
        score: the first metric of the task's configuration.
    """

    probabilities: Float[Tensor, "N C"]
    weights: tuple[Tensor, ...] | None
    score: float

    def differ(self, other: "Outputs") -> tuple[float, float | None]:
        """Return the mean total variation of the outputs and the mean Jensen-Shannon divergence of the weights."""
        outputs = float(total_variation(self.probabilities, other.probabilities).mean())
        if self.weights is None or other.weights is None:
            return outputs, None
        pairs = zip(self.weights, other.weights, strict=True)
        return outputs, float(torch.stack([jensen_shannon(one, another) for one, another in pairs]).mean())


def read_outputs(task: Task, examples: Sequence[Example]) -> Outputs:
    """Let a classifier read examples.

    Args:
        task: whose model has one attention, or none.
        examples: with labels.
    """
    rows = [replace(task.encode(each), line=place) for place, each in enumerate(examples)]
    probabilities: list[Tensor] = [torch.empty(0)] * len(rows)
    weights: list[Tensor] = [torch.empty(0)] * len(rows)
    model = task.model
    assert isinstance(model, Classifies)
    has_attention = bool(model.attention_sites())
    with task.inference():
        for group in group_rows(rows):
            batch = task.stack(group)
            logits, seen = listen(model, batch) if has_attention else (model.classify(batch).float(), None)
            for place, row in enumerate(group):
                probabilities[row.line] = logits[place].softmax(-1).cpu()
                if seen is not None:
                    weights[row.line] = seen[place, : len(row.source or ())].cpu()
    predicted = [each.text for each in task.predict([example.source or "" for example in examples])]
    score = task.measure(predicted, [task.accepted(each) for each in examples])[0].value
    return Outputs(torch.stack(probabilities), tuple(weights) if has_attention else None, score)
