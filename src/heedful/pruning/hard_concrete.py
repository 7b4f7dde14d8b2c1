"""Hard-concrete gates: factors between 0 and 1 that are exactly 0, or exactly 1, with a probability one can learn.

Louizos, Welling and Kingma, "Learning Sparse Neural Networks through L0 Regularization" (2018): a binary concrete
variable ``s`` of location ``log_alpha`` is stretched from (0, 1) to (`LOW`, `HIGH`) and cut back to [0, 1]. The numbers
are those of their section 4.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

TEMPERATURE = 2 / 3
LOW, HIGH = -0.1, 1.1

OPEN = 4.5
"""Location at which a gate is exactly 1 with a probability of 0.95, and 0.98 in the mean: nearly open."""

_EDGE = TEMPERATURE * math.log(-LOW / HIGH)


def sample(log_alpha: Float[Tensor, " heads"], uniform: Float[Tensor, "*draws heads"]) -> Float[Tensor, "*draws heads"]:
    """Return gates drawn with uniform noise between 0 and 1 (equations 10 and 11)."""
    concrete = torch.sigmoid((uniform.log() - (-uniform).log1p() + log_alpha) / TEMPERATURE)
    return stretch(concrete)


def stretch(concrete: Float[Tensor, "*draws heads"]) -> Float[Tensor, "*draws heads"]:
    """Return what lies between 0 and 1 spread over (`LOW`, `HIGH`) and cut to [0, 1] (equation 11)."""
    return (concrete * (HIGH - LOW) + LOW).clamp(0.0, 1.0)


def open_probability(log_alpha: Float[Tensor, " heads"]) -> Float[Tensor, " heads"]:
    """Return how probable it is that each gate is not 0; their sum is the expected L0 norm (equation 12)."""
    return torch.sigmoid(log_alpha - _EDGE)


def without_noise(log_alpha: Float[Tensor, " heads"]) -> Float[Tensor, " heads"]:
    """Return the gates that are used when nothing is drawn (equation 13)."""
    return stretch(torch.sigmoid(log_alpha))
