from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from tests.pruning.models import make_task

from heedful.core.runtime import compute_in
from heedful.core.types import Batch
from heedful.data.batches import Batches
from heedful.data.batching import Rows
from heedful.pruning import Budget, GatedFitting, Goal, HardConcreteGates, SubsetGates, find_heads
from heedful.pruning.gated_fitting import NUM_HEADS
from heedful.tasks import Evaluation, Fitting, Task


@dataclass
class Saved:
    """Remembers what is saved."""

    tasks: dict[str, Task] = field(default_factory=dict)

    def __call__(self, task: Task, path: Path, evaluation: Evaluation) -> None:
        self.tasks[path.name] = task


class NoBatches(Batches):
    def epoch(self, number: int) -> list[Rows]:
        return []

    def batch(self, rows: Rows, epoch: int) -> Batch:
        raise AssertionError

    def placed(self, position: object) -> Iterator[object]:
        return iter(())


def make_fitting(goal: Goal, *, is_exact: bool = False) -> tuple[GatedFitting, Batch, Saved]:
    task, examples, batch = make_task("transformer")
    saved = Saved()
    heads = find_heads(task.model)
    gates = SubsetGates(heads, goal.num_heads or 0) if is_exact else HardConcreteGates(heads)
    fitting = Fitting(task, NoBatches(), examples, saved)
    return GatedFitting(fitting, gates, Budget(18, goal.num_heads or 0), goal, rate=1e-3), batch, saved


def test_gates_that_begin_open_leave_the_loss_nearly_as_it_was() -> None:
    fitting, batch, _ = make_fitting(Goal(6, "loss", 0.0))
    whole = fitting.task.loss(batch).total
    torch.manual_seed(3)
    drawn = torch.stack([fitting.loss(batch).total.detach() for _ in range(20)])
    assert abs(drawn.mean() - whole) < 0.01 * whole
    with torch.no_grad():
        fitting.gates.log_alpha.fill_(-9.0)
    assert abs(fitting.loss(batch).total - whole) > 0.02 * whole


def test_gates_learn_in_float32_where_the_model_computes_in_bfloat16() -> None:
    fitting, batch, _ = make_fitting(Goal(6, "loss", 0.0))
    with torch.no_grad():
        fitting.gates.log_alpha.copy_(torch.linspace(-1, 1, 18) + 1e-4)
    with compute_in(fitting.model, torch.bfloat16):
        fitting.loss(batch).total.backward()
    gradient = fitting.gates.log_alpha.grad
    assert gradient is not None and gradient.dtype == torch.float32 and bool((gradient != 0).any())
    assert fitting.rate_factors() == {"gates.log_alpha": pytest.approx(50.0)}
    assert dict(fitting.model.named_parameters())["gates.log_alpha"] is fitting.gates.log_alpha


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_bundle_is_the_model_without_what_validation_silenced(is_exact: bool) -> None:
    fitting, _, saved = make_fitting(Goal(7, "loss", 0.0), is_exact=is_exact)
    parameter = next(fitting.gates.parameters())
    with torch.no_grad():
        parameter.copy_(torch.randn(18))
    found = fitting.validate()
    assert found.scores[NUM_HEADS] == 7
    fitting.save_bundle(Path("somewhere/bundle"), scores=found.scores)
    small = saved.tasks["heads-7"]
    assert sum(site.num_heads for site in small.model.attention_sites()) == 7
    with small.inference():
        evaluation = small.evaluate(fitting.fitting.dev, "dev")
    assert evaluation.scores()["loss"] == pytest.approx(found.scores["loss"], abs=1e-5)
    best = parameter.detach().sort(descending=True).indices[:7]
    kept = fitting.gates.heads.binary(fitting.candidates[7].kept)
    assert sorted(best.tolist()) == kept.nonzero()[:, 0].tolist()


def test_a_largest_loss_is_measured_from_what_all_heads_reach_in_the_same_training() -> None:
    fitting, _, _ = make_fitting(Goal(None, "loss", before=2.0, max_loss=0.25), is_exact=True)
    gates = fitting.gates

    def count(num_open: int, loss: float) -> float:
        gates.advance(float(num_open))
        return fitting._count({"loss": loss})

    assert count(12, 2.2) == 12  # nothing was seen with all heads: 2.0 before pruning counts
    assert count(12, 2.3) == 18
    assert count(18, 2.4) == 18  # training alone costs 0.4
    assert count(9, 2.6) == 9
    assert count(8, 2.7) == 18
    assert count(7, 2.3) == 7  # it recovers, and 2.3 counts from now on
    assert count(6, 2.6) == 18
    assert count(5, 1.5) == 5  # better than before pruning, from which losses are counted at the most
    assert count(4, 2.2) == 4
    assert count(3, 2.3) == 18


def test_gates_reach_every_head_through_the_task() -> None:
    fitting, batch, _ = make_fitting(Goal(6, "loss", 0.0))
    gates = fitting.gates.heads.gates(torch.zeros(18))
    with fitting.task.bound(gates=gates):
        silenced = fitting.task.loss(batch).total
        assert fitting.task.model is not fitting.model.model
    assert fitting.task.model is fitting.model.model
    assert not torch.isclose(silenced, fitting.task.loss(batch).total)
