"""What is trained to see whether attention explains: a model under another's weights, and an adversary."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.explanation import Imposed, divergence, listen, only_attention, total_variation
from heedful.attention.tap import Gates, Tap
from heedful.core.types import Batch, LossSum, Validation
from heedful.models.interfaces import AttentionSite, Classifies
from heedful.tasks import Fitting
from heedful.tasks.rows import group_rows
from heedful.tasks.task import Task

OBJECTIVE = "objective"
"""Name of the adversary's own score."""


class GuidedClassifier(Classifies):
    """A classifier that takes the weights of its one attention from another that reads the same.

    Args:
        model: whose weights are replaced.
        guide: whose weights are taken; it is no part of this module, and nothing is learnt by it.
    """

    def __init__(self, model: Classifies, guide: Classifies) -> None:
        super().__init__()
        self.model = model
        self._guide = (guide,)
        self.training = model.training

    def attention_sites(self) -> list[AttentionSite]:
        """List none: the weights are not the model's own."""
        return []

    def classify(self, batch: Batch, *, tap: Tap | None = None, gates: Gates | None = None) -> Float[Tensor, "B C"]:
        """Return the logits under the guide's weights."""
        with torch.no_grad():
            _, weights_BS = listen(self._guide[0].to(batch.lines.device), batch)
        imposed = Imposed(f"{only_attention(self.model).path}.weights", weights_BS[:, None, None])
        return self.model.classify(batch, tap=imposed, gates=gates)


@contextlib.contextmanager
def guided(task: Task, guide: Classifies) -> Iterator[None]:
    """Let a task's classifier compute with another's attention weights within the block."""
    model = task.model
    assert isinstance(model, Classifies)
    task.model = GuidedClassifier(model, guide.eval())
    try:
        yield
    finally:
        task.model = model


class GuidedFitting(Fitting):
    """Trains a classifier under the frozen attention weights of another (Wiegreffe and Pinter 2019, section 3.4).

    Args:
        fitting: the task with its data.
        guide: a trained classifier with one attention.
    """

    def __init__(self, fitting: Fitting, guide: Classifies) -> None:
        super().__init__(fitting.task, fitting.training_data, fitting.dev, fitting.save)
        self.guide = guide

    def loss(self, batch: Batch) -> LossSum:
        """Return the training loss under the guide's weights."""
        with guided(self.task, self.guide):
            return super().loss(batch)

    def validate(self) -> Validation:
        """Measure under the guide's weights."""
        with guided(self.task, self.guide):
            return super().validate()


class AdversarialFitting(Fitting):
    """Trains a classifier to say what another says while it attends elsewhere (Wiegreffe and Pinter 2019, section 4).

    The loss of an example is ``TVD(y, y_base) - weight * KL(a || a_base)``.

    Args:
        fitting: the task with its data.
        base: the trained classifier.
        weight: of the difference between attentions; 0 asks for the same outputs alone.
    """

    def __init__(self, fitting: Fitting, base: Classifies, weight: float) -> None:
        super().__init__(fitting.task, fitting.training_data, fitting.dev, fitting.save)
        self.base = base.eval()
        self.weight = weight

    def loss(self, batch: Batch) -> LossSum:
        """Return the adversary's loss."""
        batch = batch.to(self.task.device)
        assert isinstance(self.task.model, Classifies)
        with torch.no_grad():
            base_logits, base_weights = listen(self.base.to(batch.lines.device), batch)
        logits, weights = listen(self.task.model, batch)
        apart = total_variation(logits.softmax(-1), base_logits.softmax(-1))
        total = (apart - self.weight * divergence(weights, base_weights)).sum()
        return LossSum(total, total.new_tensor(float(len(batch))))

    def validate(self) -> Validation:
        """Measure as always, and the adversary's loss on the dev data besides."""
        found = super().validate()
        total = count = 0.0
        with self.task.inference():
            for group in group_rows([self.task.encode(each) for each in self.dev]):
                part = self.loss(self.task.stack(group))
                total, count = total + float(part.total), count + float(part.count)
        return replace(found, scores={**found.scores, OBJECTIVE: total / max(count, 1.0)})

    def is_better(self, metric: str, new: float, old: float) -> bool:
        """Say whether a score improved; the adversary's loss falls."""
        return new < old if metric == OBJECTIVE else super().is_better(metric, new, old)

    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        """Write the model as it stands: an ordinary bundle, which attends elsewhere."""
        super().save_bundle(path, scores={name: value for name, value in scores.items() if name != OBJECTIVE})
