"""What a pruning refuses, and what it leaves when it is stopped."""

import math
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runs.pruning_samples import Listener, prune
from tests.runs.samples import reversal

from heedful import runs
from heedful.core.errors import BundleError, ConfigError, TrainingError
from heedful.runs import pruning_run
from heedful.training import SilentReporter
from heedful.training.records import Record, TrainRecord, ValidationRecord

pytestmark = pytest.mark.usefixtures("quick_measuring")


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({}, r"exactly one of `--keep`, `--keep-fraction` and `--max-loss`"),
        ({"keep": 1, "max_loss": 0.5}, r"exactly one of"),
        (
            {"keep": 7},
            r"`--keep` is 7, but the model has 6 heads of the kinds encoder, decoder, cross\. Try `--keep",
        ),
        ({"keep": 3, "kinds": ["cross"]}, r"`--keep` is 3, but the model has 2 heads of the kinds cross"),
        ({"keep": -1}, r"`--keep` must be at least 0 and finite, but is -1"),
        ({"keep_fraction": 1.5}, r"`--keep-fraction` must be between 0 and 1, but is 1.5"),
        ({"keep": 2, "kinds": ["cros"]}, r"`cros` is no kind of attention .* Did you mean `cross`"),
        ({"keep": 2, "kinds": []}, r"`--kinds` names none"),
        ({"keep": 2, "method": "gate"}, r"`--method` is `gate`\. Did you mean `gates`"),
        ({"keep": 2, "inner_fraction": 0.0}, r"`--inner-fraction` must be above 0"),
        ({"keep": 2, "max_minutes": 1.0}, r"`--max-minutes` and `--max-steps` exclude each other"),
        ({"max_loss": math.nan}, r"`--max-loss` must be at least 0 and finite, but is nan"),
        ({"max_loss": math.inf}, r"`--max-loss` must be at least 0 and finite, but is inf"),
        ({"keep": 2, "max_minutes": math.nan, "max_steps": None}, r"`--max-minutes` must be above 0 and finite"),
        ({"keep": 2, "max_steps": 0}, r"`--max-steps` must be above 0"),
        ({"keep": 2, "max_steps": 1}, r"`--max-steps` must be at least 2: heads are chosen first"),
        ({"keep": 2, "data": "multi40k"}, r"`multi40k` is neither a recipe nor a file"),
        ({"keep": 2, "settings": ["training.metric=blue"]}, r"`training.metric` is `blue`, which is not measured"),
    ],
)
def test_what_cannot_be_asked_is_told_and_nothing_is_written(
    wish: dict[str, Any], message: str, reverser: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        prune(reverser, tmp_path / "run", **wish)
    assert not (tmp_path / "run").exists()


def test_what_another_put_in_the_folder_meanwhile_is_left_alone(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = pruning_run.make_plan

    def plan_slowly(*arguments: Any) -> Any:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "theirs").write_text("work of hours")
        return plan(*arguments)

    monkeypatch.setattr(pruning_run, "make_plan", plan_slowly)
    with pytest.raises(BundleError, match=r"run: already there\. Choose another `--out`\.$"):
        prune(reverser, tmp_path / "run", keep=2)
    assert (tmp_path / "run" / "theirs").read_text() == "work of hours"


def test_a_folder_that_cannot_be_made_and_a_beginning_that_was_cut_off(reverser: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match=r"file/run: cannot be made: Not a directory\. Choose another `--out`"):
        prune(reverser, tmp_path / "file" / "run", keep=2)


def stopping(folder: Path) -> Callable[..., None]:
    """Return what stops a pruning into ``run``, and puts what a kill at this moment leaves into ``killed``."""

    def stop(*_: object) -> None:
        shutil.copytree(folder / "run", folder / "killed")
        raise KeyboardInterrupt

    return stop


def test_a_pruning_killed_before_heads_are_chosen_is_known_as_a_beginning(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_run, "order_of_closing", stopping(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        prune(reverser, tmp_path / "run", keep=2)
    assert not (tmp_path / "run").exists()
    with pytest.raises(BundleError, match=r"killed: already there\. .* beginning of a pruning that was cut off"):
        prune(reverser, tmp_path / "killed", keep=2)


@pytest.mark.parametrize("kind", [TrainRecord, ValidationRecord])
def test_a_stop_in_fine_tuning_tells_what_is_there(
    kind: type[Record], reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopper(Listener):
        def recorded(self, record: Record) -> None:
            if isinstance(record, kind) and "stop" not in self.notes:
                self.notes.append("stop")  # a second signal would end the process at once
                os.kill(os.getpid(), signal.SIGTERM)

    listener, out = Stopper(), tmp_path / "run"
    begin = pruning_run.begin
    monkeypatch.setattr(pruning_run, "begin", lambda plan, folder, _: begin(plan, folder, listener))
    settings = ["training.log_every=1", "training.validate_every=3"]
    with pytest.raises(KeyboardInterrupt):
        prune(reverser, out, keep=2, method="random", max_steps=40, reporter=(heard := Listener()), settings=settings)
    if kind is TrainRecord:
        assert heard.notes[-1].startswith(f"{out}: the heads are removed, but fine-tuning has not come to a bundle")
        runs.resume(out, reporter=SilentReporter(), settings=["training.max_steps=4"])
    else:
        assert heard.notes[-1].startswith(f"{out}: the heads are removed and a bundle is there, fine-tuned so far")
    assert sum(site.num_heads for site in runs.load(out).model.attention_sites()) == 2


@pytest.mark.parametrize("error", [TrainingError("The disk is full."), KeyboardInterrupt()])
def test_fine_tuning_that_fails_loses_nothing_that_was_made(
    error: BaseException, reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Listener):
        """Fails at the second validation, as a full disk or a second Ctrl-C does."""

        def recorded(self, record: Record) -> None:
            if isinstance(record, ValidationRecord):
                seen.append(record)
                if len(seen) == 2:
                    raise error

    seen: list[Record] = []
    begin = pruning_run.begin
    monkeypatch.setattr(pruning_run, "begin", lambda plan, folder, _: begin(plan, folder, Failing()))
    out, heard = tmp_path / "run", Listener()
    with pytest.raises(type(error)):
        prune(reverser, out, keep=2, method="random", max_steps=20, reporter=heard)
    assert heard.notes[-1].startswith(f"{out}: the heads are removed and a bundle is there, fine-tuned so far")
    assert not (out / "selection").exists()
    for model in (out, out / "removed"):
        assert sum(site.num_heads for site in runs.load(model).model.attention_sites()) == 2
    assert runs.resume(out, reporter=SilentReporter()).reason == "max_steps"


def test_a_stop_before_fine_tuning_leaves_the_model_without_the_heads(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_run, "begin", stopping(tmp_path))
    out, heard = tmp_path / "run", Listener()
    with pytest.raises(KeyboardInterrupt):
        prune(reverser, out, keep=2, method="random", reporter=heard)
    assert heard.notes[-1].endswith(f'Train on with `init_from = "{out}/removed"`; the report is left out.')
    assert sum(site.num_heads for site in runs.load(out / "removed").model.attention_sites()) == 2
    with pytest.raises(BundleError, match=r"A pruning was cut off there; .*killed/removed has fewer heads: train on"):
        prune(reverser, tmp_path / "killed", keep=2)


def test_a_later_try_that_fails_leaves_the_model_of_the_earlier(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_run._Pruner, "_is_near", lambda *scores: False)
    begin, out = pruning_run.begin, tmp_path / "run"

    def begin_once(plan: Any, folder: Any, reporter: Any) -> Any:
        if (out / "earlier").exists():
            raise TrainingError("The disk is full.")
        return begin(plan, folder, reporter)

    monkeypatch.setattr(pruning_run, "begin", begin_once)
    heard = Listener()
    with pytest.raises(TrainingError):
        prune(reverser, out, max_loss=1000.0, method="random", max_steps=60, reporter=heard)
    assert f"{out}/earlier has a model with fewer heads, which lost more than was allowed." in heard.notes[-1]
    fewer, more = (runs.load(out / each).model.attention_sites() for each in ("earlier/bundle", "removed"))
    assert sum(each.num_heads for each in fewer) < sum(each.num_heads for each in more)


def test_an_existing_folder_and_other_data_are_refused(reverser: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(BundleError, match=r"there: already there\. Choose another `--out`"):
        prune(reverser, tmp_path / "there", keep=2)
    data = reverser.parent / "train.tsv"
    content = data.read_bytes()
    data.write_bytes(content + b"abc\tcba\n")
    try:
        with pytest.raises(BundleError, match=r"train\.tsv: not the file that the bundle was trained on"):
            prune(reverser, tmp_path / "run", keep=2)
        own = tmp_path / "own.toml"
        own.write_text('[data]\ntrain = { kind = "tsv", path = "own.tsv", source = "source", target = "target" }\n')
        (tmp_path / "own.tsv").write_bytes(content)
        assert prune(reverser, tmp_path / "run", keep=2, method="random", data=str(own)).test == {}
    finally:
        data.write_bytes(content)


def test_models_without_heads_are_refused(tmp_path: Path) -> None:
    config = reversal(tmp_path, max_steps=1)
    config["model"] = {"kind": "recurrent", "embedding_dim": 4, "hidden_dim": 6, "attention": {"kind": "additive"}}
    runs.train(config, tmp_path / "recurrent", reporter=SilentReporter())
    with pytest.raises(ConfigError, match=r"no attention with heads that could be removed\. Give .* Transformer"):
        prune(tmp_path / "recurrent", tmp_path / "out", keep=0)
