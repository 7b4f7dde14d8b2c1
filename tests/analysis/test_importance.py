"""What heads are worth: gradients, relevance and silence, each held against another way to find it."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests.analysis.heads_samples import SIZES, SOURCES, TARGETS, task_of
from tests.analysis.test_reading import spelled_otherwise
from torch import Tensor, nn

from heedful.analysis import importance
from heedful.analysis.importance import Importance, weigh_heads
from heedful.analysis.relevance import LinearAttention, linearised
from heedful.attention.tap import Gates
from heedful.core.errors import RequestError
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.pruning import reduce_task
from heedful.tasks import Task
from heedful.tasks.rows import Row

PAIRS = list(zip(SOURCES, TARGETS, strict=True))
GREEDY = {"search": {"kind": "greedy", "max_length": 7}}
MODELS: dict[str, dict[str, Any]] = {
    "post-norm": {**SIZES, "kind": "transformer", "encoder_layers": 2, "decoder_layers": 1},
    "pre-norm and gates": {**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1, "norm": "pre",
                           "activation": "swiglu"},
    "step by step": {"kind": "recurrent", "embedding_dim": 6, "hidden_dim": 8, "order": "bahdanau",
                     "attention": {"kind": "additive"}},
}  # fmt: skip


@pytest.fixture(scope="module", params=list(MODELS))
def task(request: pytest.FixtureRequest) -> Task:
    return task_of(MODELS[request.param], **GREEDY)


def rows_of(task: Task) -> list[Row]:
    return [task.encode(task.example_of(source, target, line + 1)) for line, (source, target) in enumerate(PAIRS)]


def losses_with(task: Task, gates: dict[str, Tensor]) -> np.ndarray:
    with task.bound(gates=Gates(gates)):
        return importance._losses(task, rows_of(task))


def test_gradients_are_the_slopes_of_the_loss(task: Task) -> None:
    """Half the difference of the losses a little above and below an open gate, in float64."""
    task.model.double()
    try:
        sites = task.model.attention_sites()
        found = importance._gradients(task, sites, rows_of(task))
        step = 1e-5
        for site in sites:
            for head in range(site.num_heads):
                gate = torch.ones(site.num_heads, dtype=torch.float64)
                gate[head] = 1 + step
                above = losses_with(task, {site.path: gate})
                gate[head] = 1 - step
                slope = (above - losses_with(task, {site.path: gate})) / (2 * step)
                np.testing.assert_allclose(found[site.path][:, head], slope, rtol=2e-4, atol=1e-6)
    finally:
        task.model.float()


def test_silence_is_removal() -> None:
    task = task_of(MODELS["post-norm"], **GREEDY)
    site = task.model.attention_sites()[0]
    whole = importance._losses(task, rows_of(task))
    counts = np.array([len(row.target) - 1 for row in rows_of(task)])
    found = weigh_heads(task, PAIRS).heads[site.path]
    for head in range(site.num_heads):
        removed = copy.deepcopy(task)
        kept = [each for each in range(site.num_heads) if each != head]
        removed.model.get_submodule(site.path).keep_heads(kept)
        gained = (importance._losses(removed, rows_of(task)) - whole).sum() / counts.sum()
        assert found[head].loss_gained.value == pytest.approx(gained, abs=1e-6)


def test_figures_fit_together(task: Task) -> None:
    told: list[tuple[int, int]] = []
    found = weigh_heads(task, PAIRS, tell=lambda done, heads: told.append((done, heads)))
    heads = [each for site in found.heads.values() for each in site]
    assert told == [(each, len(heads)) for each in range(1, len(heads) + 1)]
    assert (found.num_lines, found.score) == (3, "BLEU, greedy search")
    for site in found.heads.values():
        assert sum(each.gradient_share**2 for each in site) == pytest.approx(1.0)
        if site[0].relevance is not None:
            assert sum(each.relevance_share for each in site) == pytest.approx(1.0)
    for each in heads:
        assert each.gradient.low <= each.gradient.value <= each.gradient.high
        assert each.loss_gained.low <= each.loss_gained.value <= each.loss_gained.high
    assert all(each.relevance is None for each in heads) == (not task.model.blocks())


def test_without_targets_there_is_no_score(task: Task) -> None:
    found = weigh_heads(task, [(SOURCES[0], TARGETS[0]), (SOURCES[1], None), ("", "")])
    assert (found.score, found.whole) == (None, None)
    assert all(each.score_lost is None for site in found.heads.values() for each in site)


def test_relevance_is_neither_lost_nor_made() -> None:
    """Without biases all that reaches the highest logit came out of the embeddings (Bach et al. 2015, equation 2)."""
    for name in ("post-norm", "pre-norm and gates"):
        task = task_of(MODELS[name], **GREEDY)
        model = task.model.double().eval()
        with torch.no_grad():
            for key, weight in model.named_parameters():
                if key.endswith("bias") or "_bias" in key:
                    weight.zero_()
                elif weight.ndim == 1:
                    weight.uniform_(0.5, 1.5)
        read: list[Tensor] = []

        def keep(module: nn.Module, inputs: Any, output: Tensor, read: list[Tensor] = read) -> Tensor:
            leaf = output.detach().requires_grad_()
            read.append(leaf)
            return leaf

        hooks = [each.register_forward_hook(keep) for each in (model.source_embedding, model.target_embedding)]
        with torch.enable_grad(), linearised(model), task.bound(tap=LinearAttention()):
            logits = importance._highest_logits(task.model, task.stack(rows_of(task)))
            gradients = torch.autograd.grad(logits.sum(), read)
        for each in hooks:
            each.remove()
        given = sum(float((leaf.detach() * gradient).sum()) for leaf, gradient in zip(read, gradients, strict=True))
        assert given == pytest.approx(float(logits.sum().detach()), rel=1e-9)
        assert abs(given) > 0.1


def test_the_rules_change_no_output() -> None:
    for name in ("post-norm", "pre-norm and gates"):
        task = task_of({**MODELS[name], **({"activation": "gelu"} if name == "post-norm" else {})}, **GREEDY)
        task.model.eval()
        batch = task.stack(rows_of(task))
        before = importance._highest_logits(task.model, batch)
        with linearised(task.model):
            torch.testing.assert_close(importance._highest_logits(task.model, batch), before)
        assert not any(each._forward_hooks for each in task.model.modules())


def test_relevance_of_a_linear_model_is_what_each_head_adds() -> None:
    """Where nothing follows an attention but the output, a head's relevance is its part of the logit."""
    task = task_of({**MODELS["pre-norm and gates"], "activation": "relu"}, **GREEDY)
    model = task.model.eval()
    block = model.decoder.blocks()[0]
    with torch.no_grad():
        block.feed_forward.outer.weight.zero_()
        model.decoder.norm = nn.Identity()
    site = next(each for each in model.attention_sites() if each.kind == "cross")
    rows = rows_of(task)[:1]
    found = importance._relevances(task, model.attention_sites(), rows)[site.path][0]
    batch = task.stack(rows)
    with torch.no_grad():
        logits = model.output(model.decode(model.encode(batch), batch.target_input))[0]
        best = logits.argmax(-1, keepdim=True)
        for head in range(site.num_heads):
            with importance.silenced(task, site, head):
                silent = task.model.output(task.model.decode(task.model.encode(batch), batch.target_input))[0]
            assert found[head] == pytest.approx(float((logits - silent).gather(1, best).sum()), abs=1e-5)


def test_a_classifier_and_a_language_model() -> None:
    labelled = {"data": {"train": {"kind": "tsv", "path": "x", "source": "s", "label": "t"}}}
    encoder = {"kind": "transformer", "model_dim": 12, "num_heads": 3, "inner_dim": 10, "num_layers": 1}
    judge = task_of({"kind": "classifier", "pooling": "attention", "encoder": encoder}, "classification", **labelled)
    found = weigh_heads(judge, [(SOURCES[0], "b"), (SOURCES[1], "c"), (SOURCES[2], "b")])
    assert found.score == "accuracy" and found.whole in (0, 100 / 3, 200 / 3, 100)
    assert set(found.heads) == {each.path for each in judge.model.attention_sites()}
    writer = task_of({**SIZES, "kind": "transformer_language_model", "num_layers": 1}, "language_modelling")
    written: Importance = weigh_heads(writer, [(None, text) for text in TARGETS])
    assert written.score is None
    deaf = task_of({"kind": "classifier", "pooling": "max"}, "classification", **labelled)
    with pytest.raises(RequestError, match="no head"):
        weigh_heads(deaf, [(SOURCES[0], "b")])
    with pytest.raises(RequestError, match="no line"):
        weigh_heads(judge, [("", "b")])


def test_an_attention_whose_heads_were_all_removed_is_left_out() -> None:
    task = task_of({**SIZES, "kind": "transformer", "encoder_layers": 2, "decoder_layers": 1}, **GREEDY)
    first, second, *_ = (each.path for each in task.model.attention_sites())
    found = weigh_heads(reduce_task(task, {first: (), second: (0, 2)}), PAIRS)
    assert first not in found.heads and len(found.heads[second]) == 2
    assert all(each.gradient.value > 0 for site in found.heads.values() for each in site)
    assert all(each.relevance is not None for site in found.heads.values() for each in site)


def test_an_answer_of_its_own_is_weighed_as_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of({**SIZES, "kind": "transformer", "encoder_layers": 1, "decoder_layers": 1}, kind="character")
    ids = spelled_otherwise(task, monkeypatch)
    (row, given) = importance._rows(task, [("the cat", None), ("", None), ("a dog", "ein"), ("a dog", " ")])
    assert list(row.target) == [BOS_ID, *ids, EOS_ID] and (row.line, given.line) == (0, 2)
