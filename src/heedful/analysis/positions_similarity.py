"""How alike two positions are, by how far they stand apart."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class DistanceSimilarity:
    """Cosines of all pairs of positions that stand equally far apart.

    Attributes:
        distance: in positions.
        mean: of the cosines.
        least: of the cosines; where it is the mean, distance alone decides.
        largest: of the cosines.
    """

    distance: int
    mean: float
    least: float
    largest: float


def similarities(rows: Float[Tensor, "T D"]) -> Float[Tensor, "T T"]:
    """Return the cosine of every two positions, in float64."""
    unit = torch.nn.functional.normalize(rows.double(), dim=-1)
    return unit @ unit.T


def by_distance(rows: Float[Tensor, "T D"]) -> list[DistanceSimilarity]:
    """Return the similarity at each distance, from 0 to the longest."""
    cosines = similarities(rows)
    diagonals = [cosines.diagonal(distance) for distance in range(len(rows))]
    return [
        DistanceSimilarity(distance, float(each.mean()), float(each.min()), float(each.max()))
        for distance, each in enumerate(diagonals)
    ]
