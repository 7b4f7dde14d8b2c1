"""Checkpoints on disks that are full, torn or of another model; the history; the lock."""

import errno
import json
import multiprocessing
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from toy_training import RUNTIME, ToyTask, assert_same_end, last_checkpoint, make_config

from heedful.core import storage
from heedful.core.errors import BundleError, TrainingError
from heedful.core.weights import model_tensors
from heedful.training import RunFolder, read_history, resume, train
from heedful.training.checkpoint import (
    FORMAT,
    Checkpoint,
    Checkpoints,
    Facts,
    Setting,
    load_model_tensors,
    read_checkpoint,
)
from heedful.training.history import History
from heedful.training.state import State


@pytest.mark.parametrize("file", ["model.safetensors", "averages.safetensors", "state.json", "random.json"])
def test_full_disk_leaves_the_last_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    whole, parts = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "parts")
    config = make_config(max_steps=18)
    train(ToyTask(), config, RUNTIME, whole)
    sync = storage._sync_file
    calls: list[str] = []

    def fill_up(path: Path) -> None:
        calls.append(path.name)
        if path.name == file and calls.count(file) == 3:
            path.write_bytes(path.read_bytes()[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(path)

    with monkeypatch.context() as patched:
        patched.setattr(storage, "_sync_file", fill_up)
        with pytest.raises(TrainingError, match=r"step 12 cannot be written: No space left.*step-00000006. Free some"):
            train(ToyTask(), config, RUNTIME, parts)
    assert [each.name for each in parts.checkpoints.iterdir()] != []
    assert last_checkpoint(parts).facts.state.step == 6
    resume(ToyTask(), config, RUNTIME, parts)
    assert_same_end(whole, parts)


def test_full_disk_under_the_history_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: History, record: dict[str, Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "history.jsonl")

    monkeypatch.setattr(History, "append", fail)
    with pytest.raises(TrainingError, match=r"stopped at step 4: history.jsonl: No space left.*step-00000000"):
        train(ToyTask(), make_config(), RUNTIME, RunFolder(tmp_path / "run"))


def save_small_and_large(path: Path) -> None:
    """Write a checkpoint, have the system refuse long files, and try a second; exit with 3 when that is told."""
    place = Checkpoints(path)

    def save(step: int) -> None:
        facts = Facts(FORMAT, State(step=step), Setting("cpu", "float32", 1, 1), 0)
        place.save(Checkpoint({"w": torch.ones(5000)}, {}, {}, [], facts))

    save(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
    try:
        save(2)
    except TrainingError as error:
        sys.exit(3 if "the checkpoint of step 2 cannot be written" in str(error) else 4)


def test_system_that_refuses_to_write_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=save_small_and_large, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == 3
    assert [each.name for each in tmp_path.iterdir()] == ["step-00000001"]
    assert read_checkpoint(tmp_path / "step-00000001").model["w"].sum() == 5000


def test_damage_and_strange_formats_are_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    train(ToyTask(), make_config(max_steps=6), RUNTIME, folder)
    last = Checkpoints(folder.checkpoints).last()
    assert last is not None
    weights = (last / "model.safetensors").read_bytes()
    (last / "model.safetensors").write_bytes(weights[:-3])
    with pytest.raises(BundleError, match=r"damaged.*Remove the folder to go on from the one before"):
        resume(ToyTask(), make_config(), RUNTIME, folder)
    (last / "model.safetensors").write_bytes(weights)
    facts = json.loads((last / "state.json").read_text())
    (last / "state.json").write_text(json.dumps({**facts, "format": 99}))
    with pytest.raises(BundleError, match=r"has format 99"):
        resume(ToyTask(), make_config(), RUNTIME, folder)


def test_checkpoint_of_another_model_is_refused() -> None:
    model = torch.nn.Linear(2, 3)
    with pytest.raises(BundleError, match=r"the weight `bias` is missing"):
        load_model_tensors(model, {"weight": torch.zeros(3, 2)})
    with pytest.raises(BundleError, match=r"the weight `weight` has shape \(2, 2\), but the model's \(3, 2\)"):
        load_model_tensors(model, {"weight": torch.zeros(2, 2), "bias": torch.zeros(3)})


def test_shared_weights_are_kept_once_and_what_a_kill_left_is_cleaned(tmp_path: Path) -> None:
    assert sorted(model_tensors(ToyTask().model)) == [
        "embedding.weight",
        "norm.bias",
        "norm.weight",
        "output.bias",
        "scale",
    ]
    for name in (".step-00000002.new.x", ".removed-step-00000003", ".step-00000012.previous", "step-00000009"):
        (tmp_path / name).mkdir()
    place = Checkpoints(tmp_path)
    place.clean()
    (tmp_path / "step-123456789").mkdir()
    assert [each.name for each in place.list()] == ["step-00000009", "step-00000012", "step-123456789"]
    place.keep(1, [9])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["step-00000009", "step-123456789"]


def test_no_file_of_a_run_is_a_pickle(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    train(ToyTask(), make_config(max_steps=6), RUNTIME, folder)
    last = Checkpoints(folder.checkpoints).last()
    assert last is not None
    for file in last.iterdir():
        assert file.suffix in (".json", ".safetensors")
        json.loads(file.read_bytes()) if file.suffix == ".json" else safetensors.torch.load_file(file)


def test_history_is_cut_back_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    assert read_history(history.path) == []
    history.append({"kind": "train", "step": 1, "word": "\u2028é\n"})
    length = history.sync()
    history.append({"kind": "train", "step": 2})
    assert [each["step"] for each in read_history(history.path)] == [1, 2]
    with open(history.path, "a", encoding="utf-8") as file:
        file.write('{"kind"')
    assert [each["step"] for each in read_history(history.path)] == [1, 2]
    history.cut(length)
    assert read_history(history.path) == [{"kind": "train", "step": 1, "word": "\u2028é\n"}]
