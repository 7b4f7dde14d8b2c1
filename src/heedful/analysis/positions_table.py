"""Encodings of positions as tables, whatever makes them: formulas, a model's own layers, weights that were learned."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.multihead import SelfAttention
from heedful.attention.rotary import Rotary
from heedful.layers.positions import LearnedPositions, SinusoidalPositions, sinusoids
from heedful.models.interfaces import Model

PositionKind = Literal["sinusoidal", "learned", "rotary"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionTable:
    """A vector for each position, from 0 on.

    Attributes:
        name: where it is from.
        kind: how it is made.
        rows: float32. Rotary positions have no vectors of their own; theirs are the pair (1, 0) turned by each
            frequency, pairs side by side.
        frequencies: radians by which each pair turns at one step, float64, the fastest first; None in learned tables,
            which have no pairs.
    """

    name: str
    kind: PositionKind
    rows: Float[Tensor, "T D"]
    frequencies: Float[Tensor, " X"] | None = None

    def shortened(self, length: int) -> "PositionTable":
        """Return the first positions, or all where there are not more."""
        return PositionTable(name=self.name, kind=self.kind, rows=self.rows[:length], frequencies=self.frequencies)


def sinusoidal_table(length: int, dim: int, *, name: str = "sinusoidal") -> PositionTable:
    """Return sinusoids (Vaswani et al. 2017, section 3.5); an odd width leaves the last sine without its cosine."""
    exponents = torch.arange(0, dim // 2 * 2, 2, dtype=torch.float64) / dim
    return PositionTable(name=name, kind="sinusoidal", rows=sinusoids(0, length, dim), frequencies=10_000.0**-exponents)


def rotary_table(length: int, rotary: Rotary, *, name: str = "rotary") -> PositionTable:
    """Return what rotary positions (Su et al. 2021, section 3.2.2) make of the pairs (1, 0)."""
    num_pairs = len(rotary.frequencies)
    upright = torch.cat([torch.ones(num_pairs), torch.zeros(num_pairs)]).expand(1, 1, length, -1)
    cosines, sines = rotary(upright)[0, 0].chunk(2, dim=-1)
    rows = torch.stack([cosines, sines], dim=-1).flatten(1)
    return PositionTable(name=name, kind="rotary", rows=rows, frequencies=rotary.frequencies)


def tables_of(model: Model, length: int) -> list[PositionTable]:
    """Return every encoding of positions that a model has, from its input to its output, equal ones once.

    Args:
        model: any model.
        length: positions of those that have no end of their own.
    """
    found: dict[object, PositionTable] = {}
    for key, table in _tables(model, length):
        found.setdefault(key, table)
    return list(found.values())


def _tables(model: Model, length: int) -> Iterator[tuple[object, PositionTable]]:
    """Yield tables, each with a key that is the same for equal ones."""
    for path, module in model.named_modules():
        if isinstance(module, LearnedPositions):
            weight = module.weight
            rows = weight.detach().to("cpu", torch.float32)
            yield id(weight), PositionTable(name=f"{path}.weight", kind="learned", rows=rows)
        elif isinstance(module, SinusoidalPositions):
            dim = module.table.shape[1]
            yield ("sinusoidal", dim), sinusoidal_table(length, dim, name=path)
        elif isinstance(module, SelfAttention) and module.rotary is not None:
            key = ("rotary", tuple(module.rotary.frequencies.tolist()))
            yield key, rotary_table(length, module.rotary, name=f"{path}.rotary")
