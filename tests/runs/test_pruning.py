"""From a trained run to a smaller one, and on from there."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runs.pruning_samples import Listener, prune, texts
from tests.runs.samples import reversal

from heedful import runs
from heedful.core.errors import BundleError, ConfigError, TrainingError
from heedful.runs import pruning_run
from heedful.runs.pruning_plan import Wish, make_plan
from heedful.tasks.bundle import open_bundle
from heedful.training import SilentReporter

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_what_is_left_is_an_ordinary_smaller_bundle(reverser: Path, pruned: tuple[Path, runs.Pruning]) -> None:
    path, found = pruned
    whole, small = runs.info(reverser), runs.info(path)
    model = small.config["model"]
    numbers = [each for kind in model["num_heads"].values() for each in kind]
    assert len(numbers) == 3 and sum(numbers) == 3
    assert model["head_dim"] == {"encoder": [16], "decoder": [16], "cross": [16]}
    assert sum(sites["after"] for sites in found.heads.values()) == 3
    assert sum(each["after"] for each in found.inner.values()) == 48
    # A head has 4 x 16 x 32 weights and 3 x 16 biases, an inner unit 2 x 32 and 1.
    assert whole.num_parameters - small.num_parameters == 3 * (4 * 16 * 32 + 3 * 16) + 48 * (2 * 32 + 1)
    assert found.parameters == {"before": whole.num_parameters, "after": small.num_parameters}
    written = {name: entry["value"] for name, entry in small.scores.items()}
    assert written == pytest.approx(runs.load(path).evaluate("dev").scores(), rel=1e-4)
    assert found.scores["after fine-tuning"] == pytest.approx(written, rel=1e-4)


def test_the_report_tells_every_stage(pruned: tuple[Path, runs.Pruning]) -> None:
    path, found = pruned
    assert list(found.scores) == ["before", "gated", "after removal", "after fine-tuning"]
    assert found.scores["gated"] == pytest.approx(found.scores["after removal"], rel=1e-4)
    values = json.loads((path / "pruning.json").read_text())
    assert values["heads"] == found.to_values()["heads"] and values["test"].keys() == {"before", "pruned"}
    page = (path / "report.html").read_text()
    for part in ("Heads", "Scores", "Size", "Arithmetic and speed", "Choosing heads", "Configuration"):
        assert f"<h2>{part}</h2>" in page
    assert "3 of 6 heads left (gradient)" in found.to_text()
    assert found.ceiling("no heads at all, narrowed") > found.ceiling("pruned") > 1
    assert found.goal is None and values["is_goal_met"] and values["max_loss"] is None


def test_the_bundle_before_fine_tuning_is_kept(pruned: tuple[Path, runs.Pruning]) -> None:
    path, found = pruned
    scores = runs.load(path / "removed").evaluate("dev").scores()
    assert scores == pytest.approx(found.scores["after removal"], rel=1e-4)
    assert not (path / "selection").exists()


def test_a_pruned_run_is_resumed_tuned_and_pruned_again(pruned: tuple[Path, runs.Pruning], tmp_path: Path) -> None:
    shutil.copytree(pruned[0], tmp_path / "copy")
    steps = runs.resume(tmp_path / "copy", settings=["training.max_steps=51"], reporter=SilentReporter()).num_steps
    assert steps == 51
    page = (tmp_path / "copy" / "report.html").read_text()
    for part in ("Heads", "Who survived", "Scores", "Arithmetic and speed", "Choosing heads"):
        assert f"<h2>{part}</h2>" in page
    assert "the bundle was trained further" in page and "(the bundle)" not in page
    config = reversal(tmp_path, max_steps=1, schedule={"kind": "constant", "peak": 1e-9}, averaging={"kind": "none"})
    for key in ("text", "model"):
        del config[key]
    config["init_from"] = str(pruned[0])
    runs.train(config, tmp_path / "tuned", reporter=SilentReporter())
    assert texts(tmp_path / "tuned") == texts(pruned[0])
    assert prune(pruned[0], tmp_path / "again", keep=1, method="confidence").num_heads == (3, 1)


def train_briefly(values: dict[str, Any], out: Path, **more: Any) -> runs.RunOutcome:
    """Train as pruning trains from scratch, but for a few steps."""
    return runs.train(values, out, settings=["training.max_steps=6", "training.validate_every=3"], **more)


def test_the_shape_that_is_left_is_trained_from_scratch(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_run, "train_anew", train_briefly)
    found = prune(reverser, tmp_path / "run", keep=1, method="confidence", has_scratch=True)
    scratch, small = (runs.info(tmp_path / "run" / each) for each in ("scratch", "bundle"))
    assert scratch.num_parameters == small.num_parameters and scratch.config["model"] == small.config["model"]
    assert list(found.scores)[-1] == "same shape from scratch" == list(found.test)[-1]


def test_a_stop_of_the_training_from_scratch_leaves_the_rest_of_the_report(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(values: dict[str, Any], out: Path, **more: Any) -> Any:
        return replace(train_briefly(values, out, **more), reason="signal")

    monkeypatch.setattr(pruning_run, "train_anew", stop)
    listener = Listener()
    found = prune(reverser, tmp_path / "run", keep=1, method="random", has_scratch=True, reporter=listener)
    assert "The training from scratch was stopped, and is left out of the report." in listener.notes
    assert list(found.scores)[-1] == "after fine-tuning" and found.test.keys() == {"before", "pruned"}
    assert json.loads((tmp_path / "run" / "pruning.json").read_text())["scores"].keys() == found.scores.keys()
    assert (tmp_path / "run" / "report.html").exists()


def test_a_training_from_scratch_that_fails_leaves_the_rest_of_the_report(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TrainingError("The disk is full.")

    monkeypatch.setattr(pruning_run, "train_anew", fail)
    with pytest.raises(TrainingError):
        prune(reverser, tmp_path / "run", keep=1, method="random", has_scratch=True)
    assert json.loads((tmp_path / "run" / "pruning.json").read_text())["test"].keys() == {"before", "pruned"}
    assert "Who survived" in (tmp_path / "run" / "report.html").read_text()


def test_settings_reach_both_parts_of_training(reverser: Path) -> None:
    """What gates learn at does not follow the weights; validations by updates take the place of those by minutes."""
    settings = ("training.schedule.peak=0.002", "training.validate_every=7")
    plan = make_plan(Wish(keep=1, max_minutes=1.0), open_bundle(reverser), None, settings)
    assert plan.rate == pytest.approx(0.002)
    for part in (plan.selection, plan.tuning):
        assert (part.training.validate_every, part.training.validate_minutes) == (7, None)
    plan = make_plan(Wish(keep=1, max_steps=9), open_bundle(reverser), None, ("training.validate_minutes=3",))
    assert plan.selection.training.validate_minutes == plan.tuning.training.validate_minutes == 3


def test_a_bundle_that_came_from_another_goes_on_at_its_rate_and_has_no_scratch(
    reverser: Path, pruned: tuple[Path, runs.Pruning], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"`--from-scratch` needs to know how .* but this bundle came from another"):
        prune(pruned[0], tmp_path / "run", keep=1, has_scratch=True)
    assert not (tmp_path / "run").exists()
    first, second = (make_plan(Wish(keep=1), open_bundle(each), None, ()) for each in (reverser, pruned[0]))
    # Trained at up to 0.01, pruned at half of that, which is the whole rate of what pruning left.
    assert (first.rate, second.rate) == (pytest.approx(0.005), pytest.approx(0.005))
    assert first.scratch is not None and second.scratch is None


def test_data_files_of_one_name_are_told_apart_by_what_is_in_them(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    config = reversal(tmp_path, max_steps=1)
    for split, name in (("train", "one"), ("dev", "two")):
        table = config["data"][split]
        table["path"] = str(shutil.move(table["path"], tmp_path / name / "words.tsv"))
    config["data"]["test"] = config["data"]["dev"]
    runs.train(config, tmp_path / "run", reporter=SilentReporter())
    bundle = open_bundle(tmp_path / "run")
    assert [each.split(" ")[0] for each in bundle.metrics()["data"]] == ["words.tsv", "words.tsv"]
    assert make_plan(Wish(keep=1), bundle, None, ()).metric
    with (tmp_path / "two" / "words.tsv").open("a") as file:
        file.write("abc\tcba\n")
    with pytest.raises(BundleError, match=r"two/words\.tsv: not the file that the bundle was trained on"):
        make_plan(Wish(keep=1), bundle, None, ())


def test_the_report_says_which_model_the_bundle_holds(
    reverser: Path, pruned: tuple[Path, runs.Pruning], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tuned = pruned
    assert tuned.held == "after fine-tuning" == json.loads((path / "pruning.json").read_text())["held"]
    assert "dev, after fine-tuning (the bundle) " in tuned.to_text()
    monkeypatch.setattr(pruning_run._Pruner, "_is_better", lambda *scores: True)
    found = prune(reverser, tmp_path / "run", keep=2, method="random")
    assert found.held == "after removal" == json.loads((tmp_path / "run" / "pruning.json").read_text())["held"]
    assert "dev, after removal (the bundle) " in found.to_text() and "fine-tuning (" not in found.to_text()
    assert "after removal (the bundle)" in (tmp_path / "run" / "report.html").read_text()
    assert texts(tmp_path / "run") == texts(tmp_path / "run" / "removed")


def test_no_heads_at_all(reverser: Path, tmp_path: Path) -> None:
    found = prune(reverser, tmp_path / "run", keep_fraction=0.05, method="exact")
    assert found.num_heads == (6, 0)
    assert runs.load(tmp_path / "run").evaluate("test").num_lines == 40
    with pytest.raises(ConfigError, match=r"no heads of the kinds encoder, decoder, cross left to remove"):
        prune(tmp_path / "run", tmp_path / "more", keep=0)


def test_kinds_limit_what_is_removed_and_doubts_are_told(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    monkeypatch.setattr(pruning_run, "doubt_convergence", lambda *facts: "Not trained to the end.")
    found = prune(reverser, tmp_path / "run", keep=1, kinds=["cross"], method="random", reporter=listener)
    assert [each["after"] for each in found.heads.values()] == [2, 2, 1]
    assert "Warning: Not trained to the end." in listener.notes


def test_the_card_and_the_digests_are_those_of_the_run(pruned: tuple[Path, runs.Pruning]) -> None:
    metrics = open_bundle(pruned[0]).metrics()
    assert [each.split(" ")[0] for each in metrics["data"]] == ["train.tsv", "test.tsv"]
