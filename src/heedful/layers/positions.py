"""How a model that reads all positions at once learns where each stands."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from heedful.attention.rotary import Rotary
from heedful.core.config import Config
from heedful.core.errors import RequestError


class SinusoidalPositionsConfig(Config):
    """Sines and cosines of many wavelengths, added to the embeddings; no limit of length."""

    kind: Literal["sinusoidal"] = "sinusoidal"


class LearnedPositionsConfig(Config):
    """A vector learned for each position.

    Attributes:
        max_positions: longest sequence it can place.
    """

    kind: Literal["learned"] = "learned"
    max_positions: PositiveInt = 512


class RotaryPositionsConfig(Config):
    """Queries and keys turned by their positions in every layer; nothing is added to the embeddings.

    Attributes:
        period: base of the wavelengths.
    """

    kind: Literal["rotary"] = "rotary"
    period: float = Field(default=10_000.0, gt=1)


class NoPositionsConfig(Config):
    """No positions at all."""

    kind: Literal["none"] = "none"


AnyPositionsConfig = Annotated[
    SinusoidalPositionsConfig | LearnedPositionsConfig | RotaryPositionsConfig | NoPositionsConfig,
    Field(discriminator="kind"),
]


class Positions(nn.Module, ABC):
    """Vectors for positions, to be added to embeddings or concatenated with them."""

    @abstractmethod
    def forward(self, hidden: Float[Tensor, "B T X"], offset: int = 0) -> Float[Tensor, "T D"]:
        """Return a vector for each of the T positions of ``hidden``, in its type; the first stands at ``offset``."""


def sinusoids(first: int, stop: int, dim: int) -> Float[Tensor, "T D"]:
    """Return ``sin(p / 10000^(2i/D))`` at the even places 2i, the cosine at the odd ones 2i + 1, for each position p.

    Vaswani et al. 2017, section 3.5.
    """
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = torch.arange(first, stop, dtype=torch.float64)[:, None] * 10_000.0**-exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim].float()


class SinusoidalPositions(Positions):
    """Sinusoids as published (Vaswani et al. 2017, section 3.5), for any length.

    Args:
        dim: width of the vectors.
        num_ready: positions computed beforehand; later ones are computed when asked for.
    """

    def __init__(self, dim: int, num_ready: int = 1024) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(0, num_ready, dim), persistent=False)
        self.table: Tensor

    def forward(self, hidden: Float[Tensor, "B T X"], offset: int = 0) -> Float[Tensor, "T D"]:
        """Return a vector for each of the T positions of ``hidden``, in its type; the first stands at ``offset``."""
        stop = offset + hidden.shape[1]
        ready = stop <= self.table.shape[0]
        rows = self.table[offset:stop] if ready else sinusoids(offset, stop, self.table.shape[1])
        return rows.to(device=hidden.device, dtype=hidden.dtype)


class LearnedPositions(Positions):
    """A vector learned for each position (Gehring et al. 2017, section 3.1).

    Args:
        dim: width of the vectors.
        max_positions: longest sequence it can place.
    """

    def __init__(self, dim: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)

    def forward(self, hidden: Float[Tensor, "B T X"], offset: int = 0) -> Float[Tensor, "T D"]:
        """Return a vector for each of the T positions of ``hidden``, in its type; the first stands at ``offset``.

        Raises:
            RequestError: the sequence is longer than the positions learned.
        """
        stop = offset + hidden.shape[1]
        if stop > self.weight.shape[0]:
            raise RequestError(
                f"A sequence of {stop} positions is longer than the {self.weight.shape[0]} that the model has learned. "
                "Shorten the line, or train with a larger `model.positions.max_positions`."
            )
        return self.weight[offset:stop].to(hidden.dtype)


def build_positions(config: AnyPositionsConfig, dim: int) -> Positions | None:
    """Return what gives vectors of width ``dim`` for the embeddings; None where the kind gives none."""
    return POSITIONS[config.kind](config, dim)


def build_rotary(config: AnyPositionsConfig, head_dim: int) -> Rotary | None:
    """Return what turns queries and keys of width ``head_dim``; None where the kind turns none."""
    return ROTATIONS[config.kind](config, head_dim)


POSITIONS: dict[str, Callable[[Any, int], Positions | None]] = {
    "sinusoidal": lambda config, dim: SinusoidalPositions(dim),
    "learned": lambda config, dim: LearnedPositions(dim, config.max_positions),
    "rotary": lambda config, dim: None,
    "none": lambda config, dim: None,
}

ROTATIONS: dict[str, Callable[[Any, int], Rotary | None]] = {
    "sinusoidal": lambda config, head_dim: None,
    "learned": lambda config, head_dim: None,
    "rotary": lambda config, head_dim: Rotary(head_dim, config.period),
    "none": lambda config, head_dim: None,
}
