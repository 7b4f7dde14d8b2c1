"""A run that was stopped and resumed ends as the one that was never stopped, bit for bit."""

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import RUNTIME, ToyTask, assert_same_end, last_checkpoint, make_config

from heedful.core.errors import BundleError
from heedful.core.types import Batch, LossSum, Validation
from heedful.training import Reporter, RunFolder, read_history, resume, train
from heedful.training.records import Record


class StoppedTask(ToyTask):
    """Sends its own process a signal in training loss number ``at_loss`` or in validation ``at_validation``."""

    def __init__(self, *, number: int = signal.SIGTERM, at_loss: int = 0, at_validation: int = 0) -> None:
        super().__init__()
        self.number = number
        self.at_loss = at_loss
        self.at_validation = at_validation
        self.num_validations = 0

    def loss(self, batch: Batch) -> LossSum:
        """See `ToyTask.loss`."""
        if self.model.training and self.num_losses + 1 == self.at_loss + self.num_validations:
            os.kill(os.getpid(), self.number)
        return super().loss(batch)

    def validate(self) -> Validation:
        """See `ToyTask.validate`."""
        self.num_validations += 1
        if self.num_validations == self.at_validation:
            os.kill(os.getpid(), self.number)
        return super().validate()


class Notes(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.records: list[Record] = []

    def note(self, text: str) -> None:
        """See `Reporter.note`."""
        self.notes.append(text)

    def recorded(self, record: Record) -> None:
        """See `Reporter.recorded`."""
        self.records.append(record)


@pytest.mark.parametrize(
    ("averaging", "stop", "number"),
    [
        ({"kind": "ema", "decay": 0.9}, 1, signal.SIGTERM),
        ({"kind": "ema", "decay": 0.9}, 12, signal.SIGINT),
        ({"kind": "last", "k": 3}, 28, signal.SIGTERM),
        ({"kind": "none"}, 11, signal.SIGTERM),
    ],
)
def test_run_stopped_by_a_signal_resumes_bit_equal(
    tmp_path: Path, averaging: dict[str, Any], stop: int, number: int
) -> None:
    config = make_config(averaging=averaging)
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    train(ToyTask(), config, RUNTIME, whole)
    assert train(StoppedTask(number=number, at_loss=2 * stop), config, RUNTIME, parts).reason == "signal"
    assert last_checkpoint(parts).facts.state.step == stop
    torch.rand(7)
    assert resume(ToyTask(), config, RUNTIME, parts).reason == "max_steps"
    assert_same_end(whole, parts)
    steps = [each["step"] for each in read_history(whole.history) if each["kind"] == "validation"]
    assert steps == [6, 12, 18, 24, 29]


@pytest.mark.parametrize("averaging", [{"kind": "last", "k": 2}, {"kind": "ema"}])
def test_validation_broken_off_by_a_signal_is_made_up_for(tmp_path: Path, averaging: dict[str, Any]) -> None:
    config = make_config(averaging=averaging)
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    train(ToyTask(), config, RUNTIME, whole)
    assert train(StoppedTask(at_validation=2), config, RUNTIME, parts).reason == "signal"
    assert last_checkpoint(parts).facts.state.step == 12
    assert last_checkpoint(parts).facts.state.validated_step == 6
    resume(ToyTask(), config, RUNTIME, parts)
    assert_same_end(whole, parts)


def test_limit_can_be_raised(tmp_path: Path) -> None:
    schedule = {"kind": "constant", "peak": 0.02}
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    train(ToyTask(), make_config(schedule=schedule, max_steps=24), RUNTIME, whole)
    train(ToyTask(), make_config(schedule=schedule, max_steps=12), RUNTIME, parts)
    assert resume(ToyTask(), make_config(schedule=schedule, max_steps=12), RUNTIME, parts).state.step == 12
    resume(ToyTask(), make_config(schedule=schedule, max_steps=24), RUNTIME, parts)
    assert_same_end(whole, parts)


class SlowTask(ToyTask):
    """Leaves time to be killed."""

    def loss(self, batch: Batch) -> LossSum:
        """See `ToyTask.loss`."""
        time.sleep(0.003)
        return super().loss(batch)


def test_killed_run_resumes_bit_equal(tmp_path: Path) -> None:
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    config = make_config(max_steps=120)
    arguments = (SlowTask(), config, RUNTIME, parts)
    child = multiprocessing.get_context("fork").Process(target=train, args=arguments)
    child.start()
    train(ToyTask(), config, RUNTIME, whole)
    while not read_history(parts.history) and child.is_alive():
        time.sleep(0.003)
    time.sleep(random.Random().uniform(0, 0.4))
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL, "the child ended by itself"
    with open(parts.history, "a", encoding="utf-8") as file:
        file.write('{"kind": "tra')
    resume(ToyTask(), config, RUNTIME, parts)
    assert_same_end(whole, parts)


def test_folders_are_neither_overwritten_nor_invented(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(BundleError, match="no checkpoint to resume from"):
        resume(ToyTask(), make_config(), RUNTIME, folder)
    train(ToyTask(), make_config(max_steps=2), RUNTIME, folder)
    with pytest.raises(BundleError, match="was started here before"):
        train(ToyTask(), make_config(), RUNTIME, folder)
    with folder.lock(), pytest.raises(BundleError, match="another process"):
        resume(ToyTask(), make_config(), RUNTIME, folder)


def test_a_changed_setting_is_warned_of(tmp_path: Path) -> None:
    folder, notes = RunFolder(tmp_path / "run"), Notes()
    train(ToyTask(), make_config(max_steps=2), RUNTIME, folder)
    bf16 = RUNTIME.model_copy(update={"dtype": "bfloat16"})
    resume(ToyTask(), make_config(max_steps=3), bf16, folder, notes)
    assert any("`dtype` was float32 and is bfloat16 now" in each for each in notes.notes)
