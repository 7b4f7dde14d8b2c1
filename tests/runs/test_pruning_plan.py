"""How far and how long is pruned: goals, tries, rates."""

import json
from pathlib import Path

import pytest
from tests.runs.pruning_samples import Listener, prune
from tests.runs.samples import TINY_TRANSFORMER, reversal

from heedful import runs
from heedful.core.errors import TrainingError
from heedful.pruning import Candidate
from heedful.runs import pruning_comparison, pruning_run
from heedful.runs.pruning_plan import Wish, highest_rate, make_plan, scale_dropout, share_tuning, take_dropout
from heedful.tasks.bundle import open_bundle
from heedful.training import SilentReporter
from heedful.training.records import UpdateRecord
from heedful.training.schedule import InverseSquareRootSchedule, NoamSchedule

pytestmark = pytest.mark.usefixtures("quick_measuring")


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

    for room in (pruning_run, pruning_comparison):
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
