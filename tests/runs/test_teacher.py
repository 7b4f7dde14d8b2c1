"""Runs that learn from a trained model."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from tests.runs.samples import TINY_TRANSFORMER, reversal, words, write_tsv

from heedful import runs
from heedful.core.errors import BundleError, ConfigError
from heedful.training import SilentReporter
from heedful.training.records import UpdateRecord


class Killer(SilentReporter):
    """Kills the run after three updates."""

    def updated(self, update: UpdateRecord) -> None:
        if update.step == 3:
            raise KeyboardInterrupt


def student(folder: Path, teacher: Path, **training: Any) -> dict[str, Any]:
    """Return a run of a smaller model; what text is comes from the teacher."""
    config = reversal(folder, **{"max_steps": 6, "validate_every": 2, "averaging": {"kind": "none"}, **training})
    del config["text"]
    config["model"] = {**TINY_TRANSFORMER, "model_dim": 16, "num_heads": 1}
    return {**config, "teacher": {"path": str(teacher), "share": 0.5}}


def train(config: dict[str, Any], out: Path, **options: Any) -> Path:
    return runs.train(config, out, **{"reporter": SilentReporter(), **options}).path


def weights(run: Path) -> dict[str, bytes]:
    return {name: each.tobytes() for name, each in load_file(run / "bundle" / "model.safetensors").items()}


def test_a_smaller_model_learns_from_a_larger_one(reverser: Path, tmp_path: Path) -> None:
    config = student(tmp_path, reverser)
    taught = train(config, tmp_path / "taught")
    alone = train({**config, "teacher": {"path": str(reverser), "share": 0.0}}, tmp_path / "alone")
    assert runs.load(taught).config.task.text == runs.load(reverser).config.task.text
    assert weights(taught) != weights(alone)
    assert list((taught / "data").glob("answers-*")) and not list((alone / "data").glob("answers-*"))
    # The bundle needs its teacher no more.
    shutil.copytree(taught / "bundle", tmp_path / "bundle")
    toml = (tmp_path / "bundle" / "config.toml").read_text("utf-8")
    assert f'path = "{reverser}"' in toml
    assert list(runs.load(tmp_path / "bundle").predict(words()[:3]))


def test_killed_and_resumed_is_as_if_never_stopped(reverser: Path, tmp_path: Path) -> None:
    config = student(tmp_path, reverser)
    whole = train(config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "killed", reporter=Killer())
    runs.resume(tmp_path / "killed", reporter=SilentReporter())
    assert weights(tmp_path / "killed") == weights(whole)


def test_a_run_goes_on_without_its_teacher(reverser: Path, tmp_path: Path) -> None:
    run = train(student(tmp_path, reverser, max_steps=2), tmp_path / "run")
    settings = ["training.max_steps=4", "teacher.share=0"]
    assert runs.resume(run, settings=settings, reporter=SilentReporter()).num_steps == 4


def test_a_teacher_that_changed_or_is_gone_is_told(reverser: Path, tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    shutil.copytree(reverser / "bundle", teacher)
    run = train(student(tmp_path, teacher, max_steps=2), tmp_path / "run")
    shutil.rmtree(teacher)
    with pytest.raises(BundleError, match="teacher: no such folder"):
        runs.resume(run, settings=["training.max_steps=4"], reporter=SilentReporter())
    other = runs.train({**reversal(tmp_path, max_steps=1), "init_from": str(reverser)}, tmp_path / "other")
    shutil.copytree(other.path / "bundle", teacher)
    with pytest.raises(BundleError, match=r"the data file .*model\.safetensors is not what it was"):
        runs.resume(run, settings=["training.max_steps=4"], reporter=SilentReporter())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teacher": {"path": "nowhere"}}, "nowhere: no such folder"),
        ({"teacher": {"share": 0.5}}, r"`teacher\.path` is missing"),
        ({"teacher": 3}, "`teacher` must be a table"),
        ({"teacher": {"path": 3, "share": 2}}, r"`teacher\.path` .*\n`teacher\.share` "),
        ({"text": {"source": {"kind": "word"}}}, r"`text\.source\.kind` is 'word', but `teacher\.path` brings"),
        ({"task": "language_modelling"}, r"but `teacher\.path` is of the task 'translation'"),
    ],
)
def test_what_does_not_go_together_is_told(reverser: Path, tmp_path: Path, change: Any, message: str) -> None:
    config = student(tmp_path, reverser)
    with pytest.raises((ConfigError, BundleError), match=message):
        train({**config, **change}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_symbols_than_those_of_the_weights_are_refused(reverser: Path, tmp_path: Path) -> None:
    other = reversal(tmp_path, max_steps=1)
    other["text"] = {**other["text"], "source": {"kind": "word"}}
    start = train(other, tmp_path / "start")
    config = {**student(tmp_path, reverser), "init_from": str(start)}
    del config["model"]
    with pytest.raises(ConfigError, match=r"`teacher\.path` has other tokenizers than the run"):
        train(config, tmp_path / "out")


def test_a_classifier_has_no_teacher(tmp_path: Path) -> None:
    rows = [(word, "long" if len(word) > 2 else "short") for word in words()]
    config = {
        "task": "classification",
        "data": {
            "train": {
                "kind": "tsv",
                "path": str(write_tsv(tmp_path / "lengths.tsv", rows)),
                "source": "source",
                "label": "target",
            },
        },
        "text": {"source": {"kind": "character"}},
        "model": {"kind": "classifier", "encoder": {"kind": "transformer", "model_dim": 16, "num_heads": 1}},
        "training": {"max_steps": 1},
        "runtime": {"device": "cpu", "threads": 1},
    }
    first = train(config, tmp_path / "first")
    with pytest.raises(ConfigError, match="`teacher` is for tasks that write text"):
        train({**config, "teacher": {"path": str(first)}}, tmp_path / "second")
