"""The k largest of many numbers, faster than sorting looks.

`torch.topk` on the CPU reads a row one number at a time. A maximum over an outer axis runs in vector registers, and the
k largest numbers lie in the k groups with the largest maxima; so the vocabulary is folded into groups first, which is
quicker where rows are many and long.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

GROUP = 8
"""Numbers of a group."""

FEW_NUMBERS = 1 << 18
"""In fewer numbers than this `torch.topk` is as fast."""


def largest(values: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """Return the largest numbers of each row, largest first, and their places; the outcome of a row is its own."""
    width = values.shape[1] // GROUP
    if values.numel() < FEW_NUMBERS or width < GROUP * count or not values.is_cpu:
        return values.topk(count, dim=1)
    return fold(values, count, width)


def fold(values: Float[Tensor, "R V"], count: int, width: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """Find the `width` groups' maxima, the groups of the `count` largest maxima, and the largest within these."""
    folded = width * GROUP
    groups = values[:, :folded].view(values.shape[0], GROUP, width)
    maxima = torch.cat([groups.amax(dim=1), values[:, folded:]], dim=1)
    chosen = maxima.topk(count, dim=1).indices
    # A number past the last whole group stands alone: its group is that number, GROUP times, all but one ruled out.
    steps = torch.arange(GROUP, device=values.device) * width
    is_rest = (chosen >= width)[:, :, None]
    places = torch.where(is_rest, chosen[:, :, None] - width + folded, chosen[:, :, None] + steps)
    members = values.gather(1, places.flatten(1)).view_as(places)
    members = members.masked_fill(is_rest & (steps > 0), float("-inf"))
    found, order = members.flatten(1).topk(count, dim=1)
    return found, places.flatten(1).gather(1, order)
