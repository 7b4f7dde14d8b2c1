"""Penalties that make hypotheses of different length and coverage comparable, and their bounds."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.search.config import BeamConfig

LEAST_COVERAGE = 1e-6
"""A source position never counts as covered less than this: the logarithm of 0 would rule a hypothesis out."""


@dataclass(frozen=True)
class LengthPenalty:
    """What a log-probability is divided by, for a length in symbols with EOS counted.

    It never falls with the length, and log-probabilities never rise; hence an open hypothesis can at best keep its
    log-probability and be divided by the penalty of the longest output allowed.
    """

    kind: str
    alpha: float

    @classmethod
    def of(cls, config: BeamConfig) -> "LengthPenalty":
        """Return the penalty that a configuration asks for."""
        return cls(config.length_penalty, config.length_alpha)

    def __call__(self, length: Int[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Return the divisor of each length (Wu et al. 2016, equation 14, for ``gnmt``)."""
        exact = length.double()
        if self.kind == "none":
            return torch.ones_like(exact)
        return (exact if self.kind == "average" else (5 + exact) / 6) ** self.alpha


def coverage_penalty(
    coverage: Float[Tensor, "R S"], source_lengths: Int[Tensor, " R"], beta: float
) -> Float[Tensor, " R"]:
    """Return ``beta x sum over source positions of log(min(coverage, 1))`` (Wu et al. 2016, equation 14): 0 or less.

    Args:
        coverage: attention that each source position got, summed over the target's positions.
        source_lengths: real source positions of each row; the others do not count.
        beta: the penalty's weight.
    """
    is_real = torch.arange(coverage.shape[1], device=coverage.device) < source_lengths[:, None]
    logs = coverage.double().clamp(LEAST_COVERAGE, 1).log()
    return beta * torch.where(is_real, logs, 0.0).sum(dim=1)
