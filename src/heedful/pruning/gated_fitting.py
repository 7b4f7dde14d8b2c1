"""A task that is trained while it learns which heads to do without: the ordinary loop turns it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from heedful.core.types import Batch, LossSum, PlacedBatch, Position, Trainable, Validation
from heedful.pruning.budget import Budget
from heedful.pruning.head_gates import HeadGates
from heedful.pruning.removal import reduce_task
from heedful.tasks import Evaluation, Fitting

NUM_HEADS = "heads"
"""Name of the score that says how many heads are left."""


@dataclass(frozen=True)
class Goal:
    """What pruning is for: a number of heads, or as few as a loss of score allows.

    Attributes:
        num_heads: how many are to stay; None where `max_loss` decides.
        metric: the score that counts.
        before: its value before pruning.
        max_loss: how many points of it may be lost.
    """

    num_heads: int | None
    metric: str
    before: float
    max_loss: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """A smaller model.

    Attributes:
        path: of its bundle.
        kept: the heads it has, by the path of their attention.
        gated: evaluation with gates as they were, before they became 0 and 1.
    """

    path: Path
    kept: dict[str, tuple[int, ...]]
    gated: Evaluation


class _Learner(nn.Module):
    """What the optimiser sees: the model and its gates."""

    def __init__(self, model: nn.Module, gates: HeadGates) -> None:
        super().__init__()
        self.model = model
        self.gates = gates


class GatedFitting(Trainable):
    """Trains a task under gates; its bundle is the model without the heads that were given up.

    With a number of heads as the goal, each validation is of exactly so many heads. With a largest loss, it is of as
    many as are open at the time, the number falls as long as training lasts, and the score `NUM_HEADS` says which
    validation was best: it is how many heads there are, and all of them where too much is lost. A loss is measured from
    the best score since pruning began, once all heads were validated, but from no better one than that before: training
    at a high rate costs some score of itself, which fine-tuning brings back, and which does not count.

    Args:
        fitting: the task with its data.
        gates: of its heads.
        budget: how many are open, when.
        goal: what pruning is for.
        rate: learning rate of the weights, which the rate of the gates is put in relation to.

    Attributes:
        candidates: each bundle written, by its number of heads.
    """

    def __init__(self, fitting: Fitting, gates: HeadGates, budget: Budget, goal: Goal, rate: float) -> None:
        self.fitting = fitting
        self.task = fitting.task
        self.gates = gates
        self.budget = budget
        self.goal = goal
        self.rate = rate
        self.model = _Learner(fitting.model, gates)
        self.candidates: dict[int, Candidate] = {}
        self._reference: float | None = None

    def batches(self, position: Position) -> Iterator[PlacedBatch]:
        return self.fitting.batches(position)

    def num_batches(self, epoch: int) -> int | None:
        return self.fitting.num_batches(epoch)

    def loss(self, batch: Batch) -> LossSum:
        """Return the training loss under gates drawn for the batch."""
        with self.task.bound(gates=self.gates.heads.gates(self.gates.sample())):
            return self.fitting.loss(batch)

    def penalty(self, fraction: float) -> Tensor | None:
        """Tell the gates how many heads should be open by now; return their price."""
        return self.gates.advance(self.budget.num_open(fraction))

    def rate_factors(self) -> Mapping[str, float]:
        return {f"gates.{name}": self.gates.rate / self.rate for name, _ in self.gates.named_parameters()}

    def validate(self) -> Validation:
        """Measure the model with each gate closed or open."""
        kept = self._kept()
        with self.task.bound(gates=self.gates.heads.gates(self.gates.heads.binary(kept))):
            found = self.fitting.validate()
        return replace(found, scores={**found.scores, NUM_HEADS: self._count(found.scores)})

    def is_better(self, metric: str, new: float, old: float) -> bool:
        return new < old if metric == NUM_HEADS else self.fitting.is_better(metric, new, old)

    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        """Write the model as it stands, without the heads that are closed, beside the path."""
        kept = self._kept()
        evaluation = self.fitting.evaluation
        assert evaluation is not None
        number = sum(map(len, kept.values()))
        if self.goal.num_heads is None and scores[NUM_HEADS] == len(self.gates.heads):
            return
        reduced = reduce_task(self.task, kept)
        place = path.with_name(f"{NUM_HEADS}-{number}")
        self.fitting.save(reduced, place, evaluation)
        with self.task.bound(gates=self.gates.heads.gates(self.gates.expected())):
            gated = self.task.evaluate(self.fitting.dev, "dev", search=self.task.config.validation.search)
        self.candidates[number] = Candidate(place, kept, gated)

    def _kept(self) -> dict[str, tuple[int, ...]]:
        wanted = self.goal.num_heads
        return self.gates.kept(self.gates.num_open() if wanted is None else wanted)

    def _count(self, scores: Mapping[str, float]) -> float:
        """Return how many heads are left; all of them where too much score is lost without the others."""
        goal, num_all = self.goal, len(self.gates.heads)
        if goal.num_heads is not None:
            return float(goal.num_heads)
        score, num_open = scores[goal.metric], self.gates.num_open()
        if self._reference is not None or num_open == num_all:
            self._reference = score if self._reference is None else self._better(score, self._reference)
        limit = goal.before
        if self._reference is not None and self._better(limit, self._reference) == limit:
            limit = self._reference
        lost = abs(limit - score) if self._better(limit, score) == limit else 0.0
        return float(num_open if lost <= goal.max_loss else num_all)

    def _better(self, one: float, other: float) -> float:
        return one if self.fitting.is_better(self.goal.metric, one, other) else other
