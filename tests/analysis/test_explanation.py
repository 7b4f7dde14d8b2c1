"""Measures by hand; a model under another's weights; an adversary's loss; what is concluded from figures."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.analysis.test_reading import task_of

from heedful.analysis.explanation import (
    Imposed,
    divergence,
    jensen_shannon,
    listen,
    only_attention,
    read_outputs,
    total_variation,
)
from heedful.analysis.explanation_fitting import OBJECTIVE, AdversarialFitting, GuidedFitting, guided
from heedful.analysis.explanation_report import Difference, Explanation, Trial, adversary_name
from heedful.core.errors import ConfigError
from heedful.core.types import Batch
from heedful.data.batches import LineBatches
from heedful.data.example import Example
from heedful.tasks import Evaluation, Fitting
from heedful.tasks.rows import stack_rows
from heedful.tasks.task import Task

DATA = {"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}}
RECURRENT = {"kind": "recurrent", "embedding_dim": 5, "hidden_dim": 6, "dropout": 0.0}
WORDS = {"kind": "convolutional", "embedding_dim": 5, "filter_widths": [1], "num_filters": 7}
EXAMPLES = [Example(source="ab cab", label="b", line=1), Example(source="c", label="cb", line=2)]


def judge(encoder: dict[str, Any], pooling: str = "attention", seed: int = 1) -> Task:
    model = {"kind": "classifier", "pooling": pooling, "encoder": encoder, "dropout": 0.0}
    task = task_of(model, "classification", data=DATA)
    torch.manual_seed(seed)
    for each in task.model.parameters():
        torch.nn.init.normal_(each, std=0.7)
    return task


@pytest.fixture
def batch() -> Batch:
    task = judge(RECURRENT)
    return stack_rows([task.encode(each) for each in EXAMPLES])


def test_distances_by_hand() -> None:
    one, other = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.25, 0.25, 0.5]])
    torch.testing.assert_close(total_variation(one, other), torch.tensor([0.5]))
    torch.testing.assert_close(divergence(one, other), torch.tensor([math.log(2)]))
    middle = [0.375, 0.375, 0.25]
    expected = (
        sum(a * math.log(a / m) for a, m in zip([0.5, 0.5], middle[:2], strict=True))
        + sum(b * math.log(b / m) for b, m in zip([0.25, 0.25, 0.5], middle, strict=True))
    ) / 2
    torch.testing.assert_close(jensen_shannon(one, other), torch.tensor([expected]))
    apart = torch.tensor([[1.0, 0.0]])
    torch.testing.assert_close(jensen_shannon(apart, 1 - apart), torch.tensor([math.log(2)]))
    assert float(jensen_shannon(one, one)) == 0


def test_uniform_weights_are_mean_pooling(batch: Batch) -> None:
    attentive, mean = judge(RECURRENT), judge(RECURRENT, "mean")
    mean.model.load_state_dict(attentive.model.state_dict(), strict=False)
    uniform = batch.source_keep / batch.source_lengths[:, None]
    tap = Imposed("pooling.weights", uniform[:, None, None])
    torch.testing.assert_close(attentive.model.classify(batch, tap=tap), mean.model.classify(batch))


def test_a_model_guided_by_itself_is_itself_and_else_computes_with_the_guide_s_weights(batch: Batch) -> None:
    words, guide = judge(WORDS, seed=2), judge(RECURRENT, seed=3).model
    alone = words.model.classify(batch)
    with guided(words, words.model):
        torch.testing.assert_close(words.model.classify(batch), alone)
    with guided(words, guide):
        logits = words.model.classify(batch)
        assert read_outputs(words, EXAMPLES).weights is None
    assert not torch.allclose(logits, alone)
    model = words.model
    values = model.encoder(batch)
    _, weights = listen(guide, batch)
    torch.testing.assert_close(logits, model.output((weights[:, None] @ values)[:, 0]))


def test_nothing_is_learnt_by_the_guide(batch: Batch) -> None:
    words, guide = judge(WORDS), judge(RECURRENT).model
    fitting = GuidedFitting(fitting_of(words), guide)
    fitting.loss(batch).total.backward()
    assert all(each.grad is None for each in guide.parameters())
    assert words.model.encoder.embedding.tokens.weight.grad is not None
    assert words.model.pooling.vector.grad is None  # its own weights were not used
    assert set(fitting.validate().scores) == {"loss", "accuracy"}


def fitting_of(task: Task) -> Fitting:
    def save(task: Task, path: Path, evaluation: Evaluation) -> None:
        path.write_text(str(evaluation.scores()))

    return Fitting(task, LineBatches.__new__(LineBatches), EXAMPLES, save)


def test_the_adversary_s_loss(batch: Batch, tmp_path: Path) -> None:
    base, other = judge(RECURRENT, seed=4), judge(RECURRENT, seed=5)
    same = AdversarialFitting(fitting_of(base), base.model, 0.3).loss(batch)
    assert float(same.total.detach()) == pytest.approx(0, abs=1e-6) and float(same.count) == 2
    fitting = AdversarialFitting(fitting_of(other), base.model, 0.3)
    (logits, weights), (base_logits, base_weights) = listen(other.model, batch), listen(base.model, batch)
    expected = [
        float(total_variation(logits.softmax(-1)[row], base_logits.softmax(-1)[row]).detach())
        - 0.3 * float(divergence(weights[row], base_weights[row]).detach())
        for row in range(2)
    ]
    found = fitting.loss(batch)
    assert float(found.total.detach()) == pytest.approx(sum(expected), abs=1e-6)
    found.total.backward()
    assert other.model.pooling.vector.grad is not None
    assert all(each.grad is None for each in base.model.parameters())
    scores = fitting.validate().scores
    assert scores[OBJECTIVE] == pytest.approx(sum(expected) / 2, abs=1e-6)
    assert fitting.is_better(OBJECTIVE, 0.1, 0.2) and fitting.is_better("accuracy", 2.0, 1.0)
    fitting.save_bundle(tmp_path / "bundle", scores=scores)
    assert "accuracy" in (tmp_path / "bundle").read_text()


def test_padding_has_no_part_in_the_distances() -> None:
    base, other = judge(RECURRENT, seed=4), judge(RECURRENT, seed=5)
    ours, theirs = read_outputs(other, EXAMPLES), read_outputs(base, EXAMPLES)
    assert [len(each) for each in ours.weights] == [7, 2]
    alone = [read_outputs(other, EXAMPLES[place : place + 1]) for place in range(2)]
    for place, each in enumerate(alone):
        torch.testing.assert_close(each.weights[0], ours.weights[place])
        torch.testing.assert_close(each.probabilities[0], ours.probabilities[place])
    outputs, weights = ours.differ(theirs)
    assert 0 < outputs < 1 and 0 < weights < math.log(2)
    assert ours.differ(ours) == (0, 0)
    assert 0 <= ours.score <= 100


def test_a_model_without_one_attention_is_told() -> None:
    with pytest.raises(ConfigError, match="whose one attention pools"):
        only_attention(judge(RECURRENT, "max").model)


def test_a_difference_with_its_interval_by_hand() -> None:
    # Variances 1 and 4, three values each: standard error sqrt(5/3), Welch's degrees of freedom 2.94, so 4.30 of them.
    found = Difference.between([1.0, 2.0, 3.0], [4.0, 6.0, 8.0])
    assert (found.value, round(found.high - found.value, 3)) == (-4, round(4.30 * math.sqrt(5 / 3), 3))
    assert Difference.between([1.0, 1.0], [0.0, 0.0]) == Difference(1.0, 1.0, 1.0)


def checks(*, guided_score: float, adversary: float) -> Explanation:
    trials = []
    for seed in (1, 2, 3):
        apart = (None, None) if seed == 1 else (0.1, 0.05)
        trials += [
            Trial(f"attention-{seed}", 80.0 + seed, *apart),
            Trial(f"uniform-{seed}", 80.5 + seed, 0.12),
            Trial(f"words-{seed}", 78.0 + seed / 10, 0.2, 0.1),
            Trial(f"words-uniform-{seed}", 77.0 + seed / 10, 0.2),
            Trial(f"words-guided-{seed}", guided_score + seed / 10, 0.2),
        ]
    trials += [
        Trial(adversary_name(0.00001), 81.0, 0.08, adversary),
        Trial(adversary_name(0.5), 70.0, 0.4, 0.6),
        Trial("words-guided-by-adversary-0.5", 60.0, 0.3),
    ]
    return Explanation("accuracy", 100, tuple(trials))


def test_what_is_concluded() -> None:
    found = checks(guided_score=79.0, adversary=0.4)
    assert found.furthest().name == "adversary-0.5" and found.best_adversary().name == "adversary-0.00001"
    uniform, seeds, words, adversary = found.conclusions()
    assert "-0.50" in uniform and "no more than chance" in uniform
    assert "weights differ by 0.050 nats" in seeds and "outputs by 0.100" in seeds
    assert "+2.00" in words and "more than chance" in words
    assert "0.400 nats away (seeds: 0.050): other weights go with the same outputs" in adversary
    assert "much alike" in checks(guided_score=79.0, adversary=0.06).conclusions()[3]
    assert "a loss" in checks(guided_score=70.0, adversary=0.06).conclusions()[2]
    none = Explanation("accuracy", 9, tuple(each for each in found.trials if each.name != "adversary-0.00001"))
    assert "cannot be moved at will" in none.conclusions()[3]
    text = found.to_text().split("\n")
    assert text[1].split() == ["attention,", "as", "trained", "82.00", "±1.00", "0.100", "0.050"]
    assert any(line.startswith("words alone, an adversary's weights") for line in text)
    assert found.to_values()["adversary"] == "adversary-0.00001"


def test_examples_of_two_files_that_share_a_line_number_are_told_apart() -> None:
    task = judge(RECURRENT)
    twins = [Example(source="ab cab", label="b", line=2), Example(source="c", label="cb", line=2)]
    found, expected = read_outputs(task, twins), read_outputs(task, EXAMPLES)
    torch.testing.assert_close(found.probabilities, expected.probabilities)
    assert [len(each) for each in found.weights] == [len(each) for each in expected.weights] == [7, 2]
