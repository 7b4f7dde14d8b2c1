"""Rotary position embedding (Su et al. 2021, section 3.2.2): queries and keys are turned by their positions."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.errors import ConfigError


class Rotary(nn.Module):
    """Turn each pair (e, e + E/2) of a head by ``position / period ** (2 e / E)`` radians.

    The product of a turned query and a turned key then depends on the distance of their positions only.

    Args:
        head_dim: width of a head, an even number.
        period: base of the wavelengths.

    Raises:
        ConfigError: the width is odd.
    """

    def __init__(self, head_dim: int, period: float = 10_000.0) -> None:
        super().__init__()
        if head_dim % 2:
            raise ConfigError(f"`head_dim` must be even for rotary positions, but is {head_dim}. Try {head_dim + 1}.")
        # Neither a buffer nor float32: a frequency's rounding error is multiplied by the position, so that float32 is
        # off by 2e-4 at position 5,000, and a model turned to bfloat16 would take its buffers along.
        self.frequencies = period ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)

    def forward(self, vectors: Float[Tensor, "B H T E"], offset: int = 0) -> Float[Tensor, "B H T E"]:
        """Return the vectors turned; the first stands at position ``offset``."""
        positions = torch.arange(offset, offset + vectors.shape[2], device=vectors.device, dtype=torch.float64)
        angles = positions[:, None] * self.frequencies.to(vectors.device)
        cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
        first, second = vectors.chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)
