"""Sinusoids as a counter: each pair of dimensions is a hand that turns slower than the one before it.

The low bits of a binary number change at every step and the high bits rarely. So do the dimensions: those of low index
are the fast ones, and carry the fine changes from one position to the next, as the low bits do.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.positions_table import PositionTable


def bits_of(length: int) -> Int[Tensor, "T X"]:
    """Return the positions as binary numbers, the lowest bit first."""
    num_bits = max(1, (length - 1).bit_length())
    return (torch.arange(length)[:, None] >> torch.arange(num_bits)) & 1


def wavelengths(table: PositionTable) -> Float[Tensor, " X"]:
    """Return after how many positions each pair is where it began."""
    assert table.frequencies is not None
    return 2 * math.pi / table.frequencies


def pairs_like_bits(table: PositionTable, num_bits: int) -> list[int]:
    """Return for each bit the pair whose wavelength is nearest (in ratio) to the bit's, which is 2, 4, 8, ...

    The fastest pair takes 2 pi positions, so that it stands for the first two bits alike.
    """
    logarithms = wavelengths(table).log2()
    return [int((logarithms - (bit + 1)).abs().argmin()) for bit in range(num_bits)]


def change_shares(table: PositionTable) -> Float[Tensor, " X"]:
    """Return the share that each pair has in the squared change from one position to the next.

    For a pair of frequency w the change is ``4 sin(w / 2)^2``, whatever the position; here it is measured.
    """
    assert table.frequencies is not None
    changes = table.rows[:, : 2 * len(table.frequencies)].double().diff(dim=0).square().mean(dim=0)
    by_pair = changes.view(-1, 2).sum(dim=1)
    return by_pair / by_pair.sum()


def bit_shares(num_bits: int) -> list[float]:
    """Return the share that each bit has in all changes of a counter: half as much as the bit below it."""
    rates = [0.5**bit for bit in range(num_bits)]
    return [rate / sum(rates) for rate in rates]
