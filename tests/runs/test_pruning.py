"""From a trained run to a smaller one, and on from there."""

import json
import math
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runs.samples import TINY_TRANSFORMER, reversal, words

from heedful import runs
from heedful.analysis import heads_card
from heedful.core.errors import BundleError, ConfigError, TrainingError
from heedful.pruning import Candidate
from heedful.runs import pruning_report, pruning_run, speed
from heedful.runs.convergence import doubt_convergence
from heedful.runs.pruning_plan import Wish, highest_rate, make_plan, scale_dropout, share_tuning, take_dropout
from heedful.runs.pruning_roles import HeadRoles, read_roles, survey_roles
from heedful.tasks.bundle import open_bundle
from heedful.training import Reporter, SilentReporter
from heedful.training.records import Record, TrainRecord, UpdateRecord, ValidationRecord
from heedful.training.schedule import InverseSquareRootSchedule, NoamSchedule


class Listener(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def recorded(self, record: Record) -> None:
        pass


@pytest.fixture(autouse=True)
def _quick_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "NUM_LINES", {1: 1, 8: 3, 64: 5})
    monkeypatch.setattr(speed, "NUM_ROUNDS", 1)


def prune(run: Path, out: Path, **wish: Any) -> runs.Pruning:
    settings = ["validation.max_lines=5", *wish.pop("settings", [])]
    return runs.prune(run, out, **{"reporter": SilentReporter(), "max_steps": 10, "settings": settings, **wish})


def texts(path: Path) -> list[str]:
    return [each.text for each in runs.load(path).predict(words()[:17])]


@pytest.fixture(scope="module")
def pruned(reverser: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, runs.Pruning]:
    """Keep three of six heads and half of the inner units, once for all tests; return the new run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "NUM_LINES", {1: 1, 8: 3, 64: 5})
        patch.setattr(speed, "NUM_ROUNDS", 1)
        path = tmp_path_factory.mktemp("pruned") / "run"
        wish = {"keep": 3, "method": "gradient", "inner_fraction": 0.5, "max_steps": 60}
        found = runs.prune(reverser, path, reporter=SilentReporter(), **wish)
    return path, found


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


def test_roles_are_those_of_a_survey_over_the_dev_data(
    reverser: Path, pruned: tuple[Path, runs.Pruning], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pruned[1].roles_from == "40 lines of the dev data"
    assert sum(each["after"] for each in pruned[1].survivors.values()) >= 3
    monkeypatch.setattr(heads_card, "POSITIONAL_FROM", 0.2)  # so small a model has no clearer roles
    rows = [line.split("\t") for line in (reverser.parent / "test.tsv").read_text().splitlines()[1:]]
    for name, column in (("source", 0), ("target", 1)):
        (tmp_path / name).write_text("".join(f"{row[column]}\n" for row in rows))
    data = runs.HeadsData(text=tmp_path / "source", targets=(tmp_path / "target",))
    (report,) = runs.describe_heads([reverser], data)
    whole = runs.load(reverser)
    roles = survey_roles(whole, whole.config.task.data)
    assert {(card.site, card.head): list(card.roles) for card in report.cards} == {
        key: roles.names(*key) for key in roles.of
    }
    assert len(roles.of) == 6 and any(roles.of.values())
    runs.write_heads_json([report], tmp_path / "heads.json")
    assert read_roles(tmp_path / "heads.json", whole).of == roles.of


def test_survivors_are_counted_by_family() -> None:
    back, ahead, rare = {"one back": "positional"}, {"one ahead": "positional"}, {"rare token": "rare"}
    roles = HeadRoles("", {("a", 0): back, ("a", 1): back | rare, ("b", 0): ahead, ("b", 1): {}, ("c", 0): {}})
    assert roles.survivors({"a": (1,), "b": ()}) == {
        "positional": {"before": 3, "after": 1},
        "rare token": {"before": 1, "after": 1},
        "without a role": {"before": 2, "after": 1},  # nothing was removed from c
    }


def heads_file(file: Path, model: Path, *bundles: dict[str, Any]) -> Path:
    """Write what ``heedful heads --json`` does of models, as far as it counts; each as the given one but for some."""
    sites = runs.load(model).model.attention_sites()
    names = [(site.path, head) for site in sites for head in range(site.num_heads)]
    scores = [{"name": "one back", "family": "positional"}, {"name": "nsubj", "family": "syntactic"}]
    roles = [[], ["nsubj"], ["one back"], ["one back", "nsubj"], ["nsubj"], []]
    heads = [
        {"site": site, "head": head, "roles": own, "scores": scores}
        for (site, head), own in zip(names, roles, strict=True)
    ]
    own = {"path": str(model), "bundle": model.name, "heads": heads}
    file.write_text(json.dumps({"bundles": [own | each for each in bundles]}))
    return file


def test_roles_come_from_what_was_written_of_the_same_model(reverser: Path, tmp_path: Path) -> None:
    whole, file = runs.load(reverser), tmp_path / "heads.json"
    other = {"path": "runs/other", "bundle": "other", "heads": []}
    roles = read_roles(heads_file(file, reverser, other, {}), whole)
    assert [list(each) for each in roles.of.values()] == [
        [],
        ["nsubj"],
        ["one back"],
        ["one back", "nsubj"],
        ["nsubj"],
        [],
    ]
    found = prune(reverser, tmp_path / "run", keep=1, kinds=["cross"], method="random", roles=file)
    (left,) = found.heads["decoder.layers.0.cross_attention"]["kept"]
    values = json.loads((tmp_path / "run" / "pruning.json").read_text())
    assert [each["roles"] for each in values["heads"].values()] == [
        [[], ["nsubj"]],
        [["one back"], ["one back", "nsubj"]],
        [["nsubj"], []],
    ]
    syntactic, without = (3, 1) if left == 0 else (2, 2)
    assert values["survivors"] == {
        "positional": {"before": 2, "after": 2},
        "syntactic": {"before": 3, "after": syntactic},
        "without a role": {"before": 2, "after": without},
    }
    told = f"survived: 2 of 2 positional, {syntactic} of 3 syntactic, {without} of 2 without a role\n"
    assert told in found.to_text() and found.roles_from == str(file)
    page = (tmp_path / "run" / "report.html").read_text()
    gone = ["0: nsubj", "1: none"][1 - left]
    assert "<h2>Who survived</h2>" in page and f"<td>{gone}</td>" in page
    assert "<td>0: one back; 1: one back, nsubj</td>" in page
    assert read_roles(heads_file(file, reverser, {"path": f"{reverser}/bundle"}), runs.load(reverser / "bundle")).of
    assert read_roles(heads_file(file, reverser, {"path": "elsewhere/run"}), whole).of
    remedy = r"Make it with `heedful heads .* --json FILE`, or leave out `--roles`"
    for bundles, message in (
        ([other], r"heads\.json: of other models than `run`, namely `other`\."),
        ([other, {**other, "bundle": "more"}], r"of other models than `run`, namely `other`, `more`\."),
        ([{"heads": []}], r"heads\.json: it tells of 0 heads that are not the 6 of `run`\."),
        ([], r"heads\.json: not what `heedful heads --json FILE` writes\."),
    ):
        with pytest.raises(ConfigError, match=f"{message} {remedy}"):
            prune(reverser, tmp_path / "out", keep=1, roles=heads_file(file, reverser, *bundles))
    file.write_text("[]")
    with pytest.raises(ConfigError, match=r"heads\.json: not what `heedful heads --json FILE` writes"):
        prune(reverser, tmp_path / "out", keep=1, roles=file)
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read: No such file"):
        prune(reverser, tmp_path / "out", keep=1, roles=tmp_path / "none.json")
    assert not (tmp_path / "out").exists()


def test_the_bundle_before_fine_tuning_is_kept(pruned: tuple[Path, runs.Pruning]) -> None:
    path, found = pruned
    scores = runs.load(path / "removed").evaluate("dev").scores()
    assert scores == pytest.approx(found.scores["after removal"], rel=1e-4)
    assert not (path / "selection").exists()


def test_a_pruned_run_is_resumed_tuned_and_pruned_again(pruned: tuple[Path, runs.Pruning], tmp_path: Path) -> None:
    shutil.copytree(pruned[0], tmp_path / "copy")
    steps = runs.resume(tmp_path / "copy", settings=["training.max_steps=51"], reporter=SilentReporter()).num_steps
    assert steps == 51
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


def test_as_few_heads_as_a_loss_allows(reverser: Path, tmp_path: Path) -> None:
    wish = {"max_loss": 60.0, "max_steps": 20, "settings": ["training.metric=cer"]}
    found = prune(reverser, tmp_path / "run", method="random", **wish)
    assert found.metric == "cer" and found.num_heads[1] < 6
    assert found.is_goal_met and found.lost <= 60
    assert found.lost == pytest.approx(found.scores[found.held]["cer"] - found.scores["before"]["cer"])
    assert found.goal is not None and found.goal.startswith("goal met: ") and found.goal in found.to_text()
    with pytest.raises(TrainingError, match=r"No head could be removed at a loss of at most 0 points of loss"):
        prune(reverser, tmp_path / "none", max_loss=0.0, method="random", max_steps=2)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("number", "chosen", "shares"),
    [(1, [0], [1]), (2, [0, 1], [1, 1]), (3, [0, 1, 2], [2, 1, 1]), (7, [0, 3, 6], [2, 1, 1])],
)
def test_tries_share_the_minutes(number: int, chosen: list[int], shares: list[int], reverser: Path) -> None:
    plan = make_plan(Wish(max_loss=1.0, max_minutes=10.0), open_bundle(reverser), None, ())
    candidates = fakes(reverser, number)
    tries = share_tuning(plan.tuning, candidates)
    assert [candidates.index(candidate) for candidate, _ in tries] == chosen
    assert plan.selection.training.max_minutes is not None and plan.tuning.training.max_minutes is not None
    rest = 10 - plan.selection.training.max_minutes
    parts = [config.training.max_minutes for _, config in tries]
    assert parts == pytest.approx([each * rest / sum(shares) for each in shares])
    assert [config.training.validate_minutes for _, config in tries] == pytest.approx([each / 4 for each in parts])


@pytest.mark.parametrize("total", [2, 3, 5, 41])
def test_tries_share_the_updates(total: int, reverser: Path) -> None:
    plan = make_plan(Wish(max_loss=1.0, max_steps=total), open_bundle(reverser), None, ())
    for number in (1, 2, 3, 7):
        candidates = fakes(reverser, number)
        tries = share_tuning(plan.tuning, candidates)
        parts = [config.training.max_steps or 0 for _, config in tries]
        assert min(parts) > 0 and (plan.selection.training.max_steps or 0) + sum(parts) == total
        assert len(tries) == min(number, 3, plan.tuning.training.max_steps or 0)
        assert tries[-1][0] is candidates[-1] and (len(tries) == 1 or tries[0][0] is candidates[0])


def fakes(reverser: Path, number: int) -> list[Candidate]:
    """Return so many smaller models, of which nothing is there but their order."""
    evaluation = runs.load(reverser).evaluate("dev")
    return [Candidate(Path(str(each)), {}, evaluation) for each in range(number)]


def test_a_goal_that_is_not_met_is_told_and_takes_no_longer(
    reverser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counter(Listener):
        number = 0

        def updated(self, update: UpdateRecord) -> None:
            self.number += 1

    for room in (pruning_run, pruning_report):
        monkeypatch.setattr(room, "points_lost", lambda *facts: 999.5)
    counter, out = Counter(), tmp_path / "run"
    wish = {"max_loss": 999.0, "method": "random", "settings": ["training.metric=cer"], "max_steps": 20}
    found = prune(reverser, out, reporter=counter, **wish)
    assert counter.number == 20
    lost = [each for each in counter.notes if each.startswith("Fine-tuned, the model with")]
    numbers = [int(each.split(" ")[4]) for each in lost]
    assert len(numbers) == 3 and numbers == sorted(numbers) and found.num_heads == (6, numbers[-1])
    assert counter.notes[-1] == "The goal is not met. Try more `--max-minutes`, or a larger `--max-loss`."
    values = json.loads((out / "pruning.json").read_text())
    assert (values["is_goal_met"], values["lost"], values["max_loss"]) == (False, 999.5, 999.0)
    told = "goal not met: 999.5 points of cer lost on dev, at most 999 allowed"
    assert told in found.to_text() and told in (out / "report.html").read_text()
    assert sum(site.num_heads for site in runs.load(out).model.attention_sites()) == numbers[-1]
    assert list(found.scores) == ["before", "gated", "after removal", "after fine-tuning"]
    assert found.scores["gated"] == pytest.approx(found.scores["after removal"], rel=1e-4)  # of the one that is kept


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
    (tmp_path / "killed" / "selection").mkdir(parents=True)
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


def test_dropout_is_lowered_wherever_it_is_and_given_back() -> None:
    model = {"kind": "classifier", "dropout": 0.5, "encoder": {"dropout": 0.3, "word_dropout": 0, "num_layers": 2}}
    lower = {"kind": "classifier", "dropout": 0.25, "encoder": {"dropout": 0.15, "word_dropout": 0, "num_layers": 2}}
    assert scale_dropout(model, 0.5) == lower
    pruned = {**lower, "encoder": {**lower["encoder"], "num_layers": 1}}
    assert take_dropout(pruned, model) == {**model, "encoder": {**model["encoder"], "num_layers": 1}}


def test_a_first_bundle_is_pruned_at_half_its_dropout_and_one_from_another_at_its_own(
    reverser: Path, pruned: tuple[Path, runs.Pruning], tmp_path: Path
) -> None:
    config = {**reversal(tmp_path, max_steps=1), "init_from": str(pruned[0])}
    del config["model"], config["text"]
    runs.train(config, tmp_path / "tuned", settings=["model.dropout=0.4"], reporter=SilentReporter())
    config = {**reversal(tmp_path, max_steps=1), "model": {**TINY_TRANSFORMER, "dropout": 0.4}}
    runs.train(config, tmp_path / "first", reporter=SilentReporter())
    for name, rate in (("tuned", 0.4), ("first", 0.2)):
        plan = make_plan(Wish(keep=1), open_bundle(tmp_path / name), None, ())
        for part in (plan.selection, plan.tuning):
            assert part.values()["model"]["dropout"] == rate
            assert part.teacher is not None and part.teacher.path == str(tmp_path / name / "bundle")
    assert plan.scratch is not None and plan.scratch.values()["model"]["dropout"] == 0.4
    assert plan.scratch.teacher is None


def test_the_highest_rate_of_schedules() -> None:
    assert highest_rate(InverseSquareRootSchedule(peak=0.02, warmup_steps=40)) == pytest.approx(0.02)
    assert highest_rate(NoamSchedule(model_dim=64, warmup_steps=100)) == pytest.approx(64**-0.5 * 100**-0.5)


def test_the_card_and_the_digests_are_those_of_the_run(pruned: tuple[Path, runs.Pruning]) -> None:
    metrics = open_bundle(pruned[0]).metrics()
    assert [each.split(" ")[0] for each in metrics["data"]] == ["train.tsv", "test.tsv"]
