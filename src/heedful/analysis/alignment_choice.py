"""Which heads of a model align words best, and how their weights become links: chosen on gold alignments."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from heedful.analysis.alignment import SYMMETRISATIONS, Links, Symmetrisation, symmetrise, views
from heedful.analysis.alignment_error import AlignmentErrors, GoldLine, count_errors
from heedful.analysis.word_weights import HeadName, WordWeights
from heedful.core.config import Config
from heedful.models.interfaces import AttentionSite

THRESHOLDS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
_JOINS: tuple[Literal["mean", "views"], ...] = ("mean", "views")
WIDENED = 4
"""How many of the best sets of heads are tried further, with more heads and thresholds."""


class AlignedHead(Config):
    """A head whose weights count.

    Attributes:
        site: path of its attention.
        head: its number there, from 0.
    """

    site: str
    head: int = Field(ge=0)


class JointChoice(Config):
    """How the weights of two models, of the two directions, become links.

    Attributes:
        join: ``mean`` averages both matrices; ``views`` takes from each model the strongest word for each word that it
            writes.
        threshold: a word whose strongest weight is not above it stands alone in that view.
        symmetrisation: how the views from both sides are joined.
    """

    join: Literal["mean", "views"] = "mean"
    threshold: float = Field(0.0, ge=0, lt=1)
    symmetrisation: Symmetrisation = "grow-diag-strict-final"

    def views(self, weights: Float[Tensor, "T S"], reverse: Float[Tensor, "S T"]) -> tuple[Links, Links]:
        """Return the two views of one pair of lines."""
        if self.join == "mean":
            return views((weights + reverse.T) / 2, self.threshold)
        forward, _ = views(weights, self.threshold)
        backward, _ = views(reverse, self.threshold)
        return forward, frozenset((source, target) for target, source in backward)

    def links(self, weights: Float[Tensor, "T S"], reverse: Float[Tensor, "S T"]) -> Links:
        """Return the links of one pair of lines."""
        return symmetrise(*self.views(weights, reverse), self.symmetrisation)


class AlignmentChoice(Config):
    """How weights become links.

    Attributes:
        heads: whose weights are averaged.
        shift: 1 takes the weights of the step that has read the target word, 0 of the step that predicts it.
        threshold: a word whose strongest weight is not above it stands alone in that view.
        symmetrisation: how the views from both sides are joined.
        joint: how they become links together with those of a model of the other direction.
        learnt: with a lexicon learnt over these heads (see `heedful.analysis.alignment_model`), a link is what both
            directions find more probable than this, and threshold and symmetrisation are not asked; absent means that
            nothing was learnt.
    """

    heads: tuple[AlignedHead, ...] = Field(min_length=1)
    shift: Literal[0, 1]
    threshold: float = Field(0.0, ge=0, lt=1)
    symmetrisation: Symmetrisation = "target"
    joint: JointChoice = JointChoice()
    learnt: float | None = Field(default=None, ge=0, lt=1)

    @property
    def names(self) -> tuple[HeadName, ...]:
        """The heads, as weights are looked up by."""
        return tuple(HeadName(each.site, each.head) for each in self.heads)

    def weights(self, line: WordWeights) -> Float[Tensor, "T S"]:
        """Return the weights that count, of one pair of lines."""
        return line.mean(self.names, self.shift)

    def links(self, weights: Float[Tensor, "T S"]) -> Links:
        """Return the links of one pair of lines."""
        return symmetrise(*views(weights, self.threshold), self.symmetrisation)

    def describe(self) -> str:
        """Return a phrase for people."""
        sites = itertools.groupby(sorted(self.names), key=lambda each: each.site)
        heads = "; ".join(f"{site} {', '.join(str(each.head) for each in group)}" for site, group in sites)
        step = "read" if self.shift else "predicted"
        if self.learnt is not None:
            return f"learnt over heads {heads}; as the word is {step}; links above {self.learnt:g}"
        limit = f", above {self.threshold:g}" if self.threshold else ""
        return f"heads {heads}; as the word is {step}{limit}; {self.symmetrisation}"


@dataclass(frozen=True)
class Tried:
    """A way to align, and how well it did."""

    choice: AlignmentChoice
    errors: AlignmentErrors


def default_choice(sites: Sequence[AttentionSite], *, is_recurrent: bool) -> AlignmentChoice:
    """Return what usually does well, for a model that was never measured.

    A Transformer's last layer but one, mean over its heads, as the word is read (Garg et al. 2019, section 4.1; Chen
    et al. 2020, section 4.1); a recurrent model's attention as the word is predicted (Bahdanau et al. 2015).
    """
    site = sites[max(0, len(sites) - 2)]
    return AlignmentChoice(
        heads=_heads_of([site]), shift=0 if is_recurrent else 1, symmetrisation="grow-diag-strict-final"
    )


def head_sets(sites: Sequence[AttentionSite]) -> dict[str, tuple[AlignedHead, ...]]:
    """Return what is tried first, by name: every head, the mean of every layer, the mean of all."""
    sets: dict[str, tuple[AlignedHead, ...]] = {}
    sets |= {f"layer {site.layer} head {each.head}": (each,) for site in sites for each in _heads_of([site])}
    sets |= {f"layer {site.layer}, mean": _heads_of([site]) for site in sites if site.num_heads > 1}
    return sets | ({"all heads, mean": _heads_of(sites)} if len(sites) > 1 else {})


def _heads_of(sites: Iterable[AttentionSite]) -> tuple[AlignedHead, ...]:
    return tuple(AlignedHead(site=site.path, head=head) for site in sites for head in range(site.num_heads))


def choose(lines: Sequence[WordWeights], gold: Sequence[GoldLine], sites: Sequence[AttentionSite]) -> Tried:
    """Return what does best on gold alignments.

    Every head, the mean of every layer and of all heads are tried, both shifts, every symmetrisation. To the best few,
    heads are then added one at a time as long as that helps, and thresholds are tried.

    Args:
        lines: what the model's heads say of the gold texts.
        gold: in the same order.
        sites: the cross-attentions.
    """
    sets = head_sets(sites)
    first = [_try(lines, gold, _settings(heads, (0, 1), (0.0,))) for heads in sets.values()]
    singles = [heads for heads in sets.values() if len(heads) == 1]
    widened = (_widen(lines, gold, each, singles) for each in sorted(first, key=_rank)[:WIDENED])
    return min((choose_for(lines, gold, each.choice.heads) for each in widened), key=_rank)


def choose_joint(
    forward: Sequence[Tensor], reverse: Sequence[Tensor], gold: Sequence[GoldLine]
) -> tuple[JointChoice, AlignmentErrors]:
    """Return how the weights of two models do best together.

    Args:
        forward: of each gold line, ``T S``: those that count in the model that writes its target.
        reverse: ``S T``: those that count in the model that writes its source.
        gold: in the same order.
    """
    best: tuple[JointChoice, AlignmentErrors] | None = None
    for join, threshold in itertools.product(_JOINS, THRESHOLDS):
        setting = JointChoice(join=join, threshold=threshold)
        seen = [setting.views(one, other) for one, other in zip(forward, reverse, strict=True)]
        for how in SYMMETRISATIONS:
            errors = count_errors((symmetrise(*both, how) for both in seen), gold)
            if best is None or errors.aer < best[1].aer:
                best = setting.model_copy(update={"symmetrisation": how}), errors
    assert best is not None
    return best


def choose_by_agreement(lines: Sequence[WordWeights], sites: Sequence[AttentionSite]) -> tuple[AlignmentChoice, float]:
    """Return the head or mean, and the shift, whose two views agree most, and how far they do; no gold is needed.

    A head that aligns has for most words one partner, whichever side is asked (Liang et al. 2006, section 3, train for
    that; Chen et al. 2020, section 4.1, choose a layer by it).

    Args:
        lines: what the model's heads say of some pairs.
        sites: the cross-attentions.
    """
    shifts: tuple[Literal[0, 1], ...] = (0, 1)
    choices = (
        AlignmentChoice(heads=heads, shift=shift, symmetrisation="grow-diag-strict-final")
        for heads in head_sets(sites).values()
        for shift in shifts
    )
    return max(((each, _agreement(each, lines)) for each in choices), key=lambda pair: pair[1])


def _agreement(choice: AlignmentChoice, lines: Sequence[WordWeights]) -> float:
    """Return the share of links that both views have, ``2 |F & B| / (|F| + |B|)``."""
    num_common = num_links = 0
    for line in lines:
        forward, backward = views(choice.weights(line))
        num_common += len(forward & backward)
        num_links += len(forward) + len(backward)
    return 2 * num_common / max(num_links, 1)


def choose_for(lines: Sequence[WordWeights], gold: Sequence[GoldLine], heads: tuple[AlignedHead, ...]) -> Tried:
    """Return the shift, symmetrisation and threshold with which the mean of some heads does best."""
    first = _try(lines, gold, _settings(heads, (0, 1), (0.0,)))
    return min(first, _try(lines, gold, _settings(heads, (first.choice.shift,), THRESHOLDS)), key=_rank)


def _settings(
    heads: tuple[AlignedHead, ...], shifts: Sequence[Literal[0, 1]], thresholds: Sequence[float]
) -> list[AlignmentChoice]:
    return [
        AlignmentChoice(heads=heads, shift=shift, threshold=threshold, symmetrisation=how)
        for shift in shifts
        for threshold in thresholds
        for how in SYMMETRISATIONS
    ]


def _try(lines: Sequence[WordWeights], gold: Sequence[GoldLine], choices: Iterable[AlignmentChoice]) -> Tried:
    """Return the best of some choices; those that look alike and differ in symmetrisation come one after the other."""
    tried: list[Tried] = []
    for _, group in itertools.groupby(choices, key=lambda each: (each.heads, each.shift, each.threshold)):
        alike = list(group)
        seen = [views(alike[0].weights(line), alike[0].threshold) for line in lines]
        tried += [
            Tried(each, count_errors((symmetrise(*both, each.symmetrisation) for both in seen), gold)) for each in alike
        ]
    return min(tried, key=_rank)


def _widen(
    lines: Sequence[WordWeights],
    gold: Sequence[GoldLine],
    best: Tried,
    singles: Iterable[tuple[AlignedHead, ...]],
) -> Tried:
    """Add heads as long as one makes the rest better."""
    while True:
        held = best.choice.heads
        more = [each for each in singles if each[0] not in held]
        wider = (best.choice.model_copy(update={"heads": (*held, *each)}) for each in more)
        winner = min([best, *(_try(lines, gold, [each]) for each in wider)], key=_rank)
        if winner is best:
            return best
        best = winner


def _rank(tried: Tried) -> tuple[float, int]:
    """Order by error rate, then fewer heads."""
    return tried.errors.aer, len(tried.choice.heads)
