"""Sampling: symbols drawn from the model's distribution, each row from its own stream of random numbers."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.search.config import SamplingConfig
from heedful.search.largest import largest
from heedful.search.walk import Chooser

FIRST_LOOK = 64
"""How many of the most probable symbols are sorted at first to find a nucleus; more only where these do not hold it."""


@dataclass(frozen=True)
class Sampler(Chooser):
    """Draws symbols.

    Attributes:
        num_paths: samples for each line.
        config: temperature, `top_k`, `top_p`.
        draws: a number in [0, 1) for each step of each path, fixed by (seed, line, path): no other row matters.
    """

    num_paths: int
    config: SamplingConfig
    draws: Float[Tensor, "B N T"]

    @classmethod
    def build(
        cls, config: SamplingConfig, lines: list[int], longest: int, device: torch.device, *, seed: int
    ) -> "Sampler":
        """Prepare the draws of a batch.

        Args:
            config: how to draw.
            lines: the number of each row's line in its file or request.
            longest: symbols of the longest output.
            device: where the step function computes.
            seed: of the run.
        """
        draws = [
            [np.random.default_rng((seed, line, path)).random(longest + 1) for path in range(config.num_best)]
            for line in lines
        ]
        shape = (len(lines), config.num_best, longest + 1)
        return cls(
            config.num_best, config, torch.from_numpy(np.asarray(draws, dtype=np.float64).reshape(shape)).to(device)
        )

    def choose(self, log_probs: Float[Tensor, "B N V"], step: int) -> Int[Tensor, "B N"]:
        """Draw a symbol for each path by inverting the cumulative distribution at its number."""
        draws = self.draws[:, :, step, None]
        if self.config.top_k == 0 and self.config.top_p == 1:
            return _invert(torch.softmax(log_probs / self.config.temperature, dim=2), draws)
        probabilities, symbols = nucleus(log_probs, self.config)
        return symbols.gather(2, _invert(probabilities, draws)[:, :, None]).squeeze(2)


def nucleus(
    log_probs: Float[Tensor, "B N V"], config: SamplingConfig
) -> tuple[Float[Tensor, "B N _"], Int[Tensor, "B N _"]]:
    """Return the symbols that may be drawn, most probable first, and their probabilities (0 where ruled out).

    The sum of the probabilities is at most 1: they are not normalised again.
    """
    size = log_probs.shape[2]
    logits = log_probs / config.temperature
    look = min(size, config.top_k or FIRST_LOOK)
    while True:
        values, symbols = (each.view(*logits.shape[:2], look) for each in largest(logits.flatten(0, 1), look))
        if config.top_k:
            probabilities = torch.softmax(values, dim=2)
            break
        probabilities = (values - logits.logsumexp(dim=2, keepdim=True)).exp()
        if look == size or bool((probabilities.sum(dim=2) >= config.top_p).all()):
            break
        look = min(size, look * 8)
    before = probabilities.cumsum(dim=2) - probabilities
    return probabilities.masked_fill(before >= config.top_p, 0), symbols


def _invert(probabilities: Float[Tensor, "B N K"], draws: Float[Tensor, "B N 1"]) -> Int[Tensor, "B N"]:
    """Return the first place at which the cumulative sum passes the draw's share of the total."""
    cumulative = probabilities.double().cumsum(dim=2)
    places = torch.searchsorted(cumulative, draws * cumulative[:, :, -1:], right=True).squeeze(2)
    return places.clamp(max=probabilities.shape[2] - 1)
