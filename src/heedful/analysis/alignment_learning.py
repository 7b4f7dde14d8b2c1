"""Learning which words of two languages translate each other, from pairs of lines and a model's attention between them.

Rounds of expectation and maximisation. In the first ones every jump is equally likely, which makes the chain model 1 of
Brown et al. (1993) with attention for a prior; then jumps are learnt too. What a round learns of the lexicon are the
links that both directions expect, their probabilities multiplied (Liang et al. 2006, section 3).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.alignment_chain import NUM_JUMPS
from heedful.analysis.alignment_lexicon import Lexicon, Vocabulary
from heedful.analysis.alignment_model import AlignmentModel, Line, LineBatch

MAX_WORDS = 100
"""Lines with more words on one side teach little and cost much."""

EVEN_ROUNDS = 3
JUMPING_ROUNDS = 3
NUM_ROUNDS = EVEN_ROUNDS + JUMPING_ROUNDS

_RAREST_JUMP = 1e-6
_LEAST_KEPT = 1e-4
"""Pairs of words less probable than this in both directions are not kept."""


def learn(lines: Sequence[Line], *, tell: Callable[[int], None] = lambda _: None) -> AlignmentModel:
    """Return what pairs of lines teach; lines of more than `MAX_WORDS` words, or of none, are left out.

    Args:
        lines: with attention, best in half precision if they are many.
        tell: hears the number of rounds that are done.

    Raises:
        ValueError: no line is left.
    """
    lines = [each for each in lines if 0 < len(each.source) <= MAX_WORDS and 0 < len(each.target) <= MAX_WORDS]
    if not lines:
        raise ValueError("there is no pair of lines with words on both sides")
    model = _begin(lines)
    batches = list(model.batches(lines))
    model = replace(model, lexicon=_together(batches, len(model.target.words)))
    places = [model.lexicon.find(each.source, each.target).int() for each in batches]
    for number in range(NUM_ROUNDS):
        lexicon, jumps = _round(model, batches, places)
        has_jumps = number >= EVEN_ROUNDS - 1
        model = replace(model, lexicon=lexicon, jumps=jumps if has_jumps else model.jumps)
        tell(number + 1)
    return replace(model, lexicon=model.lexicon.pruned(_LEAST_KEPT))


def _begin(lines: Sequence[Line]) -> AlignmentModel:
    """Return a model that knows the words, and of jumps nothing."""
    source, target = Vocabulary.of(each.source for each in lines), Vocabulary.of(each.target for each in lines)
    nothing = torch.zeros(0)
    lexicon = Lexicon(nothing.long(), nothing, nothing, len(target.words))
    return AlignmentModel(source, target, lexicon, torch.full((2, NUM_JUMPS), 1 / NUM_JUMPS))


def _together(batches: Iterable[LineBatch], num_targets: int) -> Lexicon:
    """Return every pair of words that stand together in a pair of lines, all equally probable."""
    waiting: list[Tensor] = []
    for batch in batches:
        pairs = batch.source[:, None, :] * (num_targets + 1) + batch.target[:, :, None]
        waiting.append(torch.unique(pairs[batch.source_keep[:, None, :] & batch.target_keep[:, :, None]]))
    codes = torch.unique(torch.cat(waiting))
    ones = torch.ones(len(codes))
    return Lexicon(codes, ones, ones, num_targets)


def _round(
    model: AlignmentModel, batches: Sequence[LineBatch], places: Sequence[Int[Tensor, "B T S"]]
) -> tuple[Lexicon, Float[Tensor, "2 X"]]:
    """Return the lexicon and the jumps that make the lines most probable, given what is expected of their links."""
    counts = torch.zeros(len(model.lexicon) + 1, dtype=torch.float64)
    jumps = torch.zeros(2, NUM_JUMPS, dtype=torch.float64)
    for batch, found in zip(batches, places, strict=True):
        both = model.infer(batch, found)
        agreed = both[0].links * both[1].links.mT
        counts.index_add_(0, found.flatten(), agreed.flatten().double())
        jumps += torch.stack([each.jumps for each in both])
    lexicon = model.lexicon
    counts = counts[:-1]
    forward = counts / _totals(lexicon.sources, counts)
    backward = counts / _totals(lexicon.targets, counts)
    shares = (jumps / jumps.sum(1, keepdim=True)).clamp(min=_RAREST_JUMP)
    return replace(lexicon, forward=forward.float(), backward=backward.float()), shares.float()


def _totals(words: Int[Tensor, "X"], counts: Tensor) -> Tensor:
    """Return for each pair of words the counts of all pairs with the same word."""
    return torch.bincount(words, counts).clamp(min=1e-30)[words]
