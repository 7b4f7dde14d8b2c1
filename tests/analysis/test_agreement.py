"""Accounts of what mattered: each against another way to compute it, on every kind of model."""

import math
from typing import Any

import pytest
import torch
from tests.analysis.test_reading import SIZES, task_of

from heedful.analysis.agreement import (
    METHODS,
    Erasure,
    account,
    explaining_site,
    kendall_tau,
    line_agreement,
)
from heedful.analysis.reading import Reading, read_lines
from heedful.core.errors import RequestError
from heedful.core.symbols import UNK_ID
from heedful.core.types import Batch
from heedful.layers.embedding import InputEmbedding
from heedful.pruning.removal import reduce_task
from heedful.tasks.task import Task

LABELS = {"data": {"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}}}
RECURRENT = {"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 10, "attention": {"kind": "additive"}}
TEXT_RECURRENT = {"kind": "recurrent", "embedding_dim": 5, "hidden_dim": 6}
CASES: dict[str, tuple[dict[str, Any], str, tuple[str | None, str]]] = {
    "transformer": (
        {**SIZES, "kind": "transformer", "encoder_layers": 2, "decoder_layers": 2},
        "translation",
        ("ab cb", "cab"),
    ),
    "luong": (RECURRENT, "translation", ("ab cb", "cab")),
    "bahdanau": ({**RECURRENT, "order": "bahdanau"}, "translation", ("ab cb", "cab")),
    "writer": ({**SIZES, "kind": "transformer_language_model", "num_layers": 2}, "language_modelling", (None, "ab cb")),
    "judge": (
        {"kind": "classifier", "pooling": "attention", "encoder": TEXT_RECURRENT},
        "classification",
        ("ab cb", "cb"),
    ),
    "reader": (
        {"kind": "classifier", "pooling": "mean", "encoder": {**SIZES, "kind": "transformer", "num_layers": 2}},
        "classification",
        ("ab cb", "b"),
    ),
}


def read(case: str) -> tuple[Task, Reading, Batch]:
    model, kind, pair = CASES[case]
    task = task_of(model, kind, **(LABELS if kind == "classification" else {}))
    for each in task.model.parameters():
        torch.nn.init.normal_(each, std=0.4)
    task.model.eval()
    (reading,) = read_lines(task, [pair], pattern="*.[vw]*")
    return task, reading, task.stack([task.encode(task.example_of(*pair, 1))])


@pytest.mark.parametrize("case", list(CASES))
def test_every_method_ranks_what_every_model_reads(case: str) -> None:
    task, reading, batch = read(case)
    with torch.no_grad():
        found = account(task.model, reading, batch)
    num_outputs = 1 if task.labels is not None else len(reading.target_output.ids)
    num_read = len((reading.source or reading.target_input).ids)
    assert set(found.scores) == set(METHODS)
    assert {tuple(each.shape) for each in found.scores.values()} == {(num_outputs, num_read)}
    assert not found.may_rank[:, -1 if reading.source else 0].any()
    for name, each in found.scores.items():
        assert bool(each.isfinite().all()) and float(each[found.may_rank].abs().max()) > 0, name
    assert len(list(line_agreement(found))) == 15


@pytest.mark.parametrize("case", ["transformer", "bahdanau", "judge"])
def test_leaving_out_is_reading_as_unknown(case: str) -> None:
    task, reading, batch = read(case)
    scores = account(task.model, reading, batch).scores["leave-one-out"]
    place = 2
    ids = batch.source.clone()
    ids[0, place] = UNK_ID
    other = Batch(**{**vars(batch), "source": ids})
    torch.testing.assert_close(scores[:, place], answers(task, batch) - answers(task, other), rtol=1e-4, atol=1e-6)


def answers(task: Task, batch: Batch) -> torch.Tensor:
    with torch.no_grad():
        if batch.labels is not None:
            return task.model.classify(batch).log_softmax(-1)[0, batch.labels]
        log_probs = task.model.output.log_probs(task.model.decode(task.model.encode(batch), batch.target_input))
        return log_probs[0].gather(-1, batch.target_output[0][:, None])[:, 0]


def test_silencing_takes_one_weight_and_scales_the_others_up() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])[:, None, None]
    tap = Erasure(frozenset({"a"}), torch.tensor([0, 2]))
    assert tap.wants("a.weights") and not tap.wants("a.scores") and not tap.wants("b.weights")
    expected = [[0, 0.5, 0.5], [2 / 3, 1 / 3, 0]]
    torch.testing.assert_close(tap.visit("a.weights", weights)[:, 0, 0], torch.tensor(expected))
    alone = torch.tensor([[1.0, 0.0, 0.0]])[:, None, None]
    assert not Erasure(frozenset({"a"}), torch.tensor([0])).visit("a.weights", alone).any()


def test_silencing_in_a_pooled_classifier_by_hand() -> None:
    task, reading, batch = read("judge")
    model = task.model
    with torch.no_grad():
        values = model.encoder(batch)[0]
        weights = reading.maps[-1].weights[0, 0].clone()
        before = model.output((weights @ values)[None]).log_softmax(-1)[:, batch.labels]
        weights[1] = 0
        after = model.output((weights / weights.sum() @ values)[None]).log_softmax(-1)[:, batch.labels]
    found = account(model, reading, batch).scores["silencing"][:, 1]
    torch.testing.assert_close(found, (before - after)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", list(CASES))
def test_input_times_gradient_is_the_slope_as_an_input_grows(case: str) -> None:
    task, reading, batch = read(case)
    task.model.double()
    found = account(task.model, reading, batch).scores["gradient"]
    place, step = 1, 1e-4
    is_first = reading.source is not None
    slopes = []
    for factor in (1 + step, 1 - step):
        calls: list[int] = []

        def grow(module: object, given: object, output: torch.Tensor, factor=factor, calls=calls) -> torch.Tensor:
            calls.append(1)
            changed = output.clone()
            if (len(calls) == 1) == is_first or reading.source is None:
                changed[:, place] *= factor
            return changed

        hooks = [each.register_forward_hook(grow) for each in task.model.modules() if isinstance(each, InputEmbedding)]
        slopes.append(answers(task, batch))
        for each in hooks:
            each.remove()
    slope = (slopes[0] - slopes[1]) / (2 * step)
    torch.testing.assert_close(found[:, place].double(), slope.abs(), rtol=1e-3, atol=1e-6)


def test_kendall_by_hand() -> None:
    one = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert kendall_tau(one, one * 2 + 1) == pytest.approx(1) and kendall_tau(one, -one) == pytest.approx(-1)
    # Of six pairs five are in order.
    assert kendall_tau(one, torch.tensor([1.0, 3.0, 2.0, 4.0])) == pytest.approx(4 / 6)
    # One pair tied on one side: five of five others in order, out of sqrt(6 * 5).
    assert kendall_tau(one, torch.tensor([1.0, 2.0, 2.0, 4.0])) == pytest.approx(5 / math.sqrt(30))
    assert math.isnan(kendall_tau(one, torch.ones(4)))


def test_which_attention_is_compared() -> None:
    sites = {case: explaining_site(read(case)[0].model).path for case in CASES}
    assert sites == {
        "transformer": "decoder.layers.1.cross_attention",
        "luong": "decoder.cross_attention",
        "bahdanau": "decoder.cross_attention",
        "writer": "decoder.layers.1.self_attention",
        "judge": "pooling",
        "reader": "encoder.layers.1.self_attention",
    }
    fixed = {"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 10}
    pooled = {"kind": "classifier", "pooling": "max", "encoder": TEXT_RECURRENT}
    for task in (task_of(fixed), task_of(pooled, "classification", **LABELS)):
        with pytest.raises(RequestError, match="no attention from its output to what it reads"):
            explaining_site(task.model)


def test_a_pruned_model_is_compared_by_the_same_kind_of_attention_or_not_at_all() -> None:
    """An encoder-decoder that has heads in its decoder alone is no language model."""
    task = read("transformer")[0]
    paths = [each.path for each in task.model.attention_sites()]
    across = [each for each in paths if each.endswith("cross_attention")]
    last = reduce_task(task, {across[-1]: ()})
    assert explaining_site(last.model).path == across[0]
    others = [each for each in paths if "self_attention" not in each or "encoder" in each]
    with pytest.raises(RequestError, match="every cross head was pruned away"):
        explaining_site(reduce_task(task, dict.fromkeys(others, ())).model)
    writer = read("writer")[0]
    gone = [each.path for each in writer.model.attention_sites()]
    with pytest.raises(RequestError, match="every decoder head was pruned away"):
        explaining_site(reduce_task(writer, dict.fromkeys(gone, ())).model)
