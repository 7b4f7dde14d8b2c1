"""What every task promises, held for each entry of the table: a new task is tested before its author writes a test."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.core.config import parse_config
from heedful.core.errors import ConfigError, RequestError
from heedful.data.example import Example
from heedful.tasks import TASKS, Prediction, TargetScore, Task, open_bundle, restore_task, task_class, write_bundle
from heedful.tasks.bundle import CONFIG, METRICS, WEIGHTS
from heedful.tasks.rows import group_rows, stack_rows
from heedful.tasks.weights import save_weights
from heedful.text import Codec, LabelSet

LINES = ["a bad cab", "dab", "bc a cd", "d", "abc dcb", "c a b d", "bad"]
SIZES = {"model_dim": 16, "num_heads": 2, "inner_dim": 24, "dropout": 0.0}
ENCODER_DECODER = {**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1}
PAIRS = {"kind": "tsv", "path": "x", "source": "s", "target": "t"}


@dataclass
class Case:
    """How a task of the table is set up for the contract."""

    values: dict[str, Any]
    example: Callable[[str], Example]


CASES = {
    "translation": Case(
        {"data": {"train": PAIRS}, "model": ENCODER_DECODER, "metrics": ["cer"], "search": {"kind": "greedy"}},
        lambda line: Example(source=line, target=line[::-1]),
    ),
    "classification": Case(
        {
            "data": {"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}},
            "model": {
                "kind": "classifier",
                "encoder": {"kind": "convolutional", "embedding_dim": 8, "num_filters": 5, "filter_widths": [2]},
            },
        },
        lambda line: Example(source=line, label="long" if len(line) > 4 else "short"),
    ),
    "language_modelling": Case(
        {
            "data": {"train": {"kind": "lines", "path": "x"}},
            "model": {**SIZES, "kind": "transformer_language_model", "num_layers": 1},
            "search": {"kind": "greedy", "max_length": 20},
        },
        lambda line: Example(target=line),
    ),
}


def test_every_task_has_a_case() -> None:
    assert CASES.keys() == TASKS.keys()


@pytest.fixture(params=sorted(TASKS))
def case(request: pytest.FixtureRequest) -> tuple[Task, list[Example]]:
    """Make a task of each kind with random weights, and examples for it."""
    chosen = CASES[request.param]
    values = {"task": request.param, "text": {"source": {"kind": "character"}}, **chosen.values}
    config = parse_config(TASKS[request.param].config_class, values)
    examples = [replace(chosen.example(line), line=number) for number, line in enumerate(LINES, start=1)]
    codec = Codec.train(config.text, [(each.source, each.target) for each in examples])
    labels = LabelSet.collect(each.label for each in examples if each.label) if examples[0].label else None
    torch.manual_seed(5)
    return task_class(config)(config, codec, labels), examples


Made = tuple[Task, list[Example]]


def test_a_batch_s_loss_is_the_sum_of_its_rows_losses(case: Made) -> None:
    task, examples = case
    rows = [task.encode(each) for each in examples]
    task.model.eval()
    whole = task.loss(stack_rows(rows))
    alone = [task.loss(stack_rows([row])) for row in rows]
    assert float(whole.count) == sum(float(each.count) for each in alone) > 0
    torch.testing.assert_close(whole.total, sum(each.total for each in alone), rtol=1e-5, atol=1e-4)


def test_a_prediction_does_not_depend_on_its_neighbours(case: Made) -> None:
    task, _ = case
    together = [each.text for each in task.predict(LINES)]
    assert together == [next(task.predict([line])).text for line in LINES]
    backwards = [each.text for each in task.predict(LINES[::-1], max_rows=3, chunk_lines=4)]
    assert backwards[::-1] == together


def test_a_line_for_a_line_and_blank_for_blank(case: Made) -> None:
    task, _ = case
    predictions = list(task.predict(["", "dab", " ", "bad", "\t"]))
    assert [each.line for each in predictions] == [0, 1, 2, 3, 4]
    assert [each.text == "" for each in predictions if not each.source.strip()] == [True] * 3


def test_a_stream_joined_is_the_prediction(case: Made) -> None:
    task, _ = case
    for line in (*LINES[:3], " "):
        assert "".join(task.stream(line)) == next(task.predict([line])).text


def test_a_prefix_is_kept_or_refused(case: Made) -> None:
    task, _ = case
    if task.config.task == "translation":
        assert next(task.predict(["bad"], prefixes=["dac"])).text.startswith("dac")
    else:
        with pytest.raises(RequestError, match=r"A prefix \('dac'\) is for tasks that write a text for a text"):
            next(task.predict(["bad"], prefixes=["dac"]))


def test_lines_before_a_prefix_that_is_refused_are_answered(case: Made) -> None:
    task, _ = case
    found: list[Prediction] = []
    with pytest.raises(RequestError):
        found.extend(task.predict(LINES, prefixes=["", " ", "", "\t", "?!", "", ""]))
    assert found == list(task.predict(LINES[:4]))


def test_pairs_before_one_that_cannot_be_scored_are_scored(case: Made) -> None:
    task, examples = case
    if task.config.task == "language_modelling":
        return  # it takes whatever stands on a line
    pairs = [(each.source, each.label or each.target or "") for each in examples[:3]]
    found: list[TargetScore] = []
    with pytest.raises(RequestError, match="line 4: a source is missing"):
        found.extend(task.score([*pairs, (None, "x"), *pairs]))
    assert found == list(task.score(pairs))


def test_shares_of_words_sum_to_the_whole(case: Made) -> None:
    task, examples = case
    pairs = [(each.source, each.label or each.target or "") for each in examples]
    for score in task.score(pairs):
        assert score.log_prob < 0
        assert sum(each.log_prob for each in score.words) == pytest.approx(score.log_prob, abs=1e-4)


def test_scores_and_held_out_loss_agree(case: Made) -> None:
    task, examples = case
    scores = list(task.score([(each.source, each.label or each.target or "") for each in examples]))
    mean = -sum(each.log_prob for each in scores) / sum(each.num_tokens for each in scores)
    assert task.evaluate(examples, "test").scores()["loss"] == pytest.approx(mean, rel=1e-4)


def test_every_score_has_a_direction(case: Made) -> None:
    task, examples = case
    assert task.evaluate(examples, "test").scores().keys() == task.directions.keys()
    assert task.directions["loss"] is False


def test_a_bundle_brings_everything_back(case: Made, tmp_path: Path) -> None:
    task, _ = case

    def fill(folder: Path) -> None:
        save_weights(task.model, folder / WEIGHTS)
        task.save_text(folder)
        (folder / CONFIG).write_text("")
        (folder / METRICS).write_text("{}")

    write_bundle(tmp_path / "bundle", fill)
    restored = restore_task(task.config, open_bundle(tmp_path / "bundle"))
    for name, tensor in task.model.state_dict().items():
        assert torch.equal(restored.model.state_dict()[name], tensor)
    assert [each.candidates for each in restored.predict(LINES)] == [each.candidates for each in task.predict(LINES)]


def test_rows_go_with_rows_of_like_length(case: Made) -> None:
    task, examples = case
    rows = [task.encode(each) for each in examples]
    groups = list(group_rows(rows, max_rows=3))
    assert sorted(row.line for group in groups for row in group) == list(range(len(LINES)))
    assert max(map(len, groups)) == 3
    lengths = [row.length for group in groups for row in group]
    assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize("name", ["translation", "classification"])
def test_a_metric_is_listed_once(name: str) -> None:
    """Scores are told apart by name, so that the second would take the place of the first."""
    values = {"task": name, "text": {"source": {"kind": "character"}}, **CASES[name].values}
    for metrics in (["bleu", {"name": "bleu", "lowercase": True}], ["chrf", "wer", "wer"]):
        with pytest.raises(ConfigError, match=r"^`metrics` has `(bleu|wer)` 2 times.* Leave one\."):
            parse_config(TASKS[name].config_class, {**values, "metrics": metrics})
    parse_config(TASKS[name].config_class, {**values, "metrics": ["rouge1", "rouge2", "cer", "wer"]})


def test_a_task_is_where_its_model_is(case: Made) -> None:
    task, _ = case
    assert task.device.type == "cpu"
    task.model.to("meta")
    assert task.device.type == "meta"
