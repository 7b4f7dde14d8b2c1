import pytest
import torch
from tests.pruning.models import MODELS, make_task

from heedful.analysis import record
from heedful.analysis.heads import Line, survey_heads
from heedful.attention.tap import Gates
from heedful.core.types import Batch
from heedful.pruning import find_heads, rank_by_confidence, rank_by_gradient, unit_importance
from heedful.tasks import Task


def loss_under(task: Task, batch: Batch, gates: Gates) -> float:
    with task.bound(gates=gates), torch.no_grad():
        return float(task.loss(batch, label_smoothing=0.0).total)


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_of_a_gate_is_what_a_small_step_changes(name: str) -> None:
    task, _, batch = make_task(name)
    task.model.double()
    heads = find_heads(task.model)
    rows = [batch.select(torch.tensor([row])) for row in range(3)]
    found = rank_by_gradient(task, heads, [batch.select(torch.tensor([0, 1, 2]))], torch.ones(len(heads)))
    by_hand = torch.zeros(len(heads), dtype=torch.float64)
    for head in range(len(heads)):
        step = torch.zeros(len(heads), dtype=torch.float64)
        step[head] = 1e-6
        for row in rows:
            up, down = (loss_under(task, row, heads.gates(1 + sign * step)) for sign in (1, -1))
            by_hand[head] += abs(up - down) / 2e-6
    expected = torch.cat([each / each.norm() for each in heads.split(by_hand.float()).values()])
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=0)
    assert all(each.norm().item() == pytest.approx(1, abs=1e-5) for each in heads.split(found).values())


def test_ranking_looks_at_the_model_as_it_is_pruned_so_far_and_leaves_it_as_it_was() -> None:
    task, _, batch = make_task("transformer")
    heads = find_heads(task.model)
    is_open = torch.ones(len(heads))
    task.model.train()
    before = rank_by_gradient(task, heads, [batch], is_open)
    is_open[4] = 0.0
    after = rank_by_gradient(task, heads, [batch], is_open)
    assert after[4] == 0 and (before - after).abs().max() > 1e-3
    assert task.model.training
    assert all(each.grad is None for each in task.model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_confidence_is_the_mean_largest_weight_between_words(name: str) -> None:
    task, examples, batch = make_task(name)
    heads = find_heads(task.model)
    found = heads.split(rank_by_confidence(task, heads, [batch, batch], torch.ones(len(heads))))
    recording = record(task.model, batch)
    sums = {path: torch.zeros(3) for path in found}
    count = dict.fromkeys(found, 0)
    for row in range(len(batch)):
        for each in recording.maps(row):
            if each.site.path in found:
                weights = each.weights[:, 1:, 1:] if each.site.kind == "decoder" else each.weights[:, :-1, :-1]
                sums[each.site.path] += weights.amax(-1).sum(-1)
                count[each.site.path] += weights.shape[1]
    for path, total in sums.items():
        torch.testing.assert_close(found[path], total / count[path])
    lines = [Line(each.source, each.label or each.target) for each in examples]
    for card in survey_heads(task, lines):
        if card.site in found:
            assert card.confidence.value == pytest.approx(float(found[card.site][card.head]), abs=1e-5)


def test_a_unit_is_worth_what_its_gate_moves() -> None:
    task, _, batch = make_task("transformer")
    task.model.double()
    found = unit_importance(task, [batch])
    weight = task.model.blocks()["decoder.layers.1"].feed_forward.outer.weight
    losses = []
    for factor in (1 + 1e-6, 1 - 1e-6):
        with torch.no_grad():
            kept = weight[:, 5].clone()
            weight[:, 5] *= factor
            loss = task.loss(batch, label_smoothing=0.0)
            losses.append(float(loss.total / loss.count))
            weight[:, 5] = kept
    assert found["decoder.layers.1"][5].item() == pytest.approx(abs(losses[0] - losses[1]) / 2e-6, rel=1e-3)
    assert found.keys() == task.model.blocks().keys()
