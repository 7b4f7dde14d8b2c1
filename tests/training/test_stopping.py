"""What ends a training, what is kept of it, and what happens when it goes wrong."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from toy_training import EPOCH_BATCHES, RUNTIME, ToyTask, last_checkpoint, make_config, without_times

from heedful.core.errors import ConfigError, DataError, TrainingError
from heedful.core.types import Batch, LossSum, PlacedBatch, Position
from heedful.training import RunFolder, read_history, train
from heedful.training.checkpoint import Checkpoints
from heedful.training.guard import GuardConfig, GuardMemory, find_fault, watch_loss
from heedful.training.loop import Trainer
from heedful.training.processes import Alone
from heedful.training.progress import SilentReporter
from heedful.training.state import State, random_states, random_states_kept
from heedful.training.stopping import is_validation_due


def test_patience_ends_training_and_the_best_is_kept(tmp_path: Path) -> None:
    task = ToyTask(scores=(3.0, 2.0, 2.5, math.nan, 1.0))
    folder = RunFolder(tmp_path / "run")
    outcome = train(task, make_config(max_steps=100, patience=2, keep_checkpoints=1), RUNTIME, folder)
    assert outcome.reason == "patience"
    assert outcome.state.step == 24
    assert outcome.best is not None and outcome.best.step == 12 and outcome.best.score == 2.0
    assert [each["loss"] for each in task.bundles] == [3.0, 2.0]
    assert [each.name for each in Checkpoints(folder.checkpoints).list()] == ["step-00000012", "step-00000024"]
    assert [each["is_best"] for each in read_history(folder.history) if each["kind"] == "validation"] == [1, 1, 0, 0]


def test_score_that_is_no_number_is_never_the_best(tmp_path: Path) -> None:
    task = ToyTask(scores=(math.nan, 5.0))
    outcome = train(task, make_config(max_steps=12), RUNTIME, RunFolder(tmp_path / "run"))
    assert outcome.best is not None and outcome.best.score == 5.0
    assert [each["loss"] for each in task.bundles] == [5.0]


def test_higher_is_better_where_the_task_says_so(tmp_path: Path) -> None:
    task = ToyTask(scores=(2.0, 3.0))
    outcome = train(task, make_config(max_steps=12, metric="exactness"), RUNTIME, RunFolder(tmp_path / "run"))
    assert outcome.best is not None and outcome.best.score == -2.0


def test_unknown_metric_is_told_before_training(tmp_path: Path) -> None:
    task = ToyTask()
    with pytest.raises(ConfigError, match=r"`training.metric` is `blue`"):
        train(task, make_config(metric="blue"), RUNTIME, RunFolder(tmp_path / "run"))
    assert task.num_losses == 0


def test_short_epochs_of_a_run_by_the_clock_are_not_all_validated() -> None:
    """600 pairs are few batches, and a validation takes longer than an epoch: without a pause it took nearly all."""
    by_clock = make_config(max_steps=None, max_minutes=10, validate_every=None)
    state = State(step=9, position=Position(epoch=3, batch=0), validated_step=6, validated_epoch=2, validated_s=80.0)
    state.validation_s = 20.0
    state.elapsed_s = 129.0
    assert not is_validation_due(by_clock, state)
    state.elapsed_s = 130.0
    assert is_validation_due(by_clock, state)
    state.position = Position(epoch=2, batch=5)
    assert not is_validation_due(by_clock, state)


def test_epochs_end_training_and_are_validated(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    config = make_config(max_steps=None, max_epochs=2, validate_every=None, accumulate=1)
    assert train(ToyTask(), config, RUNTIME, folder).reason == "max_epochs"
    assert [each["step"] for each in read_history(folder.history) if each["kind"] == "validation"] == [7, 14]


def test_minutes_end_training_with_a_falling_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that ticks each time it is read: how many updates fit must not depend on the machine.
    ticks = itertools.count()
    monkeypatch.setattr("heedful.training.loop.time.monotonic", lambda: next(ticks) * 0.002)
    folder = RunFolder(tmp_path / "run")
    config = make_config(max_steps=None, max_minutes=0.3 / 60, validate_every=None, log_every=1)
    outcome = train(ToyTask(), config, RUNTIME, folder)
    assert outcome.reason == "max_minutes"
    assert 0.3 <= outcome.state.elapsed_s < 0.5
    rates = [each["rate"] for each in read_history(folder.history) if each["kind"] == "train"]
    assert rates[-1] < 0.5 * max(rates)


def test_validation_changes_nothing_in_training(tmp_path: Path) -> None:
    often, seldom = RunFolder(tmp_path / "often"), RunFolder(tmp_path / "seldom")
    train(ToyTask(), make_config(validate_every=3), RUNTIME, often)
    train(ToyTask(), make_config(validate_every=29), RUNTIME, seldom)
    one, other = last_checkpoint(often).model, last_checkpoint(seldom).model
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_random_states_come_back() -> None:
    import random

    import numpy as np

    def draw() -> tuple[float, float, float, float]:
        normal = float(np.random.standard_normal())
        return float(torch.rand(())), normal, random.random(), random.gauss(0, 1)

    with random_states_kept():
        first = draw()
    before = random_states()
    assert draw() == first
    assert random_states() != before


# ---------------------------------------------------------------------------------------------------- divergence


def test_faults_by_hand() -> None:
    assert find_fault(1.0, 2.0) is None
    assert find_fault(math.nan, 2.0) == "the loss is nan"
    assert find_fault(1.0, math.inf) == "the gradient's norm is inf"


def test_explosion_is_told_from_a_rough_start_and_from_noise() -> None:
    config, memory = GuardConfig(explosion_factor=2.0), GuardMemory()
    losses = [9.0 * 0.9**step for step in range(60)]
    assert all(watch_loss(memory, loss, config) is None for loss in losses)
    assert watch_loss(memory, 8.0, config) is None  # one bad batch
    found = [watch_loss(memory, 12.0, config) for _ in range(30)]
    assert any(each and "exploded" in each for each in found)


def test_broken_update_goes_back_and_on_with_a_lower_rate(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "other"):
        folder = RunFolder(tmp_path / name)
        runs.append(folder)
        outcome = train(ToyTask(broken_at=(33,)), make_config(), RUNTIME, folder)
        assert outcome.state.step == 29
        assert outcome.state.guard.rate_factor == 0.5
        assert outcome.state.position == Position(*divmod((29 + 16 - 12) * 2, EPOCH_BATCHES))  # no batch comes twice
        records = read_history(folder.history)
        (back,) = [each for each in records if each["kind"] == "rollback"]
        assert (back["step"], back["broken_step"], back["fault"]) == (12, 16, "the loss is nan")
        assert [each["step"] for each in records] == [4, 6, 8, 12, 12, 12, 16, 18, 20, 24, 24, 28, 29]
        assert all(torch.isfinite(each).all() for each in last_checkpoint(folder).model.values())
    assert without_times(read_history(runs[0].history)) == without_times(read_history(runs[1].history))


def test_training_gives_up_in_the_end(tmp_path: Path) -> None:
    task = ToyTask(broken_at=tuple(range(14, 999)))
    config = make_config(guard={"max_rollbacks": 2})
    with pytest.raises(TrainingError, match=r"diverged at step 7: the loss is nan, after 2 returns.*step-00000006"):
        train(task, config, RUNTIME, RunFolder(tmp_path / "run"))
    returns = [each for each in read_history(tmp_path / "run" / "history.jsonl") if each["kind"] == "rollback"]
    assert [each["rate_factor"] for each in returns] == [0.5, 0.25]
    saved = last_checkpoint(RunFolder(tmp_path / "run")).facts.state
    assert (saved.step, saved.position) == (6, Position(*divmod((6 + 2) * 2, EPOCH_BATCHES)))
    assert saved.guard.rate_factor == 0.25


class NoDataTask(ToyTask):
    """Has no batches."""

    def batches(self, position: Position) -> Iterator[PlacedBatch]:
        """See `ToyTask.batches`."""
        return iter(())


def test_nothing_to_train_on_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to train on"):
        train(NoDataTask(), make_config(), RUNTIME, RunFolder(tmp_path / "run"))


class EmptyTask(ToyTask):
    """Counts nothing."""

    def loss(self, batch: Batch) -> LossSum:
        """See `ToyTask.loss`."""
        loss = super().loss(batch)
        return LossSum(loss.total * 0.0, loss.count * 0.0) if self.model.training else loss


def test_update_without_targets_changes_nothing(tmp_path: Path) -> None:
    task = EmptyTask()
    before = task.model.embedding.weight.detach().clone()
    train(task, make_config(max_steps=3), RUNTIME, RunFolder(tmp_path / "run"))
    assert torch.equal(task.model.embedding.weight, before)


def test_bundle_holds_the_averaged_weights(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    task = ToyTask(scores=(5.0, 4.0, 3.0, 2.0, 1.0))
    trainer = Trainer(task, make_config(), RUNTIME, folder, SilentReporter(), Alone())
    with folder.lock():
        trainer.run(is_resumed=False)
    assert trainer.state.best is not None and trainer.state.best.step == 29
    average = trainer.averaging.average()["embedding.weight"]
    assert (folder.bundle / "weights.txt").read_text() == str(average.tolist())
    assert not torch.equal(average, task.model.embedding.weight)
