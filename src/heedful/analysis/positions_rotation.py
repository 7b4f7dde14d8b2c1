"""A step is a turn: PE(p + k) = M_k PE(p), with one block-diagonal matrix for all positions p.

For sinusoids stated in Vaswani et al. 2017, section 3.5; for rotary positions it is the definition (Su et al. 2021,
eq. 15). A pair (sin, cos) turns the other way round than a pair (cos, sin).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.positions_table import PositionTable


@dataclass(frozen=True)
class StepCheck:
    """How well one matrix carries every position k steps on.

    Attributes:
        steps: k.
        num_positions: how many positions p it was tried at.
        largest_error: of any number of ``PE(p + k) - M_k PE(p)``.
    """

    steps: int
    num_positions: int
    largest_error: float


def pair_turn(table: PositionTable, pair: int, steps: int) -> Float[Tensor, "2 2"]:
    """Return the block of M_k for a pair: a rotation by ``steps`` times its frequency."""
    assert table.frequencies is not None
    angle = table.frequencies[pair] * steps
    cosine, sine = angle.cos(), angle.sin()
    if table.kind == "sinusoidal":
        sine = -sine
    return torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])])


def step_matrix(table: PositionTable, steps: int) -> Float[Tensor, "X X"]:
    """Return M_k whole, in float64: the blocks of all pairs along the diagonal, zeros elsewhere."""
    assert table.frequencies is not None
    blocks = [pair_turn(table, pair, steps) for pair in range(len(table.frequencies))]
    whole: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return whole


def paired_rows(table: PositionTable) -> Float[Tensor, "T X"]:
    """Return the rows in float64 without a last sine that has no cosine."""
    assert table.frequencies is not None
    return table.rows[:, : 2 * len(table.frequencies)].double()


def check_step(table: PositionTable, steps: int) -> StepCheck:
    """Carry every position that has one ``steps`` on, and compare."""
    rows = paired_rows(table)
    carried = rows[: len(rows) - steps] @ step_matrix(table, steps).T
    return StepCheck(steps, len(carried), float((rows[steps:] - carried).abs().max()))
