"""A run that was stopped and resumed ends as the one that was never stopped, bit for bit."""

from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import ToyTask

from heedful.core.errors import BundleError
from heedful.core.runtime import RuntimeConfig
from heedful.training import RunFolder, TrainingConfig, read_history, resume, train
from heedful.training.checkpoint import Checkpoint, Checkpoints, read_checkpoint

RUNTIME = RuntimeConfig(device="cpu", dtype="float32", threads=1, seed=3)


def make_config(**changes: Any) -> TrainingConfig:
    values = {
        "max_steps": 29,
        "validate_every": 6,
        "log_every": 4,
        "accumulate": 2,
        "schedule": {"kind": "cosine", "peak": 0.02, "warmup_steps": 5},
        "has_tensorboard": False,
    }
    return TrainingConfig.model_validate({**values, **changes})


def last_checkpoint(folder: RunFolder) -> Checkpoint:
    path = Checkpoints(folder.checkpoints).last()
    assert path is not None
    return read_checkpoint(path)


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in each.items() if key not in ("elapsed_s", "targets_per_s", "seconds")}
        for each in records
    ]


def assert_same_end(one: RunFolder, other: RunFolder) -> None:
    a, b = last_checkpoint(one), last_checkpoint(other)
    for kind in ("model", "optimizer", "averages"):
        left, right = getattr(a, kind), getattr(b, kind)
        assert left.keys() == right.keys()
        for name in left:
            assert torch.equal(left[name], right[name]), (kind, name)
    assert a.random == b.random
    for name in ("step", "position", "best", "num_worse", "guard", "num_targets", "norm"):
        assert getattr(a.facts.state, name) == getattr(b.facts.state, name), name
    assert without_times(read_history(one.history)) == without_times(read_history(other.history))
    assert (one.bundle / "weights.txt").read_text() == (other.bundle / "weights.txt").read_text()


@pytest.mark.parametrize("averaging", [{"kind": "none"}, {"kind": "ema", "decay": 0.9}, {"kind": "last", "k": 3}])
@pytest.mark.parametrize("stop", [1, 11, 12, 28])
def test_resumed_run_ends_bit_equal(tmp_path: Path, averaging: dict[str, Any], stop: int) -> None:
    config = make_config(averaging=averaging)
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    train(ToyTask(), config, RUNTIME, whole)
    task = StoppedTask(after=2 * stop)
    assert train(task, config, RUNTIME, parts).reason == "signal"
    assert last_checkpoint(parts).facts.state.step == stop
    torch.rand(7)
    assert resume(ToyTask(), config, RUNTIME, parts).reason == "max_steps"
    assert_same_end(whole, parts)


class StoppedTask(ToyTask):
    """Sends its own process SIGTERM while it computes the loss number ``after``."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after
        self.num_training_losses = 0

    def loss(self, batch: Any) -> Any:
        """See `Trainable.loss`."""
        import os
        import signal

        self.num_training_losses += self.model.training
        if self.model.training and self.num_training_losses == self.after:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().loss(batch)


def test_folders_are_neither_overwritten_nor_invented(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(BundleError, match="no checkpoint to resume from"):
        resume(ToyTask(), make_config(), RUNTIME, folder)
    train(ToyTask(), make_config(max_steps=2), RUNTIME, folder)
    with pytest.raises(BundleError, match="was started here before"):
        train(ToyTask(), make_config(), RUNTIME, folder)
    with folder.lock(), pytest.raises(BundleError, match="another process"):
        resume(ToyTask(), make_config(), RUNTIME, folder)
