"""Doubts whether a model was trained to its end."""

import json
import shutil
from pathlib import Path

import pytest
from tests.runs.samples import reversal

from heedful import runs
from heedful.runs.convergence import doubt_convergence
from heedful.tasks.bundle import open_bundle
from heedful.training import SilentReporter

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_doubts_come_from_the_history(reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = runs.load(reverser).task
    doubt = doubt_convergence(reverser, "cer", 2.1, task)  # of ln 8
    assert doubt is not None and doubt.startswith(
        "The model has hardly learnt anything: its held-out loss of 2.10 nats"
    )
    run = tmp_path / "run"
    shutil.copytree(reverser / "bundle", run / "bundle")

    def history(*scores: float) -> Path:
        records = [
            {"kind": "validation", "step": 10 * number, "scores": {"bleu": score}, "is_best": score >= max(scores)}
            for number, score in enumerate(scores, start=1)
        ]
        (run / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
        return run

    doubt = doubt_convergence(history(10, 20, 30, 40), "bleu", 0.1, task)
    assert doubt is not None and "its bleu still changed by 25.0 % over the last quarter" in doubt
    assert doubt_convergence(run / "bundle", "bleu", 0.1, task) == doubt
    monkeypatch.chdir(run / "bundle")
    assert doubt_convergence(Path(), "bleu", 0.1, task) == doubt
    # The history beside another bundle of the run tells nothing of that one.
    shutil.copytree(run / "bundle", run / "removed")
    assert doubt_convergence(run / "removed", "bleu", 0.1, task) is None
    assert doubt_convergence(history(39, 40, 39.9, 40.1), "bleu", 0.1, task) is None
    assert doubt_convergence(history(39, 40, 44, 43), "bleu", 0.1, task) is None


def test_a_bundle_alone_tells_that_its_training_was_not_at_its_end(tmp_path: Path) -> None:
    validated = {"max_steps": 8, "validate_every": 2, "schedule": {"kind": "constant", "peak": 0.01}, "metric": "loss"}
    run = runs.train(reversal(tmp_path, **validated), tmp_path / "run", reporter=SilentReporter()).path
    task = runs.load(run).task
    doubt = doubt_convergence(run, "loss", 0.1, task)
    assert doubt is not None and "its loss still changed by" in doubt
    shutil.copytree(run / "bundle", tmp_path / "copy")
    assert doubt_convergence(tmp_path / "copy", "loss", 0.1, task) == doubt
    late = open_bundle(tmp_path / "copy").metrics()["late_gains"]
    assert f"changed by {100 * late['loss']:.1f} %" in doubt and late.keys() == {"loss", "cer", "sequence_error"}
