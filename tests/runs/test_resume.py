"""A run that was stopped and resumed ends bit-equal to one that ran through."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from tests.runs.samples import reversal, write_tsv

from heedful import runs
from heedful.core.errors import BundleError
from heedful.training import SilentReporter
from heedful.training.records import UpdateRecord


class Killer(SilentReporter):
    """Kills the run after some updates, as a signal that cannot be caught would."""

    def __init__(self, at_step: int) -> None:
        self.at_step = at_step

    def updated(self, update: UpdateRecord) -> None:
        if update.step == self.at_step:
            raise KeyboardInterrupt


def config(folder: Path) -> dict[str, Any]:
    values = reversal(folder, max_steps=12, validate_every=4, log_every=2)
    values["validation"] = {"num_samples": 0, "max_lines": 10}
    values["model"] = {**values["model"], "dropout": 0.3}
    return values


def bundle_of(run: Path) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in load_file(run / "bundle" / "model.safetensors").items()}


def events_of(run: Path) -> list[dict[str, Any]]:
    """Return the history without what a clock says."""
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text("utf-8").splitlines()]
    clock = {"elapsed_s", "seconds", "targets_per_s"}
    return [{key: value for key, value in line.items() if key not in clock} for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run that is never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    return runs.train(config(folder), folder / "run", reporter=SilentReporter()).path


@pytest.mark.parametrize("at_step", [2, 7])
def test_killed_and_resumed_is_as_if_never_stopped(whole: Path, at_step: int) -> None:
    killed = whole.with_name(f"killed-{at_step}")
    with pytest.raises(KeyboardInterrupt):
        runs.train(config(whole.parent), killed, reporter=Killer(at_step))
    runs.resume(killed, reporter=SilentReporter())
    assert bundle_of(killed) == bundle_of(whole)
    assert events_of(killed) == events_of(whole)


@pytest.mark.parametrize("kept", [["config.toml"], ["config.toml", "data"]])
def test_killed_while_it_prepared(whole: Path, tmp_path: Path, kept: list[str]) -> None:
    """What a run left before its first checkpoint is enough to begin it again."""
    for name in kept:
        copy = shutil.copytree if (whole / name).is_dir() else shutil.copyfile
        copy(whole / name, tmp_path / name)
    runs.resume(tmp_path, reporter=SilentReporter())
    assert bundle_of(tmp_path) == bundle_of(whole)


def test_a_limit_can_be_raised(tmp_path: Path) -> None:
    runs.train(config(tmp_path), tmp_path / "run", settings=["training.max_steps=4"], reporter=SilentReporter())
    outcome = runs.resume(tmp_path / "run", settings=["training.max_steps=8"], reporter=SilentReporter())
    assert outcome.num_steps == 8


def test_changed_data_are_refused(tmp_path: Path) -> None:
    runs.train(config(tmp_path), tmp_path / "run", settings=["training.max_steps=4"], reporter=SilentReporter())
    write_tsv(tmp_path / "train.tsv", [("ab", "ba"), ("cd", "dc")])
    with pytest.raises(BundleError, match=r"train\.tsv is not what it was when the run began"):
        runs.resume(tmp_path / "run", settings=["training.max_steps=8"], reporter=SilentReporter())


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no run to resume"):
        runs.resume(tmp_path / "nowhere")


def test_a_bundle_is_no_run(reverser: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(reverser / "bundle", bundle)
    before = sorted(each.name for each in bundle.iterdir())
    with pytest.raises(BundleError, match=r"bundle: a bundle, .* Resume the run that it is of, or .* `init_from = "):
        runs.resume(bundle)
    assert sorted(each.name for each in bundle.iterdir()) == before
