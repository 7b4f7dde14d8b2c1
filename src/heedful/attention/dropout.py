"""Dropout (Srivastava et al. 2014) with random bytes instead of Bernoulli draws, which are slow on the CPU."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.core.errors import ConfigError


def _random_keep(size: torch.Size, threshold: int) -> Tensor:
    """Draw a byte for each element, eight from each draw of torch's generator; keep those at or above the threshold."""
    count = size.numel()
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[:count].view(size) >= threshold


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, threshold: int) -> Tensor:
        keep = _random_keep(values.shape, threshold)
        ctx.save_for_backward(keep)
        ctx.scale = 256 / (256 - threshold)
        return (values * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None


class Dropout(nn.Module):
    """In training, set each element to zero with a probability and scale the others up; otherwise do nothing.

    On the CPU the probability is rounded to a multiple of 1/256 (0.1 becomes 26/256 = 0.1016) and the scale is exact
    for the rounded value, so the expectation is kept. Draws come from torch's default generator alone.

    Args:
        probability: from 0 to less than 1.

    Raises:
        ConfigError: the probability is out of range.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise ConfigError(f"`dropout` must be at least 0 and less than 1, but is {probability}. Try 0.1.")
        self.probability = probability
        self.threshold = min(round(probability * 256), 255)

    @property
    def is_active(self) -> bool:
        """True when a call would change its input."""
        return self.training and self.probability > 0

    def forward(self, values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the values, some of them set to zero."""
        if not self.is_active:
            return values
        if values.device.type != "cpu":
            return functional.dropout(values, self.probability, training=True)
        return _ByteDropout.apply(values, self.threshold)  # type: ignore[no-any-return, no-untyped-call]

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"{self.probability}"
