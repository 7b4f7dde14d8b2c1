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

from heedful.analysis.alignment_chain import NUM_JUMPS, RAREST_JUMP
from heedful.analysis.alignment_lexicon import Lexicon, Vocabulary
from heedful.analysis.alignment_model import AlignmentModel, Line, LineBatch
from heedful.core.errors import DataError

MAX_WORDS = 100
"""Lines with more words on one side teach little and cost much."""

EVEN_ROUNDS = 3
JUMPING_ROUNDS = 3
NUM_ROUNDS = EVEN_ROUNDS + JUMPING_ROUNDS

_LEAST_KEPT = 1e-3
"""Pairs of words that are expected to have been links less often than this are not kept."""


def learn(lines: Sequence[Line], *, tell: Callable[[int], None] = lambda _: None) -> AlignmentModel:
    """Return what pairs of lines teach; lines of more than `MAX_WORDS` words, or of none, are left out.

    Args:
        lines: with attention, best in half precision if they are many.
        tell: hears the number of rounds that are done.

    Raises:
        DataError: no line is left.
        ArithmeticError: attention that is no number.
    """
    lines = [each for each in lines if teaches(each.source, each.target)]
    if not lines:
        raise DataError(
            f"There is no pair of lines with 1 to {MAX_WORDS} words on both sides, so nothing can be learnt."
        )
    model = _begin(lines)
    batches = list(model.batches(lines))
    model = replace(model, lexicon=_together(batches, len(model.source.words), len(model.target.words)))
    places = [model.lexicon.find(each.source, each.target).int() for each in batches]
    for number in range(NUM_ROUNDS):
        lexicon, jumps = _round(model, batches, places)
        has_jumps = number >= EVEN_ROUNDS - 1
        model = replace(model, lexicon=lexicon, jumps=jumps if has_jumps else model.jumps)
        tell(number + 1)
    return replace(model, lexicon=model.lexicon.pruned(_LEAST_KEPT))


def teaches(source: Sequence[str], target: Sequence[str]) -> bool:
    """Say whether a pair of lines has words on both sides, and not too many."""
    return 0 < len(source) <= MAX_WORDS and 0 < len(target) <= MAX_WORDS


def _begin(lines: Sequence[Line]) -> AlignmentModel:
    """Return a model that knows the words, and of jumps nothing."""
    source, target = Vocabulary.of(each.source for each in lines), Vocabulary.of(each.target for each in lines)
    nothing = torch.zeros(0)
    lexicon = Lexicon(nothing.long(), nothing, len(source.words), len(target.words))
    return AlignmentModel(source, target, lexicon, torch.full((2, NUM_JUMPS), 1 / NUM_JUMPS))


def _together(batches: Iterable[LineBatch], num_sources: int, num_targets: int) -> Lexicon:
    """Return every pair of words that stand together in a pair of lines, none of them a link so far."""
    waiting: list[Tensor] = []
    for batch in batches:
        pairs = batch.source[:, None, :] * (num_targets + 1) + batch.target[:, :, None]
        waiting.append(torch.unique(pairs[batch.source_keep[:, None, :] & batch.target_keep[:, :, None]]))
    codes = torch.unique(torch.cat(waiting))
    return Lexicon(codes, torch.zeros(len(codes)), num_sources, num_targets)


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
    if not bool(jumps.isfinite().all()):
        raise ArithmeticError("attention holds numbers that are not finite")
    shares = (jumps / jumps.sum(1, keepdim=True)).clamp(min=RAREST_JUMP)
    return replace(model.lexicon, counts=counts[:-1].float()), shares.float()
