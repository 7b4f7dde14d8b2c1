"""Which word of one text each word of its translation was written from: a hidden Markov chain over attention.

A text is written word by word. With probability `UNALIGNED` a word comes from no word of the other text; the chain then
stays where it is. Else it moves from the word k that was used last to a word j, with probability in proportion to
``jumps[j - k] * expected[t, j]``, and that word writes it. Jumps are those of Vogel et al. (1996), the word that comes
from none as in the HMM of Och and Ney (2003). What is new here is ``expected``: what a trained model's attention says
of this very word and line, before the word is known.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

UNALIGNED = 0.2
"""Probability that a word comes from none; fixed, so that rounds of learning cannot make it swallow the rare words."""

FARTHEST = 100
"""Jumps that are farther count as this far."""

NUM_JUMPS = 2 * FARTHEST + 1

RAREST_JUMP = 1e-6
"""Probability that every jump has at least."""


@dataclass(frozen=True)
class Written:
    """A batch of texts that were written from others.

    Attributes:
        probability: of each word, if it was written from each word of the other text.
        alone: of each word, if it was written from none; above 0.
        expected: how much each word of the other text is expected, above 0; 0 beyond its end.
        keep: which words there are.
    """

    probability: Float[Tensor, "B T S"]
    alone: Float[Tensor, "B T"]
    expected: Float[Tensor, "B T S"]
    keep: Bool[Tensor, "B T"]


@dataclass(frozen=True)
class Posterior:
    """What the chain says once the words are known.

    Attributes:
        links: probability that each word was written from each word of the other text; rows sum to 1 at most.
        jumps: how often each jump is expected to have been made, from ``-FARTHEST`` to ``FARTHEST``.
        log_likelihood: of each text.
    """

    links: Float[Tensor, "B T S"]
    jumps: Float[Tensor, " X"]
    log_likelihood: Float[Tensor, " B"]


def infer(written: Written, jumps: Float[Tensor, " X"]) -> Posterior:
    """Run forward and backward over a batch of texts (Rabiner 1989), scaled at every word.

    Args:
        written: the texts.
        jumps: probability of each jump, from ``-FARTHEST`` to ``FARTHEST``; above 0.
    """
    return _Chain(written, jumps).run()


class _Chain:
    """One run over one batch. Places count from 0, before the first word of the other text, to S."""

    def __init__(self, written: Written, jumps: Tensor) -> None:
        num_places = written.expected.shape[2] + 1
        places = torch.arange(num_places)
        self.distances = (places - places[:, None]).clamp(-FARTHEST, FARTHEST) + FARTHEST
        self.jump = jumps[self.distances]  # from a row's place to a column's
        # Nothing is written from the place before the first word.
        expected = torch.nn.functional.pad(written.expected, (1, 0))
        self.keep = written.keep
        self.reach = expected @ self.jump.T  # B T places: what a step from each place is divided by
        self.drawn = (1 - UNALIGNED) * torch.nn.functional.pad(written.probability, (1, 0)) * expected
        self.alone = UNALIGNED * written.alone[:, :, None]
        self.steps = range(written.alone.shape[1])

    def run(self) -> Posterior:
        """Return what the words say."""
        before, moved, scales = self._forward()
        links = torch.zeros_like(self.drawn)
        moves = self.jump.new_zeros(self.jump.shape)
        after = torch.ones_like(before[0])
        for step in reversed(self.steps):
            keep = self.keep[:, step, None]
            links[:, step] = moved[step] * after * keep
            arriving = self.drawn[:, step] * after / scales[step]
            leaving = before[step] / self.reach[:, step]
            moves += (leaving * keep).T @ arriving
            onward = (arriving @ self.jump.T) / self.reach[:, step] + self.alone[:, step] / scales[step] * after
            after = torch.where(keep, onward, after)
        counts = torch.bincount(self.distances.flatten(), (moves * self.jump).flatten(), NUM_JUMPS)
        log_scales = torch.stack([scale[:, 0].log() for scale in scales], 1) * self.keep
        return Posterior(links[:, :, 1:], counts, log_scales.sum(1))

    def _forward(self) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return for each step the places before it, those reached by writing from them, and the scale of both."""
        here = torch.zeros_like(self.drawn[:, 0])
        here[:, 0] = 1
        before, moved, scales = [], [], []
        for step in self.steps:
            before.append(here)
            reached = (here / self.reach[:, step]) @ self.jump * self.drawn[:, step]
            stayed = here * self.alone[:, step]
            scale = (reached + stayed).sum(1, keepdim=True)
            moved.append(reached / scale)
            scales.append(scale)
            here = torch.where(self.keep[:, step, None], (reached + stayed) / scale, here)
        return before, moved, scales
