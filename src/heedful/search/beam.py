"""Beam search over a step function, as small steps: look, expand, finish, stop, go on.

A sentence has `beam_size` places. At each step the best continuations, EOS among them, take the places still free; one
that ends keeps its place for good. The sentence is over when no place is free, or when no open hypothesis can still
beat the `num_best`-th best finished one (`penalties.LengthPenalty` says why that can be known), or is likely to, as
the configuration asks. Of equal continuations that of the better hypothesis wins, so that outcomes never depend on the
other rows.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.symbols import BOS_ID, EOS_ID
from heedful.core.types import Selectable, StepFn
from heedful.search.compaction import rows_to_keep
from heedful.search.config import BeamConfig
from heedful.search.constraints import IMPOSSIBLE, Constraints
from heedful.search.hypothesis import Hypothesis, rank
from heedful.search.largest import largest
from heedful.search.penalties import LengthPenalty, coverage_penalty

LIKELY_GROWTH = 2
"""Symbols, the end among them, that a hypothesis is granted for free where the search stops when that is likely right.

One, the end alone, would spare a little more work and change far more outputs.
"""


@dataclass(frozen=True, kw_only=True)
class Sentences(Selectable):
    """The sentences still in the batch.

    Attributes:
        lines: which sentence of the call each row is.
        free: places not taken by finished hypotheses.
        to_beat: score of the `num_best`-th best finished hypothesis, minus infinity before there is one.
        longest_penalty: length penalty of the longest output allowed.
        source_lengths: real source positions, where the coverage penalty needs them.
    """

    lines: Int[Tensor, " B"]
    free: Int[Tensor, " B"]
    to_beat: Float[Tensor, " B"]
    longest_penalty: Float[Tensor, " B"]
    source_lengths: Int[Tensor, " B"] | None


@dataclass(frozen=True, kw_only=True)
class Open:
    """The hypotheses still open.

    Attributes:
        sentences: what the hypotheses of a sentence have in common.
        log_prob: summed so far; minus infinity at a place without a hypothesis.
        tokens: symbols so far.
        attention: weights of each step so far, where they are kept.
        coverage: attention summed over the steps so far, where a coverage penalty needs it.
    """

    sentences: Sentences
    log_prob: Float[Tensor, "B N"]
    tokens: Int[Tensor, "B N T"]
    attention: Float[Tensor, "B N _ S"] | None = None
    coverage: Float[Tensor, "B N S"] | None = None


class Candidates(NamedTuple):
    """The best continuations of each sentence, best first; minus infinity where there is none."""

    parent: Int[Tensor, "B N"]
    symbol: Int[Tensor, "B N"]
    log_prob: Float[Tensor, "B N"]


@dataclass
class Finished:
    """The hypotheses that ended, for each sentence of the call."""

    config: BeamConfig
    hypotheses: list[list[Hypothesis]] = field(default_factory=list)

    def to_beat(self, line: int) -> float:
        """Return the score of the `num_best`-th best, or minus infinity while there are fewer."""
        scores = sorted((each.score for each in self.hypotheses[line]), reverse=True)
        return scores[self.config.num_best - 1] if len(scores) >= self.config.num_best else IMPOSSIBLE

    def best(self) -> list[list[Hypothesis]]:
        """Return the `num_best` best of each sentence, best first."""
        return [rank(each, self.config.num_best) for each in self.hypotheses]


def beam_search(
    step_fn: StepFn,
    memory: Selectable,
    state: Selectable,
    config: BeamConfig,
    constraints: Constraints,
    *,
    source_lengths: Int[Tensor, " B"] | None = None,
    keep_attention: bool = False,
) -> list[list[Hypothesis]]:
    """Return the `num_best` best hypotheses of each sentence, best first.

    Args:
        step_fn: the model, one step at a time.
        memory: rows are sentences.
        state: before the first step, ONE row for each sentence; the search spreads it over the beam.
        config: the beam.
        constraints: made for these rows.
        source_lengths: real source positions, for the coverage penalty.
        keep_attention: give each hypothesis its attention.

    Raises:
        ConfigError: a coverage penalty, but no source lengths or no attention.
    """
    hypotheses = _begin(constraints, config, source_lengths)
    finished = Finished(config, [[] for _ in range(hypotheses.log_prob.shape[0])])
    ids = torch.full_like(hypotheses.sentences.lines, BOS_ID)[:, None]
    while ids.shape[0]:
        output = step_fn(ids, memory, state)
        is_cut = constraints.apply(output.log_probs, hypotheses.tokens)
        if keep_attention or config.coverage_penalty:
            hypotheses = _look(hypotheses, output.attention, config, keep_attention=keep_attention)
        best = expand(hypotheses.log_prob, output.log_probs, config.beam_size)
        hypotheses, best = _finish(hypotheses, best, is_cut, finished)
        best, kept = _stop(hypotheses, best, config)
        if kept is not None:
            memory, constraints = memory.select(kept), constraints.select(kept)
        hypotheses, state = _go_on(hypotheses, best, output.state, kept)
        ids = hypotheses.tokens[:, :, -1]
    return finished.best()


def _begin(constraints: Constraints, config: BeamConfig, source_lengths: Tensor | None) -> Open:
    """Return one empty hypothesis for each sentence."""
    if config.coverage_penalty and source_lengths is None:
        raise ConfigError("`search.coverage_penalty` needs a source, but this task has none. Set it to 0.")
    limits = constraints.rows.max_length
    zeros = torch.zeros(limits.shape[0], dtype=torch.float64, device=limits.device)
    sentences = Sentences(
        lines=torch.arange(limits.shape[0], device=limits.device),
        free=torch.full_like(limits, config.beam_size),
        to_beat=torch.full_like(zeros, IMPOSSIBLE),
        longest_penalty=LengthPenalty.of(config)(limits + 1),
        source_lengths=source_lengths if config.coverage_penalty else None,
    )
    return Open(sentences=sentences, log_prob=zeros[:, None], tokens=limits.new_empty(limits.shape[0], 1, 0))


def _look(hypotheses: Open, attention: Tensor | None, config: BeamConfig, *, keep_attention: bool) -> Open:
    """Take in the attention of a step."""
    if attention is None:
        raise ConfigError("The search needs attention, but the step function gives none.")
    coverage, kept = hypotheses.coverage, hypotheses.attention
    if config.coverage_penalty:
        coverage = attention if coverage is None else coverage + attention
    if keep_attention:
        step = attention[:, :, None]
        kept = step if kept is None else torch.cat([kept, step], dim=2)
    return replace(hypotheses, coverage=coverage, attention=kept)


def expand(log_prob: Float[Tensor, "B N"], log_probs: Float[Tensor, "B N V"], width: int) -> Candidates:
    """Return the `width` best continuations of each sentence, fewer where there are not so many.

    The best of each hypothesis come first, then the best of these: that spares adding and sorting ``N x V`` numbers.
    """
    depth = min(width, log_probs.shape[2])
    values, symbols = largest(log_probs.flatten(0, 1), depth)
    totals, order = (
        (log_prob[:, :, None] + values.view(*log_prob.shape, depth))
        .flatten(1)
        .sort(dim=1, descending=True, stable=True)
    )
    order = order[:, :width]
    return Candidates(order // depth, symbols.view(totals.shape).gather(1, order), totals[:, :width])


def _finish(
    hypotheses: Open, best: Candidates, is_cut: Bool[Tensor, "B N"] | None, finished: Finished
) -> tuple[Open, Candidates]:
    """Store the continuations that end; only those that go on stay possible among the candidates."""
    sentences = hypotheses.sentences
    places = torch.arange(best.symbol.shape[1], device=best.symbol.device)
    takes_place = (best.log_prob > IMPOSSIBLE) & (places < sentences.free[:, None])
    ends = takes_place & (best.symbol == EOS_ID)
    going_on = best._replace(log_prob=best.log_prob.masked_fill(~takes_place | ends, IMPOSSIBLE))
    if not ends.any():
        return hypotheses, going_on
    _store(hypotheses, best, ends, is_cut, finished)
    to_beat = [finished.to_beat(line) for line in sentences.lines.tolist()]
    sentences = replace(sentences, free=sentences.free - ends.sum(dim=1), to_beat=sentences.to_beat.new_tensor(to_beat))
    return replace(hypotheses, sentences=sentences), going_on


def _store(hypotheses: Open, best: Candidates, ends: Tensor, is_cut: Tensor | None, finished: Finished) -> None:
    """Score the hypotheses that end with this step, and store them."""
    rows, candidates = ends.nonzero(as_tuple=True)
    parents = best.parent[rows, candidates]
    tokens = hypotheses.tokens[rows, parents]
    log_prob = best.log_prob[rows, candidates]
    score = log_prob / LengthPenalty.of(finished.config)(torch.tensor(tokens.shape[1] + 1, device=tokens.device))
    lengths = hypotheses.sentences.source_lengths
    if hypotheses.coverage is not None and lengths is not None:
        coverage = hypotheses.coverage[rows, parents]
        score = score + coverage_penalty(coverage, lengths[rows], finished.config.coverage_penalty)
    complete = [True] * len(rows) if is_cut is None else (~is_cut[rows, parents]).tolist()
    attention = [None] * len(rows) if hypotheses.attention is None else hypotheses.attention[rows, parents].unbind()
    lines = hypotheses.sentences.lines[rows].tolist()
    columns = (tokens.tolist(), score.tolist(), log_prob.tolist(), complete, attention)
    for line, ids, *rest in zip(lines, *columns, strict=True):
        finished.hypotheses[line].append(Hypothesis(tuple(ids), *rest))


def _stop(hypotheses: Open, best: Candidates, config: BeamConfig) -> tuple[Candidates, Tensor | None]:
    """Close the sentences whose outcome is settled.

    Returns:
        The candidates, and the rows to go on with, or None where all do.
    """
    bound = best.log_prob.amax(dim=1)
    if config.early_stop == "never":
        is_over = bound == IMPOSSIBLE
    else:
        is_over = bound / _highest_penalty(hypotheses, config) <= hypotheses.sentences.to_beat
    return best._replace(log_prob=best.log_prob.masked_fill(is_over[:, None], IMPOSSIBLE)), rows_to_keep(is_over)


def _highest_penalty(hypotheses: Open, config: BeamConfig) -> Float[Tensor, " B"]:
    """Return the largest length penalty that the candidates of each sentence are thought to reach."""
    longest = hypotheses.sentences.longest_penalty
    if config.early_stop == "certain":
        return longest
    length = hypotheses.tokens.new_tensor(hypotheses.tokens.shape[2] + 1 + LIKELY_GROWTH)
    return LengthPenalty.of(config)(length).minimum(longest)


def _go_on(hypotheses: Open, best: Candidates, state: Selectable, kept: Tensor | None) -> tuple[Open, Selectable]:
    """Make the candidates of the kept sentences the open hypotheses, each with its parent's past and state."""
    num_rows, width = hypotheses.log_prob.shape
    sentences = hypotheses.sentences
    if kept is None:
        kept = torch.arange(num_rows, device=best.parent.device)
    else:
        sentences, best = sentences.select(kept), Candidates(*(each.index_select(0, kept) for each in best))
    rows = (kept[:, None] * width + best.parent).flatten()

    def follow(past: Tensor) -> Tensor:
        return past.flatten(0, 1).index_select(0, rows).view(*best.parent.shape, *past.shape[2:])

    changed = Open(
        sentences=sentences,
        log_prob=best.log_prob,
        tokens=torch.cat([follow(hypotheses.tokens), best.symbol[:, :, None]], dim=2),
        attention=None if hypotheses.attention is None else follow(hypotheses.attention),
        coverage=None if hypotheses.coverage is None else follow(hypotheses.coverage),
    )
    return changed, state.select(rows)
