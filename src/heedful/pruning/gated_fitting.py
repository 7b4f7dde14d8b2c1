"""A task that is trained while it learns which heads to do without: the ordinary loop turns it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from heedful.core.types import Batch, LossSum, PlacedBatch, Position, Trainable, Validation
from heedful.pruning.budget import Budget
from heedful.pruning.head_gates import HeadGates
from heedful.pruning.removal import reduce_task
from heedful.tasks import Evaluation, Fitting

NUM_HEADS = "heads"
"""Name of the score that says how many heads are left."""

TOO_LOW = float("inf")
"""Number of heads that stands for a score that has fallen too far."""


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
    """

    path: Path
    kept: dict[str, tuple[int, ...]]


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
    validation was best: the fewest heads whose score is no further below the best one seen since pruning began (at
    most that before) than was allowed. Training at a high rate costs some score of itself, which fine-tuning brings
    back; it does not count.

    Args:
        fitting: the task with its data.
        gates: of its heads.
        budget: how many are open, when.
        goal: what pruning is for.
        rate: learning rate of the weights, which the rate of the gates is put in relation to.

    Attributes:
        gated: evaluation with gates as they were, before they became 0 and 1, of the last bundle written.
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
        self.gated: Evaluation | None = None
        self.candidates: dict[int, Candidate] = {}
        self._best_score: float | None = None

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
        return Validation({**found.scores, NUM_HEADS: self._count(found.scores)}, found.samples)

    def is_better(self, metric: str, new: float, old: float) -> bool:
        return new < old if metric == NUM_HEADS else self.fitting.is_better(metric, new, old)

    def save_bundle(self, path: Path, *, scores: dict[str, float]) -> None:
        """Write the model as it stands, without the heads that are closed, beside the path."""
        kept = self._kept()
        evaluation = self.fitting.evaluation
        assert evaluation is not None
        if self.goal.num_heads is None and scores[NUM_HEADS] == TOO_LOW:
            return
        reduced = reduce_task(self.task, kept)
        number = sum(map(len, kept.values()))
        place = path.with_name(f"{NUM_HEADS}-{number}")
        self.fitting.save(reduced, place, evaluation)
        self.candidates[number] = Candidate(place, kept)
        with self.task.bound(gates=self.gates.heads.gates(self.gates.expected())):
            self.gated = self.task.evaluate(self.fitting.dev, "dev", search=self.task.config.validation.search)

    def _kept(self) -> dict[str, tuple[int, ...]]:
        wanted = self.goal.num_heads
        return self.gates.kept(self.gates.num_open() if wanted is None else wanted)

    def _count(self, scores: Mapping[str, float]) -> float:
        """Return how many heads are left, or `TOO_LOW` where too much score is lost for them."""
        if self.goal.num_heads is not None:
            return self.goal.num_heads
        goal, score = self.goal, scores[self.goal.metric]
        if self._best_score is None or self.fitting.is_better(goal.metric, score, self._best_score):
            self._best_score = score
        limit = self._best_score
        if self.fitting.is_better(goal.metric, limit, goal.before):
            limit = goal.before
        lost = abs(limit - score) if self.fitting.is_better(goal.metric, limit, score) else 0.0
        return self.gates.num_open() if lost <= goal.max_loss else TOO_LOW
