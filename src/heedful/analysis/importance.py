"""What each head is worth to its model: by gradient, by relevance, and by what is lost when it is silenced."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.answered import Pair, answer
from heedful.analysis.bootstrap import COVERAGE, RESAMPLES, SEED, Estimate, ratio_intervals
from heedful.analysis.record import Contexts
from heedful.analysis.relevance import LinearAttention, linearised
from heedful.attention.tap import Gates
from heedful.core.errors import RequestError
from heedful.core.types import Batch
from heedful.metrics.bleu_counts import bleu_counts, bleu_of_counts
from heedful.metrics.overlap import BleuConfig
from heedful.models.interfaces import AttentionSite, Classifies, Generates, Model
from heedful.search import GreedyConfig
from heedful.search.config import LimitsConfig
from heedful.tasks.rows import Row, group_rows
from heedful.tasks.task import Task

BATCH_ROWS = 16
"""Rows whose graph of gradients is held at once."""

IMPORTANCE_LINES = 200
"""So many lines of a corpus are read, for each head is silenced on all of them."""


@dataclass(frozen=True)
class HeadImportance:
    """What one head is worth.

    Attributes:
        gradient: mean absolute gradient of a sentence's loss with respect to the head's gate, in nats per target symbol
            (Michel et al. 2019, section 4.1).
        gradient_share: the same divided by the Euclidean norm of those of its layer, as they compare layers.
        loss_gained: nats per target symbol that the loss rises when the head is silent.
        score_lost: points of the score that are lost when the head is silent; None where there is no reference.
        relevance: what the head gave to the highest logit, for each target symbol, in logits; None where no rule is.
        relevance_share: its size as a share of the sizes in its layer (0 to 1).
    """

    gradient: Estimate
    gradient_share: float
    loss_gained: Estimate
    score_lost: Estimate | None
    relevance: Estimate | None
    relevance_share: float | None


@dataclass(frozen=True)
class Importance:
    """What all heads are worth.

    Attributes:
        num_lines: lines that were read.
        score: name of the score that is lost, with how outputs were found; None where there is no reference.
        whole: the score with every head.
        heads: by path of the attention, in order of the heads.
    """

    num_lines: int
    score: str | None
    whole: float | None
    heads: dict[str, tuple[HeadImportance, ...]]


def weigh_heads(
    task: Task, pairs: Sequence[Pair], *, tell: Callable[[int, int], None] = lambda done, heads: None
) -> Importance:
    """Return what each head is worth on some lines.

    Args:
        task: the model with its tokenizers, without dropout.
        pairs: source and target, or label; a target of None stands for the model's own answer, and then no score is.
        tell: called for each silenced head, with how many there are.

    Raises:
        RequestError: no head, or no line with anything in it.
    """
    sites = [each for each in task.model.attention_sites() if each.num_heads]
    if not sites:
        raise RequestError("the model has no head that could be weighed.")
    references = None if any(target is None for _, target in pairs) else [target or "" for _, target in pairs]
    rows = _rows(task, pairs)
    if not rows:
        raise RequestError("there is no line to weigh heads on.")
    counts = _count_targets(rows)
    gradients = _gradients(task, sites, rows)
    relevances = _relevances(task, sites, rows)
    scorer = _scorer(task, [source for source, _ in pairs], references)
    whole_loss, whole_counts = _losses(task, rows), scorer.counts() if scorer else None
    found: dict[str, tuple[HeadImportance, ...]] = {}
    num_heads, done = sum(each.num_heads for each in sites), 0
    for site in sites:
        losses, scores = [], []
        for head in range(site.num_heads):
            with silenced(task, site, head):
                losses.append(_losses(task, rows) - whole_loss)
                if scorer is not None and whole_counts is not None:
                    scores.append(scorer.lost(whole_counts, scorer.counts()))
            done += 1
            tell(done, num_heads)
        found[site.path] = tuple(
            _of_site(gradients[site.path], np.stack(losses, axis=1), relevances.get(site.path), counts, scores)
        )
    whole = None if scorer is None or whole_counts is None else scorer.value(whole_counts)
    return Importance(len(pairs), None if scorer is None else scorer.name, whole, found)


@contextlib.contextmanager
def silenced(task: Task, site: AttentionSite, head: int) -> Iterator[None]:
    """Let one head give nothing within the block."""
    gate_H = torch.ones(site.num_heads, device=task.device)
    gate_H[head] = 0
    with task.bound(gates=Gates({site.path: gate_H})):
        yield


def _rows(task: Task, pairs: Sequence[Pair]) -> list[Row]:
    """Return the lines that have something in them and in their targets."""
    filled = [
        (line, (source, target))
        for line, (source, target) in enumerate(pairs)
        if (source is None or source.strip()) and (target is None or target.strip())
    ]
    return [each.row for each in answer(task, filled) if each.text.strip()]


def _count_targets(rows: Sequence[Row]) -> Float[np.ndarray, " N"]:
    """Return how many symbols each row has to foretell; a label is one."""
    return np.array([1 if row.target is None else len(row.target) - 1 for row in rows], dtype=np.float64)


def _losses(task: Task, rows: Sequence[Row]) -> Float[np.ndarray, " N"]:
    """Return the loss of each row, in nats."""
    found: dict[int, float] = {}
    with task.inference():
        for group in group_rows(rows):
            losses = _row_losses(task.model, task.stack(group))
            found.update(zip((row.line for row in group), losses.tolist(), strict=True))
    return np.array([found[row.line] for row in rows])


def _row_losses(model: Model, batch: Batch) -> Float[Tensor, " B"]:
    """Return the negative log-probability of each row's target."""
    if isinstance(model, Classifies):
        assert batch.labels is not None
        log_probs = model.classify(batch).float().log_softmax(-1)
        return -log_probs.gather(1, batch.labels[:, None])[:, 0]
    assert isinstance(model, Generates)
    log_probs_BTV = model.output.log_probs(model.decode(model.encode(batch), batch.target_input))
    chosen_BT = log_probs_BTV.gather(2, batch.target_output[:, :, None])[:, :, 0]
    return -(chosen_BT * batch.target_keep).sum(1)


def _gradients(task: Task, sites: Sequence[AttentionSite], rows: Sequence[Row]) -> dict[str, Float[np.ndarray, "N H"]]:
    """Return the gradient of each row's loss with respect to each gate at 1.

    It is context times gradient of the context, summed over positions, which a batch gives for all its rows at once.
    In models that go step by step a context is met many times, so there the gates themselves are asked, row by row.
    """
    if task.model.blocks():
        return _by_context(task, sites, rows, lambda batch: _through(task, batch, _row_losses))
    found: dict[str, list[np.ndarray]] = {site.path: [] for site in sites}
    with _graph(task):
        for row in rows:
            gates = {site.path: torch.ones(site.num_heads, device=task.device, requires_grad=True) for site in sites}
            with task.bound(gates=Gates(gates)):
                loss = _row_losses(task.model, task.stack([row])).sum()
            for path, gradient in zip(gates, torch.autograd.grad(loss, list(gates.values())), strict=True):
                found[path].append(gradient.cpu().numpy())
    return {path: np.stack(each) for path, each in found.items()}


def _relevances(task: Task, sites: Sequence[AttentionSite], rows: Sequence[Row]) -> dict[str, Float[np.ndarray, "N H"]]:
    """Return what each head gave to the highest logits of a row; nothing for models whose layers have no rule here."""
    if not task.model.blocks():
        return {}
    with linearised(task.model):
        return _by_context(task, sites, rows, lambda batch: _through(task, batch, _highest_logits, LinearAttention()))


def _highest_logits(model: Model, batch: Batch) -> Float[Tensor, " B"]:
    """Return the highest logit of each row, summed over its target positions."""
    if isinstance(model, Classifies):
        best: Tensor = model.classify(batch).amax(-1)
        return best
    assert isinstance(model, Generates)
    logits_BTV = model.output(model.decode(model.encode(batch), batch.target_input))
    summed: Tensor = (logits_BTV.amax(-1) * batch.target_keep).sum(1)
    return summed


def _through(
    task: Task, batch: Batch, compute: Callable[[Model, Batch], Tensor], tap: Any = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Compute something of each row, and return it with the contexts it came through."""
    if isinstance(tap, LinearAttention):
        with task.bound(tap=tap):
            return compute(task.model, batch), tap.contexts
    watching = Contexts()
    with task.bound(tap=watching):
        return compute(task.model, batch), watching.seen


def _by_context(
    task: Task,
    sites: Sequence[AttentionSite],
    rows: Sequence[Row],
    compute: Callable[[Batch], tuple[Tensor, dict[str, Tensor]]],
) -> dict[str, Float[np.ndarray, "N H"]]:
    """Return context times gradient of what is computed, for each row and head."""
    found = {site.path: np.zeros((len(rows), site.num_heads)) for site in sites}
    places = {row.line: place for place, row in enumerate(rows)}
    with _graph(task):
        for group in group_rows(rows, BATCH_ROWS):
            values, seen = compute(task.stack(group))
            contexts = {path: context for path, context in seen.items() if path in found}
            at = [places[row.line] for row in group]
            gradients = torch.autograd.grad(values.sum(), list(contexts.values()), allow_unused=True)
            for (path, context), gradient in zip(contexts.items(), gradients, strict=True):
                if gradient is not None:
                    found[path][at] = (context * gradient).flatten(2).sum(-1).detach().float().cpu().numpy()
    return found


@contextlib.contextmanager
def _graph(task: Task) -> Iterator[None]:
    """Compute in float32, without dropout, with gradients."""
    was_training = task.model.training
    task.model.eval()
    try:
        with torch.enable_grad():
            yield
    finally:
        task.model.train(was_training)


@dataclass(frozen=True)
class _Scorer:
    """Scores what a task says, whatever heads are silent meanwhile.

    Attributes:
        task: asked with greedy search, for every head is silenced in turn.
        sources: what it is asked.
        references: what is right.
        name: of the score.
        bleu: how it is counted; None counts right answers.
    """

    task: Task
    sources: list[str]
    references: list[str]
    name: str
    bleu: BleuConfig | None

    def counts(self) -> Float[np.ndarray, "N X"]:
        """Return for each line what the score of any choice of lines is made of."""
        search = GreedyConfig(**{key: getattr(self.task.search, key) for key in LimitsConfig.model_fields})
        texts = [each.text for each in self.task.predict(self.sources, search=search)]
        if self.bleu is None:
            return np.array([[float(one == other)] for one, other in zip(texts, self.references, strict=True)])
        return bleu_counts(self.bleu, texts, self.references)

    def value(self, counts: Float[np.ndarray, "N X"]) -> float:
        """Return the score of all lines."""
        return float(self._score(counts.sum(0, keepdims=True), len(counts))[0])

    def lost(self, whole: Float[np.ndarray, "N X"], silent: Float[np.ndarray, "N X"]) -> Estimate:
        """Return how much lower the second is, with its interval: both are scored on the same draws of lines."""
        size = len(whole)
        draws = np.random.default_rng(SEED).multinomial(size, np.full(size, 1 / size), size=RESAMPLES).astype(float)
        lost = self._score(draws @ whole, size) - self._score(draws @ silent, size)
        low, high = np.quantile(lost, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
        return Estimate(self.value(whole) - self.value(silent), float(low), float(high))

    def _score(self, sums: Float[np.ndarray, "R X"], size: int) -> Float[np.ndarray, " R"]:
        return 100 * sums[:, 0] / size if self.bleu is None else bleu_of_counts(sums)


def _scorer(task: Task, sources: Sequence[str | None], references: list[str] | None) -> _Scorer | None:
    """Return how outputs are scored: BLEU as the bundle counts it, or accuracy; None without references or sources."""
    if references is None or any(each is None for each in sources):
        return None
    asked = [each or "" for each in sources]
    if isinstance(task.model, Classifies):
        return _Scorer(task, asked, references, "accuracy", None)
    named = [each for each in getattr(task.config, "metrics", ()) if isinstance(each, BleuConfig)]
    return _Scorer(task, asked, references, "BLEU, greedy search", named[0] if named else BleuConfig())


def _of_site(
    gradients: Float[np.ndarray, "N H"],
    losses: Float[np.ndarray, "N H"],
    relevances: Float[np.ndarray, "N H"] | None,
    counts: Float[np.ndarray, " N"],
    scores: Sequence[Estimate],
) -> Iterator[HeadImportance]:
    """Yield the figures of each head of a site."""
    sizes = np.abs(gradients)
    norm = max(float(np.linalg.norm(sizes.sum(0))), 1e-12)
    by_gradient, by_loss = _estimates(sizes, counts), _estimates(losses, counts)
    by_relevance = None if relevances is None else _estimates(relevances, counts)
    given = 0.0 if by_relevance is None else max(sum(abs(each.value) for each in by_relevance), 1e-12)
    for head in range(sizes.shape[1]):
        yield HeadImportance(
            gradient=by_gradient[head],
            gradient_share=float(sizes[:, head].sum()) / norm,
            loss_gained=by_loss[head],
            score_lost=scores[head] if scores else None,
            relevance=None if by_relevance is None else by_relevance[head],
            relevance_share=None if by_relevance is None else abs(by_relevance[head].value) / given,
        )


def _estimates(sums: Float[np.ndarray, "N H"], counts: Float[np.ndarray, " N"]) -> list[Estimate]:
    low, high = ratio_intervals(sums.astype(np.float64), np.repeat(counts[:, None], sums.shape[1], axis=1))
    values = sums.sum(0) / counts.sum()
    return [Estimate(*map(float, each)) for each in zip(values, low, high, strict=True)]
